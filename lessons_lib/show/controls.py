"""The core widgets that panels are made of, each with its label in the edition's language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_bytes
from lessons_lib.base.validate import require_bool, require_choice, require_int


def int_slider(label: Text, value: int, smallest: int, largest: int) -> Any:
    """A slider over the whole numbers from ``smallest`` to ``largest``."""
    return widgets.IntSlider(
        value=value, min=smallest, max=largest, description=str(label), layout=widgets.Layout(width="300px")
    )


def size_slider(label: Text, value: int, smallest: int, largest: int) -> Any:
    """A slider over the powers of two from ``smallest`` to ``largest`` bytes; its value is in bytes."""
    return _doubling_slider(label, value, smallest, largest, format_bytes)


def power_slider(label: Text, value: int, smallest: int, largest: int) -> Any:
    """A slider over the powers of two from ``smallest`` to ``largest``."""
    return _doubling_slider(label, value, smallest, largest, str)


def _doubling_slider(label: Text, value: int, smallest: int, largest: int, written: Callable[[int], str]) -> Any:
    steps = [smallest]
    while steps[-1] < largest:
        steps.append(2 * steps[-1])
    return widgets.SelectionSlider(
        options=[(written(step), step) for step in steps],
        value=value,
        description=str(label),
        layout=widgets.Layout(width="300px"),
    )


def choice_buttons(label: Text, choices: Sequence[object], value: object) -> Any:
    """A few choices side by side, one of them pressed; a choice is a value or a (words, value) pair."""
    buttons = widgets.ToggleButtons(options=_named(choices), value=value, description=str(label))
    buttons.style.button_width = "auto"
    return buttons


def choice_list(label: Text, choices: Sequence[object], value: object) -> Any:
    """One of many choices, in a list that opens; a choice is a value or a (words, value) pair."""
    return widgets.Dropdown(
        options=_named(choices), value=value, description=str(label), layout=widgets.Layout(width="auto")
    )


def _named(choices: Sequence[object]) -> list[object]:
    return [(str(choice[0]), choice[1]) if isinstance(choice, tuple) else choice for choice in choices]


def check_box(label: Text, value: bool) -> Any:
    """A switch."""
    return widgets.Checkbox(value=value, description=str(label), indent=False, layout=widgets.Layout(width="auto"))


def push_button(label: object, press: Callable[[], object]) -> Any:
    """A button that calls ``press``."""
    button = widgets.Button(description=str(label), layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: press())
    return button


def toggle_buttons(labels: Sequence[str], pressed: Callable[[int], object]) -> list[Any]:
    """Buttons that stay down or up, all alike; ``pressed(index)`` is called when one changes, by whomever."""
    layout = widgets.Layout(width="auto", margin="2px 8px 4px 0")  # one for all: each is a message to the browser
    buttons = [widgets.ToggleButton(description=label, layout=layout) for label in labels]
    for index, button in enumerate(buttons):
        button.observe(lambda change, index=index: pressed(index), names="value")
    return buttons


def row_of(parts: list[Any]) -> Any:
    """Buttons and lists side by side and close together, wrapping where the notebook is narrow."""
    for part in parts:
        part.layout.margin = "2px 8px 4px 0"
        part.style.description_width = "initial"
    return widgets.Box(parts, layout=widgets.Layout(flex_flow="row wrap", align_items="center", max_width="760px"))


def scroll_box(part: Any, height: int) -> Any:
    """A widget that scrolls where it is higher than ``height`` pixels."""
    layout = widgets.Layout(
        max_height=f"{height}px", max_width="762px", overflow="auto", flex="0 0 auto", margin="4px 0"
    )
    return widgets.Box([part], layout=layout)


def column_of(parts: list[Any]) -> Any:
    """Widgets one below the other."""
    return widgets.VBox(parts)


def show_or_hide(part: Any, shown: bool) -> None:
    """Take a widget out of sight, or back into it."""
    part.layout.display = None if shown else "none"


def control_row(controls: list[Any]) -> Any:
    """Controls side by side, wrapping where the notebook is narrow."""
    for control in controls:
        control.layout.margin = "0 24px 4px 0"
        control.style.description_width = "initial"
    return widgets.Box(controls, layout=widgets.Layout(flex_flow="row wrap", align_items="center", max_width="760px"))


def html_view(value: str = "") -> Any:
    """Text or a picture as HTML, as wide as the notebook."""
    return widgets.HTML(value, layout=widgets.Layout(width="100%", margin="0", overflow="visible"))


def accepted_value(name: str, value: object, control: Any) -> Any:
    """``value`` as ``control`` takes it.

    Raises:
        ValueError: wrong type or out of the control's range; the message names ``name`` in both languages.
    """
    if isinstance(control, widgets.Checkbox):
        return require_bool(name, value)
    if isinstance(control, widgets.IntSlider):
        return require_int(name, value, control.min, control.max)
    # A selection: its options are values or (label, value) pairs.
    options = [option[1] if isinstance(option, tuple) else option for option in control.options]
    if all(type(option) is int for option in options):
        value = require_int(name, value)
    require_choice(name, value, options)
    return value
