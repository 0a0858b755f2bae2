"""The court of lesson 03: six fusions on trial, the rules it judges by, and how a ruling is compared with evidence.

Three questions a case: is the fusion legal, is it profitable, are its results bit-equal? The learner rules first.
This module holds the cases and the logic; ``evidence`` computes the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from lessons_lib.base.roofline import Interval
from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_choice
from lessons_lib.decision.ledger import LayoutLedger
from lessons_lib.decision.model import Decision, Evidence, decide

Question = Literal["legal", "profitable", "bit_equal"]
Answer = Literal["yes", "no", "depends"]
CaseName = Literal["rounding", "reorder", "tile", "softmax", "gemm", "fan_out"]
Standing = Literal["open", "differs", "agrees"]

QUESTIONS: tuple[Question, ...] = get_args(Question)
ANSWERS: tuple[Answer, ...] = get_args(Answer)

QUESTION_NAMES: Mapping[Question, Text] = MappingProxyType(
    {
        "legal": Text(zh="合法吗？", en="Legal?"),
        "profitable": Text(zh="划算吗？", en="Profitable?"),
        "bit_equal": Text(zh="逐位相等吗？", en="Bit-equal?"),
    }
)
ANSWER_NAMES: Mapping[Answer, Text] = MappingProxyType(
    {
        "yes": Text(zh="是", en="yes"),
        "no": Text(zh="否", en="no"),
        "depends": Text(zh="看情况", en="it depends"),
    }
)

# A prediction below this is lost in the spread of a usual measurement, so the court does not call it a gain.
PROFIT_FLOOR = 1.1
# How far from float64 a result may lie, relative to what each exhibit names. float16 rounds by 2**-11 (0.049 %) at
# most, and the separate kernels on trial round up to three times in a row; float32 leaves room for long sums.
TOLERANCES: Mapping[str, float] = MappingProxyType({"float16": 2e-3, "float32": 1e-5})
TOLERANCE_WORDS: Mapping[str, str] = MappingProxyType({"float16": "0.2%", "float32": "0.001%"})

DECISION_NOTE = Text(
    zh="“未核对”不是“通过”：后端有没有生成这个核函数，要问编译器。",
    en="Not checked is not pass: whether the backend produced the kernel is for a compiler to say.",
)
_CONDITION_HEADER = (
    Text(zh="方案", en="plan"),
    Text(zh="条件", en="condition"),
    Text(zh="状态", en="status"),
    Text(zh="看到了什么", en="what was seen"),
    Text(zh="谁看的", en="who looked"),
)


# -- what is found ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """One way to run the operators of a case, and what was found about it.

    Args:
        name: as the learner knows it.
        evidence: what was seen about the four conditions; a condition without evidence is not checked.
        profitable: by ``profit_answer`` or ``ledger_answer``.
        bit_equal: whether its output has the same bits as that of the separate operators.
        reorder_bytes: extra bytes of layout conversion, kept beside the conditions.
    """

    name: Text
    evidence: tuple[Evidence, ...]
    profitable: Answer
    bit_equal: bool
    reorder_bytes: int = 0

    @property
    def decision(self) -> Decision:
        """What ``decide`` makes of the evidence."""
        return decide(self.evidence, self.reorder_bytes)

    @property
    def answers(self) -> Ruling:
        """The three answers for this plan alone."""
        return Ruling(legal_answer(self.decision), self.profitable, "yes" if self.bit_equal else "no")


@dataclass(frozen=True)
class Ruling:
    """Answers to the three questions.

    Raises:
        ValueError: an answer is none of ``ANSWERS``.
    """

    legal: Answer
    profitable: Answer
    bit_equal: Answer

    def __post_init__(self) -> None:
        for question, answer in self.by_question().items():
            require_choice(question, answer, ANSWERS)

    def by_question(self) -> dict[Question, Answer]:
        """The answers by question, in the order they are asked."""
        return {"legal": self.legal, "profitable": self.profitable, "bit_equal": self.bit_equal}


@dataclass(frozen=True)
class Exhibit:
    """A table of what was computed: titles, rows as long as the header, and a note on what the numbers are not.

    Cells are the same on every machine: exact counts and values, formulas, or yes and no.
    """

    header: tuple[Text, ...]
    rows: tuple[tuple[Text | str, ...], ...]
    note: Text


@dataclass(frozen=True)
class Findings:
    """All that the court knows about a case.

    Args:
        case: its name in ``CASES``.
        plans: the plans on trial, at least one; the ruling is about all of them.
        exhibit: the table.
        why: for each question, why the answer is what it is, with the numbers found.
        numbers: what was computed, by name and unrounded. Errors differ in their last digits between machines:
            compare them with a tolerance, do not print them in a checked cell.
    """

    case: CaseName
    plans: tuple[Plan, ...]
    exhibit: Exhibit
    why: Mapping[Question, Text]
    numbers: Mapping[str, float]

    @property
    def ruling(self) -> Ruling:
        """The answers that follow from the plans: theirs where they agree, else ``"depends"``."""
        answers = [plan.answers for plan in self.plans]
        return Ruling(
            legal=combined(answer.legal for answer in answers),
            profitable=combined(answer.profitable for answer in answers),
            bit_equal=combined(answer.bit_equal for answer in answers),
        )

    @property
    def conditions(self) -> Exhibit:
        """A second table: every condition of every plan, what was seen, and by whom."""
        rows = [(plan.name, *row) for plan in self.plans for row in plan.decision.rows()]
        return Exhibit(_CONDITION_HEADER, tuple(rows), DECISION_NOTE)

    @property
    def verdict(self) -> Text:
        """The three answers in one line."""
        return _verdict_words(self.ruling)


def profit_answer(gain: Interval) -> Answer:
    """``"yes"`` where the whole interval of ratios is at least ``PROFIT_FLOOR``, ``"no"`` where all is below."""
    if gain.low >= PROFIT_FLOOR:
        return "yes"
    return "no" if gain.high < PROFIT_FLOOR else "depends"


def ledger_answer(ledger: LayoutLedger) -> Answer:
    """``"no"`` where no call ever gains, ``"yes"`` where the first does, else it depends on the calls."""
    first = ledger["gains_from_call"]
    return "no" if first is None else "yes" if first == 1 else "depends"


def legal_answer(decision: Decision) -> Answer:
    """``"no"`` when a checked condition fails; ``"yes"`` when none does and the meaning was checked.

    Conditions still open are listed in the decision: the court rules on what it was shown, and a compiler that has
    not been heard may yet refuse.
    """
    if decision.outcome == "refused":
        return "no"
    return "yes" if decision.statuses["semantics_match"] == "pass" else "depends"


def combined(answers: Iterable[Answer]) -> Answer:
    """The answer that all share; ``"depends"`` where they differ."""
    different = set(answers)
    return different.pop() if len(different) == 1 else "depends"


# -- the learner's ruling beside the evidence ---------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A question on which the learner and the evidence differ, and why the evidence says what it says."""

    question: Question
    given: Answer
    found: Answer
    why: Text

    @property
    def words(self) -> Text:
        """One paragraph: the question, both answers, the reason."""
        return _DIFFERS.format(
            question=QUESTION_NAMES[self.question],
            given=ANSWER_NAMES[self.given],
            found=ANSWER_NAMES[self.found],
            why=self.why,
        )


@dataclass(frozen=True)
class Hearing:
    """What ``try_case`` returns.

    Args:
        case: the case's name.
        standing: ``"open"`` while an answer is missing, and then no evidence is shown; ``"agrees"`` when all three
            answers are the evidence's, else ``"differs"``.
        given: the learner's ruling; ``None`` while it is open.
        findings: the evidence; ``None`` while it is open.
        differences: where the two differ, in the order of the questions.
    """

    case: CaseName
    standing: Standing
    given: Ruling | None = None
    findings: Findings | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def words(self) -> tuple[Text, ...]:
        """What to say, a paragraph each: the verdict, each difference, and the reasons of what was ruled rightly."""
        if self.findings is None:
            return (_RULE_FIRST,)
        different = {difference.question for difference in self.differences}
        kept = [
            _AGREES.format(
                question=QUESTION_NAMES[question],
                found=ANSWER_NAMES[self.findings.ruling.by_question()[question]],
                why=self.findings.why[question],
            )
            for question in QUESTIONS
            if question not in different
        ]
        return (self.findings.verdict, *(difference.words for difference in self.differences), *kept)


def compare(findings: Findings, given: Ruling) -> Hearing:
    """Set a learner's ruling beside the one that follows from the findings."""
    found = findings.ruling.by_question()
    differences = tuple(
        Difference(question, answer, found[question], findings.why[question])
        for question, answer in given.by_question().items()
        if answer != found[question]
    )
    return Hearing(findings.case, "differs" if differences else "agrees", given, findings, differences)


def learner_ruling(legal: object, profitable: object, bit_equal: object) -> Ruling | None:
    """The learner's three answers; ``None`` while one of them is ``None``.

    Raises:
        ValueError: an answer that is not ``None`` is none of ``ANSWERS``; the message names the question.
    """
    answers = {"legal": legal, "profitable": profitable, "bit_equal": bit_equal}
    checked = {question: _checked_answer(question, answer) for question, answer in answers.items()}
    given = {question: answer for question, answer in checked.items() if answer is not None}
    return Ruling(**given) if len(given) == len(checked) else None


def require_case(case: object) -> Case:
    """The case of that name.

    Raises:
        ValueError: no case has that name; the message lists those there are.
    """
    require_choice("case", case, CASES)
    return next(found for name, found in CASES.items() if name == case)


def _checked_answer(question: str, answer: object) -> Answer | None:
    if answer is None:
        return None
    require_choice(question, answer, ANSWERS)
    return next(known for known in ANSWERS if known == answer)


def _verdict_words(ruling: Ruling) -> Text:
    answers = [(QUESTION_NAMES[question], ANSWER_NAMES[answer]) for question, answer in ruling.by_question().items()]
    return Text(
        zh="判决：" + "".join(f"{question.zh}{answer.zh}。" for question, answer in answers),
        en="Verdict. "
        + " ".join(f"{question.en} {answer.en[0].upper()}{answer.en[1:]}." for question, answer in answers),
    )


_RULE_FIRST = Text(
    zh="还没有判完：三个问题都要先给出 'yes'、'no' 或 'depends'，然后才出示证据。",
    en="Not ruled yet: answer all three with 'yes', 'no' or 'depends'; the evidence is shown after that.",
)
_DIFFERS = Text(
    zh="✗ {question}你判“{given}”，证据说“{found}”。{why}",
    en="✗ {question} You ruled “{given}”; the evidence says “{found}”. {why}",
)
_AGREES = Text(zh="✓ {question}{found}。{why}", en="✓ {question} Correct: {found}. {why}")


# -- the cases ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A fusion on trial.

    Args:
        name: what ``try_case`` takes.
        title: a few words.
        question: what is proposed, with its numbers; the three questions follow.
        why: the reason for each answer, with ``{name}`` fields for what the evidence found.
    """

    name: CaseName
    title: Text
    question: Text
    why: Mapping[Question, Text]


_CASES = (
    Case(
        name="rounding",
        title=Text(zh="边界上的舍入", en="Rounding at a boundary"),
        question=Text(
            zh="x 是 64 MiB 的 fp16 张量，先算 t = x + 1，再算 y = t − 2048。分成两个核函数时，t 以 fp16 写出；"
            "融合后 t 以 fp32 留在片上，只有 y 舍入到 fp16。融合这两个算子，你怎么判？",
            en="x is a 64 MiB fp16 tensor; t = x + 1, then y = t − 2048. As two kernels, t is written in fp16. "
            "Fused, t stays on chip in fp32 and only y is rounded to fp16. How do you rule on fusing the two?",
        ),
        why={
            "legal": Text(
                zh="与 float64 相比，融合后的最大误差是 {fused_error}，"
                "分开时是 {separate_error}（相对误差 {separate_relative}，以计算途中最大的数为基准；容差 {tolerance}）。两种都合法，"
                "融合的更准。",
                en="Against float64 the largest error is {fused_error} fused and {separate_error} separate (relative "
                "to the largest value on the way {separate_relative}, tolerance {tolerance}). Both are legal, and "
                "the fused one is the more accurate.",
            ),
            "profitable": Text(
                zh="逻辑读写从 {before} 降到 {after}，前后之比是 {gain}。两个算子都受内存限制，这是加速的上限。",
                en="Logical traffic falls from {before} to {after}: {gain}. Both operators are bound by memory, and "
                "this is the ceiling on their speed-up.",
            ),
            "bit_equal": Text(
                zh="x = 2048 时，分开得 {separate_value}，融合得 {fused_value}：fp16 表示不了 2049，"
                "写出时舍入成了 2048。试过的 {count} 个数里有 {different} 个结果不同。",
                en="At x = 2048 two kernels give {separate_value} and one gives {fused_value}: fp16 has no 2049, so "
                "writing it gives 2048. Of the {count} values tried, {different} differ.",
            ),
        },
    ),
    Case(
        name="reorder",
        title=Text(zh="两次布局转换", en="Two layout conversions"),
        question=Text(
            zh="融合后的矩阵乘（fp32，乘加次序不变）每次调用省 8 MiB 读写，但要求某个张量换一种布局。方案甲：8 MiB 的激活，"
            "每次调用都要转换。方案乙：32 MiB 的权重，装载时转换一次，之后反复调用。两个方案合起来，你怎么判？",
            en="A fused matrix product (fp32, products added in the same order as before) saves 8 MiB of traffic per "
            "call, but wants one tensor in another layout. Plan A: an 8 MiB activation, converted at every call. "
            "Plan B: a 32 MiB weight, converted once at loading and then used call after call. How do you rule on "
            "the two together?",
        ),
        why={
            "legal": Text(
                zh="布局转换是代价，不是条件：它不会让任何一个条件不通过，也就不能否决融合。",
                en="A layout conversion is a cost and not a condition: it makes no condition fail, so it cannot "
                "veto a fusion.",
            ),
            "profitable": Text(
                zh="转换要读一遍、写一遍。方案甲每次花 {each_cost}、省 {saved}，永远不划算；"
                "方案乙一次花 {once_cost}，第 {break_even} 次调用时打平，第 {gains_from} 次起净省。",
                en="A conversion reads and writes its tensor. Plan A pays {each_cost} per call to save {saved}: it "
                "never pays. Plan B pays {once_cost} once: even at call {break_even}, ahead from call {gains_from} on.",
            ),
            "bit_equal": Text(
                zh="转换只搬动数值，不改变数值；只要乘加的次序不变，结果就逐位相等。换布局的同时改了求和次序，"
                "就未必了。",
                en="A conversion moves values and changes none: with the products added in the same order, every "
                "bit is the same. A kernel that also changes that order need not keep them.",
            ),
        },
    ),
    Case(
        name="tile",
        title=Text(zh="放不下的数据块", en="A tile that does not fit"),
        question=Text(
            zh="一个 128 KiB 的 fp32 数据块要被三个逐元素算子各读一次，片上预算 96 KiB。方案甲：整块留在片上。"
            "方案乙：先切成放得下的小块，再逐块做完三个算子。两个方案合起来，你怎么判？",
            en="Three elementwise operators each read a 128 KiB fp32 tile; the on-chip budget is 96 KiB. Plan A: "
            "hold the tile whole. Plan B: cut it into tiles that fit and run all three operators on each. How do "
            "you rule on the two together?",
        ),
        why={
            "legal": Text(
                zh="整块是预算的 {whole_use}，片上放不下，方案甲不成立；切成 {pieces} 块、每块 {piece} 就放得下。"
                "被否决的是这个大小，不是这次融合。",
                en="Whole, the tile takes {whole_use} the budget, so plan A is refused. Cut into {pieces} tiles "
                "of {piece} it fits. The tile is refused, not the fusion.",
            ),
            "profitable": Text(
                zh="方案甲省下的读是 {whole_avoided}，方案乙是 {cut_avoided}："
                "从内存读的字节从 {whole_read} 降到 {cut_read}。",
                en="Plan A avoids {whole_avoided} of reads, plan B {cut_avoided}: what is read from memory falls "
                "from {whole_read} to {cut_read}.",
            ),
            "bit_equal": Text(
                zh="逐元素算子的每个输出只看自己的输入，怎么切都是同样的运算：{count} 个输出一位不差。"
                "GPU 的编译器若把乘和加合成一条 FMA，会少舍入一次，末位就可能不同；归约更是另一回事。",
                en="Each output of an elementwise operator depends on its own input alone, so cutting changes no "
                "operation: {count} outputs agree in every bit. (A GPU compiler that contracts a multiply and an add "
                "into one FMA rounds once less, and last bits may differ.) A reduction is another matter.",
            ),
        },
    ),
    Case(
        name="softmax",
        title=Text(zh="一行放不下的归约", en="A reduction whose row does not fit"),
        question=Text(
            zh="T4 上的 fp32 softmax，1,024 行，每行 131,072 列，即 512 KiB；一个线程块的共享内存是 64 KiB，"
            "一个 SM 的寄存器总共 256 KiB，一行都放不下，"
            "所以不能“读一遍、写一遍”。有人提议融合成一个核函数：把每行切成 16 KiB 的数据块，"
            "第一遍边读边更新最大值与和，第二遍再读一次并写出。你怎么判？",
            en="A softmax in fp32 on a T4: 1,024 rows of 131,072 columns, 512 KiB per row. A block has 64 KiB of shared "
            "memory and an SM 256 KiB of registers: no row fits in either, so “read once, write once” is out. The "
            "proposal is one kernel: cut each row into 16 KiB tiles, keep a running maximum and a running sum on a "
            "first pass, read again and write on a second. How do you rule?",
        ),
        why={
            "legal": Text(
                zh="片上只需放一个 {tile} 的数据块和每行两个数，放得下；最大值变大时，已累加的和随之修正，"
                "结果与 float64 的相对误差不超过 {tolerance}。归约没有打断融合；"
                "走不通的只是整行驻留的写法（要 {row}）。",
                en="On chip it needs one tile of {tile} and two numbers per row; the sum is corrected whenever the "
                "maximum moves, and the result lies within {tolerance} of float64. A reduction does not end fusion; "
                "it only rules out the version that keeps the whole row ({row}).",
            ),
            "profitable": Text(
                zh="五个核函数读写 {before}，这种做法是 {after}（读两遍、写一遍），前后之比是 {gain}。"
                "整行放得下时只要 {resident}：多读的一遍就是放不下的代价。（库里现成的 softmax 是一个核函数，"
                "这样长的行读三遍、写一遍；和它比，就只剩 4 ÷ 3 了。）",
                en="Five kernels move {before}, this one {after} (two reads, one write): {gain}. If a row fitted it "
                "would be {resident}: the second read is the price of not fitting. (A library's softmax is one kernel "
                "already; a row as long as this it reads three times and writes once, and against that only 4 ÷ 3 is "
                "left.)",
            ),
            "bit_equal": Text(
                zh="求和的次序变了，中途还乘了修正因子，浮点加法不满足结合律，末位就会不同。差别在容差之内。",
                en="The sum runs in another order and is rescaled on the way; floating-point addition is not "
                "associative, so last digits change. They stay within the tolerance.",
            ),
        },
    ),
    Case(
        name="gemm",
        title=Text(zh="K 很大的矩阵乘", en="A GEMM with a large K"),
        question=Text(
            zh="gelu(x @ w + b)，fp16，M = N = 4096，K = 16384，A100。三个核函数各写出 fp16 结果；"
            "提议把偏置和 GELU 放进矩阵乘的尾声，直接作用在 fp32 累加器上，只写出最后的 y。你怎么判？",
            en="gelu(x @ w + b) in fp16, M = N = 4096, K = 16384, on an A100. Three kernels each write an fp16 "
            "result. The proposal: bias and GELU in the epilogue of the GEMM, on its fp32 accumulators, writing y "
            "alone. How do you rule?",
        ),
        why={
            "legal": Text(
                zh="y 与 float64 的相对误差在 fp16 的容差 {tolerance} 之内，而且比分开时更小：少了两次舍入。",
                en="y lies within fp16's tolerance of float64, {tolerance}, and closer than the separate kernels: "
                "two roundings are gone.",
            ),
            "profitable": Text(
                zh="字节之比是 {bytes_gain}，预测的时间之比却只有 {gain}：K 这么大，时间几乎都花在乘加上。"
                "同样的尾声在 K = 1024 时是 {small_gain}。",
                en="The ratio of bytes is {bytes_gain}, that of predicted times only {gain}, below the court's floor: "
                "at this K the multiply-adds fill the time. (Take such an epilogue if your library has it; do not "
                "write a kernel for it.) The same epilogue at K = 1024 gives {small_gain}.",
            ),
            "bit_equal": Text(
                zh="分开时，矩阵乘的结果先舍入到 fp16 再加偏置；累加器里的 fp32 值没有经过这次舍入。"
                "测试数据在 fp32 里的求和是精确的，所以差别全来自边界上的舍入。",
                en="Separate kernels round the product to fp16 before the bias is added; the fp32 accumulator is not "
                "rounded. "
                "The sums of the test data are exact in fp32, so the whole difference comes from rounding at the "
                "boundaries.",
            ),
        },
    ),
    Case(
        name="fan_out",
        title=Text(zh="一个张量，两处使用", en="A tensor with two readers"),
        question=Text(
            zh="t = f(x)，u = g(t)，v = h(t)，都是逐元素算子，每个张量 64 MiB，fp32。h 在别的核函数里，暂时动不了；"
            "提议只把 f 和 g 融合。你怎么判？",
            en="t = f(x), u = g(t), v = h(t): elementwise, fp32, 64 MiB per tensor. h lives in a kernel that cannot "
            "be touched for now; the proposal is to fuse f and g alone. How do you rule?",
        ),
        why={
            "legal": Text(
                zh="f 和 g 的融合核函数照样把 t 写出，h 读到的还是原来的 t；结果与 float64 相比都在容差内。",
                en="The kernel of f and g still writes t, so h reads what it always read; results agree with "
                "float64.",
            ),
            "profitable": Text(
                zh="从 {before} 降到 {after}，前后之比是 {gain}：省掉的只是 g 对 t 的一次读，t 的写要留给 h。"
                "{recomputed} 要重算 f 才做得到，{all_fused} 要连 h 一起融合。",
                en="{before} falls to {after}: {gain}. Only g's read of t is saved; the write of t stays for h. "
                "{recomputed} takes recomputing f, and {all_fused} takes fusing h as well. In training, the backward "
                "pass is often such an h: tensors saved for it are still written.",
            ),
            "bit_equal": Text(
                zh="同样的运算、同样的类型：t 在片上是 fp32，写出也是 fp32，舍入一次不多，一次不少。"
                "{plans} 种方案的 u 和 v 一位不差。",
                en="The same operations in the same type: t is fp32 on chip and fp32 in memory, so no rounding is "
                "added or taken away. Under {plans} plans u and v agree in every bit.",
            ),
        },
    ),
)
CASES: Mapping[CaseName, Case] = MappingProxyType({case.name: case for case in _CASES})
