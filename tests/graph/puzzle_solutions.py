"""How each puzzle is solved by hand: what is computed again, then which pairs of operators are pressed, in order."""

from __future__ import annotations

Press = tuple[str, str]

RECOMPUTED: dict[str, tuple[str, ...]] = {"recompute": ("_to_copy",)}

SOLUTIONS: dict[str, tuple[Press, ...]] = {
    "gate": (("sigmoid", "mul"), ("mul", "mul_1")),
    "side_input": (("add", "gelu"), ("gelu", "mul"), ("mul", "add_1")),
    "kept": (("relu", "sigmoid"), ("relu", "mul")),
    "epilogue": (("mm", "add"), ("add", "gelu")),
    "reduction": (
        ("add", "pow_1"),
        ("pow_1", "mean"),
        ("mean", "add_1"),
        ("add_1", "rsqrt"),
        ("rsqrt", "mul"),
        ("mul", "mul_1"),
    ),
    "cut": (("abs_1", "amax"), ("amax", "div"), ("div", "div_1"), ("div_1", "_to_copy")),
    "long_row": (("sub", "amax"), ("sub_1", "exp"), ("exp", "sum_1"), ("sum_1", "div")),
    # Each copy of the cast starts out in its reader's kernel.
    "recompute": (("add", "add_1"), ("add_1", "_to_copy"), ("pow_1", "mean"), ("abs_1", "amax")),
    "attention": (("mm", "mm_1"),),
    "half_layer": (
        ("add", "_to_copy"),
        ("_to_copy", "pow_1"),
        ("pow_1", "mean"),
        ("mean", "add_1"),
        ("add_1", "rsqrt"),
        ("rsqrt", "mul"),
        ("mul", "_to_copy_1"),
        ("_to_copy_1", "mul_1"),
        ("mm", "_to_copy_2"),
        ("_to_copy_2", "sigmoid"),
        ("sigmoid", "mul_2"),
        ("mul_2", "_to_copy_3"),
        ("_to_copy_3", "mul_3"),
        ("mm_2", "add_2"),
    ),
}
