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
# 这门课只讲一件事：**算子融合**，也就是把几个算子放进同一个核函数（GPU 上运行的一段程序），让中间结果不再进出显存。每个结论都分三步得出：
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

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 投影上先跑一遍第一格和“这台机器能跑什么”，确认没有红字。三个时长的课表在 [teaching/zh](../../../teaching/zh/README.md)，照课表上，这一课通常只挑几格讲。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** run the first cell and "What this machine can run" on the projector and see that nothing is red. Schedules for three lengths are in [teaching/en](../../../teaching/en/README.md); they take only parts of this lesson.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“这门课不背公式。每个数都先猜、再算、再量；猜错的那几个，你们会记得最牢。”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "You will guess every number before you see it, and those you get wrong are those you will remember."

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

# %% [markdown] id="map-teach-zh" lang="zh" tags=["instructor"]
# **说：**一句话带过：三个问题各一课，然后是自己的模型，最后是真的核函数。只要求会三件事：Shift + Enter、拖滑块、点一下再用方向键。
#
# **问：**谁的第一格还没跑完？
#
# **答：**看格子左边的方括号：`[*]` 是还在跑，变成数字就跑完了，`[ ]` 是还没运行。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “图不动” | 这一格你运行过吗？左边有没有序号？（没有，就只是一张图片） |
# | “出红字，坏了” | 最后一行说的是什么？（缺包还是打错，那一行会说） |

# %% [markdown] id="map-teach-en" lang="en" tags=["instructor"]
# **Say:** One sentence: a lesson for each question, then your own model, then a real kernel. They need three skills: Shift + Enter, dragging a slider, and the arrow keys after a click.
#
# **Ask:** Whose first cell has not finished?
#
# **Answer:** Look at the brackets left of the cell: `[*]` is still running, a number means done, and `[ ]` was never run.
#
# | you hear | ask back |
# | --- | --- |
# | "The picture does not move." | Have you run that cell? Is there a number beside it? (without one it is only a picture) |
# | "It is all red, it is broken." | What does the last line say? (it names the missing package, or the typo) |

# %% [markdown] id="machine-zh" lang="zh" minutes=1
# ## 这台机器能跑什么
#
# 没有 GPU 也能上完每一课。下面这格只查看，不安装任何东西。

# %% [markdown] id="machine-en" lang="en" minutes=1
# ## What this machine can run
#
# Every lesson works without a GPU. The cell below only looks; it installs nothing.

# %% [markdown] id="machine-teach-zh" lang="zh" tags=["instructor"]
# **说：**没有 GPU 不是缺陷：除了 GPU 计时，每一格都能跑。让大家记住自己这一行写的是什么，第 05 课会用到。
#
# **问：**你的机器能不能编译 Triton？能不能计时？
#
# **答：**看表里 GPU 和 Triton 两行：装得上 Triton（要 Linux）就能编译，有 GPU 才能计时。装不上的，第 05 课照样能读、能预测。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “没有 GPU，第 05 课就上不了” | 编译一个核函数，需要把它跑起来吗？（不需要） |
# | “解释器能跑，那就能计时” | 解释器是在谁身上跑？（CPU，快慢不作数） |

# %% [markdown] id="machine-teach-en" lang="en" tags=["instructor"]
# **Say:** Having no GPU is no defect: everything runs but the timing on a GPU. Ask them to remember what their own table says; lesson 05 comes back to it.
#
# **Ask:** Can your machine compile Triton? Can it time it?
#
# **Answer:** See the rows GPU and Triton. Where Triton installs, which takes Linux, it compiles; only a GPU can be timed. Everybody else still reads and predicts in lesson 05.
#
# | you hear | ask back |
# | --- | --- |
# | "Without a GPU I cannot take lesson 05." | Does compiling a kernel mean running it? (no) |
# | "The interpreter runs it, so I can time it." | What does the interpreter run on? (the CPU: its times mean nothing) |

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

# %% [markdown] id="launch-teach-zh" lang="zh" tags=["instructor"]
# **说：**启动是 CPU 把活交给 GPU 的那一下，几微秒。GPU 忙着的时候它藏在队列里，闲着的时候才露出来。
#
# **问：**1000 次启动，每次 5 微秒，一定多花 5 毫秒吗？
#
# **答：**不一定。GPU 忙着，后面的启动就排在队里，不另占时间；核函数做得比启动还快、GPU 停下来等的时候，才一次一次露出来。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “一定，加起来就是” | 第二次启动的时候，GPU 在干什么？第一个做完了吗？（多半还没有） |
# | “融合就是为了少启动几次” | 64 MiB 读一遍写一遍，T4 要多久？启动一次呢？（0.42 毫秒；几微秒） |

# %% [markdown] id="launch-teach-en" lang="en" tags=["instructor"]
# **Say:** A launch is the moment at which the CPU hands work over, a few microseconds. While the GPU is busy it hides in the queue; it shows when the GPU waits.
#
# **Ask:** A thousand launches of 5 µs: do they always cost 5 ms?
#
# **Answer:** No. Behind a busy GPU they queue and cost nothing extra. They show one by one where a kernel is over sooner than the next launch and the GPU waits.
#
# | you hear | ask back |
# | --- | --- |
# | "Yes, they add up." | When the second launch is made, what is the GPU doing? Has it finished the first? (mostly not) |
# | "Fusion is there to save launches." | How long does a T4 take to read and write 64 MiB? And a launch? (0.42 ms; a few µs) |

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
# 课里说**片上**，指一个核函数自己管得着的地方：寄存器和共享内存。L2 也在芯片上，但数据还在不在里面，核函数说了不算。说**物化**，指把一个张量真正写进显存。CPU 也分这样几层：寄存器、L1、L2、L3 缓存，最后是内存。

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
# **On chip** means what a kernel itself controls: registers and shared memory. L2 is on the chip, too, but a kernel cannot count on finding its data there. To **materialize** a tensor is to write it out to device memory. A CPU has the same ladder: registers, L1, L2 and L3 caches, then RAM.

# %% [markdown] id="memory-teach-zh" lang="zh" tags=["instructor"]
# **说：**只要记住一个梯子：越近越小越快。后面说“片上”，指寄存器和共享内存；“物化”就是真的写进显存。
#
# **问：**64 MiB 的张量，T4 的哪一层放得下？
#
# **答：**只有显存。40 个 SM 的寄存器加起来 10 MiB，共享内存 2.5 MiB，L2 4 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “L2 放得下一部分，那一部分就快” | 等你读到后半截，前半截还在里面吗？（早被挤掉了） |
# | “L2 也在芯片里，也算片上” | 数据还在不在 L2，核函数说了算吗？（不算） |

# %% [markdown] id="memory-teach-en" lang="en" tags=["instructor"]
# **Say:** One ladder to remember: the nearer, the smaller and faster. From here on "on chip" is the upper two, and to materialize is to write down to the last one.
#
# **Ask:** Which rung of a T4 holds a 64 MiB tensor?
#
# **Answer:** Device memory alone. All 40 SMs together have 10 MiB of registers and 2.5 MiB of shared memory; L2 is 4 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | "L2 holds a part of it, so that part is fast." | When you come to the end of the tensor, is its beginning still there? (long gone) |
# | "L2 is on the chip, so it is on chip, too." | Can a kernel count on its data being there? (no) |

# %% [markdown] id="bytes-zh" lang="zh" minutes=1
# ## 预备知识三：一个张量有多少字节
#
# 字节 = 元素个数 × 每个元素的字节数：fp32 是 4，fp16 和 bf16 是 2，fp8 和 int8 是 1。1 MiB = 2²⁰ 字节；带宽用十进制，1 GB/s = 每秒 10⁹ 字节。
#
# 先心算一下：4096 × 4096 的 fp16 张量是多少 MiB？把它从显存读一遍，在 320 GB/s 的 T4 上至少要多久？

# %% [markdown] id="bytes-en" lang="en" minutes=1
# ## Three: how many bytes is a tensor
#
# Bytes = elements × bytes per element: 4 for fp32, 2 for fp16 and bf16, 1 for fp8 and int8. 1 MiB = 2²⁰ bytes; bandwidth is decimal, 1 GB/s = 10⁹ bytes per second.
#
# Work it out in your head first: how many MiB is a 4096 × 4096 tensor in fp16? And how long, at least, does a T4 take to read it once at 320 GB/s?

# %% [markdown] id="bytes-teach-zh" lang="zh" tags=["instructor"]
# **说：**让他们先口算：1600 万个元素，每个 2 字节，32 MiB。带宽是十进制的，容量是二进制的，这一对口径整门课都用。
#
# **问：**读一遍 0.105 毫秒；那读一遍再写一遍呢？
#
# **答：**两倍，0.21 毫秒：写也要占带宽。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “32 MB ÷ 320 GB/s = 0.1 毫秒整” | MiB 和 MB 差多少？4.9% 要不要紧？（和实测对照时要紧） |
# | 64 MiB | fp16 的一个元素是几个字节？（2 个） |

# %% [markdown] id="bytes-teach-en" lang="en" tags=["instructor"]
# **Say:** Have them do it in their heads: 16 million elements of 2 bytes are 32 MiB. Bandwidth is decimal, capacity binary; the whole course keeps to that.
#
# **Ask:** A read takes 0.105 ms. A read and a write?
#
# **Answer:** Twice that, 0.21 ms: a write takes bandwidth, too.
#
# | you hear | ask back |
# | --- | --- |
# | "32 MB at 320 GB/s: 0.1 ms exactly." | How far apart are MiB and MB? When would 4.9% matter? (beside a measurement) |
# | 64 MiB | How many bytes has an element in fp16? (2) |

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
#
# 例子里的词，第一次见可以先看一眼：**偏置**，给每一列加上的一个数；**激活函数**（GELU、SiLU、sigmoid），把每个数单独变成另一个数的曲线；**残差**，绕过几个算子、最后再加回来的张量；**softmax**，把一行变成和为 1 的一组权重；**RMSNorm**，把一行除以它的均方根；**token**，模型一次处理的一个词或半个词。

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
#
# Words in the examples, if they are new: a **bias** is a number added to each column; an **activation function** (GELU, SiLU, sigmoid) is a curve applied to each number by itself; a **residual** is a tensor that goes around some operators and is added back; **softmax** turns a row into weights that sum to 1; **RMSNorm** divides a row by its root mean square; a **token** is a word or a part of one.

# %% [markdown] id="kinds-teach-zh" lang="zh" tags=["instructor"]
# **说：**三类算子，看一个输出要读多少输入：同一位置、一整行、一行加一列。融合的难易就按这个排。
#
# **问：**softmax 属于哪一类？它前后的缩放呢？
#
# **答：**softmax 是归约，求最大值、求和都要一整行；里面的相减、exp、相除，和前后的缩放一样，是逐元素的活。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “归约不能融合” | 一行要是放得进片上，还要写回显存吗？（不用；第 02 课细讲） |
# | “矩阵乘最费时间，所以最该融合” | 它费在算上，还是费在搬上？（够大时费在算上，少搬帮不了多少） |

# %% [markdown] id="kinds-teach-en" lang="en" tags=["instructor"]
# **Say:** Three kinds, by what one output reads: the same place, a whole row, a row and a column. That is also the order of difficulty.
#
# **Ask:** Which kind is softmax? And the scaling before it?
#
# **Answer:** A reduction: its maximum and its sum take the whole row. The subtract, exp and divide inside it are elementwise work, like the scaling.
#
# | you hear | ask back |
# | --- | --- |
# | "A reduction cannot be fused." | If the row fits on chip, must it go back to memory? (No; see lesson 02.) |
# | "A GEMM takes longest, so fuse that first." | Does it spend its time on arithmetic or on bytes? (arithmetic, once it is large: fewer bytes help little) |

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

# %% [markdown] id="terms-teach-zh" lang="zh" tags=["instructor"]
# **说：**术语表不念，用到再翻。只点两个最容易听岔的：物化、逻辑读写。
#
# **问：**逻辑读写，和显存真正的流量差在哪里？
#
# **答：**逻辑读写按张量大小数，一次不漏；刚写出的张量要是还在缓存里，下一个核函数就不用去显存读，真正的流量更少。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “融合就是把几行代码写进一个函数” | 中间结果还写不写显存？（写了，就没有融合） |
# | “算出来了，就是物化了” | 值还在寄存器里，下一个核函数读得到吗？（读不到） |

# %% [markdown] id="terms-teach-en" lang="en" tags=["instructor"]
# **Say:** Do not read out the terms; they can be looked up. Dwell on two that are easily misheard: materialize, and logical traffic.
#
# **Ask:** How does logical traffic differ from what memory really carries?
#
# **Answer:** It is counted from tensor sizes, every read and write of a kernel. A tensor that is still in a cache is not read from memory, so memory carries less.
#
# | you hear | ask back |
# | --- | --- |
# | "Fusion is writing it all in one function." | Does the intermediate still go to memory? (then nothing was fused) |
# | "It is computed, so it is materialized." | It is in a register: can the next kernel read it? (no) |
