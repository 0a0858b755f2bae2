"""The activations that kernels fuse, in fp32 and in the form that holds on every version of Triton.

``tl.sigmoid``, ``libdevice.tanh``, ``tl.maximum`` and ``tl.clamp`` differ between versions, the interpreter included,
on NaN or on large arguments; these do not. Beside them the same functions in PyTorch, for the references.
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import TYPE_CHECKING

from lessons_lib.base.validate import require_choice
from lessons_lib.kernels.language import tl, triton
from lessons_lib.kernels.launch import ACTIVATIONS, ActivationName

if TYPE_CHECKING:
    import torch


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)) without an overflow: the exponential is of a number that is at most 0."""
    decay = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, decay) / (1.0 + decay)


@triton.jit
def gelu_tanh(x):
    """0.5 x (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), written as x sigmoid(2 u)."""
    return x * sigmoid(1.5957691216057308 * x * (1.0 + 0.044715 * x * x))


@triton.jit
def silu(x):
    return x * sigmoid(x)


@triton.jit
def relu(x):
    """NaN stays NaN, as in PyTorch."""
    return tl.where(x < 0, 0.0, x)


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation of this name (``launch.ACTIVATIONS``), chosen while compiling."""
    if ACTIVATION == "relu":
        x = relu(x)
    elif ACTIVATION == "gelu_tanh":
        x = gelu_tanh(x)
    elif ACTIVATION == "silu":
        x = silu(x)
    return x


def torch_activation(x: torch.Tensor, activation: ActivationName) -> torch.Tensor:
    """PyTorch's own, in the dtype of ``x``.

    Raises:
        ValueError: no activation of ours.
    """
    from torch.nn import functional

    require_choice("activation", activation, ACTIVATIONS)
    if activation == "relu":
        return functional.relu(x)
    if activation == "gelu_tanh":
        return functional.gelu(x, approximate="tanh")
    return functional.silu(x) if activation == "silu" else x
