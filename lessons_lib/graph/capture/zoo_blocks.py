"""The blocks of the zoo, written as a model's author would write them. ``zoo`` has their titles and sizes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def bias_gelu_mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    hidden = functional.gelu(functional.linear(x, w1, b1))
    return functional.linear(hidden, w2, b2)


def swiglu_mlp(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    gate = functional.silu(functional.linear(x, w_gate))
    up = functional.linear(x, w_up)
    return functional.linear(gate * up, w_down)


def swiglu_gate(gate: Tensor, up: Tensor) -> Tensor:
    return functional.silu(gate) * up


def gated_residual(gate: Tensor, up: Tensor, residual: Tensor) -> Tensor:
    return functional.silu(gate) * up + residual


def residual_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-5)
    return total, total * scale * weight


def residual_rmsnorm_fp32(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    wide = total.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
    return total, (wide * scale).to(x.dtype) * weight


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(functional.layer_norm(x, (x.shape[-1],), weight, bias))


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cos + turned * sin


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ v


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def lora_linear(x: Tensor, weight: Tensor, down: Tensor, up: Tensor) -> Tensor:
    return functional.linear(x, weight) + 2.0 * functional.linear(functional.linear(x, down), up)


def moe_router(x: Tensor, w_router: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(functional.linear(x, w_router).float(), dim=-1)
    chosen, experts = torch.topk(weights, 2, dim=-1)
    return (chosen / chosen.sum(-1, keepdim=True)).to(x.dtype), experts


def conv_bn_relu(x: Tensor, kernel: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    y = functional.conv2d(x, kernel, padding=1)
    return functional.relu(functional.batch_norm(y, mean, var, weight, bias, training=False))


def residual_dropout(x: Tensor, residual: Tensor, bias: Tensor, keep: Tensor) -> Tensor:
    return residual + (x + bias) * keep / 0.9


def layer_scale(x: Tensor, residual: Tensor, gamma: Tensor) -> Tensor:
    return residual + gamma * x


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(logits, target)


def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    gates = functional.linear(x, w_ih, b_ih) + functional.linear(h, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, dim=1)
    c_next = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c_next), c_next


def einsum_at_once(meta: Tensor, a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    # out[n, w, p] = sum over u, v of meta[p] a[n, u, p] b[n, v, p] weight[u, v, w, p]
    pair = a[:, :, None, None] * b[:, None, :, None]
    return (meta * pair * weight).sum((1, 2))


def einsum_step_by_step(meta: Tensor, a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
    # the same sum, over u first
    over_u = (a[:, :, None, None] * weight).sum(1)
    return (meta * b[:, :, None] * over_u).sum(1)


# -- blocks of the puzzles ------------------------------------------------------------------------------------


def sigmoid_gate(gate: Tensor, up: Tensor) -> Tensor:
    return gate * torch.sigmoid(gate) * up


def scaled_residual(x: Tensor, residual: Tensor, bias: Tensor, scale: Tensor) -> Tensor:
    return residual + scale * functional.gelu(x + bias)


def relu_fan_out(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    kept = functional.relu(x)  # the backward pass will want it
    return kept, torch.sigmoid(kept), kept * kept


def gemm_gelu_gemm(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor) -> Tensor:
    return functional.gelu(x @ w1 + b1) @ w2


def quantized_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(1, keepdim=True) / 127
    q = (x / scale).to(torch.int8)
    return scale, q.sum(0)


def long_softmax(logits: Tensor, penalty: Tensor) -> Tensor:
    shifted = logits - penalty
    grown = torch.exp(shifted - shifted.amax(-1, keepdim=True))
    return grown / grown.sum(-1, keepdim=True)


def activation_statistics(x: Tensor, attention: Tensor, mlp: Tensor) -> tuple[Tensor, Tensor]:
    wide = (x + attention + mlp).float()
    return wide.pow(2).mean(1), wide.abs().amax(0)


def llama_half_layer(
    x: Tensor, attention: Tensor, weight: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor
) -> Tensor:
    total = x + attention
    wide = total.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
    normal = (wide * scale).to(x.dtype) * weight
    gate = functional.silu(normal @ w_gate)
    return total + (gate * (normal @ w_up)) @ w_down
