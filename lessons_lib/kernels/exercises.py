"""Lesson 05: the guesses, the exercise on bytes and the quiz; the checker of the learner's kernel is ``checker``."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.units import format_ratio
from lessons_lib.kernels.launch import CHAIN_OPERATORS
from lessons_lib.kernels.losing_report import LOSING_OPTIONS
from lessons_lib.show.exercise import Feedback, FunctionExercise, Mistake
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote
from lessons_lib.traffic.model import chain_traffic

_LESSON = "05"

# -- guesses ----------------------------------------------------------------------------------------------------


def kernel_vote() -> Vote:
    """The guess before the prediction: the bytes of four kernels over those of one; ``value`` is the ratio."""
    words = Text(
        zh="y = residual + scale * gelu(x + bias)，x、residual、y 各 64 MiB。四个算子分四个核函数做，逻辑读写是一个核函数的几倍？",
        en="y = residual + scale * gelu(x + bias), with x, residual and y of 64 MiB each. Four kernels, one per operator: "
        "how many times as many bytes do they move as a single kernel?",
    )
    fused, halves = (
        chain_traffic(len(CHAIN_OPERATORS), 1, groups, side_inputs=1)["bytes_ratio"] for groups in (1, 2)
    )
    # Fewer from four kernels to one; from two kernels to one; and what the count without a side input would say.
    ratios = (fused / halves, fused, float(len(CHAIN_OPERATORS)))
    return Vote(
        words,
        [(Text(zh=format_ratio(ratio), en=format_ratio(ratio)), ratio) for ratio in ratios],
        key="kernel_vote",
        lesson=_LESSON,
    )


def losing_vote() -> Vote:
    """The guess before the losing case: a GEMM and its epilogue in one kernel on a T4; ``value`` is a word."""
    words = Text(
        zh="在 T4 上算 gelu(x @ w + bias)，fp16。全部融合成一个 Triton 核函数，和“库的矩阵乘 + 一个尾声核函数”相比？",
        en="gelu(x @ w + bias) in fp16 on a T4. How does everything in one Triton kernel compare with the library's GEMM "
        "followed by one epilogue kernel?",
    )
    options = [(label, value) for value, label in LOSING_OPTIONS.items()]
    return Vote(words, options, key="losing_vote", lesson=_LESSON)


# -- exercise: a function ---------------------------------------------------------------------------------------


def _gate_bytes(rows: int, columns: int, element_bytes: int, kernels: int) -> int:
    matrix = rows * columns * element_bytes
    return chain_traffic(3, matrix, kernels, side_inputs=1)["total_bytes"] + columns * element_bytes


def _case(rows: int, columns: int, element_bytes: int, kernels: int) -> dict[str, int]:
    return {"rows": rows, "columns": columns, "element_bytes": element_bytes, "kernels": kernels}


_GATE_BYTES = FunctionExercise(
    reference=_gate_bytes,
    cases=[
        _case(4096, 8192, 2, 3),
        _case(4096, 8192, 2, 1),
        _case(4096, 8192, 2, 2),
        _case(4096, 8192, 4, 1),
        _case(1, 1000, 2, 3),
        _case(7, 1, 4, 1),
    ],
    mistakes=[
        Mistake(
            lambda rows, columns, element_bytes, kernels: (2 * kernels + 1) * rows * columns * element_bytes,
            Text(
                zh="bias 还没有算：它只有 columns 个元素，但也要读一遍。",
                en="bias is missing: it has only columns elements, but it is read as well.",
            ),
        ),
        Mistake(
            lambda rows, columns, element_bytes, kernels: (2 * kernels + 2) * rows * columns * element_bytes,
            Text(
                zh="bias 被当成了矩阵：它是一个 columns 长的向量。",
                en="bias was counted as a matrix: it is a vector of columns elements.",
            ),
        ),
        Mistake(
            lambda rows, columns, element_bytes, kernels: (2 * kernels * rows + 1) * columns * element_bytes,
            Text(
                zh="up 还没有算：最后一个核函数读两个矩阵，写一个。",
                en="up is missing: the last kernel reads two matrices and writes one.",
            ),
        ),
        Mistake(
            lambda rows, columns, element_bytes, kernels: ((kernels + 2) * rows + 1) * columns * element_bytes,
            Text(
                zh="核函数之间的中间张量要写一次、读一次，一共两次。",
                en="The intermediate tensor between two kernels is written once and read once: that is twice.",
            ),
        ),
        Mistake(
            lambda rows, columns, element_bytes, kernels: (7 * rows + 1) * columns * element_bytes,
            Text(
                zh="这是三个核函数的读写；核函数少了，中间张量也少。",
                en="That is the traffic of three kernels; with fewer kernels there are fewer intermediate tensors.",
            ),
        ),
        Mistake(
            lambda rows, columns, element_bytes, kernels: ((2 * kernels + 1) * rows + 1) * columns,
            Text(zh="这是元素的个数，还要乘 element_bytes。", en="That counts elements: multiply by element_bytes."),
        ),
    ],
    hints=(
        Text(
            zh="先数矩阵：分三个核函数时，各读什么、写什么？2 + 2 + 3 = 7 个。",
            en="Count matrices first: what do three kernels read and write? 2 + 2 + 3 = 7 of them.",
        ),
        Text(
            zh="gate、up 各读一次，y 写一次，怎么融合都省不掉；kernels 个核函数之间有 kernels - 1 个中间张量，各两次。",
            en="gate and up are read and y is written however it is fused; kernels - 1 intermediate tensors lie between the "
            "kernels and move twice each.",
        ),
        Text(
            zh="((2 * (kernels - 1) + 3) * rows + 1) * columns * element_bytes；其中的 1 是 bias。",
            en="((2 * (kernels - 1) + 3) * rows + 1) * columns * element_bytes, where the 1 is bias.",
        ),
    ),
    done=Text(
        zh="7 比 3，约 2.33 倍：bias 几乎不占分量，up 是省不掉的旁路输入。",
        en="Seven against three, about 2.33×: bias hardly counts, and up is a side input that no fusion saves.",
    ),
    key="check_fused_bytes",
    lesson=_LESSON,
)


def check_fused_bytes(attempt: object) -> Feedback:
    """Check the learner's ``gate_bytes(rows, columns, element_bytes, kernels)`` of y = silu(gate + bias) * up.

    Three operators, bias add, SiLU and multiplication, in 1, 2 or 3 kernels.
    """
    return _GATE_BYTES.check(attempt)


# -- quiz -------------------------------------------------------------------------------------------------------


def kernel_quiz() -> Quiz:
    """Three questions on what a compiler's report says, where intermediates live, and what a launch costs."""
    return Quiz([_compiled(), _no_shared_memory(), _launches()], key="kernel_quiz", lesson=_LESSON)


def _compiled() -> Question:
    return Question(
        Text(
            zh="一个矩阵乘核函数为 MI300X 编译通过了，一个线程块要 147,456 字节共享内存；MI300X 最多给 65,536 字节。启动时会怎样？",
            en="A GEMM kernel has compiled for an MI300X and takes 147,456 bytes of shared memory per block. An MI300X gives a "
            "block 65,536 at most. What happens at the launch?",
        ),
        (
            Choice(
                Text(
                    zh="能运行，放不下的部分溢出到显存，慢一些",
                    en="It runs; the rest spills to device memory, slower",
                ),
                Text(
                    zh="会溢出的是寄存器，编译时就定了；共享内存不会溢出，不够就启动不了。",
                    en="Registers spill, and that is settled at compile time. Shared memory does not spill: without enough of "
                    "it there is no launch.",
                ),
            ),
            Choice(
                Text(zh="驱动会换一个小一点的数据块", en="The driver picks a smaller tile"),
                Text(
                    zh="数据块的大小是编译期常量，已经写进了机器码，没有人会改它。",
                    en="The tile is a compile-time constant and part of the machine code: nobody changes it.",
                ),
            ),
            Choice(
                Text(zh="启动失败", en="The launch fails"),
                Text(
                    zh="编译器不核对这块 GPU 的上限；要拿报告里的数和上限比。换小一点的数据块或少一级流水。",
                    en="The compiler does not check this GPU's limit: compare the report with it. Take a smaller tile or fewer "
                    "stages.",
                ),
                right=True,
            ),
        ),
    )


def _no_shared_memory() -> Question:
    return Question(
        Text(
            zh="四个逐元素算子融合成一个核函数，编译报告说共享内存 0 字节。中间结果在哪里？",
            en="Four elementwise operators are fused into one kernel, and the report says 0 bytes of shared memory. Where "
            "are the intermediate results?",
        ),
        (
            Choice(
                Text(zh="在显存里，0 说明没有融合成", en="In device memory: 0 means that nothing was fused"),
                Text(
                    zh="一次启动里，它们从没写出去过：三份中间张量的写和读都没有了。",
                    en="Within one launch they are never written out: three intermediate tensors are neither written nor read.",
                ),
            ),
            Choice(
                Text(zh="在寄存器里", en="In registers"),
                Text(
                    zh="每个线程只用自己那几个元素，不必和别的线程交换，所以用不着共享内存。",
                    en="A thread needs only its own elements and exchanges nothing with others, so it needs no shared memory.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="在 L2 缓存里", en="In the L2 cache"),
                Text(
                    zh="缓存里放的是读写显存的数据；中间结果没有写过显存，连地址也没有，进不了 L2。",
                    en="Caches hold what is read from and written to device memory. These values have no address there.",
                ),
            ),
        ),
    )


def _launches() -> Question:
    return Question(
        Text(
            zh="四个核函数融合成一个，每个张量 64 MiB，T4 上每个核函数要跑 0.4 毫秒以上；一次启动要花主机 5 微秒。"
            "单是少启动三次，能快多少？",
            en="Four kernels become one, on 64 MiB tensors; on a T4 each takes 0.4 ms or more, and a launch takes the host 5 "
            "µs. What do three fewer launches gain by themselves?",
        ),
        (
            Choice(
                Text(zh="几乎没有，快是因为少了读写", en="Next to nothing: the gain is in the bytes"),
                Text(
                    zh="启动只在 GPU 等主机的时候才花时间，例如张量很小的时候。",
                    en="A launch costs time only where the GPU waits for the host, as with tiny tensors.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="15 微秒", en="15 µs"),
                Text(
                    zh="GPU 还在跑上一个，主机已经把下一个排进队列了：启动的时间被盖住了。",
                    en="The host queues the next launch while the GPU runs the one before: the time is hidden.",
                ),
            ),
            Choice(
                Text(zh="四分之三，启动是大头", en="Three quarters: launches are most of it"),
                Text(
                    zh="5 微秒对 400 微秒，大头是读写。",
                    en="5 µs against 400 µs: most of it is reading and writing.",
                ),
            ),
        ),
    )
