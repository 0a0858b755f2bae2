"""What a function's example inputs are called: ``x``, ``states[0]``, ``batch['mask']``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arguments:
    """How a function's arguments are taken apart.

    Args:
        signature: of the function; ``None`` where Python does not know it, as of a built-in one.
        flat: ``torch.utils._pytree.tree_flatten_with_path``.
    """

    signature: inspect.Signature | None
    flat: Callable[[Any], tuple[list[tuple[Any, Any]], Any]]

    @classmethod
    def of(cls, torch: Any, function: Callable[..., Any]) -> Arguments:
        """Those of a function or module."""
        target = function.forward if isinstance(function, torch.nn.Module) else function
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError):
            signature = None
        return cls(signature, torch.utils._pytree.tree_flatten_with_path)

    def ordered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with its arguments in the order of the signature; unchanged where they do not fit it."""
        bound = self._bound(args, kwargs)
        return (tuple(args), dict(kwargs)) if bound is None else (bound.args, dict(bound.kwargs))

    def leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Every tensor or constant in the arguments, with its name."""
        leaves = []
        for name, value in self._named(args, kwargs):
            for path, leaf in self.flat(value)[0]:
                leaves.append((name + "".join(str(step) for step in path), leaf))
        return leaves

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        bound = self._bound(args, kwargs)
        if bound is None:
            return [*((f"input{index}", value) for index, value in enumerate(args)), *kwargs.items()]
        named: list[tuple[str, Any]] = []
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                named += value.items()
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                named += [(f"{name}[{index}]", item) for index, item in enumerate(value)]
            else:
                named.append((name, value))
        return named

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments | None:
        try:
            return self.signature.bind(*args, **kwargs) if self.signature is not None else None
        except TypeError:
            return None
