"""Real blocks at real sizes, from residual additions to attention: what to fuse in them is a question each.

Titles and notes load without PyTorch; ``ZooBlock.build`` needs it, and ``recorded`` has all graphs as data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lessons_lib.base.text import Text
from lessons_lib.base.validate import require_choice
from lessons_lib.graph.capture.capture import Captured, FakeSpec, capture
from lessons_lib.graph.capture.torch_import import require_torch

Sizes = Mapping[str, int]
Specs = tuple[FakeSpec, ...]

_HALF, _FLOAT = "float16", "float32"


@dataclass(frozen=True)
class ZooBlock:
    """A block of the zoo.

    Args:
        name: a Python name, and that of its data file.
        title: a few words.
        note: what to look for.
        function: its name in ``zoo_blocks``.
        inputs: the inputs' shapes and dtypes for given sizes.
        sizes: real ones; ``small``: the same block to run on a CPU in no time.
    """

    name: str
    title: Text
    note: Text
    function: str
    inputs: Callable[..., Specs] = field(repr=False)
    sizes: Sizes
    small: Sizes

    def build(self, *, small: bool = False) -> tuple[Callable[..., Any], Specs]:
        """The function and its example inputs.

        Raises:
            MissingPackageError: there is no PyTorch.
        """
        require_torch()
        blocks = importlib.import_module("lessons_lib.graph.capture.zoo_blocks")
        return getattr(blocks, self.function), self.inputs(**(self.small if small else self.sizes))

    def capture(self, *, small: bool = False) -> Captured:
        """``capture`` of what ``build`` gives.

        Raises:
            MissingPackageError: there is no PyTorch.
        """
        function, specs = self.build(small=small)
        return capture(function, *specs, name=self.name)


def zoo_block(name: str) -> ZooBlock:
    """The block of that name.

    Raises:
        ValueError: there is none; the message lists them.
    """
    require_choice("name", name, ZOO)
    return ZOO[name]


# -- inputs ---------------------------------------------------------------------------------------------------


def _half(*shapes: tuple[int, ...]) -> Specs:
    return tuple(FakeSpec(shape, _HALF) for shape in shapes)


def _float(*shapes: tuple[int, ...]) -> Specs:
    return tuple(FakeSpec(shape, _FLOAT) for shape in shapes)


def _mlp(tokens: int, hidden: int, wide: int) -> Specs:
    return _half((tokens, hidden), (wide, hidden), (wide,), (hidden, wide), (hidden,))


def _swiglu(tokens: int, hidden: int, wide: int) -> Specs:
    return _half((tokens, hidden), (wide, hidden), (wide, hidden), (hidden, wide))


def _gate(tokens: int, wide: int) -> Specs:
    return _half((tokens, wide), (tokens, wide))


def _gated(tokens: int, wide: int) -> Specs:
    return _float((tokens, wide), (tokens, wide), (tokens, wide))


def _rows_twice(tokens: int, hidden: int) -> Specs:
    return _half((tokens, hidden), (tokens, hidden), (hidden,))


def _layernorm(tokens: int, hidden: int) -> Specs:
    return _half((tokens, hidden), (hidden,), (hidden,))


def _rope(heads: int, tokens: int, dim: int) -> Specs:
    return _half((1, heads, tokens, dim), (tokens, dim), (tokens, dim))


def _matrix(rows: int, columns: int) -> Specs:
    return _float((rows, columns))


def _attention_2d(tokens: int, dim: int) -> Specs:
    return _half(*[(tokens, dim)] * 3)


def _attention_4d(batch: int, heads: int, tokens: int, dim: int) -> Specs:
    return _half(*[(batch, heads, tokens, dim)] * 3)


def _masked(batch: int, heads: int, tokens: int, dim: int) -> Specs:
    return (*_attention_4d(batch, heads, tokens, dim), FakeSpec((tokens, tokens), "bool"))


def _lora(tokens: int, hidden: int, rank: int) -> Specs:
    return _half((tokens, hidden), (hidden, hidden), (rank, hidden), (hidden, rank))


def _router(tokens: int, hidden: int, experts: int) -> Specs:
    return _half((tokens, hidden), (experts, hidden))


def _conv(batch: int, channels: int, side: int) -> Specs:
    return _float((batch, channels, side, side), (channels, channels, 3, 3), *[(channels,)] * 4)


def _dropout(tokens: int, hidden: int) -> Specs:
    return (*_half((tokens, hidden), (tokens, hidden), (hidden,)), FakeSpec((tokens, hidden), "bool"))


def _loss(tokens: int, words: int) -> Specs:
    return FakeSpec((tokens, words), _FLOAT), FakeSpec((tokens,), "int64")


def _lstm(batch: int, hidden: int) -> Specs:
    return _float(*[(batch, hidden)] * 3, *[(4 * hidden, hidden)] * 2, *[(4 * hidden,)] * 2)


def _einsum(batch: int, width: int, points: int) -> Specs:
    return _float((points,), (batch, width, points), (batch, width, points), (width, width, width, points))


def _scaled(tokens: int, hidden: int) -> Specs:
    return _half((tokens, hidden), (tokens, hidden), (hidden,), (hidden,))


def _one(tokens: int, hidden: int) -> Specs:
    return _half((tokens, hidden))


def _two_gemms(tokens: int, hidden: int, wide: int) -> Specs:
    return _half((tokens, hidden), (hidden, wide), (wide,), (wide, hidden))


def _matrices(rows: int, columns: int) -> Specs:
    return _float(*[(rows, columns)] * 2)


def _three(tokens: int, hidden: int) -> Specs:
    return _half(*[(tokens, hidden)] * 3)


def _half_layer(tokens: int, hidden: int, wide: int) -> Specs:
    return _half(*[(tokens, hidden)] * 2, (hidden,), *[(hidden, wide)] * 2, (wide, hidden))


# -- the catalogue --------------------------------------------------------------------------------------------

_TOKENS: Sizes = {"tokens": 4096, "hidden": 4096}
_FEW: Sizes = {"tokens": 6, "hidden": 8}

_BLOCKS = (
    ZooBlock(
        "bias_gelu_mlp",
        Text(zh="带偏置和 GELU 的 MLP", en="MLP with bias and GELU"),
        Text(
            zh="两个矩阵乘，中间是偏置和 GELU：两者都可以进第一个矩阵乘的尾声，第二个矩阵乘却不能并进来。",
            en="Two GEMMs with a bias and a GELU between them: both may end the first one as its epilogue, but the second "
            "GEMM cannot join.",
        ),
        "bias_gelu_mlp",
        _mlp,
        {"tokens": 4096, "hidden": 1024, "wide": 4096},
        {"tokens": 6, "hidden": 8, "wide": 12},
    ),
    ZooBlock(
        "swiglu_mlp",
        Text(zh="SwiGLU MLP（Llama 7B 的尺寸）", en="SwiGLU MLP (at Llama 7B's sizes)"),
        Text(
            zh="两个矩阵乘读同一个 x，门控乘法可以做其中一个的尾声，另一个只好先写出来。",
            en="Two GEMMs read the same x. The gating product can be the epilogue of one of them; the other one has to "
            "write first.",
        ),
        "swiglu_mlp",
        _swiglu,
        {"tokens": 4096, "hidden": 4096, "wide": 11008},
        {"tokens": 6, "hidden": 8, "wide": 12},
    ),
    ZooBlock(
        "swiglu_gate",
        Text(zh="SwiGLU 的门", en="The gate of SwiGLU"),
        Text(
            zh="分解以后 silu 是 sigmoid 和乘法，x 被读了两次：省下的比“两个中间张量”多。",
            en="Decomposed, silu is a sigmoid and a product, and x is read twice: fusing saves more than two intermediates.",
        ),
        "swiglu_gate",
        _gate,
        {"tokens": 4096, "wide": 4096},
        {"tokens": 6, "wide": 12},
    ),
    ZooBlock(
        "gated_residual",
        Text(zh="门控加残差", en="A gate and a residual"),
        Text(
            zh="四个算子，却不是一条链：gate 有两个算子要读，up 和 residual 是旁路输入。",
            en="Four operators and yet no chain: two of them read gate, and up and residual are side inputs.",
        ),
        "gated_residual",
        _gated,
        {"tokens": 4096, "wide": 2048},
        {"tokens": 6, "wide": 12},
    ),
    ZooBlock(
        "residual_rmsnorm",
        Text(zh="残差加 RMSNorm", en="Residual and RMSNorm"),
        Text(
            zh="和也是输出（下一层还要用），所以它总要写出一次；归约挡不住融合，只要一行放得下。",
            en="The sum is an output too, for the next layer, so it is written in any case. The reduction stops nothing as "
            "long as a row fits.",
        ),
        "residual_rmsnorm",
        _rows_twice,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "residual_rmsnorm_fp32",
        Text(zh="残差加 RMSNorm，归一化用 fp32", en="Residual and RMSNorm, normalized in fp32"),
        Text(
            zh="实际模型里的写法：先转成 fp32 再算。不融合时，转换出来的 fp32 张量要按 4 字节读写。",
            en="As models really write it: cast to fp32, then compute. Unfused, the cast's result moves at 4 bytes an "
            "element.",
        ),
        "residual_rmsnorm_fp32",
        _rows_twice,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "layernorm_gelu",
        Text(zh="LayerNorm 加 GELU", en="LayerNorm and GELU"),
        Text(
            zh="var_mean 有两个输出，都在同一行上，后面的逐元素运算可以跟着走。",
            en="var_mean has two outputs, both of the same rows, and the elementwise operators behind it can follow.",
        ),
        "layernorm_gelu",
        _layernorm,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "rope",
        Text(zh="旋转位置编码 RoPE", en="Rotary embedding (RoPE)"),
        Text(
            zh="切片是视图，cat 要搬数据：看看它能不能和乘加放在一起。",
            en="Slices are views, but cat moves data: see whether it can share a kernel with the products.",
        ),
        "rope",
        _rope,
        {"heads": 32, "tokens": 4096, "dim": 128},
        {"heads": 2, "tokens": 6, "dim": 8},
    ),
    ZooBlock(
        "softmax",
        Text(zh="按行 softmax", en="Softmax over rows"),
        Text(
            zh="五个算子，两个归约，行相同：一个核函数就够，前提是 16 KiB 的一行留在片上。",
            en="Five operators, two of them reductions over the same rows: one kernel, as long as a row of 16 KiB stays on "
            "chip.",
        ),
        "softmax",
        _matrix,
        {"rows": 4096, "columns": 4096},
        {"rows": 6, "columns": 8},
    ),
    ZooBlock(
        "attention_2d",
        Text(zh="注意力，二维写法", en="Attention, written in 2-D"),
        Text(
            zh="一个头，手写。Inductor 在这种写法里认不出注意力，留下两个矩阵乘和一个 softmax。",
            en="One head, by hand. In this form Inductor does not recognize attention: two GEMMs and a softmax remain.",
        ),
        "attention",
        _attention_2d,
        {"tokens": 2048, "dim": 64},
        {"tokens": 6, "dim": 4},
    ),
    ZooBlock(
        "attention_4d",
        Text(zh="注意力，四维写法", en="Attention, written in 4-D"),
        Text(
            zh="同样的算式，多了批和头两个维度，Inductor 就整个换成一次 FlashAttention 调用。",
            en="The same formula with axes for batch and heads: Inductor turns all of it into one call of flash attention.",
        ),
        "attention",
        _attention_4d,
        {"batch": 2, "heads": 8, "tokens": 2048, "dim": 64},
        {"batch": 2, "heads": 3, "tokens": 6, "dim": 4},
    ),
    ZooBlock(
        "masked_attention",
        Text(zh="带掩码的注意力", en="Masked attention"),
        Text(
            zh="中间多了一个掩码：模式匹配要重新认识它，手写的核函数只多读一个掩码。",
            en="A mask in between: a pattern has to know it, a kernel by hand only reads one more tensor.",
        ),
        "masked_attention",
        _masked,
        {"batch": 2, "heads": 8, "tokens": 2048, "dim": 64},
        {"batch": 2, "heads": 3, "tokens": 6, "dim": 4},
    ),
    ZooBlock(
        "lora_linear",
        Text(zh="LoRA 线性层", en="Linear layer with LoRA"),
        Text(
            zh="三个矩阵乘，最后相加：缩放和加法进哪一个的尾声？",
            en="Three GEMMs and a sum: whose epilogue do the scaling and the sum become?",
        ),
        "lora_linear",
        _lora,
        {"tokens": 4096, "hidden": 4096, "rank": 16},
        {"tokens": 6, "hidden": 8, "rank": 2},
    ),
    ZooBlock(
        "moe_router",
        Text(zh="MoE 路由", en="MoE router"),
        Text(
            zh="topk 是不透明算子，把前后隔开；前面的 softmax 和后面的归一化各自能融合。",
            en="topk is opaque and separates what is before and behind it; softmax before and the normalization behind "
            "can be fused each.",
        ),
        "moe_router",
        _router,
        {"tokens": 4096, "hidden": 4096, "experts": 64},
        {"tokens": 6, "hidden": 8, "experts": 4},
    ),
    ZooBlock(
        "conv_bn_relu",
        Text(zh="卷积 + BN + ReLU（推理）", en="Convolution, batch norm, ReLU (inference)"),
        Text(
            zh="推理时 BN 只是按通道的缩放和平移，可以进卷积的尾声（也可以事先乘进卷积核，那就不是融合了）。",
            en="For inference, batch norm is a scale and a shift per channel: an epilogue of the convolution. (Folding it "
            "into the weights beforehand is no fusion.)",
        ),
        "conv_bn_relu",
        _conv,
        {"batch": 32, "channels": 64, "side": 56},
        {"batch": 2, "channels": 3, "side": 5},
    ),
    ZooBlock(
        "residual_dropout",
        Text(zh="偏置 + dropout + 残差（掩码给定）", en="Bias, dropout and residual (with a given mask)"),
        Text(
            zh="掩码是 1 字节的旁路输入，残差是 2 字节的旁路输入：上限由它们定，不是由算子个数定。",
            en="The mask is a side input of 1 byte an element, the residual one of 2: they set the ceiling, not the number "
            "of operators.",
        ),
        "residual_dropout",
        _dropout,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "layer_scale",
        Text(zh="layer-scale 加残差", en="Layer scale and residual"),
        Text(
            zh="只有两个算子，却常常单独出现：融合后从 5 次大张量读写降到 3 次。",
            en="Two operators only, but they stand alone in many models: five passes of large tensors become three.",
        ),
        "layer_scale",
        _rows_twice,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "cross_entropy",
        Text(zh="交叉熵", en="Cross entropy"),
        Text(
            zh="log_softmax 按行归约，取平均又跨行归约：CPU 的代码生成器把它们放进一个函数，GPU 上是两个核函数。",
            en="log_softmax reduces within rows, the mean across them. The CPU's code generator puts all in one function; "
            "on a GPU it is two kernels.",
        ),
        "cross_entropy",
        _loss,
        {"tokens": 4096, "words": 32000},
        {"tokens": 6, "words": 11},
    ),
    ZooBlock(
        "lstm_cell",
        Text(zh="LSTM 单元", en="LSTM cell"),
        Text(
            zh="两个矩阵乘相加后切成四个门：切片不搬数据，十来个逐元素运算能进一个核函数。",
            en="Two GEMMs are added and cut into four gates: the cuts move nothing, and a dozen elementwise operators fit "
            "in one kernel.",
        ),
        "lstm_cell",
        _lstm,
        {"batch": 256, "hidden": 1024},
        {"batch": 3, "hidden": 4},
    ),
    ZooBlock(
        "einsum_at_once",
        Text(zh="einsum：先乘完，再一次求和", en="Einsum: multiply all, then sum once"),
        Text(
            zh="广播出来的乘积有 16 GB，融合之后它从未存在过：一个归约核函数。",
            en="The broadcast product is 16 GB, and fused it never exists: one reduction kernel.",
        ),
        "einsum_at_once",
        _einsum,
        {"batch": 1000, "width": 16, "points": 1000},
        {"batch": 2, "width": 3, "points": 4},
    ),
    ZooBlock(
        "einsum_step_by_step",
        Text(zh="einsum：一步一步求和", en="Einsum: sum step by step"),
        Text(
            zh="同一个算式，只换了求和的次序：运算几乎一样多，但两个归约的行不同，1 GB 的中间结果必须写出来再读回。",
            en="The same formula, summed in another order: nearly as many operations, but the two reductions have different "
            "rows, and 1 GB between them must be written and read back.",
        ),
        "einsum_step_by_step",
        _einsum,
        {"batch": 1000, "width": 16, "points": 1000},
        {"batch": 2, "width": 3, "points": 4},
    ),
    # -- blocks of the puzzles: sizes whose bytes are added up in the head
    ZooBlock(
        "sigmoid_gate",
        Text(zh="门：x·sigmoid(x)·up", en="A gate: x·sigmoid(x)·up"),
        Text(
            zh="三个算子，gate 被读两次：合成一个核函数，它只读一次。",
            en="Three operators, two of which read gate: one kernel reads it once.",
        ),
        "sigmoid_gate",
        _gate,
        {"tokens": 4096, "wide": 4096},
        {"tokens": 6, "wide": 12},
    ),
    ZooBlock(
        "scaled_residual",
        Text(zh="偏置、GELU、缩放、残差", en="Bias, GELU, scale, residual"),
        Text(
            zh="四个算子排成一条链，但残差是旁路输入：它非读不可，所以上限不是 4 倍。",
            en="Four operators in a chain, with the residual as a side input: it has to be read, so the ceiling is not 4x.",
        ),
        "scaled_residual",
        _scaled,
        {"tokens": 8192, "hidden": 4096},
        _FEW,
    ),
    ZooBlock(
        "relu_fan_out",
        Text(zh="一个结果，两处使用，还要留存", en="One result, two readers, and kept"),
        Text(
            zh="反向传播要用的张量总要写出一次；融合省下的只是把它读回来。",
            en="A tensor that the backward pass wants is written in any case; fusing saves reading it back.",
        ),
        "relu_fan_out",
        _one,
        {"tokens": 8192, "hidden": 4096},
        _FEW,
    ),
    ZooBlock(
        "gemm_gelu_gemm",
        Text(zh="矩阵乘、偏置、GELU、矩阵乘", en="GEMM, bias, GELU, GEMM"),
        Text(
            zh="GELU 可以放在前一个矩阵乘的尾声里，也可以放在后一个读数的时候；只有前一种是通用编译器会做的。",
            en="GELU may end the first GEMM or be computed while the second one loads; a general compiler does the former.",
        ),
        "gemm_gelu_gemm",
        _two_gemms,
        {"tokens": 4096, "hidden": 1024, "wide": 4096},
        {"tokens": 6, "hidden": 8, "wide": 12},
    ),
    ZooBlock(
        "decode_rmsnorm",
        Text(zh="残差加 RMSNorm，逐词生成时", en="Residual and RMSNorm while decoding"),
        Text(
            zh="32 个请求各一个词，张量只有 256 KiB：时间花在启动上，不在字节上。",
            en="32 requests with a token each: tensors of 256 KiB, so launches take the time and not bytes.",
        ),
        "residual_rmsnorm",
        _rows_twice,
        {"tokens": 32, "hidden": 4096},
        _FEW,
    ),
    ZooBlock(
        "quantized_columns",
        Text(zh="按行量化成 int8，再按列求和", en="Quantize rows to int8, then sum columns"),
        Text(
            zh="先按行归约，再按列归约，只能是两个核函数；在哪里切开最便宜？",
            en="A reduction over rows, then one over columns: two kernels at least. Where is the cut cheapest?",
        ),
        "quantized_columns",
        _matrix,
        {"rows": 4096, "columns": 4096},
        {"rows": 6, "columns": 8},
    ),
    ZooBlock(
        "long_softmax",
        Text(zh="长行 softmax", en="Softmax over long rows"),
        Text(
            zh="一行 256 KiB，片上放不下：一个核函数要把两个输入各读三遍。",
            en="A row of 256 KiB does not fit on chip: one kernel for everything reads both inputs three times.",
        ),
        "long_softmax",
        _matrices,
        {"rows": 256, "columns": 65536},
        {"rows": 6, "columns": 8},
    ),
    ZooBlock(
        "activation_statistics",
        Text(zh="行的均方和列的最大值", en="Mean squares of rows, maxima of columns"),
        Text(
            zh="两个归约方向不同，却读同一个转换结果：存下来，还是各算一遍？",
            en="Two reductions in different directions read the same cast: store it, or compute it twice?",
        ),
        "activation_statistics",
        _three,
        _TOKENS,
        _FEW,
    ),
    ZooBlock(
        "llama_half_layer",
        Text(zh="Llama 的半层：残差、RMSNorm、SwiGLU MLP", en="Half a layer of Llama: residual, RMSNorm, SwiGLU MLP"),
        Text(
            zh="十八个算子，三个矩阵乘：归约、尾声、旁路输入都在里面。",
            en="Eighteen operators, three of them GEMMs: a reduction, epilogues and side inputs, all in one.",
        ),
        "llama_half_layer",
        _half_layer,
        {"tokens": 4096, "hidden": 4096, "wide": 8192},
        {"tokens": 6, "hidden": 8, "wide": 12},
    ),
)

ZOO: Mapping[str, ZooBlock] = MappingProxyType({block.name: block for block in _BLOCKS})
"""All blocks by name."""
