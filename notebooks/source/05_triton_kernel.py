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
# - 把预测、编译器的报告和实测摆在一起，说出差在哪里、为什么；
# - 自己写一个融合核函数，并让检查器挑不出毛病。
#
# **先读：** 01. 中间张量与逻辑读写；02. 片上预算与复用；03. 条件与代价
#
# **后读**（同系列的章节）**：** 05. Triton 性能调优与基准测试；06. Triton 进阶：跨线程归约与数值稳定；08. Triton Flash Attention

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="recommended" needs="lab kernel"
# # 05. A Real Fused Kernel | 真正的融合核函数
#
# **Difficulty:** Medium ｜ **Environment:** a free GPU (a T4 will do); can be finished without one ｜ **Tags:** compilers, operator fusion, Triton ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** Triton, kernel, register spill, measurement
#
# {{badges}}
#
# After this lesson you can
#
# - read a fused kernel and say which elements its program k loads and stores;
# - get a compiler's report without a GPU: how many registers and how much shared memory a kernel takes, whether it spills, whether it reaches the tensor cores;
# - set prediction, compiler report and measurement side by side, and name the reason for each gap;
# - write a fused kernel of your own that a suspicious checker accepts.
#
# **Read before:** 01. Intermediate Tensors and Logical Traffic; 02. On-Chip Budget and Reuse; 03. Conditions and Costs
#
# **Read after** (chapters of the same series)**:** 05. Triton autotuning and profiling; 06. Reductions across threads and numerical stability in Triton; 08. Triton Flash Attention

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 提前跑一遍全课，让编译报告进缓存（第一次要多等半分钟左右）；没有 GPU 就在开课前说清楚：CPU 上真的量，GPU 的数只有预测（课程带有实测记录时，也会用上）。练习 1 的检查器每次要几秒，人多时轮着跑。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** run the whole lesson beforehand so that compiler reports are cached (the first time takes about half a minute more). If there is no GPU, say so at the start: the CPU is measured for real, and a GPU's times are predictions (or a recorded run, where the course has one). The checker of exercise 1 takes a few seconds a run.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“前四课的核函数都是别人写的。今天自己写一个，先听编译器怎么说，再听时钟怎么说。”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "So far somebody else wrote the kernels; today you write one, and hear what the compiler says about it, and then the clock."

# %% id="bootstrap"
# generated

# %% [markdown] id="setup-zh" lang="zh" minutes=1
# ## 先看这台机器
#
# 这一课的核函数用 **Triton** 写：一种写在 Python 里的核函数语言，由它的编译器生成 GPU 代码。这一课有三种上法，这台机器用哪一种，由下面这格判断（它不安装任何东西；重启内核之后，先运行这一格）：
#
# - **有 GPU**：真的编译、运行、计时；
# - **没有 GPU**：用解释器在 CPU 上逐个程序执行，只看结果对不对；编译照样能做，为哪块 GPU 编译都行；
# - **没有 Triton**（macOS、Windows、浏览器）：照样能读、能预测，只有运行核函数的几格会跳过，并说明原因。

# %% [markdown] id="setup-en" lang="en" minutes=1
# ## First, this machine
#
# The kernels of this lesson are written in **Triton**, a kernel language inside Python whose compiler generates GPU code. There are three ways to take the lesson, and the cell below finds out which one this machine allows (it installs nothing; after a restart, run it first):
#
# - **with a GPU**: compile, run and time for real;
# - **without one**: an interpreter runs the kernels on the CPU, to see whether the results are right; compiling still works, for any GPU of the course;
# - **without Triton** (macOS, Windows, a browser): read and predict; the few cells that run a kernel are skipped and say why.

# %% [markdown] id="setup-teach-zh" lang="zh" tags=["instructor"]
# **说：**三种上法都能上完；让每个人说出自己是哪一种。解释器和编译器是两回事：一个看对不对，一个看生成了什么。
#
# **问：**没有 GPU，哪几件事还能做？
#
# **答：**读、预测、编译看报告，用解释器核对结果，量自己的 CPU；只差 GPU 上的计时。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “没有 GPU 就不能编译” | 编译器要的是目标的型号，还是目标本身？（型号） |
# | “解释器跑得慢，这个核函数就慢” | 解释器是怎么跑的？（在 CPU 上一个程序一个程序地跑，快慢不作数） |

# %% [markdown] id="setup-teach-en" lang="en" tags=["instructor"]
# **Say:** All three ways reach the end; have everybody say which is theirs. Interpreter and compiler differ: one shows whether it is right, the other what was generated.
#
# **Ask:** Without a GPU, what can still be done?
#
# **Answer:** Read, predict, compile and read the report, check results in the interpreter, time your CPU. Only the timing on a GPU is missing.
#
# | you hear | ask back |
# | --- | --- |
# | "No GPU, no compiling." | Does a compiler need the device, or its name? (the name) |
# | "The interpreter is slow, so the kernel is slow." | How does the interpreter run it? (program by program on the CPU: its times mean nothing) |

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
# x、residual 和 y 各 64 MiB，bias 和 scale 是短向量，不计。四个算子各做一个核函数，或者全部融合成一个：逻辑读写差几倍？

# %% [markdown] id="guess-en" lang="en" minutes=1
# ## Guess first
#
# One chain of four operators runs through this lesson:
#
# $$y = \text{residual} + \text{scale} \cdot \text{gelu}(x + \text{bias})$$
#
# x, residual and y take 64 MiB each; bias and scale are short vectors and not counted. One kernel per operator, or all four in one: by what factor does the logical traffic fall?

# %% [markdown] id="guess-teach-zh" lang="zh" tags=["instructor"]
# **说：**投票。多半有人答 4 倍：第 01 课的上限，忘了残差。不说破，下一节手算。
#
# **问：**第四个算子读几个张量？
#
# **答：**两个：前一步的结果，和 residual。所以四个核函数一共搬 9 个张量，不是 8 个。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 4 倍 | residual 是谁读的？融合以后还读不读？（第四个；照读） |
# | 1.67 倍 | 那是从几个核函数开始比的？（两个） |

# %% [markdown] id="guess-teach-en" lang="en" tags=["instructor"]
# **Say:** Vote. Some will say 4×, lesson 01's ceiling, and forget the residual. Do not give it away; the sum comes next.
#
# **Ask:** How many tensors does the fourth operator read?
#
# **Answer:** Two, the result before it and the residual. So four kernels move 9 tensors and not 8.
#
# | you hear | ask back |
# | --- | --- |
# | 4× | Who reads the residual? And once fused? (the fourth; it is still read) |
# | 1.67× | How many kernels is that compared with? (two) |

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
# 融合成一个：读 x 和 residual，写 y，共 $3 \times 64 = 192$ MiB。576 ÷ 192 = 3。猜 4 的人漏了 residual（8 ÷ 2）：它是**旁路输入**，怎么融合都要读；1.67 是两个核函数与一个之比（320 ÷ 192）。
#
# 再用第 01 课的公式验证，并按 T4 的标称带宽换算成时间：

# %% [markdown] id="predict-en" lang="en" minutes=2
# ## Predict
#
# By hand first. As four kernels, the first three read one tensor and write one; the fourth reads the residual as well:
#
# $$(2 + 2 + 2 + 3) \times 64 = 576\ \text{MiB}$$
#
# As one: read x and residual, write y, $3 \times 64 = 192$ MiB. 576 ÷ 192 = 3. A guess of 4 left out the residual (8 ÷ 2): it is a **side input**, and no fusion saves reading it. 1.67 is two kernels against one (320 ÷ 192).
#
# Now the same with lesson 01's formula, and as time at a T4's datasheet bandwidth:

# %% [markdown] id="predict-teach-zh" lang="zh" tags=["instructor"]
# **说：**(2 + 2 + 2 + 3) × 64 = 576，3 × 64 = 192，正好 3 倍。T4 上的毫秒数先记在黑板上，等实测。
#
# **问：**这条链的三项必需读写是哪三项？
#
# **答：**读 x、读 residual、写 y，3 × 64 = 192 MiB，怎么分组都省不掉。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 512 MiB | 哪一个核函数读了两个张量？（第四个） |
# | 融合后 128 MiB | residual 留得在片上吗？（它是输入，总要读一次） |

# %% [markdown] id="predict-teach-en" lang="en" tags=["instructor"]
# **Say:** (2 + 2 + 2 + 3) × 64 = 576, 3 × 64 = 192: exactly 3×. Put the T4's milliseconds on the board and wait for the measurement.
#
# **Ask:** Which three transfers are compulsory here?
#
# **Answer:** Read x, read the residual, write y: 3 × 64 = 192 MiB, whatever the grouping.
#
# | you hear | ask back |
# | --- | --- |
# | 512 MiB | Which kernel reads two tensors? (the fourth) |
# | 128 MiB once fused | Can the residual be on chip already? (no, it is an input and is read once) |

# %% id="predict-code" tags=["answer"]
from lessons_lib import GPUS, chain_traffic, format_bytes, format_seconds

MIB = 2**20
for groups in (4, 2, 1):
    traffic = chain_traffic(4, 64 * MIB, groups, side_inputs=1)["total_bytes"]
    print(
        f"kernels: {groups}  traffic: {format_bytes(traffic)}  T4: {format_seconds(traffic / GPUS['T4'].bandwidth)}"
    )

# %% [markdown] id="kernel-zh" lang="zh" minutes=2
# ## 读一读核函数
#
# 启动一次核函数，会派出许多个**程序**（program），每个程序由一个线程块执行，负责一个数据块。下面是这条链的核函数（`lessons_lib/kernels/chain.py`；只省去了“只跑链的一段”用的几个 if）：
#
# ```python
# @triton.jit
# def chain_kernel(x_ptr, bias_ptr, scale_ptr, residual_ptr, y_ptr, rows, columns,
#                  x_stride, residual_stride, y_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
#     program = tl.program_id(0)                                  # 我是第几个程序
#     tiles_n = (columns - 1) // BLOCK_N + 1                      # 一行有几个数据块
#     row = (program // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
#     column = (program % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
#     inside = (row < rows) & (column < columns)                  # 哪些位置没有越界
#
#     value = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
#     value += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
#     value = gelu_tanh(value)
#     value *= tl.load(scale_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
#     value += tl.load(residual_ptr + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
#     tl.store(y_ptr + row * y_stride + column, value.to(y_ptr.dtype.element_ty), mask=inside)
# ```
#
# `value += …`、`gelu_tanh`、`value *= …`、`value += …` 这四行就是四个算子，融合就在它们之间：前一个的结果直接交给下一个，**没有 store，也没有 load**（这几行里的 load 读的是 bias、scale 和 residual，都是输入）。value 在寄存器里，没有显存地址。
#
# <details><summary>逐个看这些写法（练习 1 要用）</summary>
#
# - `BLOCK_N: tl.constexpr`：编译期常量。数据块的大小写进机器码，换一个值就要另编译一份；
# - `tl.arange(0, BLOCK_N)`：向量 0, 1, …, BLOCK_N − 1，长度必须是 2 的幂。`[:, None]` 让行号竖着排，`[None, :]` 让列号横着排，合起来就是 BLOCK_M × BLOCK_N 个位置；
# - `x_ptr + row * x_stride + column`：每个位置的地址。`x_stride` 是相邻两行的起点相隔几个元素；行号先转成 `tl.int64` 再乘，张量很大时才不会溢出；
# - `mask=inside`：越界的位置不读也不写；`other=0.0` 是这些位置读到的值；
# - `.to(tl.float32)`：读进来就转成 fp32，一直用 fp32 算；写出时才转回 y 的类型（`y_ptr.dtype.element_ty`）。
#
# </details>
#
# 这个核函数也能只跑链的一段。`groups=4` 就是同一份代码启动四次，每次一个算子，中间张量写回显存；`groups=1` 启动一次。所以后面量出来的差别，只来自融合，与代码写得好坏无关。

# %% [markdown] id="kernel-en" lang="en" minutes=2
# ## Read the kernel
#
# One launch of a kernel runs many **programs**; each is executed by one thread block and takes care of one tile. Here is the chain's kernel (`lessons_lib/kernels/chain.py`; left out are only the ifs that let it run a part of the chain):
#
# ```python
# @triton.jit
# def chain_kernel(x_ptr, bias_ptr, scale_ptr, residual_ptr, y_ptr, rows, columns,
#                  x_stride, residual_stride, y_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
#     program = tl.program_id(0)                                  # which program am I
#     tiles_n = (columns - 1) // BLOCK_N + 1                      # tiles in a row
#     row = (program // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
#     column = (program % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
#     inside = (row < rows) & (column < columns)                  # which positions exist
#
#     value = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
#     value += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
#     value = gelu_tanh(value)
#     value *= tl.load(scale_ptr + column, mask=column < columns, other=0.0).to(tl.float32)
#     value += tl.load(residual_ptr + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
#     tl.store(y_ptr + row * y_stride + column, value.to(y_ptr.dtype.element_ty), mask=inside)
# ```
#
# The four lines `value += …`, `gelu_tanh`, `value *= …`, `value += …` are the four operators, and the fusion is what lies between them: each result goes straight into the next operator, **with no store and no load** in between (the loads in these lines fetch bias, scale and residual, all of them inputs). value lives in registers and has no address in memory.
#
# <details><summary>Piece by piece (exercise 1 needs it)</summary>
#
# - `BLOCK_N: tl.constexpr` is a compile-time constant. The size of a tile is part of the machine code; another value is another compilation.
# - `tl.arange(0, BLOCK_N)` is the vector 0, 1, …, BLOCK_N − 1, and its length must be a power of two. `[:, None]` stands the rows upright, `[None, :]` lays the columns flat: together BLOCK_M × BLOCK_N positions.
# - `x_ptr + row * x_stride + column` is the address of each position. `x_stride` counts elements from the start of one row to the next; rows become `tl.int64` before the product, which would overflow on a very large tensor.
# - `mask=inside`: positions that do not exist are neither read nor written; `other=0.0` is what a load gives there.
# - `.to(tl.float32)`: converted when loaded, computed in fp32 throughout, and converted to the type of y (`y_ptr.dtype.element_ty`) only when stored.
#
# </details>
#
# This kernel can also run just a part of the chain. `groups=4` launches the same code four times, one operator each, with the intermediate tensors written to memory; `groups=1` launches it once. The difference that we measure later therefore comes from fusion alone, not from better or worse code.

# %% [markdown] id="kernel-teach-zh" lang="zh" tags=["instructor"]
# **说：**指着四个算子那四行之间的空白讲：融合就是这里**没有** store，也没有 load。同一份代码跑 4 次或 1 次，所以差别只来自融合。
#
# **问：**数一数 load 和 store。搬大张量的有几个？
#
# **答：**四个 load、一个 store；搬大张量的是 x、residual 两个 load 和 y 的 store：3 × 64 = 192 MiB，和预测对得上。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “中间值在共享内存” | 哪一行把它放进去的？（没有；在寄存器里） |
# | “load(bias) 也是中间读写” | bias 是谁算出来的？（没有人，它是输入） |

# %% [markdown] id="kernel-teach-en" lang="en" tags=["instructor"]
# **Say:** Point between the four lines: fusion is the store and the load that are **not** there. The same code runs four times or once, so the difference is fusion alone.
#
# **Ask:** Count the loads and stores. How many of them move a large tensor?
#
# **Answer:** Four loads and a store. The loads of x and residual and the store of y are large: 3 × 64 = 192 MiB, as predicted.
#
# | you hear | ask back |
# | --- | --- |
# | "Intermediates live in shared memory." | Which line puts it there? (none: registers) |
# | "load(bias) is intermediate traffic." | Which operator made bias? (none, it is an input) |

# %% [markdown] id="correct-zh" lang="zh" minutes=2
# ## 算得对吗？
#
# 先猜：fp16 下，分四步和融合成一步，哪一种离 float64 的结果更近？
#
# 下面这格把三种分法各跑一遍，和 float64 对照。没有 GPU 时由解释器运行，所以只用一个小张量。

# %% [markdown] id="correct-en" lang="en" minutes=2
# ## Is it right?
#
# Guess: in fp16, which comes closer to the float64 result, four steps or one?
#
# The cell below runs all three groupings and compares them with float64. Without a GPU the interpreter runs them, which is why the tensor is small.

# %% [markdown] id="correct-teach-zh" lang="zh" tags=["instructor"]
# **说：**先问谁离 float64 近，再跑。融合的更近：少舍入三次。这就是“更准，所以不相等”。
#
# **问：**每写回一次显存，数发生了什么？
#
# **答：**从 fp32 舍入到 fp16，尾巴就丢了。四步写回三次中间值，一步到底一次也不丢。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “分步更准，因为更仔细” | 步与步之间，数以什么类型待着？（fp16） |
# | “不相等就是有错” | 和谁比，谁才算错？（和 float64；分步的偏得更多） |

# %% [markdown] id="correct-teach-en" lang="en" tags=["instructor"]
# **Say:** Ask which is nearer to float64, then run. Fused: three roundings fewer. That is "more accurate, and so not equal".
#
# **Ask:** What happens to a number on each trip to memory?
#
# **Answer:** It is rounded from fp32 to fp16 and loses its tail: three times in four steps, never in one.
#
# | you hear | ask back |
# | --- | --- |
# | "Step by step is more careful." | Between the steps, in what type does the number wait? (fp16) |
# | "Not equal means wrong." | Compared with what? (with float64, and there the four steps are further off) |

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

# %% [markdown] id="correct-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 融合成一步的更近。中间值在寄存器里是 fp32；每写回一次显存，就要舍入到 fp16 一次。少舍入几次，所以更准，也正因此不再逐位相等（第 03 课）。
#
# </details>

# %% [markdown] id="correct-answer-en" lang="en"
# <details><summary>Answer</summary>
#
# One step is closer. In registers an intermediate value is fp32; each trip to memory rounds it to fp16. Fewer roundings make it more accurate, and for that very reason no longer bit-equal (lesson 03).
#
# </details>

# %% [markdown] id="walk-zh" lang="zh" minutes=2
# ## 第 k 个程序读写哪些元素
#
# 先答两问：
#
# 1. chain 的张量有 24 行 50 列，数据块 16 × 16：第 7 个程序（从 0 数起）的 256 个位置里，有几个越界？
# 2. 矩阵乘（linear），结果 24 行 50 列，数据块 16 × 16：同一块 x 要被几个程序读？同一块 w 呢？
#
# 面板里程序与数据块的对应，和启动核函数时一样。拖动“程序”，看它读哪里、写哪里。核对第 1 问：先把“数据块”改成 16 × 16，再把“程序”拖到 7，看表里 x 那一行。核对第 2 问：核函数选 linear，看表里“由几个程序访问”那一列。矩阵乘可以一步一步地走；归约在数据块比一行窄时也可以。

# %% [markdown] id="walk-en" lang="en" minutes=2
# ## What program k loads and stores
#
# Two questions first:
#
# 1. chain works on 24 rows and 50 columns in tiles of 16 × 16. Of the 256 lanes (positions) of program 7, counted from 0, how many lie outside the tensor?
# 2. A GEMM (linear) has a result of 24 rows and 50 columns, in tiles of 16 × 16. How many programs read the same tile of x? And of w?
#
# Programs and tiles correspond here as they do in a launch. Drag "program" and see where it reads and where it writes. To check the first answer, set "tile" to 16 × 16, then "program" to 7, and find x in the table; for the second, choose the kernel linear and read the column "touched by". A GEMM can also be stepped through, and so can a reduction whose tile is narrower than the row.

# %% [markdown] id="walk-teach-zh" lang="zh" tags=["instructor"]
# **说：**拖“程序”，让全场报出它读写哪几行几列。越界的位置由 mask 关掉，不读也不写；240 个。
#
# **问：**第 7 个程序管哪些行、哪些列？有几行、几列不存在？
#
# **答：**16 到 31 行、48 到 63 列；后 8 行、后 14 列不存在，只剩 8 × 2 = 16 个位置。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 0 个越界 | 50 列能被 16 整除吗？24 行呢？（都不能） |
# | 224 个 | 那是只看了列。第 24 行在哪里？（不存在，行号只到 23） |
# | “mask 掉的读 0 也算读写” | 这些位置有地址可读吗？（没有，0 是填的） |

# %% [markdown] id="walk-teach-en" lang="en" tags=["instructor"]
# **Say:** Drag "program" and have the room call out its rows and columns. The mask turns off what lies outside, reads and writes alike: 240.
#
# **Ask:** Which rows and columns has program 7? How many of them do not exist?
#
# **Answer:** Rows 16 to 31, columns 48 to 63. The last 8 rows and 14 columns do not exist, which leaves 8 × 2 = 16 lanes.
#
# | you hear | ask back |
# | --- | --- |
# | 0 | Does 16 divide 50? And 24? (neither) |
# | 224 | That is the columns alone. Where is row 24? (nowhere: the last is 23) |
# | "Masked lanes read zeros, so they count." | Is there an address to read? (no, the zero is filled in) |

# %% id="walk-panel" tags=["answer"]
from lessons_lib import TileWalkPanel

walk = TileWalkPanel()
walk

# %% [markdown] id="walk-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 240 个。一行有 4 块，第 7 个程序是第二行的最后一块，管第 16 到 31 行、第 48 到 63 列。只有 16 到 23 这 8 行和 48、49 两列存在，8 × 2 = 16 个有效，其余 240 个不读也不写。
# 2. x 的一块被 4 个程序读：结果的一行有 ⌈50 ÷ 16⌉ = 4 块，每块都要用到它（50 是结果的列数，不是 x 的）。w 的一块被 ⌈24 ÷ 16⌉ = 2 个程序读。这就是第 02 课说的逻辑重读；靠 L2 缓存，显存不必真的读这么多遍。
#
# </details>

# %% [markdown] id="walk-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. 240. A row takes 4 tiles, so program 7 is the last of the second row of tiles: rows 16 to 31, columns 48 to 63. Only rows 16 to 23 and columns 48 and 49 exist, 8 × 2 = 16 lanes; the other 240 read nothing and write nothing.
# 2. A tile of x is read by 4 programs: the result has ⌈50 ÷ 16⌉ = 4 tiles in a row, and each needs it (50 is the columns of the result, not of x). A tile of w is read by ⌈24 ÷ 16⌉ = 2. These are lesson 02's logical re-reads; thanks to L2, device memory need not serve them all.
#
# </details>

# %% [markdown] id="compile-zh" lang="zh" minutes=3
# ## 编译器怎么说
#
# 编译不需要 GPU：Triton 的编译器自带 NVIDIA 和 AMD 的后端。下面的面板真的去编译，再从结果里读出寄存器、溢出、共享内存和指令种类。先猜三件事：
#
# 1. chain 的共享内存是 0 字节。linear 也是吗？为什么？（核函数选 linear，看“共享内存”）
# 2. 一个线程的寄存器超过 255 个会怎样？（核函数选 linear，GPU 选 T4，把 warp 数从 8 减到 4）
# 3. 关掉“各个大小是 16 的倍数”，寄存器会多还是少？（核函数选 chain）

# %% [markdown] id="compile-en" lang="en" minutes=3
# ## What the compiler says
#
# Compiling needs no GPU: Triton's compiler ships with back ends for NVIDIA and AMD. The panel below really compiles, then reads registers, spills, shared memory and the kind of instructions off the result. Guess three things first:
#
# 1. chain takes 0 bytes of shared memory. Does linear, too? Why? (Kernel linear, column "shared memory".)
# 2. What happens when a thread needs more than 255 registers? (Kernel linear, GPU T4, then from 8 warps to 4.)
# 3. Untick "sizes are multiples of 16": more registers or fewer? (Kernel chain.)

# %% [markdown] id="compile-teach-zh" lang="zh" tags=["instructor"]
# **说：**编译报告不要钱：三个猜测一个一个验。第 1 问要听到“谁还要用”：自己用的放寄存器，大家用的放共享内存。
#
# **问：**8 个 warp 换 4 个，每个线程的值多了还是少了？
#
# **答：**多了一倍：数据块没变，线程从 256 个变成 128 个；拿不下的就溢出。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “linear 也是 0，它也是一个核函数” | 一块 x，只有一个线程要用吗？（许多线程都要） |
# | “溢出就算错了” | 结果变没变？变的是什么？（没变；变慢了） |
# | “对齐只影响快慢，不影响寄存器” | 不能一次读 16 字节，地址要算几次？（fp16 是 8 次） |

# %% [markdown] id="compile-teach-en" lang="en" tags=["instructor"]
# **Say:** A compiler report is free; check the three guesses one by one. For the first, wait until somebody says who else needs the value: what one thread needs is in registers, what many need in shared memory.
#
# **Ask:** From 8 warps to 4: has a thread more values or fewer?
#
# **Answer:** Twice as many: the same tile on 128 threads instead of 256. What does not fit spills.
#
# | you hear | ask back |
# | --- | --- |
# | "0 as well, it is one kernel, too." | Does only one thread need a tile of x? (many do) |
# | "A spill gives wrong results." | Did the result change? What did? (no; the time) |
# | "Alignment is about speed, not registers." | Without 16-byte loads, how many addresses are worked out? (8 instead of 1, in fp16) |

# %% id="compiler-panel" tags=["answer"]
from lessons_lib import CompilerPanel

compiler = CompilerPanel()
compiler

# %% [markdown] id="eight-zh" lang="zh" minutes=1
# <details><summary>对答案</summary>
#
# 1. 不是，T4 上要 8 KiB。矩阵乘里，一块 x 和一块 w 要给线程块里的许多线程反复用，所以先放进共享内存：(64 × 32 + 32 × 64) × 2 字节 = 8 KiB。chain 的每个线程只用自己那几个元素，中间值在寄存器里，不必交给别的线程。
# 2. **寄存器溢出**：线程少了一半，每个线程要拿的值多了一倍，拿不下的被放到显存里，表里的“溢出”不再是“无”。程序还能跑，结果也对，只是慢。
# 3. 更多。大小不一定能被 16 整除，每行的起点就不一定对齐，编译器不敢一次读 16 字节，只好一个元素一个元素地算地址。共享内存也不再是 0：结果写出之前，要借它在线程之间换一次位置，好让相邻的线程写相邻的元素；中间值仍在寄存器里。
#
# 还可以试：不勾时把数据块从 1 × 4096 改成 1 × 8192，寄存器从 167 个到上限 255 个，还溢出 40 字节（T4，Triton 3.7.1）。一个程序多做一些，不总是更好。
#
# </details>
#
# 同一个核函数，换一块 GPU 就是另一回事。下面是 linear（矩阵乘加尾声）在八块 GPU 上的报告。看“指令”一栏：只有 T4 是 fma，也就是普通乘加，没有用到张量核心（专做矩阵乘的单元）。再看“共享内存 / 上限”：**编译得过，不等于启动得了**。想看一个启动不了的，就回到上面的面板：重新勾上“各个大小是 16 的倍数”，选 linear、A10、数据块 128 × 256 × 64，级数 4（流水线的深度）。Triton 在 A10 和 A100 上留“级数 − 1”份缓冲，每份 (128 × 64 + 64 × 256) × 2 字节 = 48 KiB：3 × 48 = 144 KiB，超过 A10 的 99 KiB。（H100 上留 4 份，就是表里的 192 KiB。）

# %% [markdown] id="eight-en" lang="en" minutes=1
# <details><summary>Answers</summary>
#
# 1. No: 8 KiB on a T4. In a GEMM many threads of a block use the same tiles of x and w again and again, so these are put into shared memory first: (64 × 32 + 32 × 64) × 2 bytes = 8 KiB. A thread of chain uses its own elements only; the intermediate values are in its registers, and no other thread needs them.
# 2. A **register spill**: with half the threads, each has twice as many values to hold; what does not fit goes to device memory, and "spill" in the table is no longer "none". The kernel still runs and is still right, only slower.
# 3. More. If sizes need not be multiples of 16, the start of a row need not be aligned: the compiler cannot use 16-byte loads and works out addresses element by element. Shared memory is no longer 0 either: the result passes through it just before the store, so that neighbouring threads write neighbouring elements. The intermediate values are still in registers.
#
# One more to try: unticked, go from tile 1 × 4096 to 1 × 8192, and 167 registers become 255, the limit, with a spill of 40 bytes (T4, Triton 3.7.1). More work per program is not always better.
#
# </details>
#
# The same kernel looks different on another GPU. Below is linear, the GEMM with its epilogue, on eight of them. Look at "instructions": only the T4 has fma, plain multiply-adds, and does not reach the tensor cores (the units made for matrix multiplication). Then at "shared / limit": **a kernel that compiles need not launch**. To see one that does not, go back to the panel: tick "sizes are multiples of 16" again, choose linear, the A10 and tile 128 × 256 × 64, and 4 stages (the depth of the pipeline). On an A10 or A100 Triton keeps stages − 1 buffers of (128 × 64 + 64 × 256) × 2 bytes = 48 KiB: 3 × 48 = 144 KiB, more than the A10's 99 KiB. (On an H100 it keeps all 4: the 192 KiB in the table.)

# %% [markdown] id="eight-teach-zh" lang="zh" tags=["instructor"]
# **说：**一行一行看“指令”：只有 T4 是 fma。再看“共享内存 / 上限”：编译得过，不等于启动得了。
#
# **问：**哪一行的占用率最低？它慢吗？
#
# **答：**A100、H100、H200、B200，都是 12.5%。看不出慢：数据块大，重读就少，张量核心也用上了；快慢要量。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “占用率 12.5% 的一定慢” | T4 有 25%，它最快吗？（不，它用的是 fma） |
# | “编译过了就能跑” | 147,456 字节，64 KiB 的卡放得下吗？（启动失败） |

# %% [markdown] id="eight-teach-en" lang="en" tags=["instructor"]
# **Say:** Read "instructions" row by row: only the T4 says fma. Then "shared / limit": a kernel that compiles need not launch.
#
# **Ask:** Which row has the lowest occupancy? Is it slow?
#
# **Answer:** The A100, H100, H200 and B200, 12.5% each. Nothing says slow: large tiles re-read less, and they reach the tensor cores. Time it.
#
# | you hear | ask back |
# | --- | --- |
# | "12.5% occupancy must be slow." | The T4 has 25%: is it the fastest? (no, it is left with fma) |
# | "It compiled, so it runs." | 147,456 bytes on a device with 64 KiB? (the launch fails) |

# %% id="eight-gpus" tags=["answer"]
from lessons_lib import report_table

report_table("linear")

# %% [markdown] id="measure-zh" lang="zh" minutes=3
# ## 实测
#
# 预测和编译报告都有了，现在计时。同一次运行里量几样东西：拷贝一个张量有多快（当作带宽的标尺）、分开的算子、`torch.compile`（PyTorch 自带的编译器，会自动融合）、我们的核函数。先猜：4 个核函数的耗时是 1 个的几倍？
#
# 这里先看链和 RMSNorm；矩阵乘要等一次投票之后再看。表里的“库的融合算子”是 PyTorch 自带的 `rms_norm`（残差加法另算一次启动）；Liger-Kernel 是 LinkedIn 开源的一套 Triton 核函数，装了才会量它。
#
# 有 GPU 时要一两分钟。没有 GPU 时，GPU 的数只有预测；课程带有实测记录时，就用记录，并写明机器和日期，不会编造。装了 PyTorch 的话，这台机器的 CPU 会真的量一次。

# %% [markdown] id="measure-en" lang="en" minutes=3
# ## Measure it
#
# Prediction and compiler report are on the table; now for the clock. One run measures several things: how fast a tensor is copied (the yardstick for bandwidth), the operators one by one, `torch.compile` (PyTorch's own compiler, which fuses by itself), and our kernel. Guess: how many times as long do 4 kernels take as 1?
#
# Here you see the chain and RMSNorm; the GEMM comes later, after a vote. In the table, "library's fused operator" is PyTorch's own `rms_norm` (the residual addition is a launch of its own); Liger-Kernel is LinkedIn's open-source collection of Triton kernels, measured where it is installed.
#
# On a GPU this takes a minute or two. Without one, a GPU's figures are predictions; where the course ships a recorded run, that is shown, with machine and date, and nothing is made up. This machine's CPU is measured for real, if PyTorch is installed.

# %% [markdown] id="measure-teach-zh" lang="zh" tags=["instructor"]
# **说：**先把 3 倍再写一遍，然后跑。没有 GPU 就讲清楚：GPU 的数是预测，不是实测；有记录时，说明是哪台机器、哪一天。
#
# **问：**量出来不到 3 倍，可能有哪些原因？
#
# **答：**运算没有少，CPU 上最明显；张量不大时 L2 替分开的挡了一部分读写；张量很小时还有启动。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “比 torch.compile 快就该手写” | 谁来维护它？形状变了呢？（你；重新调） |
# | “没到数据手册的带宽，就是写得差” | 拷贝到了没有？（也没到） |

# %% [markdown] id="measure-teach-en" lang="en" tags=["instructor"]
# **Say:** Write the 3× down again, then run. Without a GPU, say that a GPU's figures are predictions; where there is a record, say of which machine and day.
#
# **Ask:** Below 3×: what could be the reasons?
#
# **Answer:** The arithmetic is all still there, most visibly on a CPU; with smaller tensors L2 serves part of what the separate kernels read; with tiny ones launches count.
#
# | you hear | ask back |
# | --- | --- |
# | "Faster than torch.compile, so write it by hand." | Who maintains it? What when the shape changes? (you; tune it again) |
# | "Below the datasheet's bandwidth, so it is a bad kernel." | Does a copy reach it? (no) |

# %% id="measure-gpu" tags=["answer", "nbval-ignore-output"]
from lessons_lib import benchmark_report, measure_kernels

run = measure_kernels()
shown = ["chain", "rmsnorm"]  # the GEMM comes later, after a vote
benchmark_report(run, only=shown)

# %% id="measure-cpu" tags=["answer", "nbval-ignore-output"]
from lessons_lib import cpu_report, measure_on_cpu

on_cpu = measure_on_cpu()
cpu_report(on_cpu)

# %% id="plot" tags=["answer", "nbval-ignore-output"]
from lessons_lib import benchmark_plot

benchmark_plot(run, only=shown)

# %% [markdown] id="verdict-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 按字节是 3 倍；GPU 上，张量远大于 L2 时，应在 3 倍上下。CPU 上多半不到：运算本身就慢，而融合不减少运算（表下写着原因）。第 04 课在 CPU 上往往超过 2 倍，因为那里每个中间张量都是新分配的内存；这里的输出事先都分配好了，没有这一项。
#
# </details>
#
# 时间每次不同，下面这格不看时间，只核对两件事，凡是量过的，在任何机器上都该成立：输出与 float64 相符，我们的核函数启动次数与预测一致。

# %% [markdown] id="verdict-en" lang="en"
# <details><summary>Answer</summary>
#
# By bytes, 3×; on a GPU, with tensors much larger than its L2, the time should come close to that. On a CPU it is mostly less: the arithmetic itself is slow there, and fusion saves none of it (the reason is under the table). In lesson 04 a CPU often gained more than the bytes said, since each intermediate tensor there is new memory; here all outputs are allocated beforehand, and there is no such cost.
#
# </details>
#
# Times differ from run to run. The next cell ignores them and checks two things that must hold on any machine, wherever something was measured: outputs agree with float64, and our kernels were launched as often as predicted.

# %% id="measure-verdict" tags=["answer"]
from lessons_lib import measurement_verdict

measurement_verdict(run, on_cpu)

# %% [markdown] id="not-zh" lang="zh"
# ### 这些数不代表什么
#
# - **编译报告不等于速度。** 不溢出、占用率高，都不保证快。
# - **达不到数据手册的带宽，不等于核函数写得差。** 拷贝也达不到，所以拿拷贝作标尺；读多写少的核函数还可能略微超过它。
# - **比 `torch.compile` 快，不等于值得手写。** 手写的核函数要你自己维护；编译器写的，有人替你维护。
# - **这条链快了，不等于模型快了。** 要看它在整个模型里占多少时间。

# %% [markdown] id="not-en" lang="en"
# ### What these numbers are not
#
# - **A compiler report is not speed.** No spill and high occupancy guarantee nothing.
# - **Less than the datasheet's bandwidth is not a bad kernel.** A copy does not reach it either, which makes the copy the yardstick; a kernel that reads more than it writes may even beat it slightly.
# - **Faster than `torch.compile` is not a reason to write by hand.** You maintain your kernel; the compiler's is maintained for you.
# - **A faster chain is not a faster model.** That depends on its share of the model's time.

# %% [markdown] id="decide-zh" lang="zh" minutes=2
# ## 用证据来判
#
# 第 03 课里，“后端已生成”这一条一直没有人作证。现在由编译器来作证。下面这格为 chain 收集四个条件的证据：和 float64 对照、在边界形状上试跑、编译、读报告。先猜：没有 GPU 时，哪几条仍是“未核对”？

# %% [markdown] id="decide-en" lang="en" minutes=2
# ## Decide with evidence
#
# In lesson 03 nobody could testify to "backend lowered it". Now a compiler can. The cell below gathers evidence for the chain's four conditions: compare with float64, try shapes at the edges, compile, read the report. Guess: without a GPU, which of them stay "not checked"?

# %% [markdown] id="decide-teach-zh" lang="zh" tags=["instructor"]
# **说：**第 03 课缺的那个证人来了。看“谁看的”一栏：解释器两条，编译器两条，没有一条是公式。
#
# **问：**四条都通过，说明更快吗？
#
# **答：**不能。四条说的是能这样融合；快不快，只有上面的计时说了算。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “都成立，所以划算” | 哪一条里有时间？（没有） |
# | “没有 GPU，编译器那两条就是未核对” | 编译要不要 GPU？（不要，报出型号就行） |

# %% [markdown] id="decide-teach-en" lang="en" tags=["instructor"]
# **Say:** Here is the witness that lesson 03 lacked. Read "who looked": the interpreter twice, the compiler twice, and no formula.
#
# **Ask:** All four pass. Is it faster?
#
# **Answer:** That does not follow. They say that it can be fused like this; only the timing above says whether it is faster.
#
# | you hear | ask back |
# | --- | --- |
# | "All hold, so it pays." | Which of them contains a time? (none) |
# | "Without a GPU the compiler's two stay not checked." | Does compiling need a GPU? (no, only its name) |

# %% id="decision-panel" tags=["answer"]
from lessons_lib import DecisionPanel, gather_evidence

decision = DecisionPanel(gather_evidence("chain", GPUS["T4"], (4096, 8192), "fp16"))
decision

# %% [markdown] id="decide-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 只要有 Triton，一条都不会：解释器能算出结果，编译器能生成代码。四条都成立，仍然不能说明更快；那要靠上面的计时。
#
# </details>

# %% [markdown] id="decide-answer-en" lang="en"
# <details><summary>Answer</summary>
#
# None, as long as Triton is installed: the interpreter produces results, the compiler produces code. All four hold, and that still does not mean faster; only the timing above can say that.
#
# </details>

# %% [markdown] id="losing-zh" lang="zh" minutes=2
# ## 两个反例
#
# **一、T4 上的矩阵乘加尾声。** 第 01 课那个例子（K = 1024），三个核函数融合成一个，省下两遍读写，从 176 MiB 降到 48 MiB。但在八块 GPU 的那张表里，T4 的指令是 fma。先猜：

# %% [markdown] id="losing-en" lang="en" minutes=2
# ## Two counterexamples
#
# **One: a GEMM with its epilogue on a T4.** This is the case of lesson 01 (K = 1024): three kernels in one save two passes, and 176 MiB become 48 MiB. But in the table of eight GPUs the T4's instruction is fma. Guess:

# %% [markdown] id="losing-teach-zh" lang="zh" tags=["instructor"]
# **说：**先投票。融合输了，这是本课最值钱的一页：省下的读写是真的，可张量核心没用上。第二例反过来：省的是启动，不是读写。
#
# **问：**慢了 5 倍，读写却更少：时间花在哪里？
#
# **答：**乘加。T4 上只有 fma，标称算力是张量核心的八分之一：光是运算就要 4.2 毫秒，库的两个核函数一共才 0.74 毫秒起。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “更快，省了一遍读写” | T4 那一行的指令是什么？（fma） |
# | “小张量快了 4 倍，是因为字节少了” | 字节少了几倍？启动少了几倍？（3 倍；4 倍） |

# %% [markdown] id="losing-teach-en" lang="en" tags=["instructor"]
# **Say:** Vote first. Fusion loses, and this is the page worth most: the bytes saved are real, but the tensor cores are not reached. The second case is the reverse: launches are saved, not bytes.
#
# **Ask:** Five times slower with fewer bytes: where does the time go?
#
# **Answer:** Into multiply-adds. With fma a T4 peaks at an eighth of its tensor cores: 4.2 ms of arithmetic, where the library's two kernels take 0.74 ms at best.
#
# | you hear | ask back |
# | --- | --- |
# | "Faster, a pass is saved." | What is the T4's instruction in the table? (fma) |
# | "The tiny tensor gains 4× by its bytes." | How many times fewer bytes? How many times fewer launches? (3; 4) |

# %% id="losing-vote"
from lessons_lib import losing_vote

losing = losing_vote()
losing

# %% id="losing-tables" tags=["answer"]
from lessons_lib import losing_report

losing_report("T4")

# %% id="losing-measured" tags=["answer", "nbval-ignore-output"]
benchmark_report(run, only=["linear_k1024"])

# %% [markdown] id="tiny-zh" lang="zh"
# 答案是更慢：按预测，耗时是“库的矩阵乘 + 一个尾声核函数”的 5 到 6 倍。Triton 从 3.3 起在 T4 上用不到张量核心，普通乘加的标称算力只有它的八分之一，省下的读写远远补不回来。尾声照样可以融合，矩阵乘留给库。（后一格是前面那次运行里的矩阵乘；“库的融合算子”是 `torch._addmm_activation`，偏置和 GELU 都在库的尾声里。）
#
# **二、很小的张量。** 前一格的第二张表是 64 KiB 的张量：一个核函数的读写不到 1 微秒，启动一次却要几微秒。融合之后耗时只剩四分之一，而字节是三分之一：省下的是**启动**，不是读写。CUDA graph（把一串启动录下来，一次提交）也能省下大半，而且不用改核函数。先问清楚时间花在哪里，再决定要不要融合。

# %% [markdown] id="tiny-en" lang="en"
# Slower: by prediction, 5 to 6 times as long as the library's GEMM with one epilogue kernel. From version 3.3 on, Triton does not reach the tensor cores of a T4, and plain multiply-adds peak at an eighth of their rate; the bytes saved come nowhere near making up for that. The epilogue can still be fused: leave the GEMM to the library. (The second cell shows the GEMM of the run from before; "library's fused operator" is `torch._addmm_activation`, with bias and GELU in the library's epilogue.)
#
# **Two: a tiny tensor.** The second table of the first cell is for 64 KiB: a kernel moves its bytes in less than a microsecond, and a launch takes several. Fused, the time falls to a quarter, while the bytes fall to a third: what is saved is **launches**, not bytes. A CUDA graph (a series of launches, recorded and submitted at once) saves most of that too, without touching a kernel. Ask where the time goes before you decide to fuse.

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=5
# ## 练习 1：自己写一个融合核函数
#
# 把第 04 课的门控加上偏置，写成一个核函数：$y = \text{silu}(\text{gate} + \text{bias}) \cdot \text{up}$，其中 $\text{silu}(z) = z \cdot \text{sigmoid}(z)$，可以用 `tl.sigmoid`（它只收 fp32）。gate、up、y 是 `[rows, columns]`，行与行之间可以有间隔（`gate_stride` 等是相邻两行的起点相隔几个元素）；bias 是 `[columns]`。这里一个程序只做一行里的一块，程序与数据块的对应已经写好（`tl.cdiv(a, b)` 就是 ⌈a ÷ b⌉）。把 `return None` 换成你的代码：屏蔽越界的位置，读，转成 fp32 算，写。
#
# 检查器会试各种形状和类型，输出先填满“毒值”，漏写就会露出来；四周设警戒带，越界写也藏不住。第一个不对的元素在哪里、归哪个程序管、多半错在什么地方，它都会告诉你。死循环也不怕：到时间就停。

# %% [markdown] id="exercise-1-en" lang="en" minutes=5
# ## Exercise 1: a fused kernel of your own
#
# Take lesson 04's gate, add a bias, and write it as one kernel: $y = \text{silu}(\text{gate} + \text{bias}) \cdot \text{up}$, where $\text{silu}(z) = z \cdot \text{sigmoid}(z)$; you may use `tl.sigmoid` (it takes fp32 only). gate, up and y are `[rows, columns]`, with gaps allowed between rows (`gate_stride` and its like count elements from the start of one row to the next); bias is `[columns]`. A program does one tile of one row here, and the lines that give it its tile are already there (`tl.cdiv(a, b)` is ⌈a ÷ b⌉). Replace `return None` with your code: mask what lies outside, load, compute in fp32, store.
#
# The checker tries various shapes and dtypes. It poisons the output beforehand, so that an element left out shows, and puts guard bands around it, so that a write outside shows too. It names the first wrong element, the program it belongs to and the likely cause. An endless loop does no harm: it is stopped when its time is up.

# %% [markdown] id="exercise-1-teach-zh" lang="zh" tags=["instructor"]
# **说：**留足五分钟。先口头过四步：mask、读、fp32 算、写回。检查器会指出第一个错的元素归哪个程序，让他们自己读。
#
# **问：**哪一行漏了 mask？哪一行忘了 stride？
#
# **答：**三个 load 和一个 store 都要 mask，bias 也要；gate、up、y 各乘自己的 stride，bias 只有一行，不乘。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 用 columns 当 stride | 行与行之间有没有空隙？（可以有） |
# | 在 fp16 里算 sigmoid | gate = −20 时，exp(20) 在 fp16 里放得下吗？（最大 65,504，放不下） |
# | “结果对了就行，越界写没关系” | 警戒带里的数是谁的？（别的张量的） |

# %% [markdown] id="exercise-1-teach-en" lang="en" tags=["instructor"]
# **Say:** Give them the full five minutes. Say the four steps first: mask, load, compute in fp32, store. The checker names the program of the first wrong element; let them read it.
#
# **Ask:** Which line lacks the mask? Which forgets the stride?
#
# **Answer:** All three loads and the store need the mask, bias included; gate, up and y each take their own stride, bias has one row and takes none.
#
# | you hear | ask back |
# | --- | --- |
# | columns for the stride | Are there gaps between rows? (there may be) |
# | sigmoid in fp16 | At gate = −20, does fp16 hold exp(20)? (no, it ends at 65,504) |
# | "The result is right, so a write outside is harmless." | Whose numbers are in the guard band? (another tensor's) |

# %% id="gate-kernel" tags=["exercise"]
from lessons_lib import check_bias_silu_gate, tl, triton


@triton.jit
def bias_silu_gate(
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
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
    gate_ptr, bias_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride, y_stride, BLOCK: tl.constexpr
):
    tiles = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=inside, other=0.0).to(tl.float32)
    z = gate + bias
    y = z * tl.sigmoid(z) * up
    tl.store(y_ptr + row * y_stride + column, y.to(y_ptr.dtype.element_ty), mask=inside)


check_bias_silu_gate(bias_silu_gate)

# %% [markdown] id="exercise-2-zh" lang="zh" minutes=1
# ## 练习 2：它读写多少字节
#
# 写一个函数，返回 $y = \text{silu}(\text{gate} + \text{bias}) \cdot \text{up}$ 的逻辑读写字节数。三个算子（加偏置、SiLU、乘 up）分成 `kernels` 个核函数，`kernels` 是 1、2 或 3；bias 也要算上，它是一个 `columns` 长的向量。

# %% [markdown] id="exercise-2-en" lang="en" minutes=1
# ## Exercise 2: how many bytes does it move?
#
# Write a function that returns the logical traffic of $y = \text{silu}(\text{gate} + \text{bias}) \cdot \text{up}$ in bytes. Its three operators (add bias, SiLU, multiply by up) run as `kernels` kernels: 1, 2 or 3. Count bias as well; it is a vector of `columns` elements.

# %% [markdown] id="exercise-2-teach-zh" lang="zh" tags=["instructor"]
# **说：**3 + 2 × (核函数数 − 1) 个矩阵，再加一个短向量。和第 01 课的 total_bytes 是同一条式子。
#
# **问：**bias 要不要乘 rows？
#
# **答：**不要：一个核函数的每个输入只算读一次，bias 就是 columns 个元素，不管分成几个核函数。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 漏了 bias | 它在哪里？要不要读？（显存；要） |
# | 2 × kernels 个矩阵 | up 是中间张量吗？（不是，是旁路输入） |

# %% [markdown] id="exercise-2-teach-en" lang="en" tags=["instructor"]
# **Say:** 3 + 2 × (kernels − 1) matrices and one short vector: lesson 01's total_bytes again.
#
# **Ask:** Is bias multiplied by rows?
#
# **Answer:** No: a kernel's input counts once, so bias is columns elements, however many kernels there are.
#
# | you hear | ask back |
# | --- | --- |
# | bias left out | Where is it? Is it read? (in memory; yes) |
# | 2 × kernels matrices | Is up an intermediate tensor? (no, a side input) |

# %% id="fused-bytes" tags=["exercise"]
from lessons_lib import check_fused_bytes


def gate_bytes(rows, columns, element_bytes, kernels):
    return None


check_fused_bytes(gate_bytes)

# %% id="fused-bytes-solution" tags=["solution"]
from lessons_lib import check_fused_bytes


def gate_bytes(rows, columns, element_bytes, kernels):
    matrices = 3 + 2 * (kernels - 1)  # gate, up and y; each tensor between two kernels is written and read
    return (matrices * rows + 1) * columns * element_bytes


check_fused_bytes(gate_bytes)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions

# %% [markdown] id="quiz-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**第 1、2 题看报告就能答，让他们指出是报告的哪一行。
#
# **问：**第 3 题里，启动的 5 微秒和核函数的 0.4 毫秒，是先后发生，还是同时发生？
#
# **答：**同时：GPU 还在做前一个，主机已经把后面的排进了队里，5 微秒藏得住。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “放不下的溢出到显存，慢一些” | 会溢出的是寄存器。共享内存申请不到，启动函数返回什么？（错误，不运行） |
# | “共享内存 0 字节，说明没融合” | 一个线程算完 x + bias，下一步谁要用？要不要交给别的线程？（它自己；不要） |
# | “少三次启动，快四分之三” | GPU 在忙的时候，主机在干什么？（排下一次启动） |

# %% [markdown] id="quiz-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Questions 1 and 2 can be read off a report: have them point at the line.
#
# **Ask:** In question 3, do the 5 µs of a launch and the 0.4 ms of a kernel come one after the other, or at the same time?
#
# **Answer:** At the same time: while the GPU works on one kernel, the host queues the next, and the 5 µs do not show.
#
# | you hear | ask back |
# | --- | --- |
# | "The rest spills to device memory." | It is registers that spill. What does a launch return when it cannot get its shared memory? (an error; nothing runs) |
# | "0 bytes of shared memory: nothing was fused." | Who needs x + bias next: this thread, or another one? (this one) |
# | "Three launches fewer: three quarters faster." | What does the host do while the GPU is busy? (queue the next launch) |

# %% id="quiz"
from lessons_lib import kernel_quiz

quiz = kernel_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 融合就是中间值不 store 也不 load：它留在寄存器里；旁路输入照样要读。
# 2. 编译报告免费，先看它：溢出、共享内存超限、没用到张量核心，都在计时之前就看得出来。
# 3. 预测、报告、实测摆在一起，说得出差距的原因，才算知道融合值不值得。
#
# 上一课：{{previous}}
#
# {{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. To fuse is to neither store nor load an intermediate value: it stays in registers. Side inputs are still read.
# 2. A compiler report is free, so look there first: a spill, too much shared memory, no tensor cores, all of it shows before any clock runs.
# 3. Prediction, report and measurement side by side, with a reason for each gap: then you know whether the fusion is worth it.
#
# Previous: {{previous}}
#
# {{next}}

# %% [markdown] id="takeaway-teach-zh" lang="zh" tags=["instructor"]
# **说：**回到第 01 课黑板上的那个 3.67：到这里，他们能说出四个为什么到不了。（运算一次没少；启动本来就藏得住；缓存挡掉了一部分读写；尾声和寄存器溢出要花时间。）
#
# **问：**预测、报告、实测，三个里少了哪一个你就不敢下结论？
#
# **答：**快不快，少了实测不敢说；为什么，少了报告说不出；该不该再改，少了预测不知道还差多少。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “量出来快了，就够了” | 换一块 GPU 还快吗？凭什么？（说得出原因才敢讲） |
# | “没有 GPU，这一课的结论都不算数” | 寄存器、溢出、指令，是在哪里看到的？（编译器，不用 GPU） |

# %% [markdown] id="takeaway-teach-en" lang="en" tags=["instructor"]
# **Say:** Back to lesson 01's 3.67: by now they can name four reasons why it is not reached. (The arithmetic is all there; launches were hidden anyway; caches had served part of the bytes; an epilogue and its spills take time.)
#
# **Ask:** Prediction, report, measurement: without which one would you not decide?
#
# **Answer:** Without a measurement nobody knows whether it is faster; without a report, why; without a prediction, how much is still to be had.
#
# | you hear | ask back |
# | --- | --- |
# | "It measured faster, and that is enough." | And on another GPU? How do you know? (only with a reason) |
# | "Without a GPU none of this lesson counts." | Where did you see registers, spills, instructions? (in the compiler, no GPU needed) |
