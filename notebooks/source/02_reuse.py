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
# # 02. 片上预算与复用 | On-Chip Budget and Reuse
#
# **难度：** Medium ｜ **环境：** CPU-first ｜ **标签：** 编译系统、算子融合、性能优化 ｜ **目标人群：** 编译与系统入门者
#
# **用时：** {{minutes}} 分钟 ｜ **关键词：** 片上、数据块、复用、占用率
#
# {{badges}}
#
# 学完这一课，你能
#
# - 算出一个数据块留在片上能省下多少读写，并核对它放不放得下；
# - 放不下时重新切块，而不是放弃融合；
# - 在自己的 CPU 上量出缓存这道坎，并说出曲线两端各受什么限制。
#
# **先读：** 01. 中间张量与逻辑读写
#
# **延伸阅读**（同一系列另一门课的章节，编号与这里无关）**：** 06. Triton 进阶：跨线程归约与数值稳定；08. Triton Flash Attention

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="none" needs="lab"
# # 02. On-Chip Budget and Reuse | 片上预算与复用
#
# **Difficulty:** Medium ｜ **Environment:** CPU first ｜ **Tags:** compilers, operator fusion, performance ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** on-chip, tile, reuse, occupancy
#
# {{badges}}
#
# After this lesson you can
#
# - work out what keeping a tile on chip avoids, and check whether it fits;
# - cut it differently when it does not fit, instead of giving up the fusion;
# - find the cache of your own CPU by measuring, and say what dominates at each end of the curve.
#
# **Read before:** 01. Intermediate Tensors and Logical Traffic
#
# **Read after** (chapters of a companion course, with numbers of their own)**:** 06. Reductions across threads and numerical stability in Triton; 08. Triton Flash Attention

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 事先跑一遍 `lab`（二三十秒，最好没有别的程序在忙），记下你这台机器曲线的峰值在哪里。面板停在预算 96 KiB、数据块 64 KiB。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** run the cell `lab` beforehand (half a minute, with nothing else busy) and note where the curve of your machine peaks. Leave the panel at a budget of 96 KiB and a 64 KiB tile.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“上一课把 64 MiB 的张量留在片上，可 T4 的一个线程块只有 64 KiB 共享内存，差一千倍。怎么放得下？”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "Last time we kept tensors of 64 MiB on chip, where a thread block of a T4 has 64 KiB, a thousandth of that. How did they fit?"

# %% id="bootstrap"
# generated

# %% [markdown] id="guess-first-zh" lang="zh" minutes=1
# ## 先猜
#
# 上一课把张量从显存“升”进了核函数，没有问放不放得下。片上很小：T4 一个线程块最多用 64 KiB 共享内存，而一个张量动辄几十 MiB。所以核函数每次只处理一小块，叫**数据块**（tile）。
#
# 先投一票：

# %% [markdown] id="guess-first-en" lang="en" minutes=1
# ## Guess first
#
# The last lesson lifted tensors from memory into a kernel and never asked whether they fit. There is little room on a chip: a thread block on a T4 may use 64 KiB of shared memory, and tensors run to tens of MiB. So a kernel works on one small piece at a time, a **tile**.
#
# Vote first:

# %% [markdown] id="guess-first-teach-zh" lang="zh" tags=["instructor"]
# **说：**上一课没问放不放得下，今天问。念选项，数手，不说对错。
#
# **问：**三次读里，哪一次躲不掉？
#
# **答：**第一次：数据总得先进来一回。省下的是后两次，2 × 32 = 64 KiB。手算之前不说。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 96 KiB | 第一次读，数据在哪里？（显存） |
# | 32 KiB | 那是要读的，还是省下的？（要读的） |

# %% [markdown] id="guess-first-teach-en" lang="en" tags=["instructor"]
# **Say:** Last time nobody asked whether it fits. Today we do. Read out the choices, count, do not judge.
#
# **Ask:** Of the three reads, which one cannot be avoided?
#
# **Answer:** The first: the data has to come in once. The other two are avoided, 2 × 32 = 64 KiB. Keep it until the sum.
#
# | you hear | ask back |
# | --- | --- |
# | 96 KiB | At the first read, where is the data? (in memory) |
# | 32 KiB | Is that what is read, or what is avoided? (what is read) |

# %% id="vote"
from lessons_lib import reuse_vote

vote = reuse_vote()
vote

# %% [markdown] id="formula-zh" lang="zh" minutes=2
# ## 手算，再用代码算
#
# <details><summary>投过票，再展开</summary>
#
# 数据块放得下，就只从显存读一次，其余几次在片上读：
#
# $$\text{省下的读} = (\text{读的次数} - 1) \times \text{数据块字节} = (3 - 1) \times 32 = 64\ \text{KiB}$$
#
# 猜 96 的人忘了第一次：数据总得先读进来一回。猜 32 的人算的是数据块本身，那正是省不掉的一次。放不下时，每次都要从显存读，一次也省不了。
#
# </details>
#
# `onchip_reuse` 就是这条公式。放得下和放不下，各是多少：

# %% [markdown] id="formula-en" lang="en" minutes=2
# ## By hand, then by code
#
# <details><summary>Vote, then open</summary>
#
# A tile that fits is read from memory once; the other reads find it on chip:
#
# $$\text{reads avoided} = (\text{reads} - 1) \times \text{tile bytes} = (3 - 1) \times 32 = 64\ \text{KiB}$$
#
# A guess of 96 forgot the first read: the data has to come in once. 32 is the tile itself, what remains to be read. If the tile does not fit, every read goes to memory and none is avoided.
#
# </details>
#
# `onchip_reuse` is this formula. A tile that fits and one that does not:

# %% [markdown] id="formula-teach-zh" lang="zh" tags=["instructor"]
# **说：**(3 − 1) × 32 = 64。放不下的那一行是 0，不是打折：这就是下一节要拖的那道坎。
#
# **问：**128 KiB 那一行，为什么不是省一半？
#
# **答：**模型只认整块留得住：后面的进来，前面的就被挤出去，再读时已经不在。想省，先把它切小。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “能放下一部分，就省一部分” | 读第二遍时，先进来的那部分还在吗？（不在了） |
# | “读 3 次要 3 × 32 = 96 KiB，刚好放下” | 三次读的是同一块，还是三块？（同一块，只占 32） |

# %% [markdown] id="formula-teach-en" lang="en" tags=["instructor"]
# **Say:** (3 − 1) × 32 = 64. The tile that does not fit avoids 0, not a part: that is the cliff of the next section.
#
# **Ask:** The 128 KiB line: why not half?
#
# **Answer:** The model counts whole tiles only: what comes in later pushes out what came first, and the next read misses it. To save something, cut it smaller.
#
# | you hear | ask back |
# | --- | --- |
# | "A part fits, so a part is saved." | At the second read, is the part that came first still there? (no) |
# | "Three reads need 3 × 32 = 96 KiB: it just fits." | Are three tiles read, or one tile three times? (one: it takes 32) |

# %% id="formula-code" tags=["answer"]
from lessons_lib import onchip_reuse

KIB = 2**10
for tile_kib in (32, 128):
    print(tile_kib, "KiB:", onchip_reuse(tile_kib * KIB, reuse_count=3, onchip_budget_bytes=96 * KIB))

# %% [markdown] id="panel-intro-zh" lang="zh" minutes=4
# ## 动手：过了这道坎会怎样
#
# 动滑块之前，先答三问：
#
# 1. 数据块要读 3 次，预算 96 KiB。它从 64 KiB 加到 128 KiB，省下的读从多少变成多少？
# 2. 128 KiB 放不下，这几个算子就不能融合了吗？
# 3. 上一课的中间张量不是读进来的，是在片上**产生**的。产生后读 1 次，能省下多少？
#
# 然后拖“数据块大小”，看右边的容器在哪里溢出来。停在 128 KiB，先只勾“切到放得下”，核对第 2 问；再把“读几次”拖到 1、勾上“在片上产生”，核对第 3 问。

# %% [markdown] id="panel-intro-en" lang="en" minutes=4
# ## Move it: what happens at the edge
#
# Three questions before you touch a slider:
#
# 1. A tile is read three times and the budget is 96 KiB. The tile grows from 64 KiB to 128 KiB: how do the avoided reads change?
# 2. 128 KiB does not fit. Does that rule out fusing these operators?
# 3. The intermediate tensors of the last lesson were not read in: they were **produced** on chip. What does such a tile avoid if it is read once?
#
# Then drag "tile size" and watch where the gauge on the right overflows. Stay at 128 KiB and tick "cut to fit" alone for question 2; then set "reads" to 1 and tick "produced on chip" for question 3.

# %% [markdown] id="panel-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**拖到掉成 0 的那一下，停住，让全场说怎么办，再勾“切到放得下”。最后勾“在片上产生”：这就是上一课的 2 × 张量。
#
# **问：**切成两块以后，片上同一时刻放着几块？
#
# **答：**一块，64 KiB：做完一块再做下一块，所以 96 KiB 够用，两块加起来照样省 256 KiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “放不下就什么也省不了” | 切成两块，一块一块来，省多少？（256 KiB） |
# | “读入和产生是同一个公式” | 产生的那一块，第一次是从显存读来的吗？r = 1 各省多少？（0 和 2 块） |

# %% [markdown] id="panel-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** When it drops to 0, stop and let the room say what to do; only then tick "cut to fit". Last, tick "produced on chip": there is the 2 × tensor of the last lesson.
#
# **Ask:** Cut in two, how many pieces are on chip at one time?
#
# **Answer:** One, 64 KiB: the second is begun when the first is done. So 96 KiB are enough, and the two together still avoid 256 KiB.
#
# | you hear | ask back |
# | --- | --- |
# | "What does not fit saves nothing." | Cut it in two, one after the other: how much now? (256 KiB) |
# | "One formula for a tile read in and one produced." | Does the produced one come from memory the first time? At r = 1, what does each avoid? (0 and 2 tiles) |

# %% id="panel" tags=["answer"]
from lessons_lib import ReusePanel

panel = ReusePanel()
panel

# %% [markdown] id="panel-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 从 128 KiB 掉到 0。在这个模型里，这是一道坎，不是一个坡：差一个字节放不下，就一次也省不了。
# 2. 照样能融合。切成 2 × 64 KiB，两块先后处理，一共省下 256 KiB，和整块放得下时一样多。
# 3. 一写一读都省了，共 2 × 数据块字节，正好是上一课一个组间边界上的 2 × 张量字节。读 r 次时，读入的省下 r − 1 次读；片上产生的省下 1 次写、r 次读，一共 r + 1 次。
#
# </details>
#
# 换成真的 GPU 看看：在“预算”里选 T4，“层次”选共享内存，数据块 32 KiB。表的最后一列“线程块/SM”，是一个 SM 上能同时驻留几个线程块。先猜 64 KiB 的数据块是几个，再运行下一格。

# %% [markdown] id="panel-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. From 128 KiB to 0. In this model that is a cliff, not a slope: one byte too many, and nothing is saved.
# 2. No. Cut into 2 × 64 KiB, handled one after the other, it avoids 256 KiB in all, as much as the whole tile would have.
# 3. The write and the read, 2 tiles: exactly the 2 × tensor bytes of a group boundary in the last lesson. With r reads, a tile that is read in avoids r − 1 tiles of traffic, one produced on chip r + 1.
#
# </details>
#
# Now a real GPU: choose T4 under "budget", "shared memory" under "level", and a 32 KiB tile. The last column of the table, "blocks/SM", says how many thread blocks an SM holds at once. Guess it for a 64 KiB tile, then run the cell.

# %% id="panel-code" tags=["answer"]
panel.set(gpu="T4", level="shared", tile_bytes=32 * KIB)
print("T4, 32 KiB:", panel.result["blocks_per_sm"], "blocks on one SM")
panel.tile_bytes = 64 * KIB
print("T4, 64 KiB:", panel.result["blocks_per_sm"], "block on one SM")

# %% [markdown] id="blocks-zh" lang="zh" minutes=2
# ## 放得下，还要看放得下几个
#
# 一个 warp 在等数据，SM 就换一个 warp 来跑，等待的时间（延迟）就这样被掩盖。数据块越大，驻留的线程块越少，可以轮换的 warp 也越少。驻留的 warp 数占上限的比例，叫**占用率**。
#
# 先猜：A10 的一个 SM 有 100 KiB 共享内存，最多驻留 48 个 warp。一个线程块有 256 个线程，也就是 8 个 warp，每个线程用 32 个寄存器。每个线程块要 24、48 或 96 KiB 共享内存，系统另占 1 KiB。占用率各是多少？

# %% [markdown] id="blocks-en" lang="en" minutes=2
# ## It fits. How many of it fit?
#
# An SM hides latency by switching between many warps. The larger the tile, the fewer blocks are resident, and the fewer warps there are to switch between. Resident warps divided by the most that an SM can hold is called **occupancy**.
#
# Guess: an SM of an A10 has 100 KiB of shared memory and holds up to 48 warps; a block has 256 threads, which is 8 warps, with 32 registers per thread. Each block takes 24 KiB, 48 KiB or 96 KiB of shared memory, and the system 1 KiB more. What is the occupancy?

# %% [markdown] id="blocks-teach-zh" lang="zh" tags=["instructor"]
# **说：**放得下一个还不够：SM 靠换 warp 掩盖等待。三个数先写下来再跑：24、48、96 KiB 对应 67%、33%、17%。
#
# **问：**96 KiB 时每个 SM 只剩一个线程块，它等数据的时候谁在干活？
#
# **答：**只有它自己那 8 个 warp 轮着来；8 个都在等，SM 就空着。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “占用率越高越快” | 两个核函数占用率都是 100%，读写量差一倍，谁快？（读写少的） |
# | “24 KiB 时能放 6 个：48 ÷ 8，占用率 100%” | 6 × 25 KiB 是多少？一个 SM 有多少？（150；只有 100） |

# %% [markdown] id="blocks-teach-en" lang="en" tags=["instructor"]
# **Say:** One that fits is not enough: an SM hides waiting by switching warps. Have three numbers written down before you run: 24, 48 and 96 KiB give 67%, 33% and 17%.
#
# **Ask:** At 96 KiB one block is left on an SM. While it waits for data, who works?
#
# **Answer:** Only its own 8 warps, in turn; when all 8 wait, the SM idles.
#
# | you hear | ask back |
# | --- | --- |
# | "More occupancy is faster." | Two kernels, both at 100%, one moves twice the bytes: which is faster? (the other one) |
# | "At 24 KiB it is 48 ÷ 8 = 6 blocks: 100%." | What is 6 × 25 KiB, and what has an SM? (150; it has 100) |

# %% id="blocks-code" tags=["answer"]
from lessons_lib import GPUS, occupancy

for shared_kib in (24, 48, 96):
    fit = occupancy(GPUS["A10"], 256, 32, shared_kib * KIB)
    print(f"{shared_kib} KiB: {fit['blocks_per_sm']} on one SM, {fit['occupancy']:.0%}, limited by", *fit["limiters"])

# %% [markdown] id="blocks-answer-zh" lang="zh"
# 24 KiB 加系统的 1 KiB，100 ÷ 25 = 4 个线程块，4 × 8 ÷ 48 = 67%；48 和 96 KiB 同理，是 2 个和 1 个。按寄存器算能驻留 8 个线程块，按 warp 算 6 个，所以先用完的是共享内存。

# %% [markdown] id="blocks-answer-en" lang="en"
# 24 KiB and the system's 1 KiB: 100 ÷ 25 = 4 blocks, 4 × 8 ÷ 48 = 67%. In the same way 48 and 96 KiB leave 2 blocks and 1. Registers would do for 8 blocks and warps for 6, so shared memory runs out first.

# %% [markdown] id="gemm-zh" lang="zh" minutes=3
# ## 矩阵乘的数据块：两种片上存储一起用
#
# 分块矩阵乘每次算结果里 BM × BN 的一块，沿 K 方向一次取 BK 长：A 的数据块（BM × BK）和 B 的数据块（BK × BN）放在**共享内存**；累加器（还没加完的 BM × BN 个结果）放在**寄存器**里。共享内存要
#
# $$\text{缓冲份数} \times (\text{BM} \times \text{BK} + \text{BK} \times \text{BN}) \times \text{每元素字节}$$
#
# 缓冲不止一份，才能一边算这一块，一边取下一块。数据块越大，重复读就越少：结果横向有 N ÷ BN 块，每一块都要用 A 的同一批行，所以 A 要被读 N ÷ BN 遍；同理，B 要被读 M ÷ BM 遍。
#
# 先猜：M = N = K = 4096，fp16。数据块 BM × BN 从 64 × 64 换成 128 × 256，前后的逻辑读写相差几倍？

# %% [markdown] id="gemm-en" lang="en" minutes=3
# ## A GEMM's tile: two kinds of on-chip storage at once
#
# A tiled GEMM works on one BM × BN piece of the result at a time and goes along K in steps of BK. The tiles of A (BM × BK) and of B (BK × BN) are in **shared memory**; the accumulator (the BM × BN running sums) is in **registers**. Shared memory needs
#
# $$\text{buffers} \times (\text{BM} \times \text{BK} + \text{BK} \times \text{BN}) \times \text{bytes per element}$$
#
# A second buffer lets the next tile load while this one is computed. The larger the tile, the fewer re-reads: the result has N ÷ BN pieces side by side, and each needs the same rows of A, so A is read N ÷ BN times; in the same way B is read M ÷ BM times.
#
# Guess: M = N = K = 4096, fp16. The tile BM × BN goes from 64 × 64 to 128 × 256. By what factor does logical traffic fall?

# %% [markdown] id="gemm-teach-zh" lang="zh" tags=["instructor"]
# **说：**两种片上存储一起用：操作数在共享内存，累加器在寄存器。先猜倍数再跑，约 2.6 倍；数据块越大重读越少，两边的账同时变贵。
#
# **问：**128 × 256 的块，T4 放得下吗？哪一种存储先满？
#
# **答：**BK = 64、两份缓冲要 96 KiB，T4 只有 64：共享内存先满。累加器 8 个 warp 时每线程 128 个寄存器，还有余地。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 缓冲份数 = 流水线级数 | sm_80 上级数 3，缓冲几份？（2 份；各代不一样，要看编译器的报告） |
# | “块越大越好” | 一个线程能有多少寄存器？（255 个） |

# %% [markdown] id="gemm-teach-en" lang="en" tags=["instructor"]
# **Say:** Both kinds of storage at once: operands in shared memory, the accumulator in registers. A guess first, then run: about 2.6×. A larger tile re-reads less and costs more of both.
#
# **Ask:** Does a 128 × 256 tile fit on a T4? Which storage fills first?
#
# **Answer:** With BK = 64 and two buffers it takes 96 KiB, and a T4 has 64: shared memory fills first. The accumulator takes 128 registers a thread on 8 warps, which is fine.
#
# | you hear | ask back |
# | --- | --- |
# | buffers = pipeline stages | Three stages on sm_80: how many buffers? (Two; generations differ, so ask the compiler.) |
# | "The larger the tile the better." | How many registers can a thread have? (255) |

# %% id="gemm-code" tags=["answer"]
from lessons_lib import accumulator_registers, gemm_traffic, tile_operand_bytes

for block_m, block_n in ((64, 64), (128, 128), (128, 256)):
    moved = gemm_traffic(4096, 4096, 4096, block_m, block_n)["total_bytes"]
    shared = tile_operand_bytes(block_m, block_n, 64, buffers=2)["total_bytes"]
    registers = accumulator_registers(GPUS["A100 (40 GB)"], block_m, block_n, num_warps=8)["registers_per_thread"]
    print(f"{block_m} x {block_n}: {moved // 2**20} MiB moved, {shared // KIB} KiB shared, {registers} registers")

# %% [markdown] id="gemm-answer-zh" lang="zh"
# 4128 ÷ 1568，约 2.6 倍。代价是：两份缓冲、BK = 64 时，共享内存从 32 KiB 涨到 96 KiB，T4 的 64 KiB 已经放不下；8 个 warp 时，每个线程光是累加器就要 128 个寄存器。

# %% [markdown] id="gemm-answer-en" lang="en"
# 4128 ÷ 1568 MiB, about 2.6×. The price: with two buffers and BK = 64, shared memory grows from 32 KiB to 96 KiB, more than a T4's 64 KiB; and with 8 warps the accumulator alone takes 128 registers per thread.

# %% [markdown] id="rows-zh" lang="zh" minutes=3
# ## 归约会打断融合吗？
#
# softmax 要先知道整行的最大值与和，才能写出第一个结果。看起来融合到这里就断了。其实有三种做法：
#
# - 五个核函数逐个做（求最大值、相减、exp、求和、相除），中间结果都进出显存；
# - 一行放得下：读一遍、写一遍；
# - 一行放不下：先边读边更新最大值与和，再读一遍并写出。
#
# 先猜：fp32、4096 × 4096，一份矩阵 64 MiB，三种做法各读写几份？（每行只有一个数的最大值与和，不计。）注意力（attention）先算 S = QKᵀ，缩放，做 softmax，再乘 V。取一个头：2048 个 token，head_dim = 64，fp16，S 有 8 MiB。中间这个大矩阵 S，能不能也不进显存？

# %% [markdown] id="rows-en" lang="en" minutes=3
# ## Does a reduction end fusion?
#
# A softmax needs the maximum and the sum of its row before it can write anything. That looks like the end of fusion. In fact there are three cases:
#
# - five kernels (maximum, subtract, exp, sum, divide), with every result going through memory;
# - the row fits: read once, write once;
# - the row does not fit: update maximum and sum while reading, then read once more and write.
#
# Guess: fp32, 4096 × 4096, so a matrix is 64 MiB. How many matrices does each case move? (Maximum and sum, one number per row, are left out.) And attention: it computes S = QKᵀ, scales it, takes its softmax and multiplies by V. With 2,048 tokens, one head of 64 and fp16, S is 8 MiB. Can this large matrix in the middle stay out of memory too?

# %% [markdown] id="rows-teach-zh" lang="zh" tags=["instructor"]
# **说：**先要三个份数：8、2、3。归约没有打断融合，只是加了条件：一行放得下，或者多读一遍。注意力走得更远：S 从来不写，代价是 K、V 重读。
#
# **问：**S 一个字节也不进显存，64 行一块时为什么还要读写 16.5 MiB？
#
# **答：**K、V 一共 0.5 MiB，32 块 Q 各读一遍，就是 16 MiB；Q 和输出再加 0.5。换成 128 行一块，只有 8.5 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “归约是融合的终点” | 一行 16 KiB，T4 放得下吗？那还要写回显存吗？（放得下；不用） |
# | “融合只会少读” | 注意力分块以后，K、V 读了几遍？（32 遍，多半在 L2 里） |

# %% [markdown] id="rows-teach-en" lang="en" tags=["instructor"]
# **Say:** Three counts first: 8, 2 and 3 matrices. A reduction does not end fusion; it adds a condition: the row fits, or it is read once more. Attention goes further: S is never written, at the price of reading K and V again.
#
# **Ask:** Not a byte of S reaches memory. Why are there still 16.5 MiB with blocks of 64 rows?
#
# **Answer:** K and V are 0.5 MiB, and each of 32 blocks of queries reads them: 16 MiB, and 0.5 for Q and the output. With 128 rows it is 8.5 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | "A reduction is where fusion ends." | A row of 16 KiB: does it fit on a T4? Must it go back to memory then? (it fits; no) |
# | "Fusion only removes reads." | In blocks, how often are K and V read? (32 times, mostly from L2) |

# %% id="rows-code" tags=["answer"]
from lessons_lib import attention_traffic, format_bytes, softmax_traffic

softmax = softmax_traffic(4096, 4096)
for way in ("naive_bytes", "resident_bytes", "two_pass_bytes"):
    print(f"softmax {way:15}", format_bytes(softmax[way]))
for block in (64, 128):
    head = attention_traffic(queries=2048, head_dim=64, block_queries=block)
    unfused, tiled = format_bytes(head["unfused_bytes"]), format_bytes(head["tiled_bytes"])
    print(f"attention: {unfused} unfused, {tiled} in blocks of {block} rows")

# %% [markdown] id="rows-answer-zh" lang="zh"
# 五个核函数：求最大值读 1，相减读 1 写 1，exp 读 1 写 1，求和读 1，相除读 1 写 1，共 8 份；另外两种是 2 份和 3 份。依次是 512、128、192 MiB。归约没有打断融合，只是多了一个条件：一行放得下，或者愿意多读一遍。（库里的 softmax 本来就是一个核函数；五个，是编译器拆开以后看到的。）
#
# 注意力更进一步。不融合时 S 进出 6 次，48 MiB，加上 Q、K、V 和输出一共 1 MiB。分块以后，S 一块一块地算，用完就丢，从不进显存；代价是每处理一块 Q，都要把 K、V 重读一遍。

# %% [markdown] id="rows-answer-en" lang="en"
# Five kernels: the maximum reads 1, subtract reads 1 and writes 1, exp the same, the sum reads 1, divide reads 1 and writes 1: 8 matrices. The others move 2 and 3. That is 512, 128 and 192 MiB. A reduction does not end fusion. It adds a condition: the row fits, or you accept one more read. (A library's softmax is one kernel already; the five are what a compiler sees once it has taken the softmax apart.)
#
# Attention goes further. Unfused, S travels six times, 48 MiB, and Q, K, V and the output add 1 MiB. In blocks, S is computed piece by piece, used and thrown away, and never reaches memory; in exchange, K and V are read again for every block of queries.

# %% [markdown] id="not-zh" lang="zh"
# ### 这些数不代表什么
#
# - **放得下不等于融合成功。** 其他临时值、对齐和同步也要地方；编译器最后给出的数才算数。
# - **逻辑重读不等于显存流量。** 相邻的线程块要读同样的 A、B 或 K、V，多半在 L2 里就读到了。
# - **占用率高不等于快。** 它只说有多少 warp 可以轮换。
# - **中间值不都在共享内存。** 逐元素算子融合以后，中间值在寄存器里；编译器报告的共享内存是 0 字节。

# %% [markdown] id="not-en" lang="en"
# ### What these numbers are not
#
# - **Fitting is not fusing.** Other temporaries, alignment and synchronization need room too; what the compiler reports in the end is what counts.
# - **Logical re-reads are not device-memory traffic.** Neighbouring blocks read the same parts of A, B, K or V and mostly find them in L2.
# - **High occupancy is not speed.** It says how many warps there are to switch between.
# - **Intermediates are not all in shared memory.** Those of a fused elementwise chain are in registers: the compiler reports 0 bytes of shared memory.

# %% [markdown] id="lab-intro-zh" lang="zh" minutes=4
# ## 量一次：在你的 CPU 上找缓存
#
# 还是上一课的四个 NumPy 算子和 64 MiB 张量，这次把数据块从 4 KiB 一路加大到整个张量，每种大小都量。数据块太小，调用开销摊销不掉；太大，装不进缓存。先猜哪一种最快：

# %% [markdown] id="lab-intro-en" lang="en" minutes=4
# ## Measure it: find the cache of your own CPU
#
# The four NumPy operators and the 64 MiB tensors of the last lesson again, now with tiles from 4 KiB up to the whole tensor, each size timed. Too small, and the calls cost more than the work in them; too large, and the tile falls out of the cache. Guess which size is fastest:

# %% [markdown] id="lab-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**先投票再跑。曲线左边输在调用，右边输在内存，中间赢在缓存；在图上指出这台机器的 L2。
#
# **问：**峰值为什么不在最小的数据块？
#
# **答：**4 KiB 一块，64 MiB 要切 16,384 块，每块调用 4 次，一共 65,536 次；调用花的时间比运算还多。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “越小越好，都在缓存里” | 4 KiB 一块，要调用多少次？（六万多次） |
# | “等于 L2 的大小最好” | 一个算子同时用几块？还有别人在用缓存吗？（读一块、写一块；有） |

# %% [markdown] id="lab-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Vote, then run. The left of the curve loses to calls, the right to memory, the middle wins by the cache; point out this machine's L2.
#
# **Ask:** Why is the peak not at the smallest tile?
#
# **Answer:** At 4 KiB, 64 MiB are 16,384 tiles with four calls each, 65,536 in all, and the calls take longer than the work in them.
#
# | you hear | ask back |
# | --- | --- |
# | "The smaller the better, all of it in cache." | At 4 KiB, how many calls are that? (over 65,000) |
# | "Exactly the size of L2." | How many tiles does an operator hold at once? Who else uses the cache? (two, read and written; others do) |

# %% id="lab-vote"
from lessons_lib import tile_vote

guess = tile_vote()
guess

# %% id="lab" tags=["answer", "nbval-ignore-output"]
from lessons_lib import sweep_report, sweep_tiles

sweep = sweep_tiles()
sweep_report(sweep, guess=guess.value)

# %% [markdown] id="lab-read-zh" lang="zh"
# 横轴是数据块大小，纵轴是分四遍做的耗时除以逐块做的耗时。灰色带是预测区间：每块的调用开销、缓存内的运算、过一遍内存的时间，都是刚才在你这台机器上量的。竖的点线标出这颗 CPU 的缓存大小（读得到的话）。
#
# 曲线左端输在调用开销，右端输在内存，中间赢在缓存。GPU 上也是这三段：数据块太小，启动和调度不划算；太大，放不下。
#
# 耗时每次不同；下面几条在任何机器上都应成立：

# %% [markdown] id="lab-read-en" lang="en"
# The horizontal axis is the size of a tile; the vertical axis is the time of four passes divided by the time tile by tile. The grey band is the prediction: the calls for one tile, arithmetic in cache and one pass over memory were each timed on your machine just now. Upright dotted lines are this CPU's cache sizes, where they can be read.
#
# On the left the calls dominate, on the right memory, in the middle the cache. A GPU shows the same three parts: when tiles are too small, starting a block costs more than its work; when they are too large, they do not fit.
#
# Times differ from run to run. These should hold anywhere:

# %% id="lab-verdict" tags=["answer"]
from lessons_lib import sweep_verdict

sweep_verdict(sweep)

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=2
# ## 练习 1：省下了多少
#
# 写一个函数：给定数据块的字节数、读的次数、预算，以及数据块是不是在片上产生的，返回省下的字节数；放不下就返回 0。

# %% [markdown] id="exercise-1-en" lang="en" minutes=2
# ## Exercise 1: what is avoided
#
# Write a function: given the bytes of the tile, how often it is read, the budget and whether it is produced on chip, return the bytes avoided: 0 if the tile does not fit.

# %% [markdown] id="exercise-1-teach-zh" lang="zh" tags=["instructor"]
# **说：**两个分支各写一行：读入的 r − 1，产生的 r + 1；放不下先返回 0。
#
# **问：**产生后读 1 次，省了几块？
#
# **答：**2 块：一次写、一次读，就是上一课一个边界的账。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 两种都写 r − 1 | 产生的那一块，还要写一次吗？融合以后呢？（不融合要写，融合了不用） |
# | 边界写成 ≥ | 恰好等于预算，放得下吗？（放得下） |

# %% [markdown] id="exercise-1-teach-en" lang="en" tags=["instructor"]
# **Say:** A line for each branch: r − 1 for read in, r + 1 for produced, and 0 first if it does not fit.
#
# **Ask:** Produced and read once: how many tiles are avoided?
#
# **Answer:** Two, a write and a read: one boundary of the last lesson.
#
# | you hear | ask back |
# | --- | --- |
# | r − 1 for both | Would the produced one have been written? And once fused? (yes; no) |
# | ≥ at the budget | Exactly the budget: does it fit? (yes) |

# %% id="avoided" tags=["exercise"]
from lessons_lib import check_avoided_bytes


def avoided_bytes(tile_bytes, reuse_count, budget_bytes, produced):
    return None


check_avoided_bytes(avoided_bytes)

# %% id="avoided-solution" tags=["solution"]
from lessons_lib import check_avoided_bytes


def avoided_bytes(tile_bytes, reuse_count, budget_bytes, produced):
    if tile_bytes > budget_bytes:
        return 0
    passages = reuse_count + 1 if produced else reuse_count - 1
    return passages * tile_bytes


check_avoided_bytes(avoided_bytes)

# %% [markdown] id="exercise-2-zh" lang="zh" minutes=1
# ## 练习 2：矩阵乘的共享内存
#
# fp16，数据块 128 × 256 × 64（BM × BN × BK），三份缓冲。一个线程块要多少 KiB 共享内存？

# %% [markdown] id="exercise-2-en" lang="en" minutes=1
# ## Exercise 2: the shared memory of a GEMM
#
# fp16, a tile of 128 × 256 × 64 (BM × BN × BK), three buffers. How many KiB of shared memory does one thread block need?

# %% [markdown] id="exercise-2-teach-zh" lang="zh" tags=["instructor"]
# **说：**3 × (128×64 + 64×256) × 2 字节 = 144 KiB。让他们先写式子再按计算器。
#
# **问：**哪些 GPU 放得下？
#
# **答：**A100（163 KiB）、H100、H200 和 B200（227 KiB）放得下；T4（64）、A10 和 L4（99）、MI300X（64）放不下。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 漏了 B 的那一块 | B 的数据块是几乘几？（64 × 256） |
# | 把累加器也算进来 | 累加器在哪一种存储里？（寄存器） |

# %% [markdown] id="exercise-2-teach-en" lang="en" tags=["instructor"]
# **Say:** 3 × (128×64 + 64×256) × 2 bytes = 144 KiB. Have them write the expression before anybody calculates.
#
# **Ask:** Which GPUs hold it?
#
# **Answer:** An A100 (163 KiB), and the H100, H200 and B200 (227 KiB). Not a T4 (64), an A10 or L4 (99), or an MI300X (64).
#
# | you hear | ask back |
# | --- | --- |
# | B's tile left out | What shape is B's tile? (64 × 256) |
# | the accumulator counted too | Which storage holds the accumulator? (registers) |

# %% id="gemm-tile" tags=["exercise"]
from lessons_lib import check_gemm_tile_kib

shared_kib = None
check_gemm_tile_kib(shared_kib)

# %% id="gemm-tile-solution" tags=["solution"]
from lessons_lib import check_gemm_tile_kib

shared_kib = 3 * (128 * 64 + 64 * 256) * 2 // 1024
check_gemm_tile_kib(shared_kib)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions

# %% [markdown] id="quiz-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**先各自答，再举手对答案；错的选项点开念。
#
# **问：**第 1 题里，“放得下”说的是一次放下整个张量，还是一次放下一块？
#
# **答：**一块：正在用的那一块放得下就行，所以放不下就切小，不是不能融合。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “放一部分，省 96/128” | 下一次读从头开始时，片上留着的是哪一段？换出去的又是哪一段？（留着末尾，开头没了） |
# | “归约把融合打断了” | 放不下的那一行，要读几遍？中间张量写出去没有？（两遍；没有） |
# | “占用率翻倍，速度翻倍” | 数据块小了，每个数据块的复用变成多少？（矩阵乘会变少） |

# %% [markdown] id="quiz-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** Answer alone, then compare by hands; open wrong choices and read out why.
#
# **Ask:** In question 1, what has to fit: the whole tensor, or what is needed at one time?
#
# **Answer:** What is needed at one time. So what does not fit is cut smaller, and fusion is not off.
#
# | you hear | ask back |
# | --- | --- |
# | "Keep a part and avoid 96/128." | When the next read starts over, which part is still on chip, and which part was pushed out? (the end is there, the beginning gone) |
# | "The reduction ends fusion." | How often is the long row read? Is any intermediate matrix written? (twice; none) |
# | "Occupancy doubles, so speed does." | What became of the reuse of each tile? (in a GEMM it fell) |

# %% id="quiz"
from lessons_lib import reuse_quiz

quiz = reuse_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 放得下才省：读入的数据块省下 r − 1 次读，片上产生的省下一次写和 r 次读。
# 2. 放不下，不等于不能融合，换一种切法就是；归约和矩阵乘切小了，要付多读的代价。
# 3. 容量只是必要条件：驻留几个线程块、编译器怎么分配、到底多快，都要量。
#
# 上一课：{{previous}}
#
# 下一课：{{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. Only what fits saves: a tile that is read in avoids r − 1 reads, one produced on chip avoids a write and r reads.
# 2. A tile that does not fit is not a verdict but a reason to cut it differently; reductions and GEMMs pay for smaller tiles with extra reads.
# 3. Capacity is necessary, not sufficient: how many blocks are resident, what the compiler allocates and how fast it runs must be measured.
#
# Previous: {{previous}}
#
# Next: {{next}}

# %% [markdown] id="takeaway-teach-zh" lang="zh" tags=["instructor"]
# **说：**让学员各说一句；第二句最要紧：放不下不是判决。
#
# **问：**这一课里，哪个数是必要条件，哪个数是速度？
#
# **答：**片上要几个字节、放不放得下，是必要条件；速度只有实测的那条曲线。占用率两样都不是。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “放得下就快” | 四个核函数都放得下，谁更快？凭什么？（要量） |
# | “放不下，就别融合” | 128 KiB 切成两块，少省了多少？（一个字节也没少省） |

# %% [markdown] id="takeaway-teach-en" lang="en" tags=["instructor"]
# **Say:** A line from each of three learners; the second matters most: not fitting is no verdict.
#
# **Ask:** Which number of this lesson is a necessary condition, and which is a speed?
#
# **Answer:** The bytes a tile takes on chip, and whether they fit, are the condition. The only speed is the measured curve; occupancy is neither.
#
# | you hear | ask back |
# | --- | --- |
# | "It fits, so it is fast." | Four kernels fit. Which is fastest, and how do you know? (by measuring) |
# | "It does not fit, so do not fuse." | 128 KiB cut in two: how much less is avoided? (nothing) |
