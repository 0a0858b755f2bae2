"""Lesson 03: the guess, the exercises and the quiz."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.units import MIB
from lessons_lib.decision.ledger import layout_ledger
from lessons_lib.show.exercise import Feedback, FunctionExercise, Mistake, ValueExercise
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote

_LESSON = "03"


def veto_vote() -> Vote:
    """The guess before the panel: may a fusion that needs a layout conversion still be done; ``value`` is a word."""
    words = Text(
        zh="四个条件都成立，但要先把一个 32 MiB 的权重换一次布局。还能融合吗？",
        en="All four conditions hold, but a 32 MiB weight has to change its layout first, once. May the fusion still be "
        "done?",
    )
    options = (
        (Text(zh="不能，转换否决了它", en="no, the conversion vetoes it"), "veto"),
        (Text(zh="能，而且一定划算", en="yes, and it surely pays"), "pays"),
        (Text(zh="能，划不划算要算账", en="yes; whether it pays has to be worked out"), "ledger"),
    )
    return Vote(words, options, key="veto_vote", lesson=_LESSON)


# -- exercise 1: a function -------------------------------------------------------------------------------------


def _net_bytes(tensor_bytes: int, saved_bytes: int, calls: int, each_call: bool) -> int:
    return layout_ledger(tensor_bytes, saved_bytes, "each_call" if each_call else "once", calls)["net_bytes"]


def _case(tensor_mib: int, saved_mib: int, calls: int, each_call: bool) -> dict[str, int | bool]:
    return {
        "tensor_bytes": tensor_mib * MIB,
        "saved_bytes": saved_mib * MIB,
        "calls": calls,
        "each_call": each_call,
    }


_NET = FunctionExercise(
    reference=_net_bytes,
    cases=[
        _case(32, 8, 16, False),
        _case(32, 8, 8, False),
        _case(8, 8, 16, True),
        _case(8, 20, 3, True),
        _case(1, 1, 1, False),
    ],
    mistakes=[
        Mistake(
            lambda tensor_bytes, saved_bytes, calls, each_call: (
                saved_bytes * calls - tensor_bytes * (calls if each_call else 1)
            ),
            Text(
                zh="转换要把张量读一遍、再写一遍：代价是张量的 2 倍。",
                en="A conversion reads the tensor and writes it: it costs twice the tensor.",
            ),
        ),
        Mistake(
            lambda tensor_bytes, saved_bytes, calls, each_call: saved_bytes * calls - 2 * tensor_bytes,
            Text(
                zh="each_call 为真时，每次调用都要转换一次。",
                en="When each_call is true, every call pays for a conversion.",
            ),
        ),
        Mistake(
            lambda tensor_bytes, saved_bytes, calls, each_call: (saved_bytes - 2 * tensor_bytes) * calls,
            Text(
                zh="each_call 为假时，转换只做一次，不乘调用次数。",
                en="When each_call is false there is one conversion, however many calls.",
            ),
        ),
        Mistake(
            lambda tensor_bytes, saved_bytes, calls, each_call: (
                2 * tensor_bytes * (calls if each_call else 1) - saved_bytes * calls
            ),
            Text(zh="符号反了：净省 = 省下的 − 花掉的。", en="The sign is reversed: net = saved - cost."),
        ),
    ],
    hints=(
        Text(zh="先写省下的：saved_bytes × calls。", en="Write what is saved first: saved_bytes x calls."),
        Text(
            zh="一次转换花 2 × tensor_bytes；做几次？",
            en="One conversion costs 2 x tensor_bytes; how many are there?",
        ),
        Text(
            zh="saved_bytes * calls - 2 * tensor_bytes * (calls if each_call else 1)",
            en="saved_bytes * calls - 2 * tensor_bytes * (calls if each_call else 1)",
        ),
    ),
    done=Text(
        zh="每次都要转换时，calls 提得出来：2 × 张量大于每次省下的，就永远打不平。",
        en="When every call converts, calls factors out: if 2 x tensor exceeds what a call saves, it never breaks even.",
    ),
    key="check_net_bytes",
    lesson=_LESSON,
)


def check_net_bytes(attempt: object) -> Feedback:
    """Check the learner's ``net_bytes(tensor_bytes, saved_bytes, calls, each_call)``."""
    return _NET.check(attempt)


# -- exercise 2: a number worked out by hand --------------------------------------------------------------------

_BREAK_EVEN = ValueExercise(
    answer=float(layout_ledger(48 * MIB, 6 * MIB, "once")["break_even_calls"] or 0),
    mistakes={
        8: Text(
            zh="8 = 48 ÷ 6 只算了读一遍；转换还要写一遍。", en="8 = 48 / 6 counts the read; a conversion also writes."
        ),
        17: Text(
            zh="17 是第一次净省的那次调用；题目问的是打平。",
            en="17 is the first call that is ahead; the question is where it breaks even.",
        ),
        15: Text(zh="到第 15 次还亏着 6 MiB。", en="At call 15 it is still 6 MiB behind."),
    },
    hints=(
        Text(zh="转换一次读写多少？", en="How many bytes does one conversion move?"),
        Text(zh="2 × 48 = 96 MiB。每次调用还回来 6 MiB。", en="2 x 48 = 96 MiB. Each call pays back 6 MiB."),
        Text(zh="96 ÷ 6。", en="96 / 6."),
    ),
    done=Text(zh="第 16 次调用打平，第 17 次起净省。", en="Even at call 16, ahead from call 17 on."),
    key="check_break_even",
    lesson=_LESSON,
)


def check_break_even(attempt: object) -> Feedback:
    """Check the calls after which re-ordering a 48 MiB weight once, saving 6 MiB a call, is even."""
    return _BREAK_EVEN.check(attempt)


# -- quiz -------------------------------------------------------------------------------------------------------


def decision_quiz() -> Quiz:
    """Three questions on what conditions say, on equality, and on what nobody has checked."""
    return Quiz([_equality(), _unchecked(), _proof()], key="decision_quiz", lesson=_LESSON)


def _equality() -> Question:
    return Question(
        Text(
            zh="融合前后的结果不是逐位相等，与 float64 相比的最大相对误差是 0.03%，约定容差 0.2%。“语义一致”这一条怎么填？",
            en="Fused and separate results are not bit-equal; the largest error relative to float64 is 0.03%, the "
            "agreed tolerance 0.2%. What goes under “same meaning”?",
        ),
        (
            Choice(
                Text(zh="不通过：不相等就是错", en="Fail: not equal means wrong"),
                Text(
                    zh="浮点加法不满足结合律，中间结果的舍入位置也变了；融合后往往还更准。",
                    en="Floating-point addition is not associative, and fusion changes where intermediates are rounded; the "
                    "fused result is often the more accurate.",
                ),
            ),
            Choice(
                Text(zh="通过：和 float64 比，在约定容差内", en="Pass: within the tolerance of float64"),
                Text(
                    zh="比较对象是 float64 的参考结果，不是另一个同样有舍入误差的结果；容差要事先约定。",
                    en="The yardstick is a float64 reference and not another rounded result; the tolerance is agreed "
                    "beforehand.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="未核对：误差无法判断", en="Not checked: errors cannot be judged"),
                Text(
                    zh="量了误差、有容差，就是核对过了。没跑过对照才叫未核对。",
                    en="An error was measured and a tolerance agreed: that is checked. Not checked means nobody compared.",
                ),
            ),
        ),
    )


def _unchecked() -> Question:
    return Question(
        Text(
            zh="三个条件通过，“后端已生成”还没人核对。现在的结论是什么？",
            en="Three conditions pass; nobody has checked “backend lowered it”. What is the conclusion now?",
        ),
        (
            Choice(
                Text(zh="成立，没有反对的证据", en="Met: there is no evidence against it"),
                Text(
                    zh="没有反对的证据，不等于有支持的证据。编译器可能没有生成它，也可能生成了却有寄存器溢出。",
                    en="No evidence against it is not evidence for it. The compiler may have produced no such kernel, or one "
                    "that spills registers.",
                ),
            ),
            Choice(
                Text(zh="不成立，缺一条就算失败", en="Refused: one missing check is a failure"),
                Text(
                    zh="判不通过，要拿得出看到的东西；没看过只是没看过。",
                    en="A failure needs something seen. Here nobody has looked.",
                ),
            ),
            Choice(
                Text(zh="还不能下结论，去问编译器", en="Open: ask the compiler"),
                Text(
                    zh="编译一次，看有没有融合成一个核函数、占多少寄存器，再填这一条。",
                    en="Compile it, see whether it is one kernel and what it takes, then fill this in.",
                ),
                right=True,
            ),
        ),
    )


def _proof() -> Question:
    return Question(
        Text(
            zh="四个条件都通过，字节账也是净省。由此能得出什么？",
            en="All four conditions pass and the ledger of bytes comes out ahead. What follows?",
        ),
        (
            Choice(
                Text(zh="一定更快", en="It is faster"),
                Text(
                    zh="字节账不是时间账：计算受限的核函数几乎快不了，有寄存器溢出的还会变慢。",
                    en="Bytes are not time: a compute-bound kernel hardly gains, and one that spills registers gets slower.",
                ),
            ),
            Choice(
                Text(zh="值得编译出来量一次", en="It is worth compiling and measuring"),
                Text(
                    zh="条件说能做，账说有望；快不快由测量说了算。",
                    en="The conditions say it can be done, the ledger says it may pay; a measurement says whether it does.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="至少不会更慢", en="At least it is no slower"),
                Text(
                    zh="融合会多占寄存器、少驻留几个线程块，变慢的例子并不少见。",
                    en="A fused kernel takes more registers, so fewer blocks are resident; fused kernels that run slower are "
                    "not rare.",
                ),
            ),
        ),
    )
