"""What the course's panels ask before they open in a workshop: the first question that the lesson asks above each.

The form asks it, and a class report repeats it. Panels of a learner's own are not here: they ask for any guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lessons_lib.base.guess import GuessedNumber, number_in
from lessons_lib.base.text import Text


@dataclass(frozen=True)
class Question:
    """A question, and in which unit it wants a number: ``"MiB"``, ``"×"``, ``""`` for a count, ``None`` for words."""

    words: Text
    unit: str | None = None

    def number_in(self, guess: str) -> GuessedNumber | None:
        """The number with which ``guess`` answers; ``None`` where there is none, or where words are wanted."""
        return None if self.unit is None else number_in(guess, self.unit)


# By the name under which a panel notes its guess.
QUESTIONS: Mapping[str, Question] = {
    "TrafficPanel": Question(
        Text(
            zh="6 个算子分成 3 组，每个张量 64 MiB，中间读写是多少？",
            en="Six operators in three groups, 64 MiB tensors: how much intermediate traffic?",
        ),
        "MiB",
    ),
    "EpiloguePanel": Question(
        Text(
            zh="gelu(x @ w + b)，K = 1024，A100：字节之比是 3.67，时间之比是多少？",
            en="gelu(x @ w + b), K = 1024, on an A100: bytes fall 3.67×. How many times faster does it get?",
        ),
        "×",
    ),
    "ReusePanel": Question(
        Text(
            zh="数据块要读 3 次，预算 96 KiB。它从 64 KiB 加到 128 KiB，省下的读从多少变成多少？",
            en="A tile is read three times and the budget is 96 KiB. The tile grows from 64 KiB to 128 KiB: how do the "
            "avoided reads change?",
        )
    ),
    "DecisionPanel": Question(
        Text(
            zh="三条通过、一条未核对，结论是什么？",
            en="Three pass and one is not checked: what is the conclusion?",
        )
    ),
    "DecisionPanel.evidence": Question(
        Text(
            zh="没有 GPU 时，四个条件里哪几条仍是“未核对”？",
            en='Without a GPU, which of the four conditions stay "not checked"?',
        )
    ),
    "LayoutPanel": Question(
        Text(
            zh="融合每次调用省 8 MiB。32 MiB 的权重，装载时转换一次：第几次调用打平？",
            en="The fusion saves 8 MiB per call. A 32 MiB weight, converted once at loading: at which call does it break "
            "even?",
        ),
        "",
    ),
    "CompilePanel": Question(
        Text(
            zh="编译 4 秒，每次调用省 86 µs：要调用多少次才打平？",
            en="It takes 4 seconds to compile and saves 86 µs per call: how many calls does it take to break even?",
        ),
        "",
    ),
    "GraphCanvas.gated residual": Question(
        Text(
            zh="只融合 sigmoid 和第一个 mul，省多少？",
            en="Fuse only sigmoid and the first mul: how much does that save?",
        ),
        "MiB",
    ),
    "GraphCanvas.swiglu_mlp": Question(
        Text(
            zh="第一个矩阵乘（mm）能不能和它后面的 to float32 放进一个核函数？能省多少？",
            en="Can the first GEMM (mm) share a kernel with the to float32 that follows it? What would that save?",
        ),
        "MiB",
    ),
    "GraphCanvas.my_model": Question(
        Text(zh="torch.compile 会留下几个核函数？", en="How many kernels will torch.compile leave?"), ""
    ),
    "TileWalkPanel": Question(
        Text(
            zh="chain 的张量有 24 行 50 列，数据块 16 × 16：第 7 个程序（从 0 数起）的 256 个位置里，有几个越界？",
            en="chain works on 24 rows and 50 columns in tiles of 16 × 16. Of the 256 lanes of program 7, counted from 0, "
            "how many lie outside?",
        ),
        "",
    ),
    "CompilerPanel": Question(
        Text(
            zh="chain 的共享内存是 0 字节。linear 也是吗？为什么？",
            en="chain takes 0 bytes of shared memory. Does linear, too? Why?",
        )
    ),
}
