"""A decoder of Llama's form, written out as in its first public code: what the benchmarks of graphs capture."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Widths:
    """Sizes of a decoder; the defaults are those of Llama 2 with 70 billion weights, layers aside."""

    hidden: int = 8192
    intermediate: int = 28672
    heads: int = 64
    key_heads: int = 8
    vocabulary: int = 32000

    @property
    def head(self) -> int:
        """Elements of one head."""
        return self.hidden // self.heads


class RMSNorm(nn.Module):
    """With the mean in single precision."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: the halves of each head turned against each other."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Grouped queries, causal, as matrix products with a softmax between them."""

    def __init__(self, widths: Widths) -> None:
        super().__init__()
        self.widths = widths
        keys = widths.key_heads * widths.head
        self.q = nn.Linear(widths.hidden, widths.hidden, bias=False)
        self.k = nn.Linear(widths.hidden, keys, bias=False)
        self.v = nn.Linear(widths.hidden, keys, bias=False)
        self.out = nn.Linear(widths.hidden, widths.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        widths = self.widths

        def heads(y: Tensor, count: int) -> Tensor:
            return y.view(batch, length, count, widths.head).transpose(1, 2)

        q = rotated(heads(self.q(x), widths.heads), cos, sin)
        k = rotated(heads(self.k(x), widths.key_heads), cos, sin)
        v = heads(self.v(x), widths.key_heads)
        repeat = widths.heads // widths.key_heads
        k, v = (y.repeat_interleave(repeat, dim=1) for y in (k, v))
        scores = q @ k.transpose(2, 3) / widths.head**0.5 + mask
        weights = torch.softmax(scores.float(), dim=-1).to(x.dtype)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, widths.hidden))


class Layer(nn.Module):
    """Attention and a gated MLP, each behind a norm and beside a residual."""

    def __init__(self, widths: Widths) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = RMSNorm(widths.hidden), RMSNorm(widths.hidden)
        self.attention = Attention(widths)
        self.gate = nn.Linear(widths.hidden, widths.intermediate, bias=False)
        self.up = nn.Linear(widths.hidden, widths.intermediate, bias=False)
        self.down = nn.Linear(widths.intermediate, widths.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x), cos, sin, mask)
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Tokens to logits.

    Args:
        layers: how many.
        narrower: by how much each layer's MLP is narrower than the one before: layers that differ do not fold.
    """

    def __init__(self, layers: int, narrower: int = 0) -> None:
        super().__init__()
        self.widths = wide = Widths()
        self.embedding = nn.Embedding(wide.vocabulary, wide.hidden)
        self.layers = nn.ModuleList(
            Layer(replace(wide, intermediate=wide.intermediate - number * narrower)) for number in range(layers)
        )
        self.norm = RMSNorm(self.widths.hidden)
        self.head = nn.Linear(self.widths.hidden, self.widths.vocabulary, bias=False)

    def forward(self, tokens: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.head(self.norm(x))
