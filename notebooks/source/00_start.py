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
# # 00. 从这里开始 | Start Here
#
# **难度：** Easy ｜ **环境：** CPU-first ｜ **用时：** {{minutes}} 分钟 ｜ **目标人群：** 编译与系统入门者
#
# {{badges}}
#
# 这门课只讲一件事：**算子融合**，也就是把几个算子放进同一个核函数（GPU 上运行的一段程序），让中间结果不再进出显存。每个论断都走三步：
#
# - **预测**：先用公式算；
# - **动手**：再拖滑块，看它怎么变；
# - **实测**：在你自己的机器上量，预测和实测并排放，差多少、为什么差，都给出答案。
#
# 整门课回答三个问题：中间张量带来多少读写和启动？什么时候融合能把数据留在片上？哪些条件必须成立，哪些代价只能实测？

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="none" needs="lab"
# # 00. Start Here | 从这里开始
#
# **Difficulty:** Easy ｜ **Environment:** CPU first ｜ **Time:** {{minutes}} minutes ｜ **Audience:** beginners in compilers and systems
#
# {{badges}}
#
# This course is about one thing, **operator fusion**: putting several operators into one kernel, so that intermediate results no longer travel to device memory and back. Every claim goes through three steps:
#
# - **predict**: a formula first;
# - **move**: then a slider, to see how it changes;
# - **measure**: on your own machine, with prediction and measurement side by side and a reason for the difference.
#
# The course answers three questions. How much traffic and how many launches do intermediate tensors cause? When does fusion keep data on chip? Which conditions must hold, and which costs can only be measured?

# %% id="bootstrap"
# generated

# %% [markdown] id="map-zh" lang="zh" minutes=1
# ## 课程地图
#
# {{lesson_map}}
#
# 选中一格，按 Shift + Enter 运行。课里的滑块可以用鼠标拖，也可以点中后按方向键。

# %% [markdown] id="map-en" lang="en" minutes=1
# ## Course map
#
# {{lesson_map}}
#
# Run a cell with Shift + Enter. Drag a slider with the mouse, or click it and use the arrow keys.

# %% [markdown] id="machine-zh" lang="zh" minutes=1
# ## 这台机器能跑什么
#
# 没有 GPU 也能上完目前的每一课。下面这格只查看，不安装任何东西。

# %% [markdown] id="machine-en" lang="en" minutes=1
# ## What this machine can run
#
# Every lesson so far can be taken without a GPU. The cell below only looks; it installs nothing.

# %% id="machine-report" tags=["nbval-ignore-output"]
from lessons_lib import machine_report

machine_report()

# %% [markdown] id="launch-zh" lang="zh" minutes=1
# ## 预备知识一：启动
#
# GPU 不会自己干活。CPU 把一个**核函数**（kernel）交给它，叫一次**启动**（launch）。一次启动在 CPU 一侧要花几微秒。GPU 正忙时，后面的启动可以先排队，这几微秒就被掩盖了；只有张量很小、GPU 做完一个就闲着等下一个时，它才显出来。
#
# 不做融合的框架里，通常一个算子就是一次启动。

# %% [markdown] id="launch-en" lang="en" minutes=1
# ## What the course assumes, in four screens. One: the launch
#
# A GPU does nothing by itself. The CPU hands it a **kernel** to run; that is one **launch**. A launch costs the CPU a few microseconds. While the GPU is busy, further launches queue and those microseconds stay hidden; they show when tensors are so small that the GPU finishes first and sits idle until the next launch.
#
# In a framework that does not fuse, an operator is usually one launch.

# %% [markdown] id="memory-zh" lang="zh" minutes=1
# ## 预备知识二：数据放在哪里
#
# | 层次 | 谁能访问 | 大小（T4） | 快慢 |
# | --- | --- | --- | --- |
# | 寄存器 | 一个线程 | 每个 SM 256 KiB | 最快 |
# | 共享内存 | 一个线程块 | 每个 SM 64 KiB | 很快 |
# | L2 缓存 | 整块 GPU | 4 MiB | 居中 |
# | 显存 | 整块 GPU | 16 GB，320 GB/s | 最慢 |
#
# SM 是 GPU 的一个处理器，T4 有 40 个。一个线程块（block）整个在一个 SM 上运行，里面的线程每 32 个一组齐步走，这一组叫 warp。
#
# 课里说**片上**，指显存以上的各层；说**物化**，指把一个张量真正写进显存。CPU 也分这样几层：寄存器、L1、L2、L3 缓存，最后是内存。

# %% [markdown] id="memory-en" lang="en" minutes=1
# ## Two: where data lives
#
# | level | who sees it | size (T4) | speed |
# | --- | --- | --- | --- |
# | registers | one thread | 256 KiB per SM | fastest |
# | shared memory | one thread block | 64 KiB per SM | very fast |
# | L2 cache | the whole GPU | 4 MiB | between |
# | device memory | the whole GPU | 16 GB at 320 GB/s | slowest |
#
# An SM is one of the GPU's processors; a T4 has 40. A thread block runs on one SM as a whole, and its threads march in groups of 32, called warps.
#
# **On chip** means every level above device memory. To **materialize** a tensor is to write it out to device memory. A CPU has the same ladder: registers, L1, L2 and L3 caches, then RAM.

# %% [markdown] id="bytes-zh" lang="zh" minutes=1
# ## 预备知识三：一个张量有多少字节
#
# 字节 = 元素个数 × 每个元素的字节数：fp32 是 4，fp16 和 bf16 是 2，fp8 和 int8 是 1。1 MiB = 2²⁰ 字节；带宽用十进制，1 GB/s = 每秒 10⁹ 字节。
#
# 先心算一下：4096 × 4096 的 fp16 张量是多少 MiB？把它从显存读一遍，在 320 GB/s 的 T4 上至少要多久？

# %% [markdown] id="bytes-en" lang="en" minutes=1
# ## Three: how many bytes is a tensor
#
# Bytes = elements × bytes per element: 4 for fp32, 2 for fp16 and bf16, 1 for fp8 and int8. 1 MiB = 2²⁰ bytes; bandwidth is decimal, 1 GB/s = 10⁹ bytes a second.
#
# Work it out in your head first: how many MiB is a 4096 × 4096 tensor in fp16? And how long, at least, does a T4 take to read it once at 320 GB/s?

# %% id="bytes-code" tags=["answer"]
from lessons_lib import format_bytes, format_seconds

tensor_bytes = 4096 * 4096 * 2
print(format_bytes(tensor_bytes))
print(format_seconds(tensor_bytes / 320e9))

# %% [markdown] id="kinds-zh" lang="zh" minutes=1
# ## 预备知识四：三类算子
#
# | 类别 | 例子 | 一个输出元素要读 | 通常受限于 |
# | --- | --- | --- | --- |
# | 逐元素 | 加偏置、GELU、缩放 | 同一位置的几个元素 | 带宽 |
# | 归约 | 求和、softmax、RMSNorm | 一整行 | 带宽 |
# | 矩阵乘（GEMM） | `x @ w` | 一行和一列 | 算力（矩阵够大时） |
#
# 逐元素算子最容易融合；归约要等整行到齐；矩阵乘后面的逐元素算子，可以在结果写出之前顺手做掉，这叫**尾声**（epilogue）。

# %% [markdown] id="kinds-en" lang="en" minutes=1
# ## Four: three kinds of operators
#
# | kind | examples | one output element reads | usually bound by |
# | --- | --- | --- | --- |
# | elementwise | bias, GELU, scale | a few elements at the same place | bandwidth |
# | reduction | sum, softmax, RMSNorm | a whole row | bandwidth |
# | matrix multiplication (GEMM) | `x @ w` | a row and a column | compute, once it is large |
#
# Elementwise operators fuse most easily. A reduction must wait until its row is complete. Elementwise operators that follow a GEMM can be applied just before it writes its result: that is an **epilogue**.

# %% [markdown] id="terms-zh" lang="zh" minutes=1
# ## 术语
#
# {{glossary}}
#
# 下一课：{{next}}

# %% [markdown] id="terms-en" lang="en" minutes=1
# ## Terms
#
# {{glossary}}
#
# Next: {{next}}
