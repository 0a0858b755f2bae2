# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] id="title-zh" lang="zh" minutes=1 gpu="none" needs="lab graph"
# # 04. 融合你自己的模型 | Fuse Your Own Model
#
# **难度：** Medium ｜ **环境：** CPU-first，不需要 GPU ｜ **标签：** 编译系统、算子融合、PyTorch ｜ **目标人群：** 编译与系统入门者
#
# **用时：** {{minutes}} 分钟 ｜ **关键词：** 算子图、分组、torch.compile、最优分组
#
# {{badges}}
#
# 学完这一课，你能
#
# - 把一个 PyTorch 函数变成算子图，读出每条边上有多少字节；
# - 自己决定哪些算子放进一个核函数，并说出不能放在一起的原因；
# - 把自己的分组、`torch.compile` 的分组和证明过的最优分组摆在一起比。
#
# **先读：** 01. 中间张量与逻辑读写；02. 片上预算与复用；03. 条件与代价
#
# **后读：** 05. 真正的融合核函数

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="none" needs="lab graph"
# # 04. Fuse Your Own Model | 融合你自己的模型
#
# **Difficulty:** Medium ｜ **Environment:** CPU first, no GPU needed ｜ **Tags:** compilers, operator fusion, PyTorch ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** operator graph, grouping, torch.compile, best grouping
#
# {{badges}}
#
# After this lesson you can
#
# - turn a PyTorch function into a graph of operators and read off the bytes on each edge;
# - decide yourself which operators share a kernel, and say why others cannot;
# - set your grouping beside that of `torch.compile` and beside the proven best.
#
# **Read before:** 01. Intermediate Tensors and Logical Traffic; 02. On-Chip Budget and Reuse; 03. Conditions and Costs
#
# **Read after:** 05. A Real Fused Kernel

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 第一格之后先跑 `capture-code` 和 `measure-code`（编译第一个函数要几秒）。画布用投影时把窗口放大到看得清边上的字节数；闯关要留给学员自己点。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** run `capture-code` and `measure-code` once (the first compile takes some seconds). On a projector, zoom until the bytes on the edges can be read; leave the puzzles for learners to click.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“前三课的图是我给的，今天的图是你们自己的模型。你们来分组，再和编译器、和证明过的最优比一比。”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "So far the graphs were mine; today they are your own models, and you group them against the compiler and against a proven best."

# %% id="bootstrap"
# generated

# %% [markdown] id="guess-zh" lang="zh" minutes=1
# ## 先猜：链成了图
#
# 第 01 课的算子排成一条链，张量都一样大。真实的模型是一张**图**：一个张量可能有好几个算子要读，大小也各不相同。先看一张最小的：
#
# $$y = \text{silu}(\text{gate}) \cdot \text{up} + \text{residual}, \qquad \text{silu}(z) = z \cdot \text{sigmoid}(z)$$
#
# 编译器眼里它是四个算子：sigmoid、mul、mul、add。每个张量 32 MiB：

# %% [markdown] id="guess-en" lang="en" minutes=1
# ## Guess first: the chain becomes a graph
#
# In lesson 01 the operators mostly formed a chain, with tensors of one size. A real model is a **graph**: several operators may read the same tensor, and sizes differ. Here is a very small one:
#
# $$y = \text{silu}(\text{gate}) \cdot \text{up} + \text{residual}, \qquad \text{silu}(z) = z \cdot \text{sigmoid}(z)$$
#
# To a compiler it is four operators: sigmoid, mul, mul, add. Each tensor takes 32 MiB:

# %% [markdown] id="guess-teach-zh" lang="zh" tags=["instructor"]
# **说：**链成了图，第 01 课的公式不够用了。投票，人数写黑板。
#
# **问：**gate 有几个算子要读？
#
# **答：**两个，sigmoid 和第一个 mul；融合以后只读一次。这 32 MiB 就是 192 和 224 的差。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 192 MiB | gate 融合以后读几次？（一次，比原来少一次） |
# | 352 MiB | 输入和输出也省得掉吗？（省不掉，128 还在） |

# %% [markdown] id="guess-teach-en" lang="en" tags=["instructor"]
# **Say:** The chain becomes a graph, and lesson 01's formula is not enough. Vote, counts on the board.
#
# **Ask:** How many operators read gate?
#
# **Answer:** Two, sigmoid and the first mul; one kernel reads it once. Those 32 MiB are the difference between 192 and 224.
#
# | you hear | ask back |
# | --- | --- |
# | 192 MiB | Once fused, how often is gate read? (once instead of twice) |
# | 352 MiB | Are input and output saved too? (no, 128 remain) |

# %% id="vote"
from lessons_lib import graph_vote

vote = graph_vote()
vote

# %% [markdown] id="hand-zh" lang="zh" minutes=2
# ## 手算
#
# 一个核函数的读写只看它的边界：
#
# > **读**：组内要用、又不是组内算出的张量，各读一次。
# > **写**：组内算出、组外要用（或者本身就是输出）的张量，各写一次。
# > 其余的留在片上。
#
# 四个核函数：sigmoid 读 1 写 1，两个 mul 和 add 各读 2 写 1，共 $(2 + 3 + 3 + 3) \times 32 = 352$ MiB。融合成一个：读 gate、up、residual，写 y，共 $4 \times 32 = 128$ MiB。省下 224 MiB。
#
# 猜 192 的，数的是边界（3 个中间张量，各写一次、读一次）。在链上这样数是对的；这里 gate 有两个算子要读，融合以后只读一次，又省 32。猜 352 的，忘了输入和输出省不掉。
#
# 下面把这张图写成数据，只要写清**谁读什么、谁写什么**。

# %% [markdown] id="hand-en" lang="en" minutes=2
# ## By hand
#
# What a kernel moves depends only on what crosses its boundary:
#
# > **Read**: each tensor that the group uses but does not make, once.
# > **Written**: each tensor that the group makes and that an operator outside needs (or that is an output), once.
# > Everything else stays on chip.
#
# Four kernels: sigmoid reads 1 and writes 1, the two muls and the add read 2 and write 1 each: $(2 + 3 + 3 + 3) \times 32 = 352$ MiB. In one kernel: read gate, up and residual, write y: $4 \times 32 = 128$ MiB. That saves 224 MiB.
#
# A guess of 192 counted boundaries (three intermediate tensors, each written and read). That is right for a chain; here two operators read gate, and one kernel reads it only once, which saves another 32. A guess of 352 forgot that inputs must still be read and the output written.
#
# Now the same graph as data. **Who reads what and who makes what** is all there is to it.

# %% [markdown] id="hand-teach-zh" lang="zh" tags=["instructor"]
# **说：**规则只有三句：进来的各读一次，出去的各写一次，其余在片上。让一个人在黑板上把四个核函数列出来。
#
# **问：**一个张量被组内两个算子读，算几次？
#
# **答：**一次：进了核函数，第二个算子在片上就拿得到。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 两次 | 一个核函数读进来之后，第二个算子去哪里找它？（寄存器） |
# | 256 MiB（四个核函数各一读一写） | mul 有几个输入？add 呢？（各两个，所以是 352） |

# %% [markdown] id="hand-teach-en" lang="en" tags=["instructor"]
# **Say:** Three sentences are the whole rule: in once, out once, the rest on chip. Have somebody list the four kernels on the board.
#
# **Ask:** A tensor read by two operators of the group: how often does it count?
#
# **Answer:** Once: it is in the kernel, and the second operator finds it on chip.
#
# | you hear | ask back |
# | --- | --- |
# | twice | Once the kernel has it, where does the second operator find it? (in registers) |
# | 256 MiB (a read and a write per kernel) | How many inputs has mul? And add? (two each, hence 352) |

# %% id="hand-graph"
from lessons_lib import GraphCanvas, GraphOp, OpGraph, tensor_of

size = (4096, 2048)  # float32: 32 MiB
tensors = ["gate", "up", "residual", "s", "a", "m", "y"]
graph = OpGraph(
    "gated residual",
    ops=[
        GraphOp("sigmoid", "elementwise", inputs=["gate"], outputs=["s"]),
        GraphOp("mul", "elementwise", inputs=["gate", "s"], outputs=["a"]),
        GraphOp("mul_1", "elementwise", inputs=["a", "up"], outputs=["m"]),
        GraphOp("add", "elementwise", inputs=["m", "residual"], outputs=["y"]),
    ],
    tensors=[tensor_of(name, size, "float32") for name in tensors],
    inputs=["gate", "up", "residual"],
    outputs=["y"],
)

# %% [markdown] id="hand-click-zh" lang="zh" minutes=2
# **点一条边**，它两头的算子就放进一个核函数；再点一次，又切开。（键盘：Tab 移到边上，按 Enter。）橙色是写进显存，蓝色是从显存读，越粗字节越多；绿色的张量留在片上；标着“输出”的方框是 y。右上角的“耗时（roofline）”是第 01 课的预测，按 A100 的标称峰值算，不是实测；这张图没有写明运算次数，区间的两端重合，所以只有一个数。
#
# 先答两问，再动手：
#
# 1. 只融合 sigmoid 和第一个 mul，省多少？
# 2. 先点 m 那条边，还是先点 s 那条边，最后的结果有区别吗？

# %% [markdown] id="hand-click-en" lang="en" minutes=2
# **Click an edge** to put the operators at its two ends into one kernel; click it again to cut them apart. (Keyboard: move to an edge with Tab, press Enter.) Orange is a write to device memory, blue a read, and thicker means more bytes; a green tensor stays on chip; the box "output" is y. "time (roofline)" is lesson 01's prediction for an A100, not a measurement. This graph states no operations, so both ends of the interval coincide and you see one number.
#
# Two questions before you touch it:
#
# 1. Fuse only sigmoid and the first mul: how much does that save?
# 2. Does it matter for the result whether you click m's edge first or s's?

# %% [markdown] id="hand-click-teach-zh" lang="zh" tags=["instructor"]
# **说：**点一条边，看两样东西：颜色，和右上角的数。先后次序没有关系，最后的分组才算数。
#
# **问：**只许点两条边，该点哪两条？
#
# **答：**s 那条一定要点，再任选一条：352 − 96 − 64 = 192 MiB。不点 s，gate 照样读两次，只能到 224。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 64 MiB（只看了 s） | gate 少读了没有？（少一次，所以是 96） |
# | 32 MiB（只数了 s 的写） | 第一个 mul 原来去哪里读 s？（显存，这次读也省了） |

# %% [markdown] id="hand-click-teach-en" lang="en" tags=["instructor"]
# **Say:** Click an edge and watch two things: the colour, and the number at the top right. Order does not matter; the grouping you end with does.
#
# **Ask:** You may click two edges only. Which?
#
# **Answer:** s, and either of the others: 352 − 96 − 64 = 192 MiB. Without s, gate is still read twice, and it stops at 224.
#
# | you hear | ask back |
# | --- | --- |
# | 64 MiB (s alone) | Is gate read once less? (yes, so 96) |
# | 32 MiB (only the write of s) | Where did the first mul read s from? (memory, and that read is saved as well) |

# %% id="hand-canvas" tags=["answer"]
by_hand = GraphCanvas(graph)
by_hand

# %% [markdown] id="hand-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 96 MiB：s 不用写也不用读（64），gate 少读一次（32）。
# 2. 没有。读写只由最后的分组决定，和点的先后无关。
#
# </details>

# %% [markdown] id="hand-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. 96 MiB: s is neither written nor read (64), and gate is read once instead of twice (32).
# 2. No. The traffic depends on the grouping you end up with, not on the order of your clicks.
#
# </details>

# %% [markdown] id="capture-zh" lang="zh" minutes=2
# ## 从 PyTorch 捕获
#
# 图不必手写。`torch.export` 不做真正的计算，只记下函数会调用哪些算子：张量是假的（只有形状，没有数据），所以再大的层也不占内存。捕获得到两张图：
#
# - **PyTorch 的算子**：不编译时（PyTorch 管这叫 eager），一个算子启动一次；
# - **拆开之后的算子**：编译器看到的，可以重新分组。
#
# 先猜：下面这个函数，不编译时 PyTorch 要启动几次核函数？

# %% [markdown] id="capture-en" lang="en" minutes=2
# ## Capture it from PyTorch
#
# You need not write graphs by hand. `torch.export` computes nothing; it records which operators your function would call. Its tensors are fake, with a shape but no data, so even a huge layer takes no memory. A capture gives two graphs:
#
# - **PyTorch's operators**: without a compiler (*eager* is PyTorch's word for that), each is one launch;
# - **their parts**: what a compiler sees and may regroup.
#
# Guess: how many launches does PyTorch need for this function, without a compiler?

# %% [markdown] id="capture-teach-zh" lang="zh" tags=["instructor"]
# **说：**捕获只记不算，再大的模型也不占内存。重点在基线：PyTorch 的 silu 本来就是一个核函数。
#
# **问：**PyTorch 的每次启动，各读写几个张量？
#
# **答：**silu 读 1 写 1，mul 和 add 各读 2 写 1：三次启动共 8 个，8 × 32 = 256 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 4 次 | silu 在 PyTorch 里是几个核函数？（一个） |
# | 2.75 倍 | 你的基线是谁跑出来的？（没有人；PyTorch 跑的是 256，2 倍） |

# %% [markdown] id="capture-teach-en" lang="en" tags=["instructor"]
# **Say:** A capture notes and does not compute, so size costs nothing. The point is the baseline: PyTorch's silu is one kernel already.
#
# **Ask:** How many tensors does each of PyTorch's launches read and write?
#
# **Answer:** silu reads 1 and writes 1, mul and add read 2 and write 1: three launches, 8 tensors, 8 × 32 = 256 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | four | How many kernels is silu in PyTorch? (one) |
# | 2.75× | Who runs the baseline you divided by? (nobody; PyTorch moves 256, so 2×) |

# %% id="capture-code" tags=["answer"]
from lessons_lib import study_model


def gated_residual(gate, up, residual):
    import torch.nn.functional as F

    return F.silu(gate) * up + residual


small = study_model(gated_residual, size, size, size, dtype="float32", recorded="gated_residual")
small

# %% [markdown] id="capture-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 3 次，256 MiB：silu 在 PyTorch 里是现成的一个算子，里面的 sigmoid 和 mul 已经融合好了。所以“不编译”的基线要数 PyTorch 的算子，不能数拆开之后的，否则会把融合的好处说大：352 ÷ 128 = 2.75 倍，其实只有 256 ÷ 128 = 2 倍。
#
# </details>

# %% [markdown] id="capture-answer-en" lang="en"
# <details><summary>Answer</summary>
#
# Three, and 256 MiB: silu is a single ready-made operator in PyTorch, its sigmoid and mul already fused. So count PyTorch's operators, not their parts, as the baseline without a compiler; otherwise you exaggerate what fusion gains (352 ÷ 128 = 2.75×, when it is 256 ÷ 128 = 2×).
#
# </details>

# %% [markdown] id="mlp-zh" lang="zh" minutes=2
# ## 真实的模型：SwiGLU 的 MLP
#
# Llama 这类大语言模型，每一层都有这样一块（MLP，也叫前馈层）：三个矩阵乘，中间是刚才的门控 silu(gate) · up。这里一次处理 4096 个 token，宽度 4096 和 11008，fp16。
#
# 表后面的投票问的是 PyTorch 的编译器 `torch.compile`：它捕获这样一张图，再由后端 **Inductor** 把算子分组、生成核函数的代码。

# %% [markdown] id="mlp-en" lang="en" minutes=2
# ## A real model: a SwiGLU MLP
#
# In most large language models every layer has a block like this: three matrix multiplications (GEMMs), with the gate from above between them. Here with 4096 tokens, widths 4096 and 11008, fp16.
#
# The vote after the table is about `torch.compile`, PyTorch's compiler: it captures such a graph, and its backend, **Inductor**, groups the operators into kernels and generates their code.

# %% [markdown] id="mlp-teach-zh" lang="zh" tags=["instructor"]
# **说：**真实的一块：三个矩阵乘，中间夹着门控。投票：编译之后剩几个核函数。
#
# **问：**矩阵乘会不会被编译器融合进去？
#
# **答：**默认不会：三个矩阵乘各交给库，中间的逐元素算子合成一个，一共 4 个核函数。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 1 个 | 库里的矩阵乘，肯让别人插进它的循环吗？（不肯） |
# | 5 个，和不编译一样 | silu 和 mul 之间，还要不要过一趟显存？（不要） |

# %% [markdown] id="mlp-teach-en" lang="en" tags=["instructor"]
# **Say:** A real block: three GEMMs with a gate between. Vote: how many kernels after compiling.
#
# **Ask:** Will the compiler pull the GEMMs in?
#
# **Answer:** Not by default: three GEMMs go to a library, the elementwise operators between them into one kernel, which makes four.
#
# | you hear | ask back |
# | --- | --- |
# | 1 | Does a library's GEMM let anybody into its loop? (no) |
# | 5, as without a compiler | Between silu and mul, must anything go through memory? (no) |


# %% id="mlp-code"
def swiglu_mlp(x, w_gate, w_up, w_down):
    import torch.nn.functional as F

    gate = F.silu(F.linear(x, w_gate))
    up = F.linear(x, w_up)
    return F.linear(gate * up, w_down)


shapes = [(4096, 4096), (11008, 4096), (11008, 4096), (4096, 11008)]
mlp = study_model(swiglu_mlp, *shapes, dtype="float16", recorded="swiglu_mlp")
mlp

# %% id="compiler-vote"
from lessons_lib import compiler_vote

launches = compiler_vote()
launches

# %% [markdown] id="click-zh" lang="zh" minutes=3
# ## 你来分组
#
# 图里的 mm 是矩阵乘。fp16 的 silu 在内部按 float32 计算，所以拆开以后多了 `to float32` 和 `to float16` 两个转换。张量以算出它的算子命名：标着“mm 86 MiB”的方框，就是 mm 的结果；名字前面有 ↑ 的（“↑ x”），是上面已经画过、这里又要读的张量。
#
# 先答两问：
#
# 1. 第一个矩阵乘（mm）能不能和它后面的 `to float32` 放进一个核函数？能省多少？
# 2. 最后一个矩阵乘（mm_2）呢，能不能和它前面的 mul_1 放在一起？（mul_1 是 silu(gate) · up 里的乘号；mul 在 silu 里面。）
#
# 然后点边，把逻辑读写降到最低。规则就几条，点错了会告诉你是哪一条，什么也不会改：
#
# - 不能成环：有一条路从核函数出去，经过别的核函数又回来，两边就互相等，谁也启动不了；
# - 带归约的核函数把整行整行地分给线程块：归约的方向不同（一个按行、一个按列），不能放在一起；归约之后还要用的那一行，片上得放得下；
# - 矩阵乘可以带一个逐元素的尾声，不能直接接着归约；
# - 库函数（比如 topk）是不透明的，独占一个核函数。
#
# 这是本课的规则，真实的编译器偶尔能多走一步：在 GPU 上，Inductor 会把一个按行的归约和一个按列的求和放进一个核函数，各线程块先写出部分和，再用很短的一步加起来。条件是两个归约互不依赖，张量够大，行数至少是列数的两倍。
#
# 带“手写或模板”记号的分组也合法，只是通用编译器默认不会生成，要靠手写、模板或模式匹配。想知道两个算子为什么在一起、为什么没在一起，就在图下面选中它们，点“为什么？”。
#
# 自己试过之后，再点“看编译器的”和“看最好的”。

# %% [markdown] id="click-en" lang="en" minutes=3
# ## Your turn to group
#
# mm is a GEMM. `to float32` and `to float16` are casts: PyTorch computes the silu of fp16 numbers in fp32. A tensor is named after the operator that makes it: the box "mm 86 MiB" is the result of mm. A name with an arrow ("↑ x") is a tensor drawn further up that is read here again.
#
# Two questions first:
#
# 1. Can the first GEMM (mm) share a kernel with the `to float32` that follows it? What would that save?
# 2. And the last GEMM (mm_2) with the mul_1 before it? (mul_1 is the product in silu(gate) · up; mul is inside silu.)
#
# Then click edges until the traffic is as low as you can get it. There are only a few rules; a click that breaks one changes nothing and tells you which:
#
# - no cycles: if a path leaves a kernel and comes back through another, each waits for the other, and neither can start;
# - a kernel with a reduction gives whole rows to thread blocks: reductions in different directions (one along rows, one along columns) do not share a kernel, and a row that is needed again after its reduction must fit on chip;
# - a GEMM may take an elementwise epilogue, but not a reduction straight after it;
# - a library call such as topk is opaque and has a kernel of its own.
#
# These are the rules of this course; a real compiler can sometimes go a step further. On a GPU, Inductor puts a reduction along rows and a sum along columns into one kernel: each thread block writes partial sums, and a small second pass adds them up. It does so when neither reduction needs the other, the tensor is large, and there are at least twice as many rows as columns.
#
# A group marked "by hand or template" is legal too, but a compiler's ordinary fusion does not make it. To learn why two operators share a kernel or do not, choose them below the picture and press "why?".
#
# Press "show the compiler's" and "show the best" only after you have tried.

# %% [markdown] id="click-teach-zh" lang="zh" tags=["instructor"]
# **说：**全场报边，你来点；点到不合法的最好，念出它说的是哪条规则。每合一次，先报省了多少再看数。
#
# **问：**门控做尾声，该跟 mm 还是跟 mm_1？另一个矩阵乘怎么办？
#
# **答：**跟哪个都行，都是 698 MiB；另一个先把自己的 86 MiB 写出来，再读回去。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “mul_1 放进 mm_2，随便放” | 矩阵乘要把同一块操作数读几遍？mul_1 就要算几遍？（读几遍算几遍，所以带记号） |
# | “绕一圈再回来的也能合” | 另一条路上的算子，要等谁，谁又等它？（互相等，谁也启动不了） |

# %% [markdown] id="click-teach-en" lang="en" tags=["instructor"]
# **Say:** The room calls edges, you click; an illegal one is the best that can happen, read out its rule. Ask for the saving before you look at the number.
#
# **Ask:** The gate as an epilogue: of mm or of mm_1? And what about the other GEMM?
#
# **Answer:** Either, 698 MiB both ways. The other GEMM writes its 86 MiB first, and they are read back.
#
# | you hear | ask back |
# | --- | --- |
# | "mul_1 into mm_2, why not." | How often does a GEMM load the same operand? How often is mul_1 computed then? (as often, hence the mark) |
# | "Two operators with a path around them may fuse." | The operator on the other path: whom does it wait for, and who waits for it? (the same kernel, so neither starts) |

# %% id="mlp-canvas" tags=["answer"]
canvas = GraphCanvas(mlp, gpu="A100 (40 GB)")
canvas

# %% [markdown] id="click-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 能，这就是第 01 课的尾声：结果还在片上，顺手转成 float32 接着算，mm 的输出不用写也不用读，省 172 MiB。
# 2. 能，但会带上记号：在读操作数的时候顺带算 mul_1，库里的矩阵乘做不到，要靠模板（留好空位、能填进自己代码的现成矩阵乘）或手写。
#
# </details>

# %% [markdown] id="click-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. Yes: it is the epilogue of lesson 01. The result is still on chip and is cast to float32 there, so the output of mm is neither written nor read: 172 MiB less.
# 2. Yes, but marked: computing mul_1 while loading the operand is beyond a library's GEMM. It takes a template (a ready-made GEMM with places for code of one's own), or a kernel by hand.
#
# </details>

# %% [markdown] id="compare-zh" lang="zh" minutes=2
# ## 和编译器比
#
# 所有的分法摆在一张表里。“贪心合并”是从字节最多的边开始，能融合就融合，从不反悔。“通用核函数最优”是不带“手写或模板”记号的合法分组里读写最少的，这一点证明过。`torch.compile` 那一行，分组取自它的 CPU 调度器（没有 GPU 也能问），时间和别的行一样，是 A100 上的预测；在 GPU 上它的分组可能不同。
#
# 先猜：从 PyTorch 的 1,042 MiB 到最优，字节少了三分之一；A100 上的时间会少多少？

# %% [markdown] id="compare-en" lang="en" minutes=2
# ## Against the compiler
#
# All groupings in one table. "Greedy merging" joins kernels pair by pair, those that share most bytes first. "Best general", the best without groups marked "by hand or template", is proven: under the same rules no grouping moves fewer bytes. The row of `torch.compile` has the groups of its CPU scheduler, which can be asked without a GPU; its time, like all the others, is predicted for an A100, where it may group differently.
#
# Guess: from PyTorch's 1,042 MiB to this best, a third of the bytes go. How much of the time goes, on an A100?

# %% [markdown] id="compare-teach-zh" lang="zh" tags=["instructor"]
# **说：**念表：从 1,042 到 698 MiB，少三分之一；时间只少 6% 左右。这一块是计算受限的。
#
# **问：**“比编译器好”，是和它的哪种设置比？
#
# **答：**和默认设置、CPU 调度器的分组比：4 个核函数、870 MiB，最优是 3 个、698。GPU 上开 max-autotune，门控可能进模板的尾声，就追平了。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “字节少三分之一，时间也少三分之一” | 三个矩阵乘的运算少了没有？（没有） |
# | “证明过的最优，就是最快” | 证明的是什么最小？在哪些规则之内？（逻辑读写；本课的规则） |

# %% [markdown] id="compare-teach-en" lang="en" tags=["instructor"]
# **Say:** Read the table: 1,042 to 698 MiB, a third less, and about 6% of the time. This block is compute-bound.
#
# **Ask:** "Better than the compiler": with which of its settings?
#
# **Answer:** Its defaults, and the groups of its CPU scheduler: 4 kernels and 870 MiB, where the best has 3 and 698. On a GPU, max-autotune may put the gate into a template's epilogue and draw level.
#
# | you hear | ask back |
# | --- | --- |
# | "A third of the bytes, a third of the time." | Do the three GEMMs do fewer operations? (no) |
# | "Proven best is fastest." | What was proven smallest, and within which rules? (logical bytes; this lesson's) |

# %% id="compare-code" tags=["answer"]
canvas.compare()

# %% [markdown] id="explain-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 6% 左右（3.84 – 4.3 ms 到 3.6 – 4.07 ms）。三个矩阵乘要做 1.1 万亿次浮点运算，时间几乎全花在那里，这一块是**计算受限**（compute-bound）的。字节少了三分之一，时间却没有。第 03 课说过，净省字节不等于净省时间：先看时间花在哪里。
#
# </details>
#
# <details><summary>刚才那次投票：torch.compile 留下几个核函数，为什么？</summary>
#
# 4 个：三个矩阵乘交给库，中间的融合成一个。门控（silu 和 mul_1）没有放进矩阵乘的尾声，因为库里的矩阵乘不接受这样的尾声。在 GPU 上打开 `max-autotune`，Inductor 还会试它自己的 Triton 模板；选中了模板，门控就能进尾声。所以“比编译器好”，要看和它的哪种设置比。
#
# </details>
#
# ### 这些数不代表什么
#
# - **读写最少不等于最快。** 时间区间是 roofline（屋顶线）的上下界，不是实测。
# - **证明只在规则之内。** 重算、换算法、分块方式，都可能让读写更少。
# - **表里的字节是逻辑读写。** 缓存里命中的，不会再到显存读一遍。

# %% [markdown] id="explain-en" lang="en"
# <details><summary>Answer</summary>
#
# About 6% (from 3.84 – 4.3 ms to 3.6 – 4.07 ms). The three GEMMs do 1.1 trillion floating-point operations and take nearly all the time: this block is **compute-bound**. A third fewer bytes, and hardly any less time. Ask first where the time goes: lesson 03's GEMM with a large K was the same.
#
# </details>
#
# <details><summary>Your vote: how many kernels does torch.compile leave, and why?</summary>
#
# Four: three GEMMs from a library, and one kernel for everything between them. The gate (silu and mul_1) is not put into a GEMM's epilogue, because a library's GEMM takes no such epilogue. On a GPU with `max-autotune`, Inductor also tries GEMM templates of its own, written in Triton; where a template is chosen, the gate can go into its epilogue. So "better than the compiler" depends on the compiler's settings.
#
# </details>
#
# ### What these numbers are not
#
# - **Fewest bytes is not fastest.** The times are roofline intervals; nothing was measured.
# - **The proof holds within the rules.** Recompute, another algorithm or other tiles may move even fewer bytes.
# - **Bytes here are logical traffic.** What a cache serves is not read from memory again.

# %% [markdown] id="measure-zh" lang="zh" minutes=2
# ## 实测
#
# 现在让 `small`，就是开头那个四算子的函数，在这台机器的 CPU 上真的跑起来：逐个算子跑，再用 `torch.compile` 编译了跑。按图上的数，字节是 256 比 128，正好 2 倍。先猜：耗时之比会是 2 倍，更少，还是更多？（大约要十秒。）

# %% [markdown] id="measure-en" lang="en" minutes=2
# ## Measure it
#
# Now `small`, the function of four operators from the beginning, really runs on this machine's CPU: operator by operator, and compiled. By the graph, it moves 256 MiB against 128 MiB, exactly 2×. Guess: will the times differ by 2×, by less or by more? (It takes about ten seconds.)

# %% [markdown] id="measure-teach-zh" lang="zh" tags=["instructor"]
# **说：**投票式地问一句再跑：2 倍、更少、更多？CPU 上常常更多，因为新内存要一页一页地分。
#
# **问：**字节公式没看见的是哪一样？
#
# **答：**分配新内存：每个中间张量第一次写，系统都要现分页。融合连这笔一起省了，所以常常超过 2 倍。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “正好 2 倍” | 新分配的内存，第一次写和第二次写一样快吗？（第一次慢得多） |
# | “GPU 上也会超过 2 倍” | PyTorch 在 GPU 上会不会把用过的显存留着？（会，没有这一项） |

# %% [markdown] id="measure-teach-en" lang="en" tags=["instructor"]
# **Say:** Ask, then run: 2×, less or more? On a CPU often more, since new memory is handed out page by page.
#
# **Ask:** What does the formula for bytes not see?
#
# **Answer:** New memory: the first write to an intermediate tensor waits for its pages. Fusion saves that, too, and so often more than 2×.
#
# | you hear | ask back |
# | --- | --- |
# | "Exactly 2×." | New memory: is the first write as fast as the second? (much slower) |
# | "More than 2× on a GPU, too." | Does PyTorch give device memory back each time? (it keeps it: no such cost) |

# %% id="measure-code" tags=["answer", "nbval-ignore-output"]
from lessons_lib import measure_model, model_report

measured = measure_model(small)
model_report(measured)

# %% [markdown] id="verdict-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 往往超过 2 倍。CPU 上每个中间张量都是新分配的内存，第一次写的时候，系统要一页一页地分给它，比普通的写慢得多。融合把中间张量省掉了，这笔开销也一起省掉。字节公式看不见它，所以表里的预测单独算了一项。（GPU 上 PyTorch 自己管理显存，用过的会留着再用，没有这一项。）
#
# </details>
#
# 时间每次不同；下面这格只核对两件在任何机器上都该成立的事。

# %% [markdown] id="verdict-en" lang="en"
# <details><summary>Answer</summary>
#
# By more than 2×, as a rule. On a CPU each intermediate tensor is new memory, which the system hands out page by page while it is first written, and that is much slower than an ordinary write. Fusion does away with the intermediate tensors and with this cost as well. The formula for bytes does not see it, so the prediction in the table counts it separately. (On a GPU, PyTorch keeps freed device memory and reuses it, so there is no such cost.)
#
# </details>
#
# Times differ from run to run. The next cell checks only two things, which must hold on any machine.

# %% id="measure-verdict" tags=["answer"]
from lessons_lib import model_verdict

model_verdict(measured)

# %% [markdown] id="generated-zh" lang="zh"
# <details><summary>看一眼编译器写出来的核函数</summary>
#
# 把这同一个函数交给 PyTorch 2.13 的 Inductor，目标是 T4，它生成的 Triton 代码如下（删去了装饰器和两行对大小、mask 的赋值；Triton 怎么读，第 05 课讲）：
#
# ```python
# @triton.jit
# def triton_poi_fused_add_mul_silu_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
#     xoffset = tl.program_id(0) * XBLOCK
#     xindex = xoffset + tl.arange(0, XBLOCK)[:]
#     x0 = xindex
#     tmp0 = tl.load(in_ptr0 + (x0), None)
#     tmp6 = tl.load(in_ptr1 + (x0), None)
#     tmp8 = tl.load(in_ptr2 + (x0), None)
#     tmp1 = -tmp0
#     tmp2 = libdevice.exp(tmp1)
#     tmp3 = tl.full([1], 1.0, tl.float32)
#     tmp4 = tmp2 + tmp3
#     tmp5 = (tmp0 / tmp4)
#     tmp7 = tmp5 * tmp6
#     tmp9 = tmp7 + tmp8
#     tl.store(out_ptr0 + (x0), tmp9, None)
# ```
#
# 对着图看三处：
#
# - **三个 load**：gate、up、residual 各读一次。gate 用了两处（`tmp1` 和 `tmp5`），只读一次；
# - **中间没有 store**：`tmp1` 到 `tmp7` 都在寄存器里。`tmp5` 是 silu(gate)，`tmp7` 是画布上的 m；
# - **一个 store**：写 y。一共 $4 \times 32 = 128$ MiB，和画布上的数一样。
#
# 名字也有用：`poi` 表示逐元素（pointwise，归约是 `red` 或 `per`），`fused_add_mul_silu` 是融合进来的算子。
#
# 想看自己的：先运行 `torch._logging.set_logs(output_code=True)`，再第一次调用编译过的函数；跑脚本就用 `TORCH_LOGS=output_code python 你的脚本.py`。在 CPU 上看到的是 C++，结构相同。
#
# </details>

# %% [markdown] id="generated-en" lang="en"
# <details><summary>See the kernel that the compiler wrote</summary>
#
# Given this very function, with a T4 as its target, Inductor of PyTorch 2.13 generates the following Triton code (left out: the decorator, and two lines that set size and mask; lesson 05 shows how to read Triton):
#
# ```python
# @triton.jit
# def triton_poi_fused_add_mul_silu_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
#     xoffset = tl.program_id(0) * XBLOCK
#     xindex = xoffset + tl.arange(0, XBLOCK)[:]
#     x0 = xindex
#     tmp0 = tl.load(in_ptr0 + (x0), None)
#     tmp6 = tl.load(in_ptr1 + (x0), None)
#     tmp8 = tl.load(in_ptr2 + (x0), None)
#     tmp1 = -tmp0
#     tmp2 = libdevice.exp(tmp1)
#     tmp3 = tl.full([1], 1.0, tl.float32)
#     tmp4 = tmp2 + tmp3
#     tmp5 = (tmp0 / tmp4)
#     tmp7 = tmp5 * tmp6
#     tmp9 = tmp7 + tmp8
#     tl.store(out_ptr0 + (x0), tmp9, None)
# ```
#
# Three things to find again in the picture:
#
# - **Three loads**: gate, up and residual, once each. gate is used twice (`tmp1` and `tmp5`) and loaded once.
# - **No store in between**: `tmp1` to `tmp7` live in registers; `tmp5` is silu(gate), `tmp7` is the m of the canvas.
# - **One store**: y. Together $4 \times 32 = 128$ MiB, as on the canvas.
#
# The name tells something, too: `poi` is pointwise (a reduction is `red` or `per`), and `fused_add_mul_silu` lists the operators.
#
# To see your own: call `torch._logging.set_logs(output_code=True)` before you first call the compiled function, or run a script with `TORCH_LOGS=output_code python your_script.py`. On a CPU you get C++, of the same structure.
#
# </details>

# %% [markdown] id="puzzles-intro-zh" lang="zh" minutes=3
# ## 闯关
#
# 十关，每关一个目标。这一课先过前三关，其余的留着慢慢玩。每关先问你一个问题：想好答案再动手。走出第一步，目标和 `torch.compile` 的成绩才会亮出来；最好的成绩和讲解，过关之后才看得到。进度记在你自己的文件夹里（`fusion-progress.json`），重启也还在。

# %% [markdown] id="puzzles-intro-en" lang="en" minutes=3
# ## Puzzles
#
# Ten levels, each with a goal. Solve the first three now and keep the others for later. Each level begins with a question: have your answer before you touch anything. The goal and the compiler's score show after your first move, the best score and an explanation once you have solved the level. Your progress is kept in your own folder (`fusion-progress.json`) and survives a restart.

# %% [markdown] id="puzzles-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**两人一组，先说打算切在哪里，再点。走出第一步，目标就亮出来了，而多数关的目标就是最优：先报数，再动手。第 4、6 关编译器不是最优。
#
# **问：**编译器在第 4 关为什么输了？
#
# **答：**库里的矩阵乘收下了偏置，收不下 GELU，32 MiB 的隐藏层就多写一遍、多读一遍：160 对 96 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 第 3 关答 192 MiB | t 是输出，写省得掉吗？（省不掉，256） |
# | “合得越多越好” | 第 6 关里，哪一刀最便宜？（to int8 之后的 16 MiB；切 16 KiB 那条，x 要多读 64） |

# %% [markdown] id="puzzles-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** In pairs: say where to cut, then click. The goal, which in most levels is the best, shows after the first move: collect their numbers before anybody clicks. In levels 4 and 6 the compiler is not at the best.
#
# **Ask:** Why does the compiler lose level 4?
#
# **Answer:** Its library GEMM takes the bias but not GELU, so the hidden layer of 32 MiB is written and read once more: 160 MiB against 96.
#
# | you hear | ask back |
# | --- | --- |
# | 192 MiB in level 3 | t is an output: can its write be saved? (no: 256) |
# | "The more fused the better." | In level 6, which cut is the cheapest? (16 MiB, after to int8; at the thin 16 KiB, x is read again: 64) |

# %% [markdown] id="puzzles-levels-teach-zh" lang="zh" tags=["instructor"]
# **说：**对答案，等大家报过数再看。前三关都是全部放进一个核函数：96、192、256 MiB。
#
# | 关 | 切哪条边 | 最优的分组 | 编译器的分组 |
# | --- | --- | --- | --- |
# | 4 | gelu 到 mm_1（32 MiB） | mm、add、gelu ／ mm_1。读 x、w1，写隐藏层：48；读隐藏层、w2，写结果：48。共 96 MiB | mm、add ／ gelu ／ mm_1，共 160 MiB |
# | 6 | to int8 到 sum_1（16 MiB） | abs_1、amax、div、div_1、to int8 ／ sum_1。读 x 64，写 16，读 16。共 96 MiB | abs_1、amax、div ／ div_1、to int8、sum_1。x 读两遍，共 128 MiB |

# %% [markdown] id="puzzles-levels-teach-en" lang="en" tags=["instructor"]
# **Say:** The answers, once their numbers are on the board. In the first three levels all goes into one kernel: 96, 192 and 256 MiB.
#
# | level | cut the edge | best grouping | the compiler's |
# | --- | --- | --- | --- |
# | 4 | gelu to mm_1 (32 MiB) | mm, add, gelu / mm_1. Read x and w1, write the hidden layer: 48; read that and w2, write the result: 48. 96 MiB | mm, add / gelu / mm_1: 160 MiB |
# | 6 | to int8 to sum_1 (16 MiB) | abs_1, amax, div, div_1, to int8 / sum_1. Read x, 64; write 16, read 16. 96 MiB | abs_1, amax, div / div_1, to int8, sum_1: x is read twice, 128 MiB |

# %% id="puzzles" tags=["answer"]
from lessons_lib import PuzzlePanel

puzzles = PuzzlePanel()
puzzles

# %% [markdown] id="own-zh" lang="zh" minutes=2
# ## 你自己的模型
#
# 把下面的函数换成你自己的，形状也换掉（整数张量写 `fake(形状, "int64")`，`fake` 也从 `lessons_lib` 导入；`nn.Module` 也行，先调用 `.eval()`）。不会做真正的计算，所以尽管用真实的大小。捕获不了的，会告诉你是哪一行、怎么改。
#
# 换好之后先猜：`torch.compile` 会留下几个核函数？再点“看编译器的”，凡是没有融合的边，问一句“为什么”。

# %% [markdown] id="own-en" lang="en" minutes=2
# ## Your own model
#
# Put your own function in place of the one below, with its shapes (`fake(shape, "int64")` for a tensor of integers, after `from lessons_lib import fake`; an `nn.Module` works too, call `.eval()` first). Nothing is run, so use real sizes. If something cannot be captured, you are told which line it is and what to change.
#
# Then guess: how many kernels will `torch.compile` leave? Press "show the compiler's", and ask "why?" about every edge that it did not fuse.

# %% [markdown] id="own-teach-zh" lang="zh" tags=["instructor"]
# **说：**换自己的函数，形状用真的。捕获失败不要紧，它会说是哪一行；挑一条没融合的边问“为什么”，念给全场听。
#
# **问：**你的模型里，哪条边上的字节最多？
#
# **答：**各人不同，看画布上最粗的那条。示例里是 fp32 的几条，各 64 MiB；全放进一个核函数，只剩读 x、写结果，共 64 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “捕获不了，所以不能融合” | 是函数不能融合，还是 if 依赖了数据？（多半是 if，换成 torch.where） |
# | “编译过了，就是一个核函数” | 图里有几个矩阵乘、几个库函数？（一个就占一个） |

# %% [markdown] id="own-teach-en" lang="en" tags=["instructor"]
# **Say:** Their own function with real shapes. A failed capture names its line; pick an edge that was not fused, press "why?" and read it out.
#
# **Ask:** In your model, which edge carries the most bytes?
#
# **Answer:** It differs: the thickest on their canvas. In the example it is those in fp32, 64 MiB each; in one kernel only the read of x and the write of the result are left, 64 MiB together.
#
# | you hear | ask back |
# | --- | --- |
# | "It cannot be captured, so it cannot be fused." | Is it the function, or a branch on data? (mostly the branch: torch.where) |
# | "It is compiled, so it is one kernel." | How many GEMMs and library calls are in it? (each keeps a kernel) |


# %% id="own-model" tags=["answer", "nbval-ignore-output"]
def my_model(x, weight, bias):
    import torch.nn.functional as F

    return x + F.gelu(F.layer_norm(x, x.shape[-1:], weight, bias))


mine = study_model(my_model, (4096, 4096), (4096,), (4096,), dtype="float16", recorded="layernorm_gelu")
mine

# %% id="own-canvas" tags=["answer", "nbval-ignore-output"]
my_canvas = GraphCanvas(mine)
my_canvas

# %% [markdown] id="exercise-zh" lang="zh" minutes=2
# ## 练习：画布上的数是怎么来的
#
# 写一个函数，返回一个核函数读写多少 MiB。`group` 是放进这个核函数的算子；`ops` 是整张图：算子 → (读的张量, 算出的张量)；`mib` 是每个张量的大小（MiB）；`outputs` 是要保留的输出。

# %% [markdown] id="exercise-en" lang="en" minutes=2
# ## Exercise: where the canvas gets its numbers
#
# Write a function that returns how many MiB a kernel reads and writes. `group` holds the operators in the kernel; `ops` is the whole graph, operator → (tensors read, tensors made); `mib` has the size of each tensor; `outputs` are the tensors to keep.

# %% [markdown] id="exercise-teach-zh" lang="zh" tags=["instructor"]
# **说：**画布上的数就这四行：算出的、读进的、有人要的、求和。让做完的人拿画布上的一组验一验。
#
# **问：**组外没有人要、也不是输出的张量，算不算？
#
# **答：**不算：它留在片上，既不写也不读。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 组内每个算子的输入都加 | 同一个张量加了几次？（只该一次；组内算出的不加） |
# | 写的部分漏了 outputs | 没有人读的输出，要不要写？（要） |

# %% [markdown] id="exercise-teach-en" lang="en" tags=["instructor"]
# **Say:** The canvas's number in four lines: made, read, needed, summed. Whoever is done checks a group of the canvas with it.
#
# **Ask:** A tensor that nobody outside needs and that is no output: does it count?
#
# **Answer:** No: it stays on chip, neither written nor read.
#
# | you hear | ask back |
# | --- | --- |
# | every operator's inputs added | How often was the same tensor added? (once is right, and never what the group makes) |
# | outputs forgotten among the writes | An output that nobody reads: is it written? (yes) |

# %% id="kernel-mib" tags=["exercise"]
from lessons_lib import check_kernel_mib


def kernel_mib(group, ops, mib, outputs):
    return None


check_kernel_mib(kernel_mib)

# %% id="kernel-mib-solution" tags=["solution"]
from lessons_lib import check_kernel_mib


def kernel_mib(group, ops, mib, outputs):
    made = {tensor for op in group for tensor in ops[op][1]}
    read = {tensor for op in group for tensor in ops[op][0]} - made
    needed = {tensor for op in ops if op not in group for tensor in ops[op][0]} | set(outputs)
    return sum(mib[tensor] for tensor in read) + sum(mib[tensor] for tensor in made & needed)


check_kernel_mib(kernel_mib)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions

# %% [markdown] id="quiz-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**错的选项也点开念。第 2 题先让他们画箭头再选。
#
# **问：**第 3 题里，“证明了最优”证明的是哪个量？
#
# **答：**逻辑读写的字节数，而且只在本课的规则之内；时间没有证明过。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “f 和 h 有边，就能放一起” | 谁先启动？g 要等谁，h 又要等谁？（g 等 f，h 等 g，成了环） |
# | “256 MiB，f 和 g 之间省掉了” | h 从哪里拿到 t？那一份谁写的？（显存；f 和 g 的核函数） |
# | “最优就是最快” | 这个分组的时间，花在读写上还是运算上？（没看过，要量） |

# %% [markdown] id="quiz-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Open wrong choices, too, and read out why. For question 2 have them draw the arrows before they choose.
#
# **Ask:** In question 3, of which quantity was the minimum proven?
#
# **Answer:** Of the logical bytes, and within this lesson's rules. Nothing was proven about time.
#
# | you hear | ask back |
# | --- | --- |
# | "There is an edge between f and h, so they may share a kernel." | Which kernel starts first? What does g wait for, and what does h? (g for f, h for g: a cycle) |
# | "256 MiB: t between f and g is gone." | Where does h get t from? Who wrote it? (memory; the kernel of f and g) |
# | "The best is the fastest." | Does this grouping spend its time on bytes or on arithmetic? (nobody looked: measure) |

# %% id="quiz"
from lessons_lib import graph_quiz

quiz = graph_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh"
# ## 带走三句话
#
# 1. 一个核函数的读写只看边界：进来的各读一次，出去的各写一次，其余的留在片上。
# 2. 基线要数 PyTorch 真正启动的算子；和编译器比，要说清是它的哪个版本、哪种设置。
# 3. 证明过的最优，只是规则之内读写最少；快不快，要看时间花在哪里，还要量。
#
# 上一课：{{previous}}
#
# 下一课：{{next}}

# %% [markdown] id="takeaway-en" lang="en"
# ## Take away three lines
#
# 1. What a kernel moves depends on its boundary: what comes in is read once, what goes out is written once, the rest stays on chip.
# 2. Count what PyTorch really launches as the baseline; and when you compare with a compiler, say which version and which settings.
# 3. A proven best has the fewest bytes within the rules; whether it is fast depends on where the time goes, and must be measured.
#
# Previous: {{previous}}
#
# Next: {{next}}

# %% [markdown] id="takeaway-teach-zh" lang="zh" tags=["instructor"]
# **说：**三句话让学员说。最后指一次总表：字节少三分之一，时间只少 6%，这就是第三句。
#
# **问：**今天你们赢编译器，赢的是哪一样？
#
# **答：**逻辑读写：第 4 关 96 对 160 MiB，第 6 关 96 对 128。时间没有比过，要到 GPU 上量。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “比编译器少，就该手写” | 和它的哪种设置比的？手写的谁来维护？（默认设置；你） |
# | “读写最少，就是最快” | MLP 的时间花在哪里？（三个矩阵乘） |

# %% [markdown] id="takeaway-teach-en" lang="en" tags=["instructor"]
# **Say:** Let them say the three lines. Point at the big table once more: a third of the bytes and only 6% of the time, which is the third line.
#
# **Ask:** You beat the compiler today. In what?
#
# **Answer:** In logical bytes: 96 MiB against 160 in level 4, 96 against 128 in level 6. Nobody compared times; that takes a GPU.
#
# | you hear | ask back |
# | --- | --- |
# | "Fewer bytes than the compiler, so write it by hand." | With which of its settings did you compare, and who maintains yours? (the defaults; you) |
# | "Fewest bytes is fastest." | Where did the MLP spend its time? (in three GEMMs) |
