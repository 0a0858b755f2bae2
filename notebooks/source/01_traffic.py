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

# %% [markdown] id="title-zh" lang="zh" minutes=1 gpu="none" needs="lab"
# # 01. 中间张量与逻辑读写 | Intermediate Tensors and Logical Traffic
#
# **难度：** Medium ｜ **环境：** CPU-first ｜ **标签：** 编译系统、算子融合、性能优化 ｜ **目标人群：** 编译与系统入门者
#
# **用时：** {{minutes}} 分钟 ｜ **关键词：** 中间张量、组间边界、启动、逻辑读写
#
# {{badges}}
#
# 学完这一课，你能
#
# - 对一条算子链的任意分组，算出启动次数、组间边界数和中间张量的读写字节数；
# - 说清这个数**没有**包含什么，给出一个预测区间而不是一个倍数；
# - 在自己的 CPU 上量一次，并说出预测与实测差在哪里、为什么。
#
# **先读**（同一系列另一门课的章节，编号与这里无关，没读过也不影响）**：** 09. AI Compilers and Graph Optimization | AI 编译器与计算图优化；18. Triton Block Model | Triton Block 模型
#
# **延伸阅读**（同上）**：** 05. Triton 性能调优与基准测试；06. Triton 进阶：跨线程归约与数值稳定；08. Triton Flash Attention

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="none" needs="lab"
# # 01. Intermediate Tensors and Logical Traffic | 中间张量与逻辑读写
#
# **Difficulty:** Medium ｜ **Environment:** CPU first ｜ **Tags:** compilers, operator fusion, performance ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** intermediate tensor, group boundary, launch, logical traffic
#
# {{badges}}
#
# After this lesson you can
#
# - count launches, group boundaries and the bytes of intermediate tensors for any grouping of a chain of operators;
# - say what that number leaves **out**, and predict an interval instead of a factor;
# - measure it on your own CPU, and say why prediction and measurement differ.
#
# **Read before** (chapters of a companion course, with numbers of their own; not required)**:** 09. AI Compilers and Graph Optimization; 18. Triton Block Model
#
# **Read after** (the same course)**:** 05. Triton autotuning and profiling; 06. Reductions across threads and numerical stability in Triton; 08. Triton Flash Attention

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 投影上先把 `lab` 那一格跑过一遍（约十秒，空闲内存最好有 1 GB，不够时张量会自动缩小），课上再跑一次。黑板上留一块地方，从第一次投票起记人数，课结束时再指回去。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** run the cell `lab` once beforehand (about ten seconds; with less than about 1 GB free it makes its tensors smaller), and again in class. Keep a corner of the board for the counts of the first vote; point back at it at the end.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“A100 从显存搬一个字节的工夫，够它做两百次运算（312 TFLOP/s ÷ 1555 GB/s）。今天就数搬了多少字节。”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "In the time an A100 moves one byte of memory it could do two hundred operations (312 TFLOP/s ÷ 1,555 GB/s), so today we count bytes."

# %% id="bootstrap"
# generated

# %% [markdown] id="guess-first-zh" lang="zh" minutes=1
# ## 先猜
#
# 矩阵乘之后常跟着一串逐元素算子：加偏置、激活、缩放、截断。每个算子自成一个**核函数**时，前一个把结果写进显存，后一个再读回来。这种只在算子之间过手、最后没有人要的结果，就叫**中间张量**。
#
# 先投一票再往下看。猜错不要紧，不猜就看答案才可惜。

# %% [markdown] id="guess-first-en" lang="en" minutes=1
# ## Guess first
#
# A matrix multiplication is often followed by a run of elementwise operators: add a bias, apply an activation, scale, clip. When each is a **kernel** of its own, it writes its result to device memory, and the next kernel reads it back. That result, which nobody asked for, is an **intermediate tensor**.
#
# Vote before you read on. A wrong guess costs nothing; an answer read without a guess teaches little.

# %% [markdown] id="guess-first-teach-zh" lang="zh" tags=["instructor"]
# **说：**念四个选项，数手，写下人数，不说对错。没猜过的答案等于没听，所以宁可多等半分钟。
#
# **问：**你数的是什么：张量、算子，还是边界？
#
# **答：**该数边界：4 组之间 3 个，各一写一读，2 × 3 × 64 = 384 MiB。手算之前不说。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 512 MiB（2 × 算子数） | 最后一个算子的结果，下一个核函数是谁来读？（没有人） |
# | 192 MiB | 写出去的张量，没有人读回来吗？（后一个核函数） |
# | 256 MiB | 第四个算子的输出，是不是中间张量？（不是） |

# %% [markdown] id="guess-first-teach-en" lang="en" tags=["instructor"]
# **Say:** Read out the four choices, count hands, write the counts down, and do not say which is right. Nobody learns from an answer they never guessed, so wait the extra half minute.
#
# **Ask:** What did you count: tensors, operators or boundaries?
#
# **Answer:** Boundaries are right: three between four groups, a write and a read each, 2 × 3 × 64 = 384 MiB. Keep it until the sum.
#
# | you hear | ask back |
# | --- | --- |
# | 512 MiB (2 × operators) | After the last operator, which kernel reads its result? (none) |
# | 192 MiB | Does nobody read the tensor that was written? (the next kernel does) |
# | 256 MiB | The fourth operator's output: is it an intermediate tensor? (no) |

# %% id="vote"
from lessons_lib import traffic_vote

vote = traffic_vote()
vote

# %% [markdown] id="formula-zh" lang="zh" minutes=2
# ## 手算，再用代码算
#
# <details><summary>投过票，再展开</summary>
#
# 4 个算子分成 4 组，一组一个核函数。组与组之间有 4 − 1 = 3 个**组间边界**。每个边界上的张量写一次、读一次：
#
# $$\text{中间读写} = 2 \times (\text{组数} - 1) \times \text{张量字节} = 2 \times 3 \times 64\ \text{MiB} = 384\ \text{MiB}$$
#
# 猜 192 的人只数了写；猜 256 的人把四个算子的输出各数了一次；猜 512 的人给每个算子都记了一读一写，共 8 次：链的输入和输出也算了进去，而这两样融合省不掉。
#
# </details>
#
# `fusion_traffic` 就是这条公式。分成 4、2、1 组，各是多少：

# %% [markdown] id="formula-en" lang="en" minutes=2
# ## By hand, then by code
#
# <details><summary>Vote, then open</summary>
#
# Four operators in four groups, one kernel each. Between the groups there are 4 − 1 = 3 **group boundaries**. The tensor at each boundary is written once and read once:
#
# $$\text{intermediate traffic} = 2 \times (\text{groups} - 1) \times \text{tensor bytes} = 2 \times 3 \times 64\ \text{MiB} = 384\ \text{MiB}$$
#
# A guess of 192 counted only the writes. 256 counted the output of each of the four operators once. 512 counted a read and a write for every operator: that includes the chain's input and output, which no fusion can remove.
#
# </details>
#
# `fusion_traffic` is this formula. In 4, 2 and 1 groups:

# %% [markdown] id="formula-teach-zh" lang="zh" tags=["instructor"]
# **说：**手算要慢，代码要快：3 个边界，每个一写一读。公式里没有算子数，这一点先不说，留给面板。
#
# **问：**4 组变 2 组，为什么不是减半？
#
# **答：**组数减半，边界却从 3 个变成 1 个：读写只剩三分之一，128 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “2 组就是 192” | 2 组之间有几个边界？（1 个） |
# | “1 组也还有 128，总要读进来、写出去” | 链的输入和输出，是中间张量吗？（不是；两节之后再算） |

# %% [markdown] id="formula-teach-en" lang="en" tags=["instructor"]
# **Say:** Slow by hand, quick by code: three boundaries, a write and a read each. That the number of operators is missing from the formula is for the panel to show; do not say it yet.
#
# **Ask:** From four groups to two, why is it not halved?
#
# **Answer:** The groups are halved, the boundaries go from 3 to 1: a third is left, 128 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | "Two groups: 192." | How many boundaries lie between two groups? (one) |
# | "One group: still 128, it comes in and goes out." | Are the chain's input and output intermediate tensors? (no; they come two sections on) |

# %% id="formula-code" tags=["answer"]
from lessons_lib import fusion_traffic

MIB = 2**20
for groups in (4, 2, 1):
    plan = fusion_traffic(num_ops=4, tensor_bytes=64 * MIB, fused_groups=groups)
    print("groups:", groups, "MiB:", plan["intermediate_bytes"] // MIB, plan)

# %% [markdown] id="panel-intro-zh" lang="zh" minutes=3
# ## 动手：把张量留在片上
#
# 动滑块之前，先答两问：
#
# 1. 6 个算子分成 3 组，每个张量 64 MiB，中间读写是多少？
# 2. 组数不变，算子从 6 个加到 12 个，中间读写变不变？
#
# 然后拖动“融合组数”，盯住一个张量看：两组并成一组时，它从显存升进核函数，一写一读两个箭头随之消失。整门课讲的就是这一个动作。

# %% [markdown] id="panel-intro-en" lang="en" minutes=3
# ## Move it: keep a tensor on chip
#
# Two questions before you touch a slider:
#
# 1. Six operators in three groups, 64 MiB tensors: how much intermediate traffic?
# 2. Keep the three groups and go from six operators to twelve: does the traffic change?
#
# Then drag "groups" and watch one tensor. When two groups become one, it rises from memory into the kernel, and its two arrows, the write and the read, disappear. That one movement is the whole course.

# %% [markdown] id="panel-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**只拖“组数”，让全场盯住一个张量：它升进核函数，一写一读两个箭头消失。这一个动作就是整门课。拖之前要每个人先说一个数。
#
# **问：**6 个算子之间有 5 个张量，分成 3 组，几个要进显存？
#
# **答：**2 个，一个边界一个；另外 3 个留在片上。算子加到 12 个，还是 2 个。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “算子翻倍，读写也翻倍” | 多出来的 6 个算子，结果写到了哪里？（留在片上） |
# | “片上就是共享内存” | 一个线程接着用自己刚算出的值，需要给别的线程看吗？（不需要，在寄存器里） |

# %% [markdown] id="panel-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Drag "groups" alone and have everybody watch one tensor: it rises into the kernel, and its write and its read disappear. That movement is the course. Ask for a number before each drag.
#
# **Ask:** Between six operators there are five tensors. In three groups, how many of them go to memory?
#
# **Answer:** Two, one a boundary; the other three stay on chip. With twelve operators it is still two.
#
# | you hear | ask back |
# | --- | --- |
# | "Twice the operators, twice the traffic." | The six added operators: where do their results go? (they stay on chip) |
# | "On chip means shared memory." | A thread goes on with the value it has just computed: does any other thread need to see it? (no: registers) |

# %% id="panel"
from lessons_lib import TrafficPanel

panel = TrafficPanel()
panel

# %% [markdown] id="panel-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 2 × (3 − 1) × 64 = 256 MiB。
# 2. 不变。公式里没有算子数：读写发生在组与组之间。多出来的算子住在核函数里面，它们之间的张量不进显存。
#
# 顺便问一句：留在片上的 t1 具体在哪里？多半在寄存器里。每个线程算完自己的几个元素，接着用就是了，用不着共享内存。
#
# </details>
#
# 滑块能做的，代码也能做；面板会跟着动：

# %% [markdown] id="panel-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. 2 × (3 − 1) × 64 = 256 MiB.
# 2. No. The number of operators is not in the formula: traffic comes from the boundaries between groups. The added operators sit inside kernels, and the tensors between them never reach memory.
#
# And where on the chip is t1, once it is kept there? Mostly in registers: each thread goes on with the few elements it has just computed. An elementwise kernel needs no shared memory.
#
# </details>
#
# Code can do whatever a slider does, and the panel follows:

# %% id="panel-code"
panel.set(num_ops=6, fused_groups=3)
print(panel.result["intermediate_bytes"] // MIB, "MiB")

# %% [markdown] id="ceiling-zh" lang="zh" minutes=2
# ## 中间读写为 0，就无限快吗？
#
# 全部融合后中间读写是 0。384 ÷ 0，是不是说明快了无穷倍？
#
# 不是。链的输入总要读一次，输出总要写一次，这叫**必需读写**，任何分组都省不掉。把面板拨回 4 个算子。两个问题：
#
# 1. 算上必需读写，4、2、1 组的总量各是多少？“不融合 ÷ 全融合”是几倍？写下来，再勾“计入必需读写”，拖组数。
# 2. “加一个旁路输入”勾上以后，最后一个算子还要从显存读一个残差 r（绕过前面几个算子、直接加到最后的张量）。上限还是那个数吗？猜完再勾。
#
# <details><summary>对答案</summary>
#
# 1. 512、256、128 MiB。最少也要原来的四分之一，所以上限是 4 倍，正好是算子数。
# 2. 不是：576 ÷ 192 = 3 倍。不管怎样分组，残差都要读一次，两个总量各多 64 MiB。
#
# </details>

# %% [markdown] id="ceiling-en" lang="en" minutes=2
# ## No intermediate bytes: infinitely faster?
#
# With everything fused, intermediate traffic is 0. Does 384 ÷ 0 mean infinitely faster?
#
# No. The chain's input must be read once and its output written once. This is **compulsory traffic**, and no grouping removes it. Set the panel above back to 4 operators. Two questions:
#
# 1. Compulsory traffic included, what are the totals for 4, 2 and 1 groups? How many times less does the fused chain move? Write it down, then tick "count compulsory traffic" and drag "groups".
# 2. "Add a side input" makes the last operator read a residual r from memory as well, a tensor that goes around the operators before and is added at the end. Is the ceiling still the same? Guess, then tick it.
#
# <details><summary>Answers</summary>
#
# 1. 512, 256 and 128 MiB. At best a quarter is left, so the ceiling is 4×: the number of operators.
# 2. No: 576 ÷ 192 = 3×. Every grouping reads the residual once, which adds 64 MiB to both totals.
#
# </details>

# %% [markdown] id="ceiling-teach-zh" lang="zh" tags=["instructor"]
# **说：**有人会说无限快，等的就是这句。面板先拨回 4 个算子。两问都先写数，再勾：512、256、128 MiB，最多 4 倍；加上旁路输入，576 对 192，上限降到 3 倍。
#
# **问：**融合能不能省掉输入的那一次读？
#
# **答：**不能。它不是这条链算出来的，总得从显存读一次；除非把算出它的那个算子也融合进来。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “中间读写为 0，所以无限快” | 核函数的输入从哪里来，结果到哪里去？（都是显存） |
# | “多一个旁路输入，还是 4 倍” | 残差在两种分法里各读几次？（各一次，两边都加 64） |
# | “原地执行也能省读写” | 同一块内存，写了几遍、读了几遍？（一遍没少，省的是容量） |

# %% [markdown] id="ceiling-teach-en" lang="en" tags=["instructor"]
# **Say:** Somebody will say infinitely faster; wait for it. Set the panel back to 4 operators, and have both answers written down before a box is ticked: 512, 256 and 128 MiB, so 4× at best; with the side input 576 against 192, so 3×.
#
# **Ask:** Can fusion save the read of the input?
#
# **Answer:** No. Nothing in this chain makes it, so it is read once; only fusing the operator that makes it would save that.
#
# | you hear | ask back |
# | --- | --- |
# | "Zero intermediate bytes, so infinitely faster." | Where does the kernel get its input, and where does the result go? (memory, both) |
# | "A side input changes nothing: 4×." | How often is the residual read, unfused and fused? (once each: 64 more on both sides) |
# | "In place saves traffic as well." | The same buffer: how often is it written, how often read? (as often as before; it saves capacity) |

# %% id="ceiling-code" tags=["answer"]
from lessons_lib import chain_traffic

for side_inputs in (0, 1):
    plans = [chain_traffic(4, 64 * MIB, groups, side_inputs) for groups in (4, 2, 1)]
    totals = [plan["total_bytes"] // MIB for plan in plans]
    print("side inputs:", side_inputs, "total MiB:", totals, "unfused / fused:", plans[-1]["bytes_ratio"])

# %% [markdown] id="branches-zh" lang="zh" minutes=3
# ## 大小不一、出现分叉：公式什么时候不够用
#
# 公式假设边界张量一样大、链不分叉。真实的计算图两条都不满足。
#
# **大小不一。** 6 个算子，5 个边界上的张量依次是 64、64、16、64、4 MiB。假如只能做到 3 组，也就是要切两刀，切在哪里？平均切（切在第 2、4 个边界）要读写 256 MiB。先想好你的两刀。

# %% [markdown] id="branches-en" lang="en" minutes=3
# ## Unequal sizes and branches: where the formula stops
#
# The formula assumes equal boundary tensors and a chain that never branches. Real graphs satisfy neither condition.
#
# **Unequal sizes.** Six operators, five boundaries with tensors of 64, 64, 16, 64 and 4 MiB. Suppose three groups are the best you can do, so two cuts. Where? An even split (boundaries 2 and 4) moves 256 MiB. Choose your two cuts before you run the cell.

# %% [markdown] id="branches-teach-zh" lang="zh" tags=["instructor"]
# **说：**公式到这里就不够用了。先要两刀，再跑：切在 16 和 4 MiB 上，40 MiB。四种做法也先要数：384、192、320、256。重算是拿运算换读写，融合本身一次运算也不少。
#
# **问：**f、g 融合，h 单独，一共五次读写，是哪五次？
#
# **答：**读 x，写 t，写 u；h 读 t，写 v：5 × 64 = 320 MiB。h 在另一个核函数里，t 的写就省不掉。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “平均切最公平” | 一刀的代价，看组的大小还是看切断的张量？（看张量：2 × (64 + 64) = 256） |
# | 256 MiB（忘了 t 的写） | h 去哪里读 t？（显存） |
# | “融合少做运算” | 哪一个乘法没有做？（一个也没少） |

# %% [markdown] id="branches-teach-en" lang="en" tags=["instructor"]
# **Say:** Here the formula ends. Ask for two cuts before you run: at 16 and 4 MiB, 40 MiB in all. Ask for the four plans, too: 384, 192, 320, 256. Recompute pays with operations; fusion itself saves none.
#
# **Ask:** f and g fused, h apart: five tensors are moved. Which?
#
# **Answer:** Read x, write t, write u; then h reads t and writes v: 5 × 64 = 320 MiB. With h in another kernel, the write of t stays.
#
# | you hear | ask back |
# | --- | --- |
# | "An even split is fairest." | Does a cut cost by the size of the groups, or by the tensor it severs? (the tensor: 2 × (64 + 64) = 256) |
# | 256 MiB (without t's write) | Where does h read t from? (memory) |
# | "Fusion saves operations." | Which multiplication was not done? (none) |

# %% id="cuts-code" tags=["answer"]
from lessons_lib import best_cuts, boundary_traffic

boundary_bytes = [64 * MIB, 64 * MIB, 16 * MIB, 64 * MIB, 4 * MIB]
cuts = best_cuts(boundary_bytes, num_cuts=2)
print("cut boundaries", [cut + 1 for cut in cuts])
print(boundary_traffic(boundary_bytes, cuts)["intermediate_bytes"] // MIB, "MiB")

# %% [markdown] id="fan-out-zh" lang="zh"
# 规则很简单：每切一刀，多出 2 × 那个边界的张量字节，所以切在最小的几个张量上。2 × (16 + 4) = 40 MiB，是平均切的六分之一左右。
#
# **分叉。** t = f(x)，u = g(t)，v = h(t)，每个张量 64 MiB，u 和 v 都要留下。四种做法：
#
# - 三个核函数；
# - 全部融合；
# - f、g 融合，h 单独：g 直接在片上用 t，可 h 也要用它，所以 **t 的写省不掉**；
# - f 算两遍，各自和 g、h 融合：t 不进显存，代价是 f 的运算翻倍，x 多读一次。这叫**重算**。
#
# 哪一种读写最少？第三种和第四种，谁更多？顺便记住：融合本身一次浮点运算也不减少，重算还会增加。

# %% [markdown] id="fan-out-en" lang="en"
# The rule: a cut adds twice the bytes of the tensor at that boundary, so cut at the smallest tensors. 2 × (16 + 4) = 40 MiB, about a sixth of the even split.
#
# **Branches.** t = f(x), u = g(t), v = h(t), 64 MiB each, and both u and v are wanted. Four plans:
#
# - three kernels;
# - all fused;
# - f and g fused, h separate: t stays on chip for g, but h needs it too, so **the write of t stays**;
# - f computed twice, fused with g and with h: t never reaches memory, at the cost of doing f's operations twice and reading x twice. This is **recompute**.
#
# Which moves least? Which of the last two moves more? Note also: fusion itself removes no floating-point operations, and recompute adds some.

# %% id="fan-out-code" tags=["answer"]
from lessons_lib import Operator, plan_traffic

graph = [Operator("f", ["x"], "t"), Operator("g", ["t"], "u"), Operator("h", ["t"], "v")]
sizes = dict.fromkeys(["x", "t", "u", "v"], 64 * MIB)
plans = {
    "f | g | h": [["f"], ["g"], ["h"]],
    "f g h": [["f", "g", "h"]],
    "f g | h": [["f", "g"], ["h"]],
    "f g | f h": [["f", "g"], ["f", "h"]],
}
for name, kernels in plans.items():
    traffic = plan_traffic(graph, kernels, sizes, outputs=["u", "v"])
    print(f"{name:10} launches: {traffic['launches']}  total: {traffic['total_bytes'] // MIB} MiB")

# %% [markdown] id="fan-out-answer-zh" lang="zh"
# 四种做法：384、192、320、256 MiB。只要还有别人要用 t，它的写就省不掉，所以第三种比第四种多。

# %% [markdown] id="fan-out-answer-en" lang="en"
# The four plans move 384, 192, 320 and 256 MiB. As long as somebody else needs t, its write stays, so the third moves more than the fourth.

# %% [markdown] id="time-zh" lang="zh" minutes=3
# ## 字节之比是 3.67，时间呢？
#
# 换一个真实的例子：`gelu(x @ w + b)`，fp16，x 是 M × K，w 是 K × N，M = N = 4096，K = 1024，A100。三个核函数一共读写 176 MiB，融合成一个只要 48 MiB，**字节**之比是 3.67。（省下的是两个 32 MiB 结果张量的一写一读，2 × 2 × 32 = 128 MiB；拿输入 x 的 8 MiB 去套公式，会算成 32 MiB。）你猜**时间**之比是多少？
#
# 矩阵乘的运算一次也没少，总时间再短也短不过它。按标称峰值算，一个核函数的耗时落在下面两端之间：
#
# $$\left[\ \max\!\left(\frac{\text{运算量}}{\text{峰值算力}},\ \frac{\text{字节数}}{\text{带宽}}\right),\quad \frac{\text{运算量}}{\text{峰值算力}} + \frac{\text{字节数}}{\text{带宽}}\ \right]$$
#
# 左端假设计算与读写完全重叠，右端假设一点也不重叠。几个核函数先后执行，就把各自区间的两端分别相加。**预测是一个区间，不是一个倍数。**
#
# 手算一次。A100 标称 312 TFLOP/s、1555 GB/s。融合成一个核函数：2MNK = 2 × 4096 × 4096 × 1024 ≈ 344 亿次运算，要 110 µs；48 MiB 要 32 µs。区间就是 110 到 143 µs。
#
# 先猜再拖：K 变到 16384，融合还剩多少好处？“每次启动 µs”默认是 0：GPU 忙着的时候，后面的启动已经排在队里，不另占时间。把它拖到 20（故意往大里取）：K = 16384 和 K = 256 时，三个核函数的耗时里启动各占多少？

# %% [markdown] id="time-en" lang="en" minutes=3
# ## Bytes fall 3.67×. What about time?
#
# A real case: `gelu(x @ w + b)` in fp16 on an A100; x is M × K and w is K × N, with M = N = 4096 and K = 1024. Three kernels move 176 MiB, one moves 48 MiB: **bytes** fall 3.67×. (What is saved is a write and a read of two 32 MiB results, 2 × 2 × 32 = 128 MiB; put the 8 MiB of the input x into the formula and you get 32 MiB.) Guess how many times faster it gets.
#
# The matrix multiplication still does all its operations, and that puts a floor under the time. At the vendor's peak rates, a kernel's time lies between two ends:
#
# $$\left[\ \max\!\left(\frac{\text{operations}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right),\quad \frac{\text{operations}}{\text{peak}} + \frac{\text{bytes}}{\text{bandwidth}}\ \right]$$
#
# The left end assumes that compute and memory overlap fully, the right end that they do not overlap at all. For kernels that run one after another, the intervals add up. **A prediction is an interval, not a factor.**
#
# Once by hand. An A100 peaks at 312 TFLOP/s and 1,555 GB/s. The one fused kernel does 2MNK = 2 × 4096 × 4096 × 1024 ≈ 34.4 billion operations, which take 110 µs; its 48 MiB take 32 µs. So 110 to 143 µs.
#
# Guess, then drag: at K = 16384, how much of the gain is left? "µs per launch" starts at 0, because launches queue ahead of a busy GPU and cost nothing then. Drag it to 20, more than most machines need: what share of the three kernels' time is launches now, at K = 16384 and at K = 256?

# %% [markdown] id="time-teach-zh" lang="zh" tags=["instructor"]
# **说：**先要一个时间之比，再开面板。跟着手算一遍：融合的那个 110 到 143 µs，三个核函数 196 到 229 µs，所以是 1.61 到 1.78，不是 3.67。把 K 拖到 16384，好处只剩百分之四五。
#
# **问：**字节只剩原来的 27%，时间为什么只快了 1.7 倍左右？
#
# **答：**省下的 128 MiB 值 86 µs；矩阵乘的 110 µs 融合前后都要花，一次运算也没少。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “3.67 倍” | 矩阵乘的 0.11 毫秒去了哪里？（还在） |
# | 32 MiB（拿 x 的 8 MiB 套公式） | 被省掉的是哪两个张量？多大？（x @ w 和加过偏置的，各 32 MiB） |
# | “启动总要花 20 微秒 × 3” | GPU 忙着的时候，排队的启动占时间吗？（不占） |

# %% [markdown] id="time-teach-en" lang="en" tags=["instructor"]
# **Say:** Ask for a ratio of times before you open the panel. Do the sum with them: 110 to 143 µs fused, 196 to 229 µs as three kernels, so 1.61 to 1.78 and not 3.67. Drag K to 16384, and 4% or 5% is left.
#
# **Ask:** Bytes fall 3.67×: why is it only about 1.7× faster?
#
# **Answer:** The 128 MiB saved are worth 86 µs; the GEMM's 110 µs are paid before and after, for it does all its operations either way.
#
# | you hear | ask back |
# | --- | --- |
# | "3.67×" | Where have the GEMM's 0.11 ms gone? (nowhere) |
# | 32 MiB (x's 8 MiB in the formula) | Which two tensors are saved, and how large are they? (x @ w, and the same with the bias: 32 MiB each) |
# | "Three launches always cost 3 × 20 µs." | While the GPU is busy, does a queued launch take time? (no) |

# %% id="time-panel" tags=["answer"]
from lessons_lib import EpiloguePanel

time_panel = EpiloguePanel()
time_panel

# %% [markdown] id="time-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# K = 16384 时矩阵乘占了几乎全部时间，融合只快 4% 到 5%。启动 20 µs 时，三次启动在 K = 16384 只占 3% 左右，在 K = 256 占三分之一上下。滑块把启动时间全数加上，等于假设 GPU 每次都停下来等，这是最坏的情况：1.8 毫秒的矩阵乘后面，启动早排好了队。
#
# 加速比的两端是怎么除的？两边都完全重叠，196 ÷ 110 = 1.78；两边都不重叠，229 ÷ 143 = 1.61。两边用的是**同一个**假设。要是一边重叠、另一边不重叠，就是 1.38 到 2.08：同一块 GPU 上不太会这样，但也没人保证。
#
# 留意加速比的上限往哪边走：K = 1024 时它从 1.78 升到 1.97，K = 256 时却从 4.14 降到 3.66。启动开销越大，时间之比就越靠近启动次数之比，也就是 3。
#
# </details>

# %% [markdown] id="time-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# At K = 16384 the matrix multiplication takes nearly all the time, and fusing gains 4% to 5%. At 20 µs each, three launches are about 3% of the time at K = 16384, and about a third at K = 256. The slider adds them in full, as if the GPU stopped and waited before every kernel: the worst case. Behind 1.8 ms of matrix multiplication they would have queued long before.
#
# How are the two ends of the speed-up divided? If both plans overlap fully, 196 ÷ 110 = 1.78; if neither overlaps, 229 ÷ 143 = 1.61. Both sides make the **same** assumption. With one overlapping and the other not, it is 1.38× to 2.08×: unlikely on one GPU, but nobody promises it.
#
# Watch which way the upper end of the speed-up moves: at K = 1024 it rises from 1.78× to 1.97×, at K = 256 it falls from 4.14× to 3.66×. The more a launch costs, the closer the ratio of times comes to the ratio of launches, which is 3.
#
# </details>

# %% [markdown] id="not-zh" lang="zh"
# ### 这些数不代表什么
#
# - **逻辑读写不是 DRAM 流量。** 刚写出的张量若还在缓存里，下一个核函数就不必到显存去读。
# - **字节之比不是加速比。** 上面的字节之比是 3.67，预测的加速比只有 1.61 到 1.78；K = 16384 时只剩 1.04 到 1.05。而且拿三个核函数作基准，本来就占便宜：库里的矩阵乘通常顺手就加好了偏置，从这样的两个核函数融合成一个，加速比是 1.30 到 1.39。
# - **尾声不是免费的。** 这里把偏置和 GELU 的运算记作 0；真实的尾声要占寄存器，也要花时间。
# - **启动次数不是启动开销。** 能提前排队的启动几乎没有代价；张量很小、GPU 要停下来等 CPU 时才有。
# - **读写量不是内存峰值。** 原地执行省的是容量，一个字节的读写也没少。

# %% [markdown] id="not-en" lang="en"
# ### What these numbers are not
#
# - **Logical traffic is not DRAM traffic.** A tensor written a moment ago may still be in a cache; the next kernel's read then never reaches device memory.
# - **A ratio of bytes is not a speed-up.** The 3.67× above buys 1.61× to 1.78× in time; at K = 16384 only 1.04× to 1.05× is left. Three kernels are a weak baseline, too: a library's matrix multiplication usually adds the bias itself, and from those two kernels to one it is 1.30× to 1.39×.
# - **An epilogue is not free.** Here bias and GELU count as no operations; a real epilogue takes registers and some time.
# - **A count of launches is not their cost.** Launches that can queue are nearly free; they cost time when tensors are tiny and the GPU waits for the CPU.
# - **Traffic is not peak memory.** Working in place saves capacity, but not one byte of traffic.

# %% [markdown] id="lab-intro-zh" lang="zh" minutes=3
# ## 量一次：就在这台机器上
#
# 没有 GPU 也能量：把 CPU 的缓存当作片上，内存当作显存。四个 NumPy 算子，每个张量 64 MiB，有两种做法：分四遍做；或者切成 256 个 256 KiB 的小**数据块**，每块在缓存里做完四个算子再写出去。按字节算差 4 倍，你猜实际差几倍？

# %% [markdown] id="lab-intro-en" lang="en" minutes=3
# ## Measure it, on this machine
#
# No GPU is needed. Let the CPU's cache stand for the chip and its RAM for device memory: run four NumPy operators over 64 MiB, either in four passes or cut into 256 **tiles** of 256 KiB, each taken through all four operators in cache and then written out. By bytes that is 4×. What is your guess?

# %% [markdown] id="lab-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**投票，然后在投影上跑一次。表下面那几段是按这次测量挑出来的，照着念。预测是区间，量出来落在外面也好，让全场说原因。
#
# **问：**为什么到不了 4 倍？先说一个理由，再看表。
#
# **答：**搬的字节少了，四个算子的运算一次也没少；切成小块，NumPy 还要多调用上千次。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “4 倍” | 除了搬数据，CPU 还在干什么？（运算，调用 NumPy） |
# | “CPU 的结论，GPU 上不算数” | 缓存换成片上，内存换成显存，哪一句话要改？（只有调用次数：GPU 上融合以后只启动一次） |

# %% [markdown] id="lab-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Vote, then run it on the projector. The paragraphs under the table were chosen by this measurement; read them out. A prediction is an interval, and a result outside it is welcome: let the room say why.
#
# **Ask:** Why not 4×? One reason first, then the table.
#
# **Answer:** Fewer bytes move, but the four operators do all their arithmetic; and tile by tile there are a thousand more calls of NumPy.
#
# | you hear | ask back |
# | --- | --- |
# | "4×" | What does the CPU do besides moving data? (arithmetic, and calls of NumPy) |
# | "A CPU says nothing about a GPU." | Put chip for cache and device memory for RAM: which sentence changes? (only the calls: a fused kernel is launched once) |

# %% id="lab-vote"
from lessons_lib import lab_vote

guess = lab_vote()
guess

# %% id="lab" tags=["answer", "nbval-ignore-output"]
from lessons_lib import lab_report, measure_chain

measurement = measure_chain()
lab_report(measurement, guess=guess.value)

# %% [markdown] id="lab-read-zh" lang="zh"
# 图中的斜线段是预测区间：左端（实心条到头的地方）是下限，右端是上限；竖线是实测。加速比那一行的两端是交叉除的（一边最慢，一边最快），因为这里两种做法的重叠程度未必一样，区间比上一节的宽。表下面的几段话是按测量结果挑出来的，说的是**你这台机器**上的原因。
#
# 有一件事与机器无关：逐块做时，Python 调用 NumPy 的次数不降反升（张量 64 MiB 时，从 4 次变成 1024 次）；真正的融合核函数只启动一次。融合省读写，也省启动，这里只量到了前者。
#
# 耗时每次不同；下面三条在任何机器上都应成立：

# %% [markdown] id="lab-read-en" lang="en"
# In the picture, a bar is solid up to the low end of the prediction and hatched from there to the high end; the upright mark is the measurement. The ends of the speed-up are divided crosswise here, the slow end of one by the fast end of the other, because the two ways need not overlap alike; so the interval is wider than in the last section. The paragraphs under the table were chosen by what was measured: they are about **your** machine.
#
# One thing does not depend on the machine: tile by tile, Python calls NumPy more often, not less (at 64 MiB 1,024 times instead of four), whereas a real fused kernel is launched once. Of the two things fusion saves, bytes and launches, this lab measures only the first.
#
# Times differ from run to run. Three things should hold anywhere:

# %% id="lab-verdict" tags=["answer"]
from lessons_lib import chain_verdict

chain_verdict(measurement)

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=2
# ## 练习 1：写出总读写
#
# 写一个函数，返回一条链的**总**字节数：中间读写，加上输入、输出和 `side_inputs` 个旁路输入。每个张量都是 `tensor_bytes` 字节。把 `None` 换成你的式子。

# %% [markdown] id="exercise-1-en" lang="en" minutes=2
# ## Exercise 1: the total bytes
#
# Write a function that returns the **total** bytes a chain moves: intermediate traffic, plus input, output and `side_inputs` side inputs. Every tensor is `tensor_bytes`. Replace `None` with your expression.

# %% [markdown] id="exercise-1-teach-zh" lang="zh" tags=["instructor"]
# **说：**给两分钟自己写，然后和邻座对。下面是跑好的答案；检查器会说错在哪里，不必替他们看代码。
#
# **问：**num_ops 在你的式子里出现了吗？该不该出现？
#
# **答：**不该。同一组的算子之间不进显存，一组里有几个算子都一样；只看组数和旁路输入。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 2·(组数−1)·字节 | 输入、输出算进去了吗？（还差 2 + side_inputs 个张量） |
# | 2·num_ops·字节 | 同一组里的两个算子之间，有没有写显存？（没有） |
# | 旁路输入乘了 2 | 残差有人写回去吗？（没有，只读） |

# %% [markdown] id="exercise-1-teach-en" lang="en" tags=["instructor"]
# **Say:** Two minutes alone, then compare with a neighbour. The solution below has run; the checker says what is wrong, so there is no need to read their code.
#
# **Ask:** Does num_ops appear in your expression? Should it?
#
# **Answer:** No. Between the operators of one group nothing reaches memory, however many they are; only groups and side inputs count.
#
# | you hear | ask back |
# | --- | --- |
# | 2·(groups−1)·bytes | Where are input and output? (2 + side_inputs tensors are missing) |
# | 2·num_ops·bytes | Between two operators of one group, is anything written to memory? (no) |
# | a side input counted twice | Who writes the residual back? (nobody) |

# %% id="total-bytes" tags=["exercise"]
from lessons_lib import check_total_bytes


def total_bytes(num_ops, tensor_bytes, fused_groups, side_inputs):
    return None


check_total_bytes(total_bytes)

# %% id="total-bytes-solution" tags=["solution"]
from lessons_lib import check_total_bytes


def total_bytes(num_ops, tensor_bytes, fused_groups, side_inputs):
    intermediate = 2 * (fused_groups - 1) * tensor_bytes
    compulsory = (2 + side_inputs) * tensor_bytes
    return intermediate + compulsory


check_total_bytes(total_bytes)

# %% [markdown] id="exercise-2-zh" lang="zh" minutes=2
# ## 练习 2：SwiGLU 的门控，省下多少？
#
# `y = gate * sigmoid(gate) * up`，编译器把它拆成三个算子：s = sigmoid(gate)，silu = gate · s，y = silu · up。每个张量 32 MiB。从三个核函数融合成一个，一共省下多少 MiB？拿笔列一列，再填进去。

# %% [markdown] id="exercise-2-en" lang="en" minutes=2
# ## Exercise 2: what does a SwiGLU gate save?
#
# A compiler splits `y = gate * sigmoid(gate) * up` into three operators: s = sigmoid(gate), silu = gate · s, y = silu · up. Every tensor is 32 MiB. From three kernels to one, how many MiB are saved in all? Work it out on paper, then fill it in.

# %% [markdown] id="exercise-2-teach-zh" lang="zh" tags=["instructor"]
# **说：**让一个答 128 的人上来列表：每个核函数读什么、写什么。错的不是算术，是公式不该用在这里。
#
# **问：**gate 被读了几次？融合之后呢？
#
# **答：**两次：sigmoid 一次，乘 s 一次；融合之后一次。一共从 8 个张量降到 3 个，(8 − 3) × 32 = 160 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 128 MiB | 边界公式数的是中间张量；gate 是中间张量吗？（不是，可它少读一次） |
# | 256 MiB | 题目问总量还是省下的？（省下的） |

# %% [markdown] id="exercise-2-teach-en" lang="en" tags=["instructor"]
# **Say:** Ask somebody with 128 to list what each kernel reads and writes. The arithmetic is right; it is the formula that does not apply.
#
# **Ask:** How often is gate read? And once fused?
#
# **Answer:** Twice, by sigmoid and by the product with s; once when fused. 8 tensors moved become 3: (8 − 3) × 32 = 160 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | 128 MiB | The boundary formula counts intermediate tensors: is gate one? (no, and yet a read of it is saved) |
# | 256 MiB | Is the question about the total, or about what is saved? (what is saved) |

# %% id="swiglu" tags=["exercise"]
from lessons_lib import check_swiglu_saved

saved_mib = None
check_swiglu_saved(saved_mib)

# %% id="swiglu-solution" tags=["solution"]
from lessons_lib import check_swiglu_saved

apart = 2 + 3 + 3  # gate -> s; gate, s -> silu; silu, up -> y
fused = 3  # gate, up -> y
saved_mib = (apart - fused) * 32
check_swiglu_saved(saved_mib)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题
#
# 选一项就会看到解释，选错了也有。

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions
#
# Choose an answer to see its explanation; wrong choices have one too.

# %% [markdown] id="quiz-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**错的选项也点开念：解释写在那里。三题各对应一个常见的误会：原地、CUDA graph、训练。
#
# **问：**CUDA graph 和融合各省哪一样？能不能一起用？
#
# **答：**graph 省启动，读写一个字节不少；融合两样都省。可以一起用：先融合，剩下的启动再录成 graph。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “CUDA graph 就是融合” | graph 里有几个核函数？t1 写没写？（四个；照写） |
# | “推理里融合掉的，训练里照样没有” | 反向要用的那个值，谁来存？（前向写出来，不然反向重算） |

# %% [markdown] id="quiz-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Open wrong choices as well and read out why. Each question is a common belief: in place, CUDA graphs, training.
#
# **Ask:** What does a CUDA graph save, and what does fusion? Can you have both?
#
# **Answer:** A graph saves launches and not one byte; fusion saves both. Have both: fuse first, then record the launches that are left.
#
# | you hear | ask back |
# | --- | --- |
# | "A CUDA graph is fusion." | How many kernels are in the graph? Is t1 written? (four; it is) |
# | "What is fused for inference is fused for training." | Who keeps the value that the backward pass needs? (forward writes it, or backward recomputes it) |

# %% id="quiz"
from lessons_lib import traffic_quiz

quiz = traffic_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 中间读写 = 2 × 组间边界 × 张量字节；决定它的是组，不是算子。
# 2. 必需读写和矩阵乘的运算，融合都省不掉；读写和计算能重叠多少又说不准，所以预测给区间，不给倍数。
# 3. 逻辑读写只是预测的起点：要实测，再说出差在哪里、为什么。
#
# 上一课：{{previous}}
#
# 下一课：{{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. Intermediate traffic = 2 × group boundaries × tensor bytes; groups decide it, not operators.
# 2. Fusion removes neither compulsory traffic nor the matrix multiplication's operations, and how far the two overlap is open: predict an interval, not a factor.
# 3. Logical traffic is where a prediction starts. Measure, then say where the gap comes from.
#
# Previous: {{previous}}
#
# Next: {{next}}

# %% [markdown] id="takeaway-teach-zh" lang="zh" tags=["instructor"]
# **说：**指着黑板上第一次投票的人数，问谁现在会改。三句话让学员自己说，你只补漏。
#
# **问：**谁投了 512？你现在怎么解释给当时的自己听？
#
# **答：**512 = 8 × 64，给每个算子都记了一读一写，链的输入和输出也算进去了；中间张量只有 3 个，2 × 3 × 64 = 384。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “字节是四分之一，就快 4 倍” | 今天量到几倍？差的那一截花在哪里？（运算和调用） |
# | “读写少了，内存也就用得少” | 原地执行少用了内存，读写少了吗？（没有，是两回事） |

# %% [markdown] id="takeaway-teach-en" lang="en" tags=["instructor"]
# **Say:** Point at the counts of the first vote and ask who would change theirs. Let learners say the three lines; fill in what is missing.
#
# **Ask:** Who said 512? How would you explain it to yourself back then?
#
# **Answer:** 512 is 8 × 64, a read and a write for every operator, the chain's input and output among them. Only three tensors are intermediate: 2 × 3 × 64 = 384.
#
# | you hear | ask back |
# | --- | --- |
# | "A quarter of the bytes, so 4× faster." | What did we measure today? Where does the rest of the time go? (arithmetic and calls) |
# | "Less traffic means less memory in use." | In place uses less memory: does it move less? (no, those are two things) |
