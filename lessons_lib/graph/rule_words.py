"""What is said of a rule that is broken, and of a mark: sentences for ``rules`` to fill in. Internal to this floor."""

from __future__ import annotations

from lessons_lib.base.text import Text

OPAQUE = Text(
    zh="{op} 是不透明算子（库函数，或编译器看不进去的代码），只能独占一个核函数。",
    en="{op} is opaque: a library call, or code that no compiler looks into. It must have a kernel of its own.",
)
DIFFERENT_ROWS = Text(
    zh="{a} 把 {a_shape} 沿轴 {a_axes} 归约，{b} 把 {b_shape} 沿轴 {b_axes} 归约：两者的行不是同一批。一个核函数把一种行"
    "整行整行地分给线程块；换一种行，每个线程块手里只有一部分，得先写出部分结果，再用一步合起来。按这里的规则，它们不能"
    "放在一起。",
    en="{a} reduces axes {a_axes} of {a_shape}, {b} reduces axes {b_axes} of {b_shape}: their rows differ. A "
    "kernel gives whole rows of one kind to its thread blocks; of the other kind a block has parts only, and partial "
    "results take a second pass to put together. By the rules here the two do not share a kernel.",
)
OTHER_ROWS = Text(
    zh="{op} 的一个元素要用到 {origin} 在别的行上的结果，而那些行由别的线程块归约；一次普通的启动里，线程块之间不互相等。",
    en="One element of {op} needs what {origin} makes of other rows, which other thread blocks reduce; in an ordinary "
    "launch, thread blocks do not wait for one another.",
)
ACROSS_ROWS = Text(
    zh="{op} 跨行归约，而 {origin} 的各行分散在不同的线程块里；要先全部写出，再由下一个核函数读回来。",
    en="{op} reduces across the rows of {origin}, which lie in different thread blocks: they must be written first, and "
    "the next kernel reads them.",
)
TWO_ORDERS = Text(
    zh="{a} 和 {b} 都要遍历 {tensor}，但行的划分不同（中间有转置之类的搬移）：一个线程块只有一种行，{tensor} 得读两遍。",
    en="{a} and {b} both go over {tensor}, but by different rows (something like a transposition lies between): a block "
    "has one kind of row, so {tensor} would have to be read twice.",
)
MOVED = Text(
    zh="{origin} 的结果在到达 {op} 之前换过位置：{op} 要的元素在别的线程块手里，只能经过显存。",
    en="What {origin} makes is moved on its way to {op}, so the elements that {op} needs are in other thread blocks: "
    "they must pass through device memory.",
)
MOVED_TOGETHER = Text(
    zh="{op} 把 {origin} 的结果和别的数据按新的位置拼在一起，而每个线程块手里只有自己的那几行或那一块。",
    en="{op} rearranges what {origin} makes together with other data, but a thread block has only its own rows or tile.",
)
TILE_STRETCHED = Text(
    zh="{op} 的输出比 {origin} 的结果大：尾声只能对手里那块结果逐个元素地算，不能把它展开成更大的张量。",
    en="The output of {op} is larger than what {origin} makes: an epilogue works on its own tile, element by element, "
    "and cannot stretch it.",
)
THREE_GEMMS = Text(
    zh="{op} 是这个核函数里的第三个矩阵乘；两个已经只能手写，三个放不下。",
    en="{op} is the third GEMM in this kernel; two are possible only by hand, three not at all.",
)
GEMM_AND_REDUCTION = Text(
    zh="矩阵乘的一个线程块手里只有结果的一小块，一行散在许多块里，凑不齐，没法归约；只有像注意力那样夹在两个矩阵乘之间、"
    "边算边归约时才行。",
    en="A thread block of a GEMM has one tile of the result, and a row is spread over many tiles, so it cannot be "
    "reduced there. It works only between two GEMMs, reduced along the way, as in attention.",
)
INTO_GEMM = Text(
    zh="{op} 每算一块都要重新读它的操作数，而 {origin} 的结果分散在各线程块里，还没有写出来。",
    en="{op} reads its operands again for each tile, but what {origin} makes is spread over thread blocks and not "
    "written yet.",
)
INTO_RIGHT = Text(
    zh="{origin} 的结果是 {op} 的右操作数：每个线程块都要用到它的全部，而不只是自己的几行。",
    en="What {origin} makes is the right operand of {op}: every thread block needs all of it, not only its own rows.",
)
ACROSS_CHAIN = Text(
    zh="{op} 同时要 {a} 和 {b} 的结果；两个矩阵乘串在一起时，前一个的结果一块一块用完就丢了。",
    en="{op} needs the results of both {a} and {b}; when two GEMMs are chained, the result of the first is used "
    "piece by piece and discarded.",
)
NOT_MATMUL = Text(
    zh="{a} 和 {b} 不都是普通的矩阵乘（左操作数的行 × 右操作数），不能一批行一批行地串起来。",
    en="{a} and {b} are not both plain matrix multiplications (rows of the left operand times the right one), so they "
    "cannot be chained block of rows by block of rows.",
)
TWO_GEMM_SPACES = Text(
    zh="{a} 和 {b} 的输出大小不同：一个核函数只按一种输出来划分线程块。",
    en="The outputs of {a} and {b} differ in size: a kernel divides one output among its thread blocks.",
)
SPACE = Text(
    zh="{a} 和 {b} 写出的张量元素个数不同：一个核函数按一种大小遍历元素（一个迭代空间），顾不了两种。",
    en="{a} and {b} write tensors with different numbers of elements: a kernel runs over one set of elements, its "
    "iteration space.",
)
DISCONNECTED = Text(
    zh="{a} 和 {b} 没有共同的张量，也没有别的算子把它们连起来：放在一起一个字节也省不下。",
    en="{a} and {b} share no tensor, and nothing in the group connects them: together they do not save a single "
    "byte.",
)
ROW = Text(
    zh="{op} 的一行有 {row}，{gpu} 的一个线程块在片上只放得下 {budget}；归约之后还要再用这一行，留不住就得重新读。",
    en="One row of {op} is {row}, and a thread block of {gpu} can keep {budget} on chip. The row is needed again after "
    "the reduction, so it would have to be read again.",
)
CHAIN_ROW = Text(
    zh="{a} 和 {b} 之间，每批 {rows} 行要在片上留 {row}，{gpu} 的一个线程块只放得下 {budget}。",
    en="Between {a} and {b} a block of {rows} rows must keep {row} on chip, and a thread block of {gpu} has {budget}.",
)
OUTPUT = Text(
    zh="{op} 的结果在核函数之外还要用，但在 {b} 之前它只是一块一块地出现，归一化要到最后才完成：完整的结果从未存在过。",
    en="What {op} makes is needed outside, but before {b} it exists only piece by piece, and its normalization is "
    "finished at the very end: the complete tensor never exists.",
)
TWO_GEMMS = Text(
    zh="{a} 和 {b} 两个矩阵乘串在同一个核函数里：通用编译器不会这样做，只能手写，或靠模式匹配（例如注意力换成 FlashAttention）。",
    en="Two GEMMs, {a} and then {b}, in one kernel: no general compiler chains them. It is written by hand, or matched "
    "as a pattern (attention becomes FlashAttention).",
)
GEMMS_SIDE_BY_SIDE = Text(
    zh="{a} 和 {b} 两个矩阵乘并排放在同一个核函数里：一般的融合不会这样做，要靠手写。读同一个输入的两个，编译器有时另有办法："
    "把两个权重拼成一个，只做一次矩阵乘（XLA 对小的矩阵乘这样做；Inductor 打开 freezing、权重成为常量之后也会）。",
    en="Two GEMMs, {a} and {b}, side by side in one kernel: ordinary fusion does not build that, a programmer can. Where both "
    "read the same input, a compiler may concatenate the weights and multiply once: XLA does so for small GEMMs, Inductor "
    "with freezing, which makes weights constants.",
)
PROLOGUE = Text(
    zh="{a} 在 {op} 读操作数时顺带计算（prologue）：库里的矩阵乘做不到，要用 Triton 模板或手写，而且每读一次就重算一次。",
    en="{a} is computed while {op} loads its operand (a prologue): a library's GEMM cannot do that, but a Triton "
    "template or a kernel by hand can, and {a} is computed anew each time the operand is loaded.",
)
