"""Lesson 01: the guesses, the exercises and the quiz."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.show.exercise import Feedback, FunctionExercise, Mistake, ValueExercise
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote
from lessons_lib.traffic.model import Operator, chain_traffic, plan_traffic

_LESSON = "01"

# -- guesses ----------------------------------------------------------------------------------------------------


def traffic_vote() -> Vote:
    """The guess before the formula: intermediate bytes of four operators in four kernels; ``value`` in bytes."""
    words = Text(
        zh="4 个逐元素算子，每个张量 64 MiB，一个算子一个核函数。中间张量的读写一共是多少？",
        en="Four elementwise operators on 64 MiB tensors run as four kernels. How many bytes are written and "
        "read for intermediate tensors in all?",
    )
    return Vote(
        words,
        [(Text(zh=f"{mib} MiB", en=f"{mib} MiB"), mib * MIB) for mib in (192, 256, 384, 512)],
        key="traffic_vote",
        lesson=_LESSON,
    )


def lab_vote() -> Vote:
    """The guess before the lab: how many times faster one tiled pass is than four passes; ``value`` is the ratio."""
    words = Text(
        zh="在这台机器上，四个算子逐块一遍做完，速度是分四遍做的几倍？",
        en="On this machine, how many times faster is one tiled pass over the data than four passes?",
    )
    ratios = (0.9, 1.0, 1.5, 2.0, 3.0, 4.0)
    labels = [Text(zh="更慢", en="slower"), Text(zh="一样", en="the same")]
    labels += [Text(zh=f"{ratio:g} 倍", en=f"{ratio:g}×") for ratio in ratios[2:]]
    return Vote(words, list(zip(labels, ratios, strict=True)), key="lab_vote", lesson=_LESSON)


# -- exercise 1: a function -------------------------------------------------------------------------------------


def _total_bytes(num_ops: int, tensor_bytes: int, fused_groups: int, side_inputs: int) -> int:
    return chain_traffic(num_ops, tensor_bytes, fused_groups, side_inputs)["total_bytes"]


_CHAIN = FunctionExercise(
    reference=_total_bytes,
    cases=[
        {"num_ops": 4, "tensor_bytes": 64 * MIB, "fused_groups": 4, "side_inputs": 0},
        {"num_ops": 4, "tensor_bytes": 64 * MIB, "fused_groups": 1, "side_inputs": 0},
        {"num_ops": 4, "tensor_bytes": 64 * MIB, "fused_groups": 4, "side_inputs": 1},
        {"num_ops": 4, "tensor_bytes": 64 * MIB, "fused_groups": 2, "side_inputs": 1},
        {"num_ops": 12, "tensor_bytes": 3, "fused_groups": 5, "side_inputs": 7},
        {"num_ops": 1, "tensor_bytes": 1, "fused_groups": 1, "side_inputs": 0},
    ],
    mistakes=[
        Mistake(
            lambda num_ops, tensor_bytes, fused_groups, side_inputs: 2 * (fused_groups - 1) * tensor_bytes,
            Text(
                zh="这只是中间读写：输入、输出和旁路输入还没有算。",
                en="That is intermediate traffic alone: input, output and side inputs are missing.",
            ),
        ),
        Mistake(
            lambda num_ops, tensor_bytes, fused_groups, side_inputs: (2 * num_ops + side_inputs) * tensor_bytes,
            Text(
                zh="你是按算子的个数算的；读写发生在组与组之间，要按组的个数算。",
                en="You counted by operators; traffic comes from group boundaries, so count by groups.",
            ),
        ),
        Mistake(
            lambda num_ops, tensor_bytes, fused_groups, side_inputs: 2 * fused_groups * tensor_bytes,
            Text(zh="旁路输入还没有算。", en="The side inputs are missing."),
        ),
        Mistake(
            lambda num_ops, tensor_bytes, fused_groups, side_inputs: 2 * (fused_groups + side_inputs) * tensor_bytes,
            Text(zh="旁路输入只读一次，没有人把它写回去。", en="A side input is read once; nobody writes it back."),
        ),
        Mistake(
            lambda num_ops, tensor_bytes, fused_groups, side_inputs: (fused_groups + 1 + side_inputs) * tensor_bytes,
            Text(
                zh="每个组间边界的张量要写一次、读一次，一共两次。",
                en="The tensor at a group boundary is written once and read once: that is twice.",
            ),
        ),
    ],
    hints=(
        Text(
            zh="先数组间边界：fused_groups 个组之间有几个边界？",
            en="Count the group boundaries first: how many lie between fused_groups groups?",
        ),
        Text(
            zh="每个边界上的张量写一次、读一次；链的输入读一次，输出写一次，每个旁路输入读一次。",
            en="Each boundary moves its tensor twice; the chain's input is read once, its output written once, "
            "each side input read once.",
        ),
        Text(
            zh="合起来是 (2 × (fused_groups - 1) + 2 + side_inputs) × tensor_bytes；num_ops 不出现。",
            en="Together: (2 x (fused_groups - 1) + 2 + side_inputs) x tensor_bytes; num_ops does not appear.",
        ),
    ),
    done=Text(
        zh="注意 num_ops 没有出现：决定读写的是组，不是算子。",
        en="Note that num_ops does not appear: groups decide the traffic, not operators.",
    ),
    key="check_total_bytes",
    lesson=_LESSON,
)


def check_total_bytes(attempt: object) -> Feedback:
    """Check the learner's ``total_bytes(num_ops, tensor_bytes, fused_groups, side_inputs)``."""
    return _CHAIN.check(attempt)


# -- exercise 2: a number worked out by hand --------------------------------------------------------------------


def _swiglu_saved_mib() -> int:
    """Saved MiB, counted: sigmoid, mul, mul on 32 MiB tensors, three kernels against one."""
    graph = (
        Operator("sigmoid", ("gate",), "s"),
        Operator("mul_1", ("gate", "s"), "silu"),
        Operator("mul_2", ("silu", "up"), "y"),
    )
    sizes = dict.fromkeys(("gate", "s", "silu", "up", "y"), 32 * MIB)
    names = [operator.name for operator in graph]
    apart = plan_traffic(graph, [[name] for name in names], sizes, outputs=["y"])
    fused = plan_traffic(graph, [names], sizes, outputs=["y"])
    return (apart["total_bytes"] - fused["total_bytes"]) // MIB


_SWIGLU = ValueExercise(
    answer=_swiglu_saved_mib(),
    mistakes={
        128: Text(
            zh="128 = 2 × 2 × 32，是组间边界公式给出的值。公式漏了一次读："
            "gate 在分开时被两个核函数各读一次，融合后只读一次。",
            en="128 = 2 x 2 x 32 is what the boundary formula gives. It misses a read: unfused, two kernels "
            "each read gate; fused, it is read once.",
        ),
        256: Text(
            zh="这是不融合时的总读写；题目问的是省下多少。",
            en="That is the total when nothing is fused; the question is how much is saved.",
        ),
        96: Text(
            zh="这是融合后的总读写；题目问的是省下多少。",
            en="That is the total when all is fused; the question is how much is saved.",
        ),
        64: Text(
            zh="64 是从两个核函数（silu、mul）到一个省下的；这里是从三个核函数到一个。",
            en="64 is the saving from two kernels (silu, mul) to one; here you start from three.",
        ),
    },
    hints=(
        Text(
            zh="逐个核函数列出它读什么、写什么；每个张量都是 32 MiB。",
            en="Kernel by kernel, list what it reads and what it writes; every tensor is 32 MiB.",
        ),
        Text(
            zh="三个核函数：读 gate 写 s；读 gate、s 写 silu；读 silu、up 写 y。一共 8 次。",
            en="Three kernels: read gate, write s; read gate and s, write silu; read silu and up, write y. Eight in all.",
        ),
        Text(
            zh="融合后：读 gate、up，写 y，一共 3 次。差是 5 × 32 MiB。",
            en="Fused: read gate and up, write y. Three in all. The difference is 5 x 32 MiB.",
        ),
    ),
    done=Text(
        zh="256 − 96 = 160 MiB：两个算子共用的输入 gate 也少读了一次，边界公式看不到这一点。",
        en="256 - 96 = 160 MiB: the second read of a shared input is saved too; the boundary formula cannot see it.",
    ),
    key="check_swiglu_saved",
    lesson=_LESSON,
)


def check_swiglu_saved(attempt: object) -> Feedback:
    """Check the MiB saved by fusing sigmoid, mul, mul on 32 MiB tensors into one kernel."""
    return _SWIGLU.check(attempt)


# -- quiz -------------------------------------------------------------------------------------------------------


def traffic_quiz() -> Quiz:
    """Three questions on what fusing does to traffic and what it does not."""
    return Quiz([_in_place(), _graphs(), _training()], key="traffic_quiz", lesson=_LESSON)


def _in_place() -> Question:
    return Question(
        Text(
            zh="四个逐元素算子（张量 64 MiB）都改成原地（in-place）执行，仍是四个核函数。逻辑读写怎样变？",
            en="Four elementwise operators on 64 MiB tensors are made in-place; they are still four kernels. What "
            "happens to logical traffic?",
        ),
        (
            Choice(
                Text(zh="降到四分之一，因为只剩一块缓冲区", en="It falls to a quarter: only one buffer is left"),
                Text(
                    zh="缓冲区少了，省的是容量；每个核函数照样把它读一遍、写一遍。",
                    en="Fewer buffers save capacity; every kernel still reads that buffer and writes it.",
                ),
            ),
            Choice(
                Text(zh="不变", en="It stays the same"),
                Text(
                    zh="四遍读、四遍写，仍是 8 × 64 MiB。容量峰值和读写量是两回事。",
                    en="Four reads and four writes, still 8 x 64 MiB. Peak memory and traffic are different things.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="减半，因为省掉了写", en="It halves: the writes are gone"),
                Text(
                    zh="原地执行也要写，只是写回原来的地址。",
                    en="In-place operators write too, to the address they read from.",
                ),
            ),
        ),
    )


def _graphs() -> Question:
    return Question(
        Text(
            zh="CUDA graph 把一串启动录下来，之后一次提交、整串重放。这样重放同样的四个核函数，省下的是什么？",
            en="A CUDA graph records a run of launches and replays them with one submission. What does replaying the "
            "same four kernels save?",
        ),
        (
            Choice(
                Text(zh="中间读写，因为四个核函数成了一个", en="Intermediate traffic: four kernels become one"),
                Text(
                    zh="graph 里仍是四个核函数，t1 到 t3 照样写出、读回。",
                    en="The graph still holds four kernels; t1 to t3 are still written and read.",
                ),
            ),
            Choice(
                Text(zh="启动次数降到 1，读写也降到 128 MiB", en="Launches fall to 1 and traffic to 128 MiB"),
                Text(
                    zh="CPU 只提交一次，但核函数一个没少，读写一个字节也没少。",
                    en="The CPU submits once, but all four kernels and all their bytes are still there.",
                ),
            ),
            Choice(
                Text(zh="启动开销；读写一个字节也没少", en="Launch overhead, but not one byte of traffic"),
                Text(
                    zh="所以张量很小、启动开销占大头时它有用；张量大时几乎看不出。",
                    en="It helps where tensors are tiny and launches dominate; with large tensors it hardly shows.",
                ),
                right=True,
            ),
        ),
    )


def _training() -> Question:
    return Question(
        Text(
            zh="推理时融合成一个核函数、中间读写为 0 的链，拿去训练会怎样？",
            en="A chain is fused into one kernel, with no intermediate traffic at inference. What changes in "
            "training?",
        ),
        (
            Choice(
                Text(zh="中间读写仍是 0，前向代码没变", en="Nothing: the forward code is the same"),
                Text(
                    zh="反向要用到某些中间值：要么前向把它们写出去，要么反向重算。",
                    en="The backward pass needs some intermediate values: either forward writes them, or "
                    "backward recomputes them.",
                ),
            ),
            Choice(
                Text(
                    zh="反向要用的张量还得写出，或在反向里重算",
                    en="What backward needs is written after all, or recomputed",
                ),
                Text(
                    zh="为反向保存的张量也是输出，融合省不掉；重算则是多做运算、少做读写。",
                    en="A tensor saved for backward is an output, which no fusion removes; recompute trades "
                    "operations for bytes.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="不能融合，训练必须逐个算子执行", en="No fusion at all: training runs operators one by one"),
                Text(
                    zh="训练的计算图同样可以融合，只是输出更多，能省的更少。",
                    en="Training graphs are fused too; they have more outputs, so there is less to save.",
                ),
            ),
        ),
    )
