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

# %% [markdown] id="title-zh" lang="zh" minutes=1 gpu="recommended" needs="lab kernel"
# # 05. 真正的融合核函数 | A Real Fused Kernel
#
# **难度：** Medium ｜ **环境：** 免费 GPU（T4 即可）；没有 GPU 也能上完 ｜ **标签：** 编译系统、算子融合、Triton ｜ **目标人群：** 编译与系统入门者
#
# **用时：** {{minutes}} 分钟 ｜ **关键词：** Triton、核函数、寄存器溢出、实测
#
# {{badges}}
#
# 学完这一课，你能
#
# - 读懂一个融合核函数，说出它的第 k 个程序读写哪些元素；
# - 没有 GPU 也能让编译器报告：用了多少寄存器和共享内存，有没有溢出，用没用到张量核心；
# - 把预测、编译器的报告和实测放在一张表里，说出差在哪里、为什么；
# - 自己写一个融合核函数，并让检查器挑不出毛病。
#
# **先读：** 01. 中间张量与逻辑读写；02. 片上预算与复用；03. 条件与代价
#
# **后读**（同系列的章节）**：** 05. Triton 性能调优与基准测试；06. Triton 进阶：跨线程归约与数值稳定；08. Triton Flash Attention

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="recommended" needs="lab kernel"
# # 05. A Real Fused Kernel | 真正的融合核函数
#
# **Difficulty:** Medium ｜ **Environment:** a free GPU (a T4 will do); complete without one, too ｜ **Tags:** compilers, operator fusion, Triton ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** Triton, kernel, register spill, measurement
#
# {{badges}}
#
# After this lesson you can
#
# - read a fused kernel and say which elements its program k loads and stores;
# - have a compiler report, with no GPU at hand, how many registers and how much shared memory a kernel takes, whether it spills and whether it reaches the tensor cores;
# - put prediction, compiler report and measurement into one table, and name the reason for each gap;
# - write a fused kernel of your own that a suspicious checker accepts.
#
# **Read before:** 01. Intermediate Tensors and Logical Traffic; 02. On-Chip Budget and Reuse; 03. Conditions and Costs
#
# **Read after** (chapters of the same series)**:** 05. Triton autotuning and profiling; 06. Reductions and safe softmax; 08. Triton Flash Attention

# %% id="bootstrap"
# generated

# %% [markdown] id="setup-zh" lang="zh" minutes=1
# ## 先看这台机器
#
# 这一课的核函数用 **Triton** 写：一种写在 Python 里的核函数语言，由它的编译器生成 GPU 代码。它有三种用法，这台机器用哪一种，由下面这格决定（不安装任何东西；重启内核之后，先运行这一格）：
#
# - **有 GPU**：真的编译、运行、计时；
# - **没有 GPU**：用解释器在 CPU 上逐个程序执行，只看结果对不对；编译照样能做，为哪块 GPU 编译都行；
# - **没有 Triton**（macOS、Windows、浏览器）：照样能读、能预测、能看别人量过的记录，只有运行核函数的几格会跳过，并说明原因。

# %% [markdown] id="setup-en" lang="en" minutes=1
# ## First, this machine
#
# The kernels of this lesson are written in **Triton**, a language for kernels inside Python whose compiler generates GPU code. There are three ways to use it; the cell below decides which one this machine gets (it installs nothing; after a restart, run it first):
#
# - **with a GPU**: compile, run and time for real;
# - **without one**: an interpreter runs the programs one by one on the CPU, for their results only; compiling still works, for whichever GPU you like;
# - **without Triton** (macOS, Windows, a browser): read, predict and look at recorded runs; the few cells that run a kernel step aside and say why.

# %% id="setup-code" tags=["nbval-ignore-output"]
from lessons_lib import prepare_triton

setup = prepare_triton()
setup

# %% [markdown] id="guess-zh" lang="zh" minutes=1
# ## 先猜
#
# 整课围绕一条链，它有四个算子：
#
# $$y = \text{residual} + \text{scale} \cdot \text{gelu}(x + \text{bias})$$
#
# x、residual 和 y 各 64 MiB，bias 和 scale 是短向量。四个算子各做一个核函数，或者全部融合成一个：逻辑读写差几倍？

# %% [markdown] id="guess-en" lang="en" minutes=1
# ## Guess first
#
# One chain of four operators runs through this lesson:
#
# $$y = \text{residual} + \text{scale} \cdot \text{gelu}(x + \text{bias})$$
#
# x, residual and y take 64 MiB each; bias and scale are short vectors. One kernel per operator, or all four in one: by what factor does the logical traffic fall?

# %% id="vote"
from lessons_lib import kernel_vote

vote = kernel_vote()
vote

# %% [markdown] id="predict-zh" lang="zh" minutes=2
# ## 预测
#
# 先手算。分成四个核函数：前三个各读一个张量、写一个，第四个还要读 residual：
#
# $$(2 + 2 + 2 + 3) \times 64 = 576\ \text{MiB}$$
#
# 融合成一个：读 x 和 residual，写 y，共 $3 \times 64 = 192$ MiB。576 ÷ 192 = 3，不是 4：residual 是**旁路输入**，怎么融合都要读。
#
# 再用第 01 课的公式验证，并按一块 T4 的带宽换算成时间：

# %% [markdown] id="predict-en" lang="en" minutes=2
# ## Predict
#
# By hand first. As four kernels, the first three read one tensor and write one; the fourth reads the residual as well:
#
# $$(2 + 2 + 2 + 3) \times 64 = 576\ \text{MiB}$$
#
# As one: read x and residual, write y, $3 \times 64 = 192$ MiB. That is 576 ÷ 192 = 3 and not 4: the residual is a **side input**, which no fusion saves you from reading.
#
# Now the same with lesson 01's formula, and as time on a T4:

# %% id="predict-code" tags=["answer"]
from lessons_lib import GPUS, chain_traffic, format_bytes, format_seconds

MIB = 2**20
for groups in (4, 2, 1):
    traffic = chain_traffic(4, 64 * MIB, groups, side_inputs=1)["total_bytes"]
    print(groups, format_bytes(traffic), "T4:", format_seconds(traffic / GPUS["T4"].bandwidth))

# %% [markdown] id="kernel-zh" lang="zh" minutes=2
# ## 读一读核函数
#
# 一个核函数启动成许多个**程序**，每个程序由一个线程块执行，负责一个数据块。下面是这条链的核函数的主干（完整的在 `lessons_lib/kernels/chain.py`）：
#
# ```python
# @triton.jit
# def chain_kernel(x_ptr, bias_ptr, scale_ptr, residual_ptr, y_ptr, rows, columns, ..., BLOCK_M, BLOCK_N):
#     row, column, mask = ...                    # 第 k 个程序的数据块；越界的位置由 mask 屏蔽
#     value = tl.load(x_ptr + ..., mask)         # 读一次
#     value = value + tl.load(bias_ptr + column)
#     value = gelu_tanh(value)                   # 中间值留在寄存器里，没有名字，也没有地址
#     value = value * tl.load(scale_ptr + column)
#     value = value + tl.load(residual_ptr + ..., mask)
#     tl.store(y_ptr + ..., value, mask)         # 写一次
# ```
#
# 中间三行就是融合：前一个算子的结果直接交给下一个，**没有 store，也没有 load**。
#
# 课里的核函数还能只跑其中一段。`groups=4` 就是同一份代码启动四次，每次一个算子，中间张量写回显存；`groups=1` 启动一次。所以后面量出来的差别，只来自融合，与代码写得好坏无关。

# %% [markdown] id="kernel-en" lang="en" minutes=2
# ## Read the kernel
#
# A kernel is launched as many **programs**; each is run by one thread block and takes care of one tile. This is the trunk of the chain's kernel (all of it is in `lessons_lib/kernels/chain.py`):
#
# ```python
# @triton.jit
# def chain_kernel(x_ptr, bias_ptr, scale_ptr, residual_ptr, y_ptr, rows, columns, ..., BLOCK_M, BLOCK_N):
#     row, column, mask = ...                    # the tile of program k; the mask switches off what lies outside
#     value = tl.load(x_ptr + ..., mask)         # read once
#     value = value + tl.load(bias_ptr + column)
#     value = gelu_tanh(value)                   # an intermediate value: in a register, without name or address
#     value = value * tl.load(scale_ptr + column)
#     value = value + tl.load(residual_ptr + ..., mask)
#     tl.store(y_ptr + ..., value, mask)         # written once
# ```
#
# The lines in the middle are the fusion: one operator's result goes straight into the next, **with no store and no load** between.
#
# Our kernel can also run just a part of the chain. `groups=4` launches the same code four times, an operator each, with the intermediate tensors written to memory; `groups=1` launches it once. What we measure later therefore comes from fusion alone, and not from better or worse code.

# %% [markdown] id="correct-zh" lang="zh" minutes=2
# ## 算得对吗？
#
# 先猜：fp16 下，分四步和融合成一步，哪一种离 float64 的结果更近？
#
# 下面这格三种分法各跑一遍，和 float64 对照。没有 GPU 时由解释器运行，所以只用一个小张量。

# %% [markdown] id="correct-en" lang="en" minutes=2
# ## Is it right?
#
# Guess: in fp16, which lies closer to the float64 result, four steps or one?
#
# The cell below runs all three groupings and compares them with float64. Without a GPU the interpreter runs them, which is why the tensor is small.

# %% id="correct-code" tags=["answer"]
if setup.runs:
    import torch
    from lessons_lib import chain_reference, fused_chain

    torch.manual_seed(0)
    x, residual = (torch.randn(200, 1000).half().to(setup.device) for _ in range(2))
    bias, scale = (torch.randn(1000).half().to(setup.device) for _ in range(2))
    exact = chain_reference(x.double(), bias.double(), scale.double(), residual.double())
    for groups in (4, 2, 1):
        y = fused_chain(x, bias, scale, residual, groups=groups)
        error = (y.double() - exact).abs().mean().item()
        print(f"launches: {groups}  mean error: {error:.1e}")
else:
    print(setup)

# %% [markdown] id="walk-zh" lang="zh" minutes=2
# <details><summary>对答案</summary>
#
# 融合成一步的更近。中间值留在寄存器里是 fp32；每写回一次显存，就要舍入到 fp16 一次。所以“更准”和“不相等”是一回事（第 03 课）。
#
# </details>
#
# ## 第 k 个程序读写哪些元素
#
# 先答两问：
#
# 1. 张量有 100 列，数据块宽 64：第 1 个程序（从 0 数起）的 64 个位置里，有几个越界？
# 2. 矩阵乘里，同一块 A 要被几个程序读？
#
# 面板用的就是启动核函数时的那组参数。拖动“程序”，看它读哪里、写哪里；矩阵乘和归约还可以一步一步地走。

# %% [markdown] id="walk-en" lang="en" minutes=2
# <details><summary>Answer</summary>
#
# One step is closer. In registers an intermediate value is fp32; each trip to memory rounds it to fp16. "More accurate" and "not equal" are the same fact (lesson 03).
#
# </details>
#
# ## What program k loads and stores
#
# Two questions first:
#
# 1. A tensor has 100 columns and a tile is 64 wide: of the 64 lanes of program 1 (counted from 0), how many lie outside?
# 2. In a matrix multiplication, how many programs read the same tile of A?
#
# The panel uses the very parameters the kernel is launched with. Drag "program" and see where it reads and where it writes; a GEMM and a reduction can also be stepped through.

# %% id="walk-panel" tags=["answer"]
from lessons_lib import TileWalkPanel

walk = TileWalkPanel()
walk

# %% [markdown] id="compile-zh" lang="zh" minutes=3
# <details><summary>对答案</summary>
#
# 1. 第 1 个程序管第 64 到 127 列，100 到 127 越界，共 28 个：不读也不写。
# 2. 同一行数据块上的每个程序都要读，即 ⌈N ÷ 块宽⌉ 个。这就是第 02 课说的“逻辑上反复读”；靠 L2 缓存，显存不必真的读这么多遍。
#
# </details>
#
# ## 编译器怎么说
#
# 编译不需要 GPU：Triton 的编译器带着各家 GPU 的后端。下面的面板真的去编译，再从结果里读出寄存器、溢出、共享内存和指令种类。先猜三件事：
#
# 1. 融合的中间值放在共享内存里吗？（看 chain 的共享内存）
# 2. 一个线程的寄存器超过 255 个会怎样？（核函数选 linear，GPU 选 T4，把 warp 数从 8 减到 4）
# 3. 关掉“尺寸是 16 的倍数”，寄存器会多还是少？（核函数选 chain）

# %% [markdown] id="compile-en" lang="en" minutes=3
# <details><summary>Answers</summary>
#
# 1. Program 1 has columns 64 to 127; 100 to 127 lie outside, 28 in all, and are neither read nor written.
# 2. Every program in the same row of tiles: ⌈N ÷ tile width⌉ of them. These are lesson 02's repeated logical reads; thanks to L2, device memory does not really serve them all.
#
# </details>
#
# ## What the compiler says
#
# Compiling needs no GPU: Triton's compiler brings the back ends of all of them. The panel below really compiles, then reads registers, spills, shared memory and the kind of instructions off the result. Guess three things first:
#
# 1. Do the fused intermediate values live in shared memory? (Look at chain's shared memory.)
# 2. What happens when a thread needs more than 255 registers? (Kernel linear, GPU T4, and go from 8 warps to 4.)
# 3. Switch off "sizes are multiples of 16": more registers or fewer? (Kernel chain.)

# %% id="compiler-panel" tags=["answer"]
from lessons_lib import CompilerPanel

compiler = CompilerPanel()
compiler

# %% [markdown] id="eight-zh" lang="zh" minutes=1
# <details><summary>对答案</summary>
#
# 1. 不在。逐元素的核函数用 0 字节共享内存，中间值在寄存器里。
# 2. **寄存器溢出**：多出来的值被放到显存里，表里的“溢出”不再是 0。程序还能跑，结果也对，只是慢。
# 3. 更多。不知道尺寸能被 16 整除，编译器就不敢一次读 16 字节，只好一个元素一个元素地算地址。
#
# </details>
#
# 同一个核函数，换一块 GPU 就是另一回事。下面是 linear（矩阵乘加尾声）在八块 GPU 上的报告。注意“指令”一栏：T4 上没有用到张量核心；再注意“能启动”一栏：**编译得过，不等于启动得了**。

# %% [markdown] id="eight-en" lang="en" minutes=1
# <details><summary>Answers</summary>
#
# 1. No. An elementwise kernel takes 0 bytes of shared memory; its intermediate values are in registers.
# 2. A **register spill**: what does not fit is put into device memory, and "spill" in the table is no longer 0. The program still runs and is still right, only slower.
# 3. More. Not knowing that sizes divide by 16, the compiler dares no 16-byte loads and works out addresses element by element.
#
# </details>
#
# On another GPU the same kernel is another story. Below is linear, the GEMM with its epilogue, on eight of them. Look at "instructions": on a T4 no tensor core is reached. And at "launches": **what compiles need not launch**.

# %% id="eight-gpus" tags=["answer"]
from lessons_lib import report_table

report_table("linear")

# %% [markdown] id="measure-zh" lang="zh" minutes=3
# ## 实测
#
# 预测和编译报告都有了，现在计时。同一次运行里量几样东西：复制一个张量有多快（当作带宽的标尺）、分开的算子、`torch.compile`、我们的核函数。先把你的猜测写在心里：4 个核函数比 1 个慢几倍？
#
# 有 GPU 时大约要一分钟。没有 GPU 时，GPU 的数据来自别人录下的运行（会写明是哪台机器、什么时候）；还没有录过，就只给预测，不会编造。这台机器的 CPU 也会真的量一次。

# %% [markdown] id="measure-en" lang="en" minutes=3
# ## Measure it
#
# Prediction and compiler report are on the table; now for the clock. One run measures several things: how fast a tensor can be copied (the yardstick of bandwidth), the operators apart, `torch.compile`, and our kernel. Settle on a guess: how many times slower are four kernels than one?
#
# On a GPU this takes about a minute. Without one, GPU figures come from a run that somebody recorded (on which machine and when stands beside it); where none was recorded there is the prediction alone, and nothing is made up. This machine's CPU is measured for real in any case.

# %% id="measure-gpu" tags=["answer", "nbval-ignore-output"]
from lessons_lib import benchmark_report, measure_kernels

run = measure_kernels()
benchmark_report(run)

# %% id="measure-cpu" tags=["answer", "nbval-ignore-output"]
from lessons_lib import cpu_report, measure_on_cpu

on_cpu = measure_on_cpu()
cpu_report(on_cpu)

# %% id="plot" tags=["answer", "nbval-ignore-output"]
from lessons_lib import benchmark_plot

benchmark_plot(run)

# %% [markdown] id="verdict-zh" lang="zh"
# 时间每次不同。下面几条在任何机器上都应成立；没有量过的，写“没有量”，不写“成立”。

# %% [markdown] id="verdict-en" lang="en"
# Times differ from run to run. What follows should hold on any machine; what was not measured says so, and not "holds".

# %% id="measure-verdict" tags=["answer"]
from lessons_lib import measurement_verdict

measurement_verdict(run, on_cpu)

# %% [markdown] id="not-zh" lang="zh"
# ### 这些数不代表什么
#
# - **编译报告不是速度。** 不溢出、占用率高，都不保证快。
# - **带宽的百分比不是效率。** 复制达到的带宽就是这块 GPU 的上限了；和数据手册相比总要低一些。
# - **比 `torch.compile` 快，不等于值得手写。** 手写的核函数要有人维护；编译器写的不用。
# - **这条链快了，不等于模型快了。** 要看它在整个模型里占多少时间。

# %% [markdown] id="not-en" lang="en"
# ### What these numbers are not
#
# - **A compiler report is no speed.** No spill and a high occupancy promise nothing.
# - **A share of bandwidth is no efficiency.** What a copy reaches is the ceiling of this GPU; it lies below the datasheet anyway.
# - **Faster than `torch.compile` is not yet worth writing by hand.** A kernel of your own has to be maintained; the compiler's does not.
# - **A faster chain is not a faster model.** That depends on its share of the model's time.

# %% [markdown] id="decide-zh" lang="zh" minutes=2
# ## 用证据来判
#
# 第 03 课有一栏一直空着：“后端已生成”。现在由编译器来填。下面这格为 chain 收集四个条件的证据：和 float64 对照、在边界形状上试跑、编译、读报告。先猜：没有 GPU 时，哪一条还会是“未核对”？

# %% [markdown] id="decide-en" lang="en" minutes=2
# ## Decide with evidence
#
# One row of lesson 03 stayed empty, "backend lowered it". Now a compiler fills it in. The cell below gathers evidence for the chain's four conditions: compare with float64, try shapes at the edges, compile, read the report. Guess: without a GPU, which one stays "not checked"?

# %% id="decision-panel" tags=["answer"]
from lessons_lib import DecisionPanel, gather_evidence

decision = DecisionPanel(gather_evidence("chain", GPUS["T4"], (4096, 8192), "fp16"))
decision

# %% [markdown] id="losing-zh" lang="zh" minutes=2
# <details><summary>对答案</summary>
#
# 只要有 Triton，一条都不会：解释器能算出结果，编译器能生成代码。四条都成立，仍然不能说明更快；那要靠上面的计时。
#
# </details>
#
# ## 两个会输的例子
#
# **一、T4 上的矩阵乘加尾声。** 按字节算，融合省下两遍读写。但是 Triton 从 3.3 起在 T4 上用不到张量核心，矩阵乘本身就慢了许多倍。那么在 T4 上，哪一种做法最快？

# %% [markdown] id="losing-en" lang="en" minutes=2
# <details><summary>Answer</summary>
#
# None, as long as Triton is there: the interpreter gives results, the compiler gives code. All four hold, and that still does not make it faster; the clock above decides that.
#
# </details>
#
# ## Two cases that lose
#
# **One: a GEMM with its epilogue on a T4.** By bytes, fusing saves two passes. But from version 3.3 on Triton reaches no tensor core on a T4, and the matrix multiplication itself becomes many times slower. What is fastest on a T4, then?

# %% id="losing-vote"
from lessons_lib import losing_vote

losing = losing_vote()
losing

# %% id="losing-tables" tags=["answer"]
from lessons_lib import losing_report

losing_report("T4")

# %% [markdown] id="tiny-zh" lang="zh"
# **二、很小的张量。** 第二张表是 64 KiB 的张量：读写只要不到 1 微秒，启动一次却要几微秒。这时融合仍然快 4 倍，但省下的是**启动**，不是读写；CUDA graph 也能省下这一部分，而且不用改核函数。先问清楚时间花在哪里，再决定要不要融合。

# %% [markdown] id="tiny-en" lang="en"
# **Two: a tiny tensor.** The second table is for 64 KiB: moving it takes less than a microsecond, a launch takes several. Fusing is still faster, but what it saves is **launches** and not bytes; a CUDA graph saves those as well, without touching a kernel. Ask where the time goes before you decide to fuse.

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=5
# ## 练习 1：自己写一个融合核函数
#
# 把偏置、SiLU 和门控融合成一个核函数：$y = \text{silu}(x + \text{bias}) \cdot \text{gate}$。x、gate、y 是 `[rows, columns]`，行与行之间可以有间隔（`x_stride` 等是相邻两行相隔的元素数）；bias 是 `[columns]`。程序与数据块的对应已经写好，把 `return None` 换成你的代码：屏蔽越界的位置，读、算、写。
#
# 检查器会试各种形状和类型，输出先填满“毒值”，四周设警戒带；第一个不对的元素在哪里、归哪个程序管、多半错在什么地方，它都会告诉你。死循环也不怕：到时间就停。

# %% [markdown] id="exercise-1-en" lang="en" minutes=5
# ## Exercise 1: a fused kernel of your own
#
# Fuse bias, SiLU and gate into one kernel: $y = \text{silu}(x + \text{bias}) \cdot \text{gate}$. x, gate and y are `[rows, columns]`, with gaps allowed between rows (`x_stride` and the others are the elements from one row to the next); bias is `[columns]`. Which tile belongs to which program is written already. Replace `return None` with your code: mask what lies outside, load, compute, store.
#
# The checker tries many shapes and dtypes, with outputs poisoned beforehand and guard bands around them. It names the first wrong element, the program it belongs to and the likely cause. An endless loop does no harm: it is stopped in time.

# %% id="gate-kernel" tags=["exercise"]
from lessons_lib import check_bias_silu_gate, tl, triton


@triton.jit
def bias_silu_gate(
    x_ptr, bias_ptr, gate_ptr, y_ptr, rows, columns, x_stride, gate_stride, y_stride, BLOCK: tl.constexpr
):
    tiles = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    return None


check_bias_silu_gate(bias_silu_gate)

# %% id="gate-kernel-solution" tags=["solution"]
from lessons_lib import check_bias_silu_gate, tl, triton


@triton.jit
def bias_silu_gate(
    x_ptr, bias_ptr, gate_ptr, y_ptr, rows, columns, x_stride, gate_stride, y_stride, BLOCK: tl.constexpr
):
    tiles = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * x_stride + column, inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + row * gate_stride + column, inside, other=0.0).to(tl.float32)
    biased = x + bias
    small = tl.exp(-tl.abs(biased))  # at most 1: no overflow for any input
    sigmoid = tl.where(biased >= 0, 1.0, small) / (1.0 + small)
    y = biased * sigmoid * gate
    tl.store(y_ptr + row * y_stride + column, y.to(y_ptr.dtype.element_ty), inside)


check_bias_silu_gate(bias_silu_gate)

# %% [markdown] id="exercise-2-zh" lang="zh" minutes=1
# ## 练习 2：它读写多少字节
#
# 写一个函数，返回 $y = \text{silu}(x + \text{bias}) \cdot \text{gate}$ 的逻辑读写字节数。三个算子（加偏置、SiLU、乘门控）分成 `kernels` 个核函数，`kernels` 是 1、2 或 3；bias 也要算上，它是一个 `columns` 长的向量。

# %% [markdown] id="exercise-2-en" lang="en" minutes=1
# ## Exercise 2: how many bytes does it move?
#
# Write a function that returns the bytes of logical traffic of $y = \text{silu}(x + \text{bias}) \cdot \text{gate}$. Its three operators (add bias, SiLU, multiply by the gate) run in `kernels` kernels, 1, 2 or 3 of them. Count bias as well: it is a vector of `columns` elements.

# %% id="fused-bytes" tags=["exercise"]
from lessons_lib import check_fused_bytes


def gate_bytes(rows, columns, element_bytes, kernels):
    return None


check_fused_bytes(gate_bytes)

# %% id="fused-bytes-solution" tags=["solution"]
from lessons_lib import check_fused_bytes


def gate_bytes(rows, columns, element_bytes, kernels):
    matrices = 3 + 2 * (kernels - 1)  # x, gate and y; each tensor between two kernels is written and read
    return (matrices * rows + 1) * columns * element_bytes


check_fused_bytes(gate_bytes)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=1
# ## 三个小问题

# %% [markdown] id="quiz-intro-en" lang="en" minutes=1
# ## Three questions

# %% id="quiz"
from lessons_lib import kernel_quiz

quiz = kernel_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 融合就是不 store 也不 load：中间值留在寄存器里，旁路输入照样要读。
# 2. 编译报告免费，先看它：溢出、共享内存超限、没用到张量核心，都在计时之前就看得出来。
# 3. 预测、报告、实测摆在一起，说得出差距的原因，才算知道融合值不值得。
#
# 上一课：{{previous}}
#
# {{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. To fuse is to leave out a store and a load: intermediate values stay in registers, side inputs are still read.
# 2. A compiler report is free, so look there first: spills, too much shared memory, no tensor cores all show before any clock runs.
# 3. Prediction, report and measurement side by side, with a reason for each gap: then you know whether the fusion is worth it.
#
# Previous: {{previous}}
#
# {{next}}
