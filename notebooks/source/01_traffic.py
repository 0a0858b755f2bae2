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
# - 对一条算子链的任意分组，算出启动次数、组间边界数和中间张量的读写字节；
# - 说清这个数**没有**包含什么，给出一个预测区间而不是一个倍数；
# - 在自己的 CPU 上量一次，并说出预测与实测的差从哪里来。
#
# **先读：** 09. AI Compilers and Graph Optimization | AI 编译器与计算图优化；18. Triton Block Model | Triton Block 模型
#
# **后读：** 05. Triton 性能调优与基准测试；06. Triton 进阶：跨线程归约与数值稳定；08. Triton Flash Attention

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
# - measure it on your own CPU, and name where prediction and measurement part.
#
# **Read before:** 09. AI Compilers and Graph Optimization; 18. Triton Block Model
#
# **Read after:** 05. Triton autotuning and profiling; 06. Reductions across threads and numerical stability in Triton; 08. Triton Flash Attention

# %% id="bootstrap"
# generated

# %% [markdown] id="guess-first-zh" lang="zh" minutes=1
# ## 先猜
#
# 矩阵乘之后常跟着一串逐元素算子：加偏置、激活、缩放、截断。每个算子自成一个**核函数**时，它把结果写进显存，下一个核函数再把它读回来。这个谁也没有要过的结果，就叫**中间张量**。
#
# 下面先投一票。猜错不要紧，不猜就看答案才可惜。

# %% [markdown] id="guess-first-en" lang="en" minutes=1
# ## Guess first
#
# Behind a matrix multiplication there is often a row of elementwise operators: add a bias, activate, scale, clip. When each is a **kernel** of its own, it writes its result to device memory, and the next kernel reads it back. That result, which nobody asked for, is an **intermediate tensor**.
#
# Vote before you read on. A wrong guess costs nothing; an answer read without a guess teaches little.

# %% id="vote"
from lessons_lib import traffic_vote

vote = traffic_vote()
vote

# %% [markdown] id="formula-zh" lang="zh" minutes=2
# ## 手算，再用代码算
#
# 4 个算子分成 4 组，一组一个核函数。组与组之间有 4 − 1 = 3 个**组间边界**。每个边界上的张量写一次、读一次：
#
# $$\text{中间读写} = 2 \times (\text{组数} - 1) \times \text{张量字节} = 2 \times 3 \times 64\ \text{MiB} = 384\ \text{MiB}$$
#
# 猜 192 的人只数了写；猜 512 的人按算子数了 4 次读、4 次写，把链的输入和输出也算了进来，而这两样融合省不掉。
#
# `fusion_traffic` 就是这条公式。分成 4、2、1 组：

# %% [markdown] id="formula-en" lang="en" minutes=2
# ## By hand, then by code
#
# Four operators in four groups, one kernel each. Between the groups lie 4 − 1 = 3 **group boundaries**. The tensor at each boundary is written once and read once:
#
# $$\text{intermediate traffic} = 2 \times (\text{groups} - 1) \times \text{tensor bytes} = 2 \times 3 \times 64\ \text{MiB} = 384\ \text{MiB}$$
#
# A guess of 192 counted the writes alone. A guess of 512 counted four reads and four writes, one pair an operator: it took in the chain's input and output, which no fusion can remove.
#
# `fusion_traffic` is this formula. In 4, 2 and 1 groups:

# %% id="formula-code"
from lessons_lib import fusion_traffic

MIB = 2**20
for groups in (4, 2, 1):
    plan = fusion_traffic(num_ops=4, tensor_bytes=64 * MIB, fused_groups=groups)
    print(plan["launches"], "launches,", plan["intermediate_bytes"] // MIB, "MiB:", plan)

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
# 2. The groups stay, the operators go from six to twelve: does the traffic change?
#
# Then drag the groups and watch one tensor. When two groups become one it rises from memory into the kernel, and its two arrows, the write and the read, are gone. That one movement is the whole course.

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
# </details>
#
# 滑块能做的，代码也能做；面板会跟着动：

# %% [markdown] id="panel-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. 2 × (3 − 1) × 64 = 256 MiB.
# 2. No. The number of operators is not in the formula: traffic arises between groups. The added operators live inside kernels, and the tensors between them never reach memory.
#
# </details>
#
# What a slider does, code does too, and the panel follows:

# %% id="panel-code"
panel.set(num_ops=6, fused_groups=3)
print(panel.result["launches"], "launches,", panel.result["intermediate_bytes"] // MIB, "MiB")

# %% [markdown] id="ceiling-zh" lang="zh" minutes=2
# ## 中间读写为 0，就无限快吗？
#
# 全部融合后中间读写是 0。384 ÷ 0，是不是说明快了无穷倍？
#
# 不是。链的输入总要读一次，输出总要写一次，这叫**必需读写**，任何分组都省不掉。把面板拨回 4 个算子，勾上“计入必需读写”，再拖组数：4、2、1 组的总量是 512、256、128 MiB，最多省到四分之一。
#
# 再勾上“加一个旁路输入”：最后一个算子还要从显存读一个残差 r。先猜：这时的上限还是 4 倍吗？

# %% [markdown] id="ceiling-en" lang="en" minutes=2
# ## No intermediate bytes: infinitely faster?
#
# All fused, the intermediate traffic is 0. Does 384 ÷ 0 mean infinitely faster?
#
# No. The chain's input must be read once and its output written once. This is **compulsory traffic**, and no grouping removes it. Set the panel back to 4 operators, tick "count compulsory traffic" and drag the groups: the totals for 4, 2 and 1 groups are 512, 256 and 128 MiB, a quarter at the least.
#
# Now tick "add a side input": the last operator also reads a residual r from memory. Guess first: is the ceiling still 4×?

# %% id="ceiling-code"
from lessons_lib import chain_traffic

for side_inputs in (0, 1):
    totals = [chain_traffic(4, 64 * MIB, groups, side_inputs) for groups in (4, 2, 1)]
    print(
        f"{side_inputs} side inputs:",
        [plan["total_bytes"] // MIB for plan in totals],
        "MiB, unfused / fused =",
        totals[-1]["bytes_ratio"],
    )

# %% [markdown] id="branches-zh" lang="zh" minutes=3
# ## 不等大、会分叉：公式什么时候不够用
#
# 公式假设边界张量一样大、链不分叉。真实的图两条都不满足。
#
# **不等大。** 6 个算子，5 个边界的张量是 64、64、16、64、4 MiB。假如只能做到 3 组，也就是要切两刀，切在哪里？平均切（第 2、4 个边界）要 256 MiB。先想好你的两刀。

# %% [markdown] id="branches-en" lang="en" minutes=3
# ## Unequal sizes and branches: where the formula stops
#
# The formula assumes equal boundary tensors and a chain that never branches. Real graphs have neither.
#
# **Unequal sizes.** Six operators, five boundaries with tensors of 64, 64, 16, 64 and 4 MiB. Say three groups are the best you can get: two cuts. Where? An even split (boundaries 2 and 4) moves 256 MiB. Choose your two cuts first.

# %% id="cuts-code"
from lessons_lib import best_cuts, boundary_traffic

boundary_bytes = [64 * MIB, 64 * MIB, 16 * MIB, 64 * MIB, 4 * MIB]
cuts = best_cuts(boundary_bytes, num_cuts=2)
print("cut boundaries", [cut + 1 for cut in cuts])
print(boundary_traffic(boundary_bytes, cuts)["intermediate_bytes"] // MIB, "MiB")

# %% [markdown] id="fan-out-zh" lang="zh"
# **分叉。** t = f(x)，u = g(t)，v = h(t)，每个张量 64 MiB，u 和 v 都要留下。四种做法：
#
# - 三个核函数；
# - 全部融合；
# - f、g 融合，h 单独：t 留在了片上，可 h 还要用它，所以 **t 的写省不掉**；
# - f 算两遍，各自和 g、h 融合：t 不进显存，代价是 f 的运算翻倍，x 多读一次。这叫**重算**。
#
# 哪一种最省？第三种和第四种谁多？顺便记住：融合本身不减少一次浮点运算，重算还会增加。

# %% [markdown] id="fan-out-en" lang="en"
# **Branches.** t = f(x), u = g(t), v = h(t), 64 MiB each, and both u and v are wanted. Four plans:
#
# - three kernels;
# - all fused;
# - f and g fused, h apart: t stays on chip for g, but h needs it too, so **the write of t stays**;
# - f computed twice, fused with g and with h: t never reaches memory, at the price of f's operations a second time and x read twice. This is **recompute**.
#
# Which moves least? Which of the last two moves more? And note: fusing removes not one floating-point operation, and recompute adds some.

# %% id="fan-out-code"
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
    print(f"{name:10} {traffic['launches']} launches, {traffic['total_bytes'] // MIB} MiB")

# %% [markdown] id="time-zh" lang="zh" minutes=3
# ## 字节少了 3.67 倍，时间呢？
#
# 换成一个真实的例子：`gelu(x @ w + b)`，fp16，M = N = 4096，K = 1024，A100。三个核函数一共读写 176 MiB，融成一个只要 48 MiB，**字节**少了 3.67 倍。你猜**时间**快几倍？
#
# 矩阵乘的运算一次也没少，它给时间垫了底。一个核函数的耗时落在两端之间：
#
# $$\left[\ \max\!\left(\frac{\text{运算}}{\text{峰值}},\ \frac{\text{字节}}{\text{带宽}}\right),\quad \frac{\text{运算}}{\text{峰值}} + \frac{\text{字节}}{\text{带宽}}\ \right]$$
#
# 左端假设计算与读写完全重叠，右端假设一点也不重叠。几个核函数先后执行，就把各自的区间加起来。**预测是一个区间，不是一个倍数。**
#
# 先猜再拖：K 变到 16384，融合还剩多少好处？“每次启动 µs”默认是 0：GPU 忙着的时候，后面的启动排在队里，不占时间。把它拖到 20，看小矩阵受多大影响。

# %% [markdown] id="time-en" lang="en" minutes=3
# ## Bytes fell 3.67×. And the time?
#
# A real case: `gelu(x @ w + b)`, fp16, M = N = 4096, K = 1024, on an A100. Three kernels move 176 MiB, one moves 48 MiB: **bytes** fall 3.67×. How many times faster is it? Guess.
#
# The matrix multiplication loses not one operation, and puts a floor under the time. A kernel's time lies between two ends:
#
# $$\left[\ \max\!\left(\frac{\text{operations}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right),\quad \frac{\text{operations}}{\text{peak}} + \frac{\text{bytes}}{\text{bandwidth}}\ \right]$$
#
# The left end assumes that compute and memory overlap fully, the right end that they do not overlap at all. Kernels that run one after another add their intervals up. **A prediction is an interval, not a factor.**
#
# Guess, then drag: at K = 16384, how much of the gain is left? "µs per launch" starts at 0, because launches queue ahead of a busy GPU and cost nothing then. Drag it to 20 and see how much a small matrix feels it.

# %% id="time-panel"
from lessons_lib import EpiloguePanel

time_panel = EpiloguePanel()
time_panel

# %% [markdown] id="not-zh" lang="zh"
# ### 这些数不是什么
#
# - **逻辑读写不是 DRAM 流量。** 刚写出的张量若还在缓存里，下一个核函数就读不到显存去。
# - **字节之比不是加速比。** 上面 3.67 倍的字节只换来 1.61 到 1.78 倍的时间；K = 16384 时只剩 1.05 倍左右。
# - **启动次数不是启动开销。** 排得进队的启动几乎不要钱；张量很小、GPU 等着 CPU 时才要。
# - **读写量不是内存峰值。** 原地执行省的是容量，一个字节的读写也没少。

# %% [markdown] id="not-en" lang="en"
# ### What these numbers are not
#
# - **Logical traffic is not DRAM traffic.** A tensor written a moment ago may still be in a cache, and the next kernel's read never gets to device memory.
# - **A ratio of bytes is not a speed-up.** The 3.67× above buys 1.61× to 1.78× in time; at K = 16384 about 1.05× is left.
# - **A count of launches is not their cost.** Launches that can queue are nearly free; they cost when tensors are tiny and the GPU waits for the CPU.
# - **Traffic is not peak memory.** Working in place saves capacity and not one byte of traffic.

# %% [markdown] id="lab-intro-zh" lang="zh" minutes=3
# ## 量一次：就在这台机器上
#
# 没有 GPU 也能量。CPU 的缓存相当于片上，内存相当于显存：四个 NumPy 算子，张量 64 MiB，分四遍做；或者切成小**数据块**，每块在缓存里把四个算子做完再写出去。按字节算是 4 倍。你猜是几倍？

# %% [markdown] id="lab-intro-en" lang="en" minutes=3
# ## Measure it, on this machine
#
# No GPU is needed. Let the CPU's cache stand for the chip and its RAM for device memory: four NumPy operators over 64 MiB, in four passes; or cut into small **tiles**, each taken through all four operators in cache and then written out. By bytes that is 4×. Your guess?

# %% id="lab-vote"
from lessons_lib import lab_vote

guess = lab_vote()
guess

# %% id="lab" tags=["nbval-ignore-output"]
from lessons_lib import lab_report, measure_chain

measurement = measure_chain()
lab_report(measurement, guess=guess.value)

# %% [markdown] id="lab-read-zh" lang="zh"
# 图中实心到斜线末端是预测区间，竖线是实测。表下面的两句话由测量结果挑选，说的是**你这台机器**上的原因。
#
# 有一件事与机器无关：逐块做时，Python 调用 NumPy 的次数从 4 次变成一千多次，反而更多；真正的融合核函数只启动一次。省读写和省启动，这里只量到了前一样。
#
# 耗时每次不同；下面三条在任何机器上都应成立：

# %% [markdown] id="lab-read-en" lang="en"
# In the picture the solid part and the hatched part end where the prediction does; the upright mark is the measurement. The two sentences under the table were chosen by what was measured: they are about **your** machine.
#
# One thing holds on every machine: tile by tile, Python calls NumPy a thousand times instead of four. A fused kernel would be launched once. Of the two things fusion saves, bytes and launches, this lab measures only the first.
#
# Times differ from run to run. These three should hold anywhere:

# %% id="lab-verdict"
for claim, holds in measurement.verdict().items():
    print(f"{claim}: {holds}")

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=2
# ## 练习 1：写出总读写
#
# 写一个函数，返回一条链的**总**字节数：中间读写，加上输入、输出和 `side_inputs` 个旁路输入。每个张量都是 `tensor_bytes`。把 `None` 换成你的式子。

# %% [markdown] id="exercise-1-en" lang="en" minutes=2
# ## Exercise 1: all the bytes
#
# Write a function that returns **all** bytes a chain moves: intermediate traffic, plus input, output and `side_inputs` side inputs. Every tensor is `tensor_bytes`. Put your expression in place of `None`.

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
# ## 练习 2：SwiGLU 的门，省下多少？
#
# `y = x * sigmoid(x) * gate`，编译器把它拆成三个算子：s = sigmoid(x)，silu = x · s，y = silu · gate。每个张量 32 MiB。从三个核函数融合成一个，一共省下多少 MiB？拿笔列一列，再填进去。

# %% [markdown] id="exercise-2-en" lang="en" minutes=2
# ## Exercise 2: what does a SwiGLU gate save?
#
# `y = x * sigmoid(x) * gate` is taken apart into three operators: s = sigmoid(x), silu = x · s, y = silu · gate. Every tensor is 32 MiB. From three kernels to one, how many MiB are saved in all? Work it out on paper, then fill it in.

# %% id="swiglu" tags=["exercise"]
from lessons_lib import check_swiglu_saved

saved_mib = None
check_swiglu_saved(saved_mib)

# %% id="swiglu-solution" tags=["solution"]
from lessons_lib import check_swiglu_saved

apart = 2 + 3 + 3  # x -> s; x, s -> silu; silu, gate -> y
fused = 3  # x, gate -> y
saved_mib = (apart - fused) * 32
check_swiglu_saved(saved_mib)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题
#
# 选一项就会看到解释，选错了也有。

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions
#
# Choose, and the explanation appears, for a wrong choice too.

# %% id="quiz"
from lessons_lib import traffic_quiz

quiz = traffic_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 中间读写 = 2 × 组间边界 × 张量字节；决定它的是组，不是算子。
# 2. 必需读写和矩阵乘的运算融合拿不走，所以预测要给区间，不给倍数。
# 3. 逻辑读写只是预测的起点：量一次，再说出差在哪里。
#
# 上一课：{{previous}}
#
# 下一课：{{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. Intermediate traffic = 2 × group boundaries × tensor bytes; groups decide it, not operators.
# 2. Fusing takes away neither compulsory traffic nor the matrix multiplication's operations: predict an interval, not a factor.
# 3. Logical traffic is where a prediction starts. Measure, then name the gap.
#
# Previous: {{previous}}
#
# Next: {{next}}
