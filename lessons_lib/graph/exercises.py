"""Lesson 04: the guesses, the exercise on the bytes of a kernel, and the quiz."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.graph.grouping import unfused
from lessons_lib.graph.recorded import recorded_block
from lessons_lib.show.exercise import Feedback, FunctionExercise, Mistake
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote

Wires = Mapping[str, tuple[Collection[str], Collection[str]]]

_LESSON = "04"

# -- guesses ----------------------------------------------------------------------------------------------------


def graph_vote() -> Vote:
    """The guess before the first graph: MiB that fusing its four operators saves; ``value`` is the number."""
    words = Text(
        zh="y = silu(gate) × up + residual，拆成 sigmoid、mul、mul、add 四个算子，每个张量 32 MiB。四个核函数融合成一个，逻辑读写"
        "少多少？",
        en="y = silu(gate) × up + residual as four operators, sigmoid, mul, mul and add, on tensors of 32 MiB each. How much "
        "logical traffic does one kernel save over four?",
    )
    options = (192, 224, 352)  # three boundaries, each written and read; the truth; everything that four kernels move
    return Vote(
        words, [(Text(zh=f"{mib} MiB", en=f"{mib} MiB"), mib) for mib in options], key="graph_vote", lesson=_LESSON
    )


def compiler_vote() -> Vote:
    """The guess before the SwiGLU MLP is compared: kernels left by ``torch.compile``; ``value`` is their number."""
    block = recorded_block("swiglu_mlp")
    eager = len(unfused(block.graph))
    words = Text(
        zh=f"SwiGLU 的 MLP：三个矩阵乘，加上 silu 和 mul，PyTorch 逐个启动 {eager} 次。torch.compile 之后还剩几次？",
        en=f"The SwiGLU MLP, three GEMMs with silu and mul, takes eager PyTorch {eager} launches. How many are left after "
        "torch.compile?",
    )
    options = sorted({1, len(block.best.grouping), len(block.compiler.grouping), eager})
    return Vote(
        words,
        [(Text(zh=f"{number} 次", en=str(number)), number) for number in options],
        key="compiler_vote",
        lesson=_LESSON,
    )


# -- exercise: a function ---------------------------------------------------------------------------------------


def _kernel_mib(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    return sum(mib[tensor] for tensor in (*_read(group, ops), *_written(group, ops, outputs)))


def _made(group: Collection[str], ops: Wires) -> set[str]:
    return {tensor for op in group for tensor in ops[op][1]}


def _read(group: Collection[str], ops: Wires) -> set[str]:
    return {tensor for op in group for tensor in ops[op][0]} - _made(group, ops)


def _written(group: Collection[str], ops: Wires, outputs: Collection[str]) -> set[str]:
    needed = {tensor for op in ops if op not in group for tensor in ops[op][0]}
    return _made(group, ops) & (needed | set(outputs))


def _every_read(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    """As if each operator read its inputs for itself, what is made inside aside."""
    read = [tensor for op in group for tensor in ops[op][0] if tensor not in _made(group, ops)]
    return sum(mib[tensor] for tensor in (*read, *_written(group, ops, outputs)))


def _unfused(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    return sum(mib[tensor] for op in group for side in ops[op] for tensor in side)


def _outputs_only(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    """As if what another kernel reads need not be written."""
    return sum(mib[tensor] for tensor in (*_read(group, ops), *(_made(group, ops) & set(outputs))))


def _unread_only(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    """As if what is read inside were never written, though somebody outside needs it too."""
    inside = {tensor for op in group for tensor in ops[op][0]}
    return sum(mib[tensor] for tensor in (*_read(group, ops), *(_made(group, ops) - inside)))


def _without_outputs(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    return _kernel_mib(group, ops, mib, ())


def _per_reader(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    """As if a tensor were written anew for each reader outside, and once more as an output."""
    written = [t for op in ops if op not in group for t in ops[op][0] if t in _made(group, ops)]
    kept = [t for t in outputs if t in _made(group, ops)]
    return sum(mib[tensor] for tensor in (*_read(group, ops), *written, *kept))


def _tensors(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    return _kernel_mib(group, ops, dict.fromkeys(mib, 1), outputs)


def _all_written(group: Collection[str], ops: Wires, mib: Mapping[str, int], outputs: Collection[str]) -> int:
    return sum(mib[tensor] for tensor in (*_read(group, ops), *_made(group, ops)))


def _case(group: list[str], ops: dict[str, Any], mib: dict[str, int], outputs: list[str]) -> dict[str, Any]:
    return {"group": group, "ops": ops, "mib": mib, "outputs": outputs}


_CHAIN = {"f": (["x"], ["t"]), "g": (["t"], ["y"])}
_CHAIN_MIB = {"x": 64, "t": 64, "y": 32}
_FAN = {"f": (["x"], ["t"]), "g": (["t"], ["u"]), "h": (["t"], ["v"])}
_FAN_MIB = {"x": 64, "t": 64, "u": 16, "v": 32}
_GATE = {
    "sigmoid": (["gate"], ["s"]),
    "mul": (["gate", "s"], ["a"]),
    "mul_1": (["a", "up"], ["m"]),
    "add": (["m", "residual"], ["y"]),
}
_GATE_MIB = dict.fromkeys(["gate", "s", "a", "up", "m", "residual", "y"], 32)

_KERNEL_MIB = FunctionExercise(
    reference=_kernel_mib,
    cases=[
        _case(["f"], _CHAIN, _CHAIN_MIB, ["y"]),
        _case(["f", "g"], _CHAIN, _CHAIN_MIB, ["y"]),
        _case(["f"], _FAN, _FAN_MIB, ["u", "v"]),
        _case(["f"], _FAN, _FAN_MIB, ["t", "u", "v"]),
        _case(["f", "g"], _FAN, _FAN_MIB, ["u", "v"]),
        _case(["g", "h"], _FAN, _FAN_MIB, ["u", "v"]),
        _case(["f", "g", "h"], _FAN, _FAN_MIB, ["u", "v", "t"]),
        _case(["sigmoid", "mul", "mul_1"], _GATE, _GATE_MIB, ["y"]),
        _case(["sigmoid", "mul", "mul_1", "add"], _GATE, _GATE_MIB, ["y"]),
    ],
    mistakes=[
        Mistake(
            _without_outputs,
            Text(
                zh="漏了最终输出：outputs 里的张量，就算组外没有算子要读，也得写出。",
                en="The outputs are missing: a tensor in outputs is written even if no operator outside reads it.",
            ),
        ),
        Mistake(
            _per_reader,
            Text(
                zh="有一个张量的写算了不止一遍：组外有几个算子要读（或者它还是输出），都只写一次。",
                en="A write is counted more than once: however many operators outside read the tensor, and even if it is an "
                "output as well, it is written once.",
            ),
        ),
        Mistake(
            _tensors,
            Text(
                zh="这是张量的个数；要的是 MiB，把 mib[t] 加起来。", en="That counts tensors; add up mib[t], in MiB."
            ),
        ),
        Mistake(
            _unread_only,
            Text(
                zh="组内读过的张量，组外也可能要用（或者它就是输出）：那样照样要写出一次。",
                en="A tensor that is read inside the group may be needed outside as well, or be an output: then it is written "
                "all the same.",
            ),
        ),
        Mistake(
            _outputs_only,
            Text(
                zh="漏了写给别的核函数的张量：组外还有算子要读它，就得写出来。",
                en="What another kernel reads is missing: a tensor that an operator outside the group needs must be written.",
            ),
        ),
        Mistake(
            _every_read,
            Text(
                zh="有一个输入算了两遍：组里有两个算子读它，但一个核函数只需读一次。",
                en="One input is counted twice: two operators of the group read it, but one kernel reads it once.",
            ),
        ),
        Mistake(
            _unfused,
            Text(
                zh="这是各个算子分开做的读写；放进一个核函数，中间张量就不必写出再读回了。",
                en="That is what the operators move as kernels of their own; in one kernel the tensors between "
                "them need no write and no read.",
            ),
        ),
        Mistake(
            _all_written,
            Text(
                zh="多算了组内算出、只有组内用的张量：它留在片上，既不写出，也不读回。",
                en="A tensor that the group makes and only the group uses is counted: it stays on chip, neither written nor "
                "read back.",
            ),
        ),
    ],
    hints=(
        Text(
            zh="先求三个集合：组内算出的张量，组内读到的张量，组外的算子读到的张量。",
            en="Start with three sets: the tensors made inside the group, those read inside, those read by operators outside.",
        ),
        Text(
            zh="读 = 组内读到的 - 组内算出的；写 = 组内算出的 ∩（组外读到的 ∪ outputs）。集合里没有重复，正好“只读一次”。",
            en="Read = read inside - made inside; written = made inside ∩ (read outside ∪ outputs). A set holds "
            "nothing twice, which is exactly what “read once” asks for.",
        ),
        Text(
            zh="made = {t for op in group for t in ops[op][1]}；其余两个集合照样写，最后把 mib[t] 加起来。",
            en="made = {t for op in group for t in ops[op][1]}; build the other two in the same way, then add up "
            "mib[t].",
        ),
    ),
    done=Text(
        zh="画布上的字节就是这样数的；只有核函数不得不把输入读好几遍时（行太长，片上放不下；两个矩阵乘串在一起），才再加上"
        "多读的部分。",
        en="This is how the canvas counts bytes; it adds further reads only where a kernel has to read an input "
        "several times (a row too long for the chip, two chained GEMMs).",
    ),
    key="check_kernel_mib",
    lesson=_LESSON,
)


def check_kernel_mib(attempt: object) -> Feedback:
    """Check the learner's ``kernel_mib(group, ops, mib, outputs)``: MiB that one kernel reads and writes.

    ``group``: the operators in the kernel; ``ops``: operator -> (tensors read, tensors made), of the whole graph; ``mib``:
    tensor -> MiB; ``outputs``: tensors to keep.
    """
    return _KERNEL_MIB.check(attempt)


# -- quiz -------------------------------------------------------------------------------------------------------


def graph_quiz() -> Quiz:
    """Three questions: a cycle, a tensor with two readers, and what the best grouping is not."""
    return Quiz([_cycle(), _two_readers(), _best()], key="graph_quiz", lesson=_LESSON)


def _cycle() -> Question:
    return Question(
        Text(
            zh="f 的结果给 g 和 h 用，h 还要用 g 的结果；g 是一个不透明的库函数（编译器看不进去，只能独占一个核函数）。"
            "能不能只把 f 和 h 放进一个核函数？",
            en="f feeds g and h, and h also needs the result of g, a library call that nothing can be fused into. "
            "Can f and h share a kernel without g?",
        ),
        [
            Choice(
                Text(zh="能，f 和 h 之间有边", en="Yes: there is an edge between f and h"),
                Text(
                    zh="有边还不够。这个核函数要等 g 才能做完 h，而 g 又要等这个核函数写出 f 的结果。",
                    en="An edge is not enough. The kernel would wait for g before it can do h, and g waits for the kernel to "
                    "write the result of f.",
                ),
            ),
            Choice(
                Text(zh="不能，两个核函数会互相等", en="No: two kernels would wait for each other"),
                Text(
                    zh="这样的组不是凸的：有一条路从组里出去，又回到组里。",
                    en="A path leaves the group and comes back into it; such a group is called not convex.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="能，只是 f 的结果也要写出", en="Yes, but the result of f must be written as well"),
                Text(
                    zh="写出来也不行：核函数做完之前，g 不会启动，而 h 正等着 g。",
                    en="Writing it does not help: g is not launched before the kernel is done, and h waits for g.",
                ),
            ),
        ],
    )


def _two_readers() -> Question:
    return Question(
        Text(
            zh="t = f(x)，u = g(t)，v = h(t)，都是逐元素算子，张量各 64 MiB，u 和 v 是输出。f 和 g 融合，h 单独一个核函数：一共读写多少？",
            en="t = f(x), u = g(t), v = h(t), all elementwise, 64 MiB per tensor, and u and v are outputs. f and g "
            "are fused, h has a kernel of its own: how much do the two kernels move in all?",
        ),
        [
            Choice(
                Text(zh="192 MiB", en="192 MiB"),
                Text(
                    zh="那是三个全部融合：读 x，写 u 和 v。h 单独做，就要读 t。",
                    en="That is all three in one kernel: read x, write u and v. In a kernel of its own, h has to "
                    "read t.",
                ),
            ),
            Choice(
                Text(zh="256 MiB", en="256 MiB"),
                Text(
                    zh="漏了 t 的写：h 要读它，第一个核函数就得写出来。（256 是在 h 里把 f 重算一遍的读写。）",
                    en="The write of t is missing: h reads it, so the first kernel writes it. (256 is what computing f once "
                    "more for h would move.)",
                ),
            ),
            Choice(
                Text(zh="320 MiB", en="320 MiB"),
                Text(
                    zh="第一个读 x，写 u 和 t；第二个读 t，写 v：5 × 64。",
                    en="The first reads x and writes u and t; the second reads t and writes v: 5 × 64.",
                ),
                right=True,
            ),
        ],
    )


def _best() -> Question:
    return Question(
        Text(
            zh="画布说你的分组读写最少，而且证明了没有更少的。由此可以断定什么？",
            en="The canvas says that no legal grouping moves fewer bytes than yours, and that this is proven. What follows?",
        ),
        [
            Choice(
                Text(zh="它是最快的", en="It is the fastest"),
                Text(
                    zh="字节不等于时间：计算受限的核函数，少读写也不会更快；寄存器溢出时还会更慢。",
                    en="Bytes are not time. A compute-bound kernel gains nothing from fewer bytes, and a "
                    "register spill may even cost time.",
                ),
            ),
            Choice(
                Text(
                    zh="在这些规则下，逻辑读写不能更少", en="Under these rules no grouping has less logical traffic"
                ),
                Text(
                    zh="证明只管这一句。规则之外还有办法（重算、换算法），快不快要量。",
                    en="That is all the proof says. There are ways outside the rules (recompute, another algorithm), and "
                    "speed must be measured.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="torch.compile 也会这样分", en="torch.compile groups in the same way"),
                Text(
                    zh="编译器靠启发式规则，还要顾及编译时间：有时不如这个分组，有时靠模式匹配反而更好。",
                    en="A compiler follows heuristics and has to keep compile time short: sometimes it does worse, "
                    "and sometimes, by putting a ready-made kernel in place of a pattern, better.",
                ),
            ),
        ],
    )
