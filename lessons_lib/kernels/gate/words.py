"""What the kernel checker says: the first fault, where it is, its likely cause."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.kernels.cell_source import CellSource
from lessons_lib.kernels.gate.cases import GateCase
from lessons_lib.kernels.gate.child import Raised

OPEN = Text(
    zh="还没有完成：把 bias_silu_gate 补全，再运行这一格。",
    en="Not done yet: complete bias_silu_gate and run this cell again.",
)
RIGHT = Text(
    zh="正确：{cases} 个用例全部吻合，越界的读写一次也没有。",
    en="Right: all {cases} cases agree, and nothing outside the tensors was read or written.",
)
DONE = Text(
    zh="分成三个核函数要读写 7 个张量，这一个核函数只读写 3 个：gate、up、y 各一次。",
    en="As three kernels it moves seven tensors; this one moves three: gate, up and y, once each.",
)
NO_JIT = Text(
    zh="这是一个普通的 Python 函数：在 def 上面加一行 @triton.jit。",
    en="This is an ordinary Python function: put @triton.jit on the line above def.",
)
OTHER_PARAMETERS = Text(
    zh="参数要和骨架里一样，次序也一样：{wanted}。",
    en="The parameters must be those of the skeleton, in its order: {wanted}.",
)
FELL_SILENT = Text(
    zh="{limit} 秒内没有跑完，已经停掉：是不是有一个不会结束的循环？",
    en="Not finished within {limit} s, so it was stopped: is there a loop that never ends?",
)
CRASHED = Text(
    zh="运行它的进程提前结束了（{how}）：核函数里不能退出进程，也不能用 torch、os 一类的东西。",
    en="The process that ran it ended early ({how}): a kernel cannot exit, and cannot use torch, os and the like.",
)
NO_START = Text(
    zh="检查没有做成，与你的核函数无关：运行它的进程没能启动（{error}）。",
    en="Nothing was checked, and the kernel is not to blame: the process that runs it did not start ({error}).",
)
ON_GPU = Text(zh="解释器里全对，在 GPU 上不对。", en="All right in the interpreter, but not on the GPU.")
HINTS = (
    Text(
        zh="最后一块可能伸出行尾：哪些列不存在？写成 inside = column < columns，之后每次读写都带上它。",
        en="A row's last tile may reach past its end: which columns do not exist? Write inside = column < columns and give "
        "it to every load and store.",
    ),
    Text(
        zh="gate 在 gate_ptr + row * gate_stride + column，up 同理；bias 只有一行，在 bias_ptr + column。读出后先 .to(tl.float32) 再算。",
        en="gate is at gate_ptr + row * gate_stride + column, and up likewise; bias has one row, at bias_ptr + column. Convert what "
        "is loaded with .to(tl.float32) before any arithmetic.",
    ),
    Text(
        zh="z = gate + bias，y = z * tl.sigmoid(z) * up，最后 tl.store(y_ptr + row * y_stride + column, y, mask=inside)。",
        en="z = gate + bias, y = z * tl.sigmoid(z) * up, then tl.store(y_ptr + row * y_stride + column, y, mask=inside).",
    ),
)

_CASE = Text(
    zh="用例：{rows} 行 × {columns} 列，BLOCK = {block}，{dtype}；相邻两行相隔 gate {gate}、up {up}、y {y} 个元素。",
    en="The case: {rows} x {columns}, BLOCK = {block}, {dtype}; row strides: gate {gate}, up {up}, y {y}.",
)
_PRINTED = Text(zh="它打印了：{words}", en="It printed: {words}")


def case_words(case: GateCase) -> Text:
    """Shape, block, dtype and strides of a case."""
    strides = {"gate": case.stride("gate"), "up": case.stride("up"), "y": case.stride("y")}
    return _CASE.format(rows=case.rows, columns=case.columns, block=case.block, dtype=case.dtype, **strides)


def printed_words(printed: str) -> list[Text]:
    """The first words that the kernel printed, on one line; nothing if it printed nothing."""
    words = " ".join(printed.split())
    return [_PRINTED.format(words=words)] if words else []


def compiler_words(detail: Text) -> list[Text]:
    """What a compiler refuses in a kernel that the interpreter runs, and what to do.

    Args:
        detail: what the compiler says.
    """
    variable = re.search(r"[Cc]annot access global variable (\w+)", detail.en)
    if variable:
        return [_NOT_COMPILED, _GLOBAL.format(name=variable[1])]
    return [_NOT_COMPILED, _DETAIL.format(detail=detail), _PYTHON]


_NOT_COMPILED = Text(
    zh="在解释器里结果全对，但编译不了，GPU 上跑不起来。",
    en="Every result is right in the interpreter, but the kernel does not compile, so no GPU can run it.",
)
_DETAIL = Text(zh="{detail}。", en="In its words: {detail}.")
_GLOBAL = Text(
    zh="{name} 是普通的 Python 变量，核函数只能用编译期常量：写成 {name} = tl.constexpr(...)。",
    en="{name} is an ordinary Python variable, and a kernel takes compile-time constants only: write "
    "{name} = tl.constexpr(...).",
)
_PYTHON = Text(
    zh="解释器按 Python 运行，编译器只认 tl 里的运算、tl.constexpr 常量和别的 @triton.jit 函数。",
    en="The interpreter runs Python; the compiler knows operations of tl, tl.constexpr constants and other @triton.jit "
    "functions.",
)


# -- a fault -----------------------------------------------------------------------------------------------------


def finding_words(finding: Mapping[str, Any], case: GateCase) -> list[Text]:
    """What is wrong and where, then the likely cause.

    Args:
        finding: of ``gate_diagnosis``, as a dictionary.
        case: the one that showed it.
    """
    details = finding["details"]
    tensor = str(details.get("tensor", "y"))
    given = {
        **details,
        "at": _element(tensor, details.get("row"), details.get("column")),
        "size": _size(tensor, case),
        "block": case.block,
        "of": details.get("of", tensor),
        "read_at": _element(str(details.get("of")), details.get("read_row"), details.get("read_column")),
        "got": _number(details.get("got")),
        "expected": _number(details.get("expected")),
    }
    fault = f"{finding['fault']}_{details['kind']}" if finding["fault"] == "outside" else finding["fault"]
    words = [_FAULTS[fault].format(**given)]
    if finding["cause"]:
        words.append(CAUSES[finding["cause"]].format(**given))
    elif finding["fault"] == "outside":
        words.append(_BIAS_ADDRESS if tensor == "bias" else _ADDRESS.format(**given))
    return words


def _element(tensor: str, row: object, column: object) -> str:
    return f"{tensor}[{column}]" if tensor == "bias" else f"{tensor}[{row}, {column}]"


def _size(tensor: str, case: GateCase) -> Text:
    if tensor == "bias":
        return Text(zh=f"{case.columns} 个元素", en=f"{case.columns} elements")
    return Text(zh=f"{case.rows} 行 {case.columns} 列", en=f"{case.rows} rows and {case.columns} columns")


def _number(number: float | None) -> str:
    """Four digits: more would differ between processors."""
    if number is None or not math.isfinite(number):
        return str(number)
    return f"{number:.4g}"


_FAULTS: dict[str, Text] = {
    "outside_load": Text(
        zh="程序 {program} 读了 {at}，越界了：{tensor} 只有 {size}。",
        en="Program {program} reads {at}, out of bounds: {tensor} has {size}.",
    ),
    "outside_store": Text(
        zh="程序 {program} 写了 {at}，越界了：{tensor} 只有 {size}。",
        en="Program {program} writes {at}, out of bounds: {tensor} has {size}.",
    ),
    "outside_atomic": Text(
        zh="程序 {program} 用原子操作写了 {at}，越界了：{tensor} 只有 {size}。",
        en="Program {program} writes {at} with an atomic, out of bounds: {tensor} has {size}.",
    ),
    "writes_input": Text(
        zh="程序 {program} 写到了 {at} 的位置：{tensor} 是输入，只有 y 可以写。指针拿错了，或者地址偏得太远。",
        en="Program {program} writes where {at} is: {tensor} is an input, and only y is to be written. Either the pointer "
        "is the wrong one, or the address is far off.",
    ),
    "unwritten": Text(
        zh="{at} 没有被写过：按行数过去，它归程序 {program}。",
        en="Nothing was written to {at}: counting row by row it belongs to program {program}.",
    ),
    "written_twice": Text(
        zh="{at} 被程序 {program} 和程序 {other} 都写了：每个元素只能有一个程序写。",
        en="{at} was written by program {program} and by program {other}: only one program may write an element.",
    ),
    "too_much": Text(
        zh="程序 {program} 一个就写了 {count} 个元素：一个程序只做一行里的一块，最多 BLOCK = {block} 个。",
        en="Program {program} alone wrote {count} elements: a program does one block of one row, at most BLOCK = {block}.",
    ),
    "wrong_value": Text(
        zh="第一个不对的是 {at}（程序 {program}）：得到 {got}，应为 {expected}。",
        en="The first wrong element is {at} (program {program}): got {got}, expected {expected}.",
    ),
    "narrow": Text(
        zh="结果都对，但程序 {program} 用 32 位整数算 {tensor} 的行偏移。",
        en="The results are right, but program {program} computes the row offset of {tensor} in 32 bits.",
    ),
}

_ADDRESS = Text(
    zh="{tensor} 的元素在 {tensor}_ptr + row * {tensor}_stride + column：检查 row 和 column 是怎么算的。",
    en="An element of {tensor} is at {tensor}_ptr + row * {tensor}_stride + column: look at how row and column are computed.",
)
_BIAS_ADDRESS = Text(
    zh="bias 的元素在 bias_ptr + column：检查 column 是怎么算的。",
    en="An element of bias is at bias_ptr + column: look at how column is computed.",
)

CAUSES: dict[str, Text] = {
    # bounds
    "no_mask": Text(
        zh="漏了 mask：这一行的最后一块伸出了行尾。{of} 的读写要带 mask=column < columns。",
        en="The mask is missing: the row's last block reaches past its end. Access {of} with mask=column < columns.",
    ),
    "mask_too_small": Text(
        zh="mask 挡掉了该写的元素：条件应是 column < columns，其中 column 是在整行里的列号。",
        en="The mask leaves out elements that should be written: use column < columns, with column counted in the whole row.",
    ),
    "masked_read": Text(
        zh="读 {of} 时 mask 把它挡掉了：条件应是 column < columns，其中 column 是在整行里的列号。",
        en="The mask of the load of {of} leaves it out: use column < columns, with column counted in the whole row.",
    ),
    # which row, which block
    "row_is_program": Text(
        zh="把程序号当成了行号：一行有 tiles = tl.cdiv(columns, BLOCK) 个程序，row = program // tiles。",
        en="The program's number is used as the row: a row has tiles = tl.cdiv(columns, BLOCK) programs, so "
        "row = program // tiles.",
    ),
    "block_is_program": Text(
        zh="块号没有取余：block = program % tiles，其中 tiles = tl.cdiv(columns, BLOCK)。",
        en="The block number needs a remainder: block = program % tiles, where tiles = tl.cdiv(columns, BLOCK).",
    ),
    "floor_division": Text(
        zh="一行的块数被向下取整了：columns // BLOCK 少算了没装满的那一块，用 tl.cdiv(columns, BLOCK)。",
        en="The blocks of a row are rounded down: columns // BLOCK leaves out the one that is not full; use "
        "tl.cdiv(columns, BLOCK).",
    ),
    "row_and_block_swapped": Text(
        zh="行和块弄反了：tiles 是一行的块数，row = program // tiles，block = program % tiles。",
        en="Row and block are swapped: with tiles in a row, row = program // tiles and block = program % tiles.",
    ),
    "row_missing": Text(
        zh="算 {of} 的地址时没有用上行号：要加 row * {of}_stride。",
        en="The address of {of} leaves the row out: add row * {of}_stride.",
    ),
    "block_missing": Text(
        zh="算 {of} 的地址时没有用上块号，每块都落在行首：column = block * BLOCK + tl.arange(0, BLOCK)。",
        en="The address of {of} leaves the block out, so that every block is the row's first: "
        "column = block * BLOCK + tl.arange(0, BLOCK).",
    ),
    "block_not_scaled": Text(
        zh="块号没有乘 BLOCK：column = block * BLOCK + tl.arange(0, BLOCK)。",
        en="The block number is not multiplied by BLOCK: column = block * BLOCK + tl.arange(0, BLOCK).",
    ),
    "row_not_scaled": Text(
        zh="算 {of} 的地址时行号没有乘行跨度：row * {of}_stride。",
        en="The address of {of} does not multiply the row by its stride: row * {of}_stride.",
    ),
    # strides
    "stride_ignored": Text(
        zh="把 {of} 的各行当成首尾相接了：行与行相隔 {of}_stride 个元素，不是 columns 个。",
        en="The rows of {of} are taken to follow each other directly: they are {of}_stride elements apart, not columns.",
    ),
    "stride_of_gate": Text(
        zh="算 {of} 的地址时用了 gate_stride：要用 {of}_stride。",
        en="The address of {of} uses gate_stride: it needs {of}_stride.",
    ),
    "stride_of_up": Text(
        zh="算 {of} 的地址时用了 up_stride：要用 {of}_stride。",
        en="The address of {of} uses up_stride: it needs {of}_stride.",
    ),
    "stride_of_y": Text(
        zh="算 {of} 的地址时用了 y_stride：要用 {of}_stride。",
        en="The address of {of} uses y_stride: it needs {of}_stride.",
    ),
    "narrow_offset": Text(
        zh="张量超过 2**31 个元素时，它会超出 32 位，变成负数：乘行跨度之前先把行号转成 64 位，如 row = (program // tiles).to(tl.int64)。",
        en="Past 2**31 elements it wraps around: make the row 64-bit before it is multiplied by a stride, as in "
        "row = (program // tiles).to(tl.int64).",
    ),
    # bias
    "bias_by_row": Text(
        zh="bias 按行号取了：bias 每列一个值，是 bias_ptr + column。",
        en="bias is indexed by the row: it has a value for each column, at bias_ptr + column.",
    ),
    "bias_like_matrix": Text(
        zh="bias 只有一行，却按矩阵取了：是 bias_ptr + column，不加行偏移。",
        en="bias has one row and is indexed like a matrix: it is bias_ptr + column, with no row offset.",
    ),
    "bias_first_only": Text(
        zh="只读了 bias 的第一个值：要读 bias_ptr + column 这一块。",
        en="Only the first value of bias is read: load the block at bias_ptr + column.",
    ),
    "bias_by_program": Text(
        zh="bias 按程序号取了：bias 每列一个值，是 bias_ptr + column。",
        en="bias is indexed by the program: it has a value for each column, at bias_ptr + column.",
    ),
    # what is read and written
    "wrong_index": Text(
        zh="算它时读的是 {read_at}：检查 {of} 的地址。",
        en="For it the kernel read {read_at}: look at the address of {of}.",
    ),
    "not_read": Text(zh="算它时没有读 {of}：漏掉了。", en="{of} is not read for it: it was left out."),
    "reads_y": Text(
        zh="它读了 y，而 y 里还没有值：y 只写。",
        en="y is read before there is anything in it: y is only written.",
    ),
    "atomic": Text(
        zh="原子操作是在 y 原来的值上累加，而 y 里没有有意义的值：用 tl.store。",
        en="An atomic adds to what y holds, and y holds nothing meaningful: use tl.store.",
    ),
    "stores_nothing": Text(zh="整个 y 都没有写。", en="None of y was written."),
    "no_store": Text(
        zh="这个程序什么也没写：每个程序都要写自己的一块。",
        en="That program stores nothing: every program has a block of its own to write.",
    ),
    # arithmetic
    "no_bias": Text(zh="漏了 bias：这是 silu(gate) * up。", en="bias is left out: this is silu(gate) * up."),
    "no_up": Text(zh="漏了 up：这是 silu(gate + bias)。", en="up is left out: this is silu(gate + bias)."),
    "up_added": Text(zh="up 是乘上去的，不是加上去的。", en="up multiplies; it is not added."),
    "sigmoid_only": Text(
        zh="这是 sigmoid(gate + bias) * up；silu(z) = z * sigmoid(z)，少乘了 z。",
        en="This is sigmoid(gate + bias) * up; silu(z) = z * sigmoid(z), so a factor z is missing.",
    ),
    "no_silu": Text(
        zh="没有激活：这是 (gate + bias) * up。", en="The activation is missing: this is (gate + bias) * up."
    ),
    "sigmoid_of_minus": Text(
        zh="sigmoid 里的符号反了：sigmoid(z) = 1 / (1 + exp(-z))。",
        en="The sign inside the sigmoid is reversed: sigmoid(z) = 1 / (1 + exp(-z)).",
    ),
    "silu_of_up": Text(
        zh="激活用在了 up 上：要的是 silu(gate + bias) * up。",
        en="The activation is applied to up: it should be silu(gate + bias) * up.",
    ),
    "silu_of_product": Text(
        zh="先乘了 up 再激活：要的是 silu(gate + bias) * up。",
        en="up is multiplied in before the activation: it should be silu(gate + bias) * up.",
    ),
    "bias_after_silu": Text(
        zh="bias 加在了激活之后：要的是 silu(gate + bias)。",
        en="bias is added after the activation: it should be silu(gate + bias).",
    ),
    "bias_subtracted": Text(zh="bias 是加上去的，不是减去的。", en="bias is added, not subtracted."),
    "bias_outside_sigmoid": Text(
        zh="这是 gate * sigmoid(gate + bias)：silu 的两个因子都要用 z = gate + bias。",
        en="This is gate * sigmoid(gate + bias): both factors of silu take z = gate + bias.",
    ),
    "gate_outside_sigmoid": Text(
        zh="这是 (gate + bias) * sigmoid(gate)：silu 的两个因子都要用 z = gate + bias。",
        en="This is (gate + bias) * sigmoid(gate): both factors of silu take z = gate + bias.",
    ),
    "relu": Text(zh="这是 relu，不是 silu。", en="This is relu, not silu."),
    "gelu": Text(zh="这是 gelu，不是 silu。", en="This is gelu, not silu."),
    "rounds_to_fp16": Text(
        zh="中途舍入到了 fp16：读出后一直用 fp32 算，存的时候才转换。",
        en="Something is rounded to fp16 on the way: compute in fp32 after the loads and convert at the store.",
    ),
    "exp_overflows": Text(
        zh="exp 溢出了：inf / inf 得到 NaN。让指数不大于 0，或用 tl.sigmoid。",
        en="exp overflows, and inf / inf is NaN: keep its argument at 0 or below, or use tl.sigmoid.",
    ),
    "fp16_overflows": Text(
        zh="gate + bias 超出了 fp16 的范围（65504）：读出后先 .to(tl.float32) 再算。",
        en="gate + bias exceeds the largest fp16 (65504): convert what is loaded with .to(tl.float32) before any arithmetic.",
    ),
    "fp16_arithmetic": Text(
        zh="fp32 的用例都对，fp16 的不对：读出后先 .to(tl.float32) 再算。",
        en="The fp32 cases are right and fp16 is not: convert what is loaded with .to(tl.float32) before any arithmetic.",
    ),
    "bf16_arithmetic": Text(
        zh="别的 dtype 都对，bf16 不对：解释器直接算 bf16 会出错，读出后先 .to(tl.float32) 再算。",
        en="The other dtypes are right and bf16 is not: the interpreter cannot compute in bf16; convert what is loaded "
        "with .to(tl.float32) before any arithmetic.",
    ),
}


# -- an error ----------------------------------------------------------------------------------------------------


def raised_words(raised: Raised, source: CellSource) -> list[Text]:
    """Where in the cell the kernel failed, with what, and what is usually behind it."""
    found = source.in_cell(raised["line"])
    error = f"{raised['kind']}: {_one_line(raised['message'])}".rstrip(": ")
    place = _LINE.format(line=found[0], text=found[1]) if found else _SOMEWHERE
    words = [_RAISED.format(place=place, error=error)]
    name = re.search(r"name '(\w+)' is not defined", raised["message"])
    if name and name[1] in source.left_out:
        return [*words, _LEFT_OUT.format(name=name[1])]
    behind = next((cause for pattern, cause in _BEHIND if re.search(pattern, error)), None)
    return words if behind is None else [*words, behind]


def _one_line(message: str) -> str:
    return " ".join(message.split())[:200]


_LINE = Text(zh="第 {line} 行 `{text}`", en="line {line}, `{text}`,")
_SOMEWHERE = Text(zh="核函数", en="the kernel")
_RAISED = Text(zh="{place} 出错：{error}。", en="An error in {place} says: {error}.")
_LEFT_OUT = Text(
    zh="核函数只能用常数、tl 和别的 @triton.jit 函数；{name} 留在笔记本里，没有带过来。",
    en="A kernel can use constants, tl and other @triton.jit functions; {name} stays behind in the notebook.",
)

# What an error usually means, by its words; the first that fits.
_BEHIND: tuple[tuple[str, Text], ...] = (
    (
        r"^SystemExit",
        Text(zh="核函数里不能退出进程。", en="A kernel cannot exit the process."),
    ),
    (
        r"Expected dtype|fp16|float16|bfloat16|bf16",
        Text(
            zh="tl.exp、tl.sigmoid 只收 fp32：读出后先 .to(tl.float32)。",
            en="tl.exp and tl.sigmoid take fp32: convert what is loaded with .to(tl.float32).",
        ),
    ),
    (
        r"power of 2",
        Text(
            zh="tl.arange 的长度要是 2 的幂：用 BLOCK，多出来的交给 mask。",
            en="The length of tl.arange must be a power of two: use BLOCK and leave the rest to the mask.",
        ),
    ),
    (
        r"constexpr",
        Text(
            zh="tl.arange 的两端要是编译期常量：用 BLOCK，不用 columns。",
            en="The ends of tl.arange must be compile-time constants: use BLOCK, not columns.",
        ),
    ),
    (
        r"truth value|ambiguous",
        Text(
            zh="if、and、or 不能用在一整块上：选值用 tl.where，条件用 &、|。",
            en="if, and, or do not work on a whole block: choose with tl.where, combine conditions with & and |.",
        ),
    ),
    (
        r"0-dimensional|only length-1|cannot be interpreted as an integer",
        Text(
            zh="range 的上界要是编译期常量（tl.constexpr）；这里用不着循环。",
            en="The bound of range must be a compile-time constant (tl.constexpr); no loop is needed here.",
        ),
    ),
    (
        r"[Bb]roadcast|[Ss]hape|incompatible",
        Text(
            zh="两块的形状对不上：列号、mask 和数据都应是 [BLOCK]。",
            en="Two blocks differ in shape: columns, mask and data should all be [BLOCK].",
        ),
    ),
)
