"""What the puzzles tell: titles, stories, hints and explanations. ``{unfused}``, ``{compiler}``, ``{best}`` and the like
are filled in by ``puzzles`` from the figures it works out. Internal to this floor."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lessons_lib.base.text import Text

TITLES: Mapping[str, Text] = MappingProxyType(
    {
        "gate": Text(zh="门控", en="A gate"),
        "side_input": Text(zh="旁路输入", en="A side input"),
        "kept": Text(zh="留给反向", en="Kept for later"),
        "epilogue": Text(zh="尾声", en="An epilogue"),
        "reduction": Text(zh="归约挡路？", en="A reduction"),
        "cut": Text(zh="最便宜的一刀", en="Cheapest cut"),
        "long_row": Text(zh="放不下的行", en="A long row"),
        "recompute": Text(zh="存还是重算", en="Store or redo"),
        "attention": Text(zh="注意力", en="Attention"),
        "half_layer": Text(zh="半层 Llama", en="Half a layer"),
    }
)

STORIES: Mapping[str, Text] = MappingProxyType(
    {
        "gate": Text(
            zh="gate · sigmoid(gate) · up，每个张量 32 MiB。三个算子三个核函数，读写 {unfused}。点一条边，两端的算子就合成一个"
            "核函数。先猜一下：两个中间张量各写一次、读一次，一共 128 MiB，融合省下的就是这么多吗？",
            en="gate · sigmoid(gate) · up, 32 MiB per tensor. Three operators in three kernels move {unfused}. "
            "Press an edge, and the operators at its ends become one kernel. Guess first: two intermediate "
            "tensors, each written once and read once, are 128 MiB. Is that what fusion saves?",
        ),
        "side_input": Text(
            zh="residual + scale · gelu(x + bias)，大张量每个 64 MiB，bias 和 scale 只有 8 KiB。四个核函数，读写 {unfused}。"
            "四个并成一个，读写会降到四分之一，也就是 144 MiB 吗？",
            en="residual + scale · gelu(x + bias), 64 MiB for each large tensor, 8 KiB for bias and scale. Four kernels "
            "move {unfused}. Will one kernel instead of four move a quarter of that, 144 MiB?",
        ),
        "kept": Text(
            zh="t = relu(x)，u = sigmoid(t)，v = t · t，每个 64 MiB。t 在反向传播里还要用，所以三个都是输出。把 t 留在片上，"
            "是不是只剩下读 x、写 u、写 v，一共 192 MiB？",
            en="t = relu(x), u = sigmoid(t), v = t · t, 64 MiB each. The backward pass will want t, so all three are "
            "outputs. With t kept on chip, is reading x and writing u and v all that remains, 192 MiB?",
        ),
        "epilogue": Text(
            zh="gelu(x · W1 + b) · W2：中间的隐藏层 32 MiB，x、W1、W2 和结果各 8 MiB。矩阵乘写出一块结果之前，可以顺手把逐元素的"
            "运算做完，这就是它的尾声。GELU 夹在两个矩阵乘中间：它该跟前一个，还是跟后一个？",
            en="gelu(x · W1 + b) · W2: the hidden layer is 32 MiB; x, W1, W2 and the result are 8 MiB each. Before a GEMM "
            "writes a tile of its result it can apply elementwise operators to it: its epilogue. GELU stands between two "
            "GEMMs. Does it go with the first, or with the second?",
        ),
        "reduction": Text(
            zh="大模型逐个 token 地生成：32 个请求，每步各生成一个 token，做残差加 RMSNorm（按行归一化）。张量只有 256 KiB，"
            "A100 读一个只要 0.17 µs，启动一个核函数却要"
            "几微秒，所以这一关只数启动次数。中间的 mean 是归约，要等一整行加完：它后面的算子还能和前面的放在一起吗？",
            en="Generating text token by token: 32 requests, one token each, through a residual addition and "
            "RMSNorm. The tensors are 256 KiB, which an A100 reads in 0.17 µs, while a launch takes some "
            "microseconds: so this level counts launches. The mean is a reduction and has to wait for a whole row. "
            "Can what follows it share a kernel with what precedes it?",
        ),
        "cut": Text(
            zh="一个 64 MiB 的 fp32 矩阵 x，按行量化成 int8（每行除以自己的 scale），结果是 q，再按列求和。按这里的规则，"
            "按行的归约和按列的归约不能放在一起，所以总得切一刀。边有粗有细：64 MiB、16 MiB，最细的只有 16 KiB。切在哪里最便宜？",
            en="A matrix of 64 MiB in fp32 is quantized to int8 (each row divided by a scale of its own, then "
            "cast), and then its columns are summed. By the rules here a reduction along rows and one along columns "
            "do not share a kernel, so there must be a cut. The edges differ: 64 MiB, 16 MiB, and the thinnest only 16 KiB. Where is the "
            "cut cheapest?",
        ),
        "long_row": Text(
            zh="softmax(logits − penalty)，词表 65,536：两个输入各 64 MiB，一行 256 KiB，而 A100 的一个线程块在片上只留得"
            "住 163 KiB。行留不住，核函数也能做，只是要多扫几趟，每趟把输入重读一遍（这一关允许）。全放进一个核函数是三趟，"
            "两个输入各读三遍：448 MiB。还能更少吗？",
            en="softmax(logits − penalty) over a vocabulary of 65,536: two inputs of 64 MiB, rows of 256 KiB, but "
            "a thread block of an A100 can keep only 163 KiB on chip. A kernel can cope by going over its rows in "
            "several passes and reading its inputs again in each (allowed in this level). All in one kernel takes "
            "three passes over both inputs: 448 MiB. Can it be less?",
        ),
        "recompute": Text(
            zh="t = x + attention + mlp（fp16，每个 32 MiB），转成 fp32（64 MiB）之后，一边按行求均方，一边按列求最大值。按这里的"
            "规则，两个归约不能放在一起，却都要读这个 fp32 张量。存一次、读一次，还是两边各算一遍？"
            "可以重算的有两个：转换（_to_copy）和后一个加法（add_1）。",
            en="t = x + attention + mlp (fp16, 32 MiB each) is cast to fp32 (64 MiB); then the mean square of each "
            "row is taken, and the largest absolute value of each column. By the rules here the two reductions do not "
            "share a kernel, yet both read the fp32 tensor. Store it and read it back, or compute it on both sides? Two "
            "operators may be computed again: the cast (_to_copy) and the second addition (add_1).",
        ),
        "attention": Text(
            zh="一个头，2048 个 token，d = 64：Q·Kᵀ、缩放、softmax、再乘 V。q、k、v 和结果各 256 KiB，中间的 2048 × 2048 矩阵却有 8 MiB"
            "（fp32 时 16 MiB）。把两个矩阵乘放进一个核函数，通用编译器不会，手写可以：这一关允许手写。",
            en="One head of width d = 64, 2048 tokens: Q·Kᵀ, scale, softmax, times V. q, k, v and the result are "
            "256 KiB each, but the 2048 × 2048 matrix in the middle is 8 MiB (16 MiB in fp32). Two GEMMs in one "
            "kernel: no general compiler does that, but a programmer can. In this level, kernels written by hand "
            "count.",
        ),
        "half_layer": Text(
            zh="Llama 一层的后半：残差、RMSNorm、SwiGLU MLP，十八个算子，其中三个矩阵乘。torch.compile 用 {compiler_launches} 个核函数，"
            "读写 {compiler}。只用通用的核函数，比它少就算过关；不看提示、做到最少，才有 ★。",
            en="The second half of a Llama layer: residual, RMSNorm, SwiGLU MLP; eighteen operators, three of them "
            "GEMMs. torch.compile takes {compiler_launches} kernels and moves {compiler}. Move less with general "
            "kernels to solve the level; move the least to earn the star.",
        ),
    }
)

HINTS: Mapping[str, tuple[Text, Text, Text]] = MappingProxyType(
    {
        "gate": (
            Text(
                zh="一条边是一个中间张量：写一次，读一次，各 32 MiB。",
                en="An edge is an intermediate tensor: written once, read once, 32 MiB each time.",
            ),
            Text(
                zh="还有一样省得下：gate 有两处使用，sigmoid 和第一个 mul。",
                en="There is more to save: gate has two readers, sigmoid and the first mul.",
            ),
            Text(zh="两条边都点上。", en="Press both edges."),
        ),
        "side_input": (
            Text(
                zh="别数算子，数张量：融合以后，哪些还非读不可、非写不可？",
                en="Do not count operators, count tensors: which must be read or written even when all is fused?",
            ),
            Text(
                zh="三个中间张量各一写一读，3 × 128 = 384 MiB，能省的就是这些。",
                en="Three intermediates, each written and read: 3 × 128 = 384 MiB is all there is to save.",
            ),
            Text(zh="三条边都点上，四个算子一个核函数。", en="Press all three edges: four operators, one kernel."),
        ),
        "kept": (
            Text(zh="输出一定要写。省得下的是读。", en="An output has to be written. What can be saved is reading."),
            Text(
                zh="不融合时 t 被读了两遍：u 一遍，v 一遍。",
                en="Unfused, t is read twice: once for u and once for v.",
            ),
            Text(zh="把从 relu 出发的两条边都点上。", en="Press both edges that start at relu."),
        ),
        "epilogue": (
            Text(
                zh="结果的一块在写出之前就在寄存器里：加偏置、过 GELU，都不必经过显存。",
                en="Before a tile of the result is written it is in registers: adding the bias and applying GELU "
                "need no trip to memory.",
            ),
            Text(
                zh="放进后一个矩阵乘，就是在它读操作数时顺带算：字节一样多，却要靠模板或手写，这一关不算。",
                en="In the second GEMM it would be computed while that loads its operand: the same bytes, but only "
                "by a template or by hand, which does not count here.",
            ),
            Text(
                zh="点前两条边：mm 和 add 之间，add 和 gelu 之间；gelu 后面那条不点。",
                en="Press the first two edges, mm to add and add to gelu, and leave the one after gelu alone.",
            ),
        ),
        "reduction": (
            Text(
                zh="让一个线程块负责一整行：这一行加完，它自己接着算，不用等别的块。",
                en="Give a whole row to one thread block: once it has summed the row it carries on, and waits for "
                "no other block.",
            ),
            Text(
                zh="一行 4096 个 fp16 是 8 KiB，归约之后还在片上，不必重读。",
                en="A row of 4096 fp16 numbers is 8 KiB: it is still on chip after the reduction.",
            ),
            Text(zh="七个算子全放进一个核函数。", en="Put all seven operators into one kernel."),
        ),
        "cut": (
            Text(
                zh="一刀的代价不只是切断的张量一写一读：两边都要读的输入也得读两遍。",
                en="A cut costs more than writing and reading what it severs: an input needed on both sides is read twice.",
            ),
            Text(
                zh="在 16 KiB 的 scale 处切开，它的下游还要用 x，又是 64 MiB。",
                en="Cut at the scale of 16 KiB, and what follows needs x once more: another 64 MiB.",
            ),
            Text(
                zh="int8 的 q 是 16 MiB：切在 to int8 之后、最后的 sum 之前，前五个算子放一起。",
                en="q in int8 is 16 MiB: cut after “to int8”, before the last sum, and keep the first five "
                "operators together.",
            ),
        ),
        "long_row": (
            Text(
                zh="每多扫一趟，都要重读这个核函数的输入：输入越少，多扫一趟越便宜。",
                en="Each further pass reads the kernel's inputs again: the fewer inputs it has, the cheaper a pass.",
            ),
            Text(
                zh="sub 读两个张量，得一个。把这一个存下来，后面每一趟就少读一个。",
                en="sub reads two tensors and makes one. Store that one, and each later pass reads one tensor less.",
            ),
            Text(
                zh="sub 和 amax（求最大值）一个核函数，其余四个一个核函数。",
                en="Put sub and amax into one kernel, the other four into another.",
            ),
        ),
        "recompute": (
            Text(
                zh="fp32 的那个一写一读是 128 MiB，fp16 的只要一半，而转换几乎不花时间。",
                en="Writing and reading the fp32 tensor is 128 MiB, the fp16 one half of that, and a cast takes next to no "
                "time.",
            ),
            Text(
                zh="重算转换（_to_copy），两边各读一次 fp16 的 t。连加法（add_1）也重算，就得把前面的张量再读一遍。",
                en="Recompute the cast (_to_copy), and each side reads t in fp16. Recompute the addition (add_1) "
                "as well, and what comes before it is read again.",
            ),
            Text(
                zh="只重算转换。两个加法和其中一路归约一个核函数，另一路归约一个核函数。",
                en="Recompute the cast only. Both additions go into one kernel with one of the two reductions, the "
                "other reduction gets its own; each has its copy of the cast.",
            ),
        ),
        "attention": (
            Text(
                zh="从 mm 往后一个个并，到 amax（求最大值，是归约）就走不通了：一块结果里没有完整的一行。"
                "两个矩阵乘都在，中间的归约才能边算边做。",
                en="A kernel grown from mm one operator at a time gets stuck at amax: a tile holds no whole row. "
                "With both GEMMs in the kernel, the reductions between them can be done along the way.",
            ),
            Text(
                zh="在图下面的 a、b 里选两个矩阵乘（mm 和 mm_1），再点“融合 / 切开”：中间的算子一起进去。",
                en="Choose the two GEMMs, mm and mm_1, as a and b below the picture, and press “fuse or cut”: "
                "everything between them comes along.",
            ),
            Text(zh="十个算子，一个核函数。", en="Ten operators, one kernel."),
        ),
        "half_layer": (
            Text(
                zh="前九个算子，从第一个 add 到乘 weight，是残差加 RMSNorm，一个核函数：归约不挡路。",
                en="The first nine operators, up to the product with weight, are residual and RMSNorm: one kernel. "
                "The reduction is no obstacle.",
            ),
            Text(
                zh="门控（从 to float32 到最后一个 mul）是尾声：RMSNorm 后面的两个矩阵乘，跟着哪一个都行，另一个只好先写出来。",
                en="The gate, up to the last mul, can be the epilogue of either of the two GEMMs after RMSNorm; "
                "the other one has to write its result first.",
            ),
            Text(
                zh="最后的 add 跟着最后的矩阵乘。它也读第一个 add 的结果，却不能和它放在一起：中间隔着矩阵乘。一共四个核函数。",
                en="The last add goes with the last GEMM. It also reads what the first add makes, but cannot join "
                "that kernel: the GEMMs lie between. Four kernels in all.",
            ),
        ),
    }
)

EXPLANATIONS: Mapping[str, Text] = MappingProxyType(
    {
        "gate": Text(
            zh="读 gate、读 up、写结果，3 × 32 = {best}。省下的是 160，不是 128：两个中间张量的读写 128，再加上 gate 少读的一次 32。"
            "torch.compile 也是一个核函数。不过 PyTorch 不编译时，F.silu 本来就是一个核函数，silu 再乘 up 是 160 MiB：和它比是"
            " 1.67 倍，不是 2.67 倍。这些是字节，不是时间：显存带宽是瓶颈时，两者才成正比。",
            en="Read gate, read up, write the result: 3 × 32 = {best}. That saves 160 and not 128: the two "
            "intermediates are 128, and gate is read once instead of twice. torch.compile makes one kernel as "
            "well. But PyTorch's own silu is one kernel already, and silu followed by the product moves 160 MiB: "
            "against that the gain is 1.67×, not 2.67×. All this is bytes and not time; the two go together where "
            "memory bandwidth is the limit.",
        ),
        "side_input": Text(
            zh="读 x、读 residual、写结果，3 × 64 = {best}（外加 bias 和 scale 的 16 KiB）。是 3 倍，不是 4 倍：residual 是旁路输入，"
            "怎么融合都要读。上限由非搬不可的字节定，不由算子个数定。torch.compile 做的也是这个。",
            en="Read x, read residual, write the result: 3 × 64 = {best} (and 16 KiB for bias and scale). That is "
            "3× and not 4×: the residual is a side input, and no fusion saves reading it. The bytes that must move "
            "set the ceiling, not the number of operators. torch.compile does the same.",
        ),
        "kept": Text(
            zh="读 x，写 t、u、v，4 × 64 = {best}。t 留在片上，u 和 v 就不用读它，省 128；但它是输出，照样要写一次。只融合一处使用"
            "是 320：另一处还得把 t 读回来。推理时没人要 t，就是 192。训练时融合能省的比推理少，多半就是因为这些要留给反向的张量。"
            "torch.compile 做的也是一个核函数。",
            en="Read x, write t, u and v: 4 × 64 = {best}. With t on chip neither u nor v reads it, which saves "
            "128; but it is an output and is written all the same. With only one of the readers fused it is 320, "
            "for the other reads t back. In inference nobody needs t, and it is 192. Such tensors are one reason "
            "why fusion saves less in training. torch.compile makes one kernel, too.",
        ),
        "epilogue": Text(
            zh="前一个核函数：读 x、W1（16），写隐藏层（32）。后一个：读隐藏层、W2（40），写结果（8）。一共 {best}。GELU 放在后一个"
            "矩阵乘里也是这个数，但那要模板或手写，而且每读一次就重算一次。torch.compile 是 {compiler_launches} 个核函数、{compiler}："
            "偏置进了库里的矩阵乘，GELU 单独一个，因为库函数它看不进去。公平的基线是它，不是 {unfused}。字节也不是时间：前半段的字节之比"
            "是 3.67，按 roofline 在 A100 上只快 1.6 到 1.8 倍，其余时间花在乘法上。",
            en="The first kernel reads x and W1 (16) and writes the hidden layer (32); the second reads that and "
            "W2 (40) and writes the result (8): {best}. GELU in the second GEMM gives the same number, but needs a "
            "template or a kernel by hand, and is computed anew each time the operand is loaded. torch.compile "
            "takes {compiler_launches} kernels and {compiler}: the library's GEMM adds the bias, but here takes no "
            "GELU. That is the fair baseline, not {unfused}. And bytes are not time: in one kernel instead of "
            "three, the first half moves 3.67× fewer bytes, but by the roofline of an A100 it is only 1.6 to 1.8× "
            "faster; the rest of the time goes into multiplying.",
        ),
        "reduction": Text(
            zh="一个线程块一行，8 KiB 留在片上：加完就接着归一化，{best_launches} 次启动。归约挡不住融合，换一个方向归约"
            "才挡得住（下一关）。torch.compile 在 CPU 上分成 {compiler_launches} 组循环：先把残差的和写出来，再读回来做归"
            "一化；两组在同一个函数里，调用一次，内存走两遍。在 GPU 上它也只生成一个核函数（PyTorch 2.13），和你打平。启"
            "动次数也不是时间：GPU 忙的时候，后面的启动排着队，藏得住；CUDA graph（把一串启动录下来，一次提交）省启动，不"
            "省字节。",
            en="A thread block has a row of 8 KiB on chip, sums it and goes on to normalize: {best_launches} launch. A "
            "reduction does not stop fusion; a reduction in another direction does (next level). On a CPU torch.compile "
            "makes {compiler_launches} loop nests: it writes the sum with the residual, then reads it back to normalize. "
            "Both are in one function: that is one call, but it goes through memory twice. For a GPU it makes one "
            "kernel, as you did (PyTorch 2.13). Launches are not time either: on a busy GPU they queue up and do not "
            "show, and CUDA graphs save launches but no bytes.",
        ),
        "cut": Text(
            zh="x 读一次（64），q 写一次、读一次（16 + 16）：{best}。切在最细的 scale 处，scale 几乎不要钱，可是 x 要读两"
            "遍：128 MiB。torch.compile 是 {compiler}，就切在那里（GPU 上也是）：它把逐元素的运算放到使用处去算，不比较哪"
            "一刀便宜。你赢了编译器。GPU 上的 Inductor 能把方向不同的两个归约并进一个核函数，但只限互不依赖的：这里按列的"
            "和要等按行的 scale。另一面：x 若还在 L2 里，第二遍就不去显存；这里数的是逻辑读写。",
            en="x is read once (64), q is written and read (16 + 16): {best}. Cut at the thin scale, and the scale costs "
            "next to nothing, but x is read twice: 128 MiB. torch.compile moves {compiler}, because that is where it "
            "cuts, on a GPU as well: it moves elementwise work to whoever reads the result and does not compare cuts. "
            "You beat the compiler. (On a GPU, Inductor can put reductions in different directions into one kernel if "
            "neither needs the other; here the sums of columns need the scales of rows.) On the other hand, whatever "
            "part of x is still in L2 is not read from memory a second time; what is counted here is logical traffic.",
        ),
        "long_row": Text(
            zh="sub 和 amax 一趟：读 128，写 64。其余四个两趟（一趟求和，一趟相除）：读 64 两遍，写 64。一共 {best}。全放一起是三趟，"
            "3 × 128 + 64 = 448，torch.compile 在 CPU 上就是这么做的（{compiler}）。存一个张量，换来少读两个，划算。"
            "要是一行放得下，一个核函数只要 128 + 64 = 192。"
            "还有一种算法这里没有算：在线 softmax（第 02 课的第三种做法）把最大值与和并成一趟，一个核函数就是 2 × 128 + 64 = 320。"
            "在 GPU 上，torch.compile 默认就这样做（PyTorch 2.13），比这一关的最优还少。",
            en="sub and amax take one pass: 128 read, 64 written. The other four take two, one to sum and one to "
            "divide: 64 read twice, 64 written. Together {best}. All in one kernel is three passes, 3 × 128 + 64 = "
            "448, as torch.compile does it on the CPU ({compiler}). Storing one tensor saves reading two. If a row "
            "did fit, one kernel would move 128 + 64 = 192. One way is not counted here: an online softmax finds "
            "maximum and sum in a single pass, so one kernel moves 2 × 128 + 64 = 320. On a GPU torch.compile does so "
            "by default (PyTorch 2.13) and moves less than the best of this level.",
        ),
        "recompute": Text(
            zh="读三个输入（96），t 写一次、读一次（32 + 32），两边各自转成 fp32：{best}。存 fp32 是 224；连加法也重算是 "
            "192，torch.compile 就是这么做的（{compiler}，GPU 上也是）：两边都从头算起。重算划算，是因为转换读进来的比算"
            "出来的小；加法读两个得一个，正相反。重算多出来的运算，这里没有算时间：转换不值一提，换成 exp 就要算一算了。"
            "GPU 上的 Inductor 能把互不依赖的按行归约和按列归约并进一个核函数，但按列的要是求和，行数还要至少是列数的两倍；"
            "这里按列的是最大值，所以仍是两个。",
            en="The three inputs are read (96), t is written and read (32 + 32), and each side casts it: {best}. "
            "Storing fp32 is 224. Repeating the addition as well is 192; torch.compile, which starts from all "
            "three inputs on both sides, also moves {compiler}, on a GPU as well. The cast is worth repeating, for it reads less "
            "than it makes; the addition is not, for it reads two tensors to make one. The operations done twice "
            "are not timed here: a cast costs next to nothing, an exp would deserve a second look. (On a GPU, Inductor can "
            "put independent reductions along rows and columns into one kernel, but the columns must be summed, and there "
            "must be twice as many rows as columns. Here it is a maximum: two kernels.)",
        ),
        "attention": Text(
            zh="q 读一次，结果写一次，各 0.25 MiB；每 64 行一批，共 32 批，每批把 k、v 读一遍：32 × 0.5 = 16 MiB。一共 {best}。"
            "2048 × 2048 的矩阵从没进过显存，这就是 FlashAttention。torch.compile 在这种二维写法里是 {compiler_launches} 个核函数、"
            "{compiler}；写成四维（批、头、token、d），它就认得出来，整个换成一次 FlashAttention 调用：靠的是模式匹配，不是规划。"
            "16 MiB 也不全是显存流量：k 和 v 一共 0.5 MiB，多半从 L2 来，显存看到的大约 1 MiB。",
            en="q is read and the result written once, 0.25 MiB each; 32 blocks of 64 rows read k and v once each: "
            "32 × 0.5 = 16 MiB. Together {best}. The 2048 × 2048 matrix never reaches device memory: that is "
            "FlashAttention. In this 2-D form torch.compile takes {compiler_launches} kernels and {compiler}. "
            "Written in 4-D (batch, head, token, d) it is recognized and becomes one call of flash attention: a "
            "pattern was matched, nothing was planned. Nor do all 16 MiB come from memory: k and v are 0.5 MiB "
            "together and should stay in L2, so memory sees about 1 MiB.",
        ),
        "half_layer": Text(
            zh="最少是 {best}：RMSNorm 读 64 写 64，128；前一个矩阵乘 32 + 64 + 64 = 160；带着门控的那个还要多读一个 64，"
            "224；最后一个带着残差，64 + 64 + 32 + 32 = 192。torch.compile 的 {compiler} 多出 128：两个矩阵乘的结果都写出"
            "来，门控单独一个核函数，因为库里的矩阵乘没有这样的尾声。手写还能更少，{by_hand}：两个矩阵乘读同一个输入，可"
            "以放在一起。不过别急着庆祝：三个矩阵乘是 0.82 TFLOP，A100 要算 2.6 ms，这 128 MiB 只值 0.09 ms。先看瓶颈在哪"
            "里，再看省了多少字节。",
            en="The least is {best}: RMSNorm reads 64 and writes 64, 128; the first GEMM 32 + 64 + 64 = 160; the "
            "one with the gate reads another 64, 224; the last one with the residual 64 + 64 + 32 + 32 = 192. The "
            "{compiler} of torch.compile is 128 more: both GEMMs write their results, and the gate is a kernel of "
            "its own, because the library's GEMM has no such epilogue. By hand it could be {by_hand}: two GEMMs "
            "that read the same input can share a kernel. But do not celebrate yet: the three GEMMs are 0.82 "
            "TFLOP, 2.6 ms on an A100, and those 128 MiB are worth 0.09 ms. Ask what the limit is before you count "
            "the bytes saved.",
        ),
    }
)
