"""What cannot be captured as a graph, and what to change: in both languages, with the learner's own line.

Pure: errors are told apart by their names and words, so nothing here needs PyTorch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from lessons_lib.base.text import Text


@dataclass(frozen=True)
class Line:
    """A line of source: its file, its number from 1, its text."""

    file: str
    number: int
    code: str

    @property
    def place(self) -> str:
        """``model.py:12``; in a notebook ``cell:3``, since its file is a passing one."""
        return f"{'cell' if self._in_cell else PurePath(self.file).name}:{self.number}"

    @property
    def words(self) -> Text:
        """The same for a sentence, with the code."""
        code = f"`{self.code}`" if self.code else ""
        if self._in_cell:
            return Text(zh=f"本单元第 {self.number} 行 {code}", en=f"line {self.number} of the cell, {code}")
        name = PurePath(self.file).name
        return Text(zh=f" {name} 第 {self.number} 行 {code}", en=f"{name}, line {self.number}, {code}")

    @property
    def _in_cell(self) -> bool:
        return "ipykernel" in self.file or "ipython-input" in self.file


def refusal_of(error: BaseException, line: Line | None) -> ValueError:
    """A bilingual refusal for an error that came out of tracing.

    An error that is one already passes unchanged.
    """
    if isinstance(error, ValueError) and str(error).startswith(_STARTS):
        return error
    name, said = type(error).__name__, str(error)
    for pattern, words in _WITH_KIND:
        if (found := pattern.search(said)) is not None:
            return _refusal(words.format(kind=found["kind"].rpartition(".")[2]), line)
    for names, marks, words in _KNOWN:
        if name in names or any(mark in said for mark in marks):
            return _refusal(words, line)
    first = next((text.strip() for text in said.splitlines() if text.strip()), name)
    return _refusal(
        _FAILED.format(error=name, said=first[:300].rstrip(" .").replace("{", "(").replace("}", ")")), line
    )


def size_depends_on_data(line: Line | None) -> ValueError:
    """An output whose size only the data tells."""
    return _refusal(_SIZE, line)


def value_leaves_tensor(line: Line | None) -> ValueError:
    """A tensor's value taken out as a Python number."""
    return _refusal(_ITEM, line)


def writes_to_input(name: str, line: Line | None, kind: str) -> ValueError:
    """A write to a tensor that came from outside; ``kind``: ``torch.export``'s ``InputKind`` by name."""
    words = {"USER_INPUT": _WRITES_INPUT, "CONSTANT_TENSOR": _WRITES_OUTSIDE}.get(kind, _WRITES_BUFFER)
    return _refusal(words.format(name=name), line)


def no_operators() -> ValueError:
    """A function that computes nothing."""
    return _refusal(_NOTHING, None)


def transformed(line: Line | None) -> ValueError:
    """A transform of ``torch.func`` on the way."""
    return _refusal(_TRANSFORMED, line)


def without_plain_memory(line: Line | None) -> ValueError:
    """A sparse, quantized or nested tensor among the results."""
    return _refusal(_NOT_DENSE, line)


def _refusal(words: Text, line: Line | None) -> ValueError:
    place = _AT.format(where=line.words) if line is not None else _SOMEWHERE
    return ValueError(Text(zh=f"{_STARTS[0]}{place.zh}{words.zh}", en=f"{_STARTS[1]}{place.en}{words.en}").both)


_STARTS = ("无法变成算子图。", "This cannot be captured as a graph of operators. ")
_AT = Text(zh="问题在{where}：", en="The trouble is at {where}: ")
_SOMEWHERE = Text(zh="原因：", en="Reason: ")

_BRANCH = Text(
    zh="程序的走向取决于张量里的数值（if、while、bool()、int()），而图对任何数据都必须是同一张。请改用 torch.where 或掩码"
    "乘法，或者把这个判断移到函数外面。",
    en="which way the program goes depends on values in a tensor (if, while, bool(), int()), but a graph must be the same "
    "for all data. Use torch.where or a mask, or take the decision outside the function.",
)
_ITEM = Text(
    zh="把张量里的数取成了 Python 数（.item()、float()、.tolist()）：GPU 要停下来等，图也在这里断开。请直接用那个张量参与"
    "运算，例如用 x.max() 代替 x.max().item()。",
    en="it takes a number out of a tensor (.item(), float(), .tolist()): a GPU has to stop for it, and the graph ends "
    "there. Compute with the tensor itself, for example x.max() instead of x.max().item().",
)
_SIZE = Text(
    zh="结果的大小取决于数据（布尔索引、nonzero、unique），字节数就无从算起。请改用大小固定的写法，例如 torch.where(mask, x, 0)。",
    en="the size of the result depends on the data (boolean indexing, nonzero, unique), so its bytes cannot be counted. "
    "Write it with a fixed size, for example torch.where(mask, x, 0).",
)
_CUSTOM = Text(
    zh="这个自定义算子没有说明输出的形状。请用 torch.library.register_fake 给它登记一个只算形状的实现（登记后它会成为一个"
    "不透明算子），或者先换成 PyTorch 自带的写法。",
    en="this custom operator does not say which shape it returns. Register an implementation that only computes shapes "
    "with torch.library.register_fake (it then becomes an opaque operator), or use PyTorch's own operators instead.",
)
_NUMPY = Text(
    zh="数据在这里离开了 PyTorch（.numpy()、.data_ptr()、C 扩展），后面的计算看不到了。请改用 torch 里对应的函数。",
    en="data leaves PyTorch here (.numpy(), .data_ptr(), a C extension), and what follows cannot be seen. Use the "
    "function of torch that does the same.",
)
_WRITES_INPUT = Text(
    zh="改写了参数 {name}：融合之后谁先谁后会改变结果。请不要原地修改输入，写成 y = x + 1 这样返回新张量的形式"
    "（缓存用 torch.cat 或 torch.where 得到新的再返回）。",
    en="it writes to its argument {name}: once operators are regrouped, the order would change results. Return a new "
    "tensor instead, as in y = x + 1 (for a cache, make the new one with torch.cat or torch.where and return it).",
)
_WRITES_BUFFER = Text(
    zh="改写了模块的缓冲区 {name}，训练模式下的 BatchNorm 就会这样。如果要的是推理，请先调用 .eval()。",
    en="it writes to the module's buffer {name}, as BatchNorm in training mode does. If you mean inference, call .eval() "
    "first.",
)
_WRITES_OUTSIDE = Text(
    zh="改写了函数外面的一个张量：这种副作用在图里看不到。请把它作为参数传进来，再把新的值返回。",
    en="it writes to a tensor from outside the function, a side effect that a graph does not have. Pass it as an argument "
    "and return its new value.",
)
_NOTHING = Text(
    zh="函数没有返回由张量算出来的结果，图里没有算子。请确认它返回了张量，并且至少有一个张量是输入。",
    en="the function returns nothing that was computed from tensors, so there is no operator. Make sure that it returns "
    "a tensor, and that at least one input is one.",
)
_TRANSFORMED = Text(
    zh="这里用了函数变换（torch.vmap、torch.func.grad、jacrev、jvp 或 flex_attention），变换之后的算子看不到。请把批次那一维"
    "直接写进运算（例如用 x @ w 或 torch.einsum），注意力用 scaled_dot_product_attention。",
    en="it transforms a function (torch.vmap, torch.func.grad, jacrev, jvp, or flex_attention), and what operators come "
    "out of that cannot be seen. Write the batch axis into the operators themselves, with x @ w or torch.einsum, and "
    "attention as scaled_dot_product_attention.",
)
_NOT_DENSE = Text(
    zh="这里得到一个稀疏、量化或嵌套的张量，它占多少字节不由形状和 dtype 决定，所以算不出来。请改用普通（稠密）的张量。",
    en="it makes a sparse, quantized or nested tensor, whose bytes do not follow from its shape and dtype, so they cannot "
    "be counted. Use ordinary, dense tensors.",
)
_RETURNS = Text(
    zh="函数返回了 {kind} 类型的对象，里面的张量看不到。请直接返回张量，或者由张量组成的元组、列表、字典；如果传进来的是类，"
    "请先创建它的实例，如 model = Model()。",
    en="the function returns an object of type {kind}, and tensors in it cannot be seen. Return tensors, or a tuple, list "
    "or dict of them; if what you passed is a class, make an instance first, as in model = Model().",
)
_TAKES = Text(
    zh="示例输入里有 {kind} 类型的对象。请改用形状（例如 (4096, 4096)）、torch 的张量，或者数字、字符串这样的常数。",
    en="there is an object of type {kind} among the example inputs. Use a shape such as (4096, 4096), a tensor of torch, "
    "or a constant such as a number or a string.",
)
_SCRIPTED = Text(
    zh="TorchScript（torch.jit）的模块捕获不了。请传入 script 或 trace 之前的那个函数或模块。",
    en="modules of TorchScript (torch.jit) cannot be captured. Pass the function or module that was scripted or traced.",
)
_CUSTOM_WRITES = Text(
    zh="这个自定义算子原地改写了它的参数。请让它返回新的张量，或者先换成 PyTorch 自带的写法。",
    en="this custom operator writes to its arguments in place. Let it return new tensors, or use PyTorch's own operators "
    "instead.",
)
_FAILED = Text(
    zh="函数在这些示例输入上就运行不了：{error}: {said}。请先检查示例输入的个数、形状和 dtype。",
    en="the function does not run on these example inputs: {error}: {said}. Check how many there are, their shapes and "
    "their dtypes.",
)

# What a message says about a type, and what to say about it.
_WITH_KIND: tuple[tuple[re.Pattern[str], Text], ...] = (
    (re.compile(r"Found <class '(?P<kind>[^']+)'> in output"), _RETURNS),
    (re.compile(r"Unsupported input type <class '(?P<kind>[^']+)'>"), _TAKES),
)

# Names of errors, words in their messages, what to say; the first that fits.
_KNOWN: tuple[tuple[frozenset[str], tuple[str, ...], Text], ...] = (
    (
        frozenset({"UnsupportedOperatorException"}),
        ("no fake impl registered", "register_fake", "no fake impl"),
        _CUSTOM,
    ),
    (frozenset(), ("TransformType::",), _TRANSFORMED),
    (frozenset(), ("Exporting a ScriptModule",), _SCRIPTED),
    (frozenset(), ("custom (non-ATen) operator whose output has alias annotations",), _CUSTOM_WRITES),
    (frozenset({"DynamicOutputShapeException"}), (), _SIZE),
    (frozenset({"DataDependentOutputException"}), ("Cannot call numel() on tensor",), _ITEM),
    (
        frozenset({"GuardOnDataDependentSymNode"}),
        ("data-dependent expression", "Data-dependent", "dynamic control flow"),
        _BRANCH,
    ),
    (
        frozenset(),
        (".numpy() is not supported", "can't convert", "Cannot access data pointer", "data pointer of Tensor"),
        _NUMPY,
    ),
)
