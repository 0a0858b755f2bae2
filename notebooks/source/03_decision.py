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
# # 03. 条件与代价 | Conditions and Costs
#
# **难度：** Medium ｜ **环境：** CPU-first ｜ **标签：** 编译系统、算子融合、性能优化 ｜ **目标人群：** 编译与系统入门者
#
# **用时：** {{minutes}} 分钟 ｜ **关键词：** 融合、布局转换、摊销、证据
#
# {{badges}}
#
# 学完这一课，你能
#
# - 把“能不能融合”的条件和“划不划算”的代价分开记；
# - 分清通过、不通过和未核对，不把第三种当成第一种；
# - 给布局转换和编译时间算账，并为每个条件拿出证据。
#
# **先读：** 01. 中间张量与逻辑读写；02. 片上预算与复用
#
# **延伸阅读**（同一系列另一门课的章节，编号与这里无关）**：** 05. Triton 性能调优与基准测试

# %% [markdown] id="title-en" lang="en" minutes=1 gpu="none" needs="lab"
# # 03. Conditions and Costs | 条件与代价
#
# **Difficulty:** Medium ｜ **Environment:** CPU first ｜ **Tags:** compilers, operator fusion, performance ｜ **Audience:** beginners in compilers and systems
#
# **Time:** {{minutes}} minutes ｜ **Keywords:** fusion, layout conversion, amortize, evidence
#
# {{badges}}
#
# After this lesson you can
#
# - keep the conditions (may this be fused?) apart from the costs (does it pay?);
# - tell pass, fail and not checked apart, and never take the third for the first;
# - keep a ledger for a layout conversion and for compile time, and produce evidence for each condition.
#
# **Read before:** 01. Intermediate Tensors and Logical Traffic; 02. On-Chip Budget and Reuse
#
# **Read after** (chapters of a companion course, with numbers of their own)**:** 05. Triton autotuning and profiling

# %% [markdown] id="prepare-zh" lang="zh" tags=["instructor"]
# **准备：** 六个案子事先各判一遍，看过证据（每案两三秒）。黑板上画两栏：“能不能”“值不值”，整节课往里填。

# %% [markdown] id="prepare-en" lang="en" tags=["instructor"]
# **Prepare:** rule on the six cases yourself once and see the evidence (two or three seconds each). Draw two columns on the board, "may it" and "does it pay", and fill them in as you go.

# %% [markdown] id="title-teach-zh" lang="zh" tags=["instructor"]
# **说：**开场一句：“能省多少，前两课会算了。今天你们当法官：能不能这样融合，值不值得。”

# %% [markdown] id="title-teach-en" lang="en" tags=["instructor"]
# **Say:** Open with one sentence: "You can work out what a fusion saves; today you are the judges, and rule on whether it may be done and whether it pays."

# %% id="bootstrap"
# generated

# %% [markdown] id="guess-first-zh" lang="zh" minutes=1
# ## 先猜
#
# 前两课算出了能省多少。编译器要不要融合，还得看别的。先投一票：

# %% [markdown] id="guess-first-en" lang="en" minutes=1
# ## Guess first
#
# The first two lessons worked out what can be saved. Whether a compiler fuses depends on more than that. Vote first:

# %% [markdown] id="guess-first-teach-zh" lang="zh" tags=["instructor"]
# **说：**投票，然后指着黑板上的两栏。整节课只做一件事：每个事实放进对的那一栏。
#
# **问：**布局转换放哪一栏？
#
# **答：**“值不值”。它要花字节，却不会让结果出错，否决不了融合；划不划算，看转换几次、调用几次。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “不能，转换否决了它” | 转换之后，结果错了吗？那它否决的是什么？（没错；什么也没否决） |
# | “能，而且一定划算” | 转换花的字节，谁来还？（以后的调用） |

# %% [markdown] id="guess-first-teach-en" lang="en" tags=["instructor"]
# **Say:** Vote, then point at the two columns on the board. The lesson does one thing: put each fact into the right one.
#
# **Ask:** Which column gets the layout conversion?
#
# **Answer:** "Does it pay". It costs bytes but makes no result wrong, so it vetoes nothing; whether it pays hangs on how many conversions and how many calls there are.
#
# | you hear | ask back |
# | --- | --- |
# | "No, the conversion vetoes it." | After the conversion, is the result wrong? Then what was vetoed? (no; nothing) |
# | "Yes, and it surely pays." | Who pays back the bytes of the conversion? (later calls) |

# %% id="vote"
from lessons_lib import veto_vote

vote = veto_vote()
vote

# %% [markdown] id="conditions-zh" lang="zh" minutes=2
# ## 四个条件，三种回答
#
# 融合之前要分清两样东西：**条件**，少一条就不能这样融合；**代价**，多少都有，要和省下的放在一起比。
#
# <details><summary>投过票，再展开</summary>
#
# 布局转换是代价，所以能不能融合轮不到它说话，划不划算要算账。猜“不能”的人把代价当成了条件，猜“一定划算”的人忘了转换自己也要读写。
#
# </details>
#
# | 条件 | 问的是 | 谁来回答 |
# | --- | --- | --- |
# | 语义一致 | 结果和原来一样吗？（在容差内就行，不要求逐位相等） | 和 float64 对照 |
# | 形状支持 | 这个核函数处理得了这些形状吗？ | 边界情形的测试 |
# | 片上放得下 | 数据块和临时值放得下吗？ | 第 02 课的公式，再看编译器的报告 |
# | 后端已生成 | 编译器真的生成了这一个核函数吗？ | 编译一次，看结果 |
#
# 后端，是编译器里把计算图变成核函数的那一部分；容差，是事先约定的误差上限。计算图本身允不允许（核函数之间不能互相等），是第 04 课的事。
#
# 每一条都有三种回答：通过、不通过、**未核对**。第三种最常见，也最容易被当成第一种。
#
# `fusion_decision` 只收核对过的结果；布局转换的字节数另记一栏，从不否决融合。

# %% [markdown] id="conditions-en" lang="en" minutes=2
# ## Four conditions, three answers
#
# Two things to keep apart before fusing. **Conditions**: if one fails, the operators cannot be fused this way. **Costs**: there are always some, to be weighed against what is saved.
#
# <details><summary>Vote, then open</summary>
#
# A layout conversion is a cost, so it has no say in whether operators may be fused, and whether it pays has to be worked out. Those who said no took a cost for a condition; those who said that it surely pays forgot that the conversion reads and writes, too.
#
# </details>
#
# | condition | asks | who answers |
# | --- | --- | --- |
# | same meaning | is the result what it was? (within a tolerance, not bit for bit) | a comparison with float64 |
# | shape supported | can the kernel handle these shapes? | tests at the edges |
# | fits on chip | is there room for the tile and its temporaries? | lesson 02's formula, then the compiler's report |
# | backend lowered it | did the compiler really produce this one kernel? | compile it and look |
#
# The backend is the part of a compiler that turns a graph into kernels; a tolerance is a bound on the error, agreed beforehand.
#
# Each has three answers: pass, fail and **not checked**. The third is the commonest, and the one most often mistaken for the first.
#
# Whether the graph itself allows it (no kernel may wait for itself) comes in lesson 04.
#
# `fusion_decision` takes checked results only; the bytes of a layout conversion are recorded apart and never veto.

# %% [markdown] id="conditions-teach-zh" lang="zh" tags=["instructor"]
# **说：**四个条件一口气念完，停在第三种回答：未核对。说一句：没人看过，不等于没有问题。
#
# **问：**“后端已生成”，谁有资格回答？
#
# **答：**只有编译器：编译一次，看它是不是真的生成了这一个核函数。公式和 float64 都替不了它。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “结果一致就是逐位相等” | (2048 + 1) − 2048，fp16 写回一次得 0，留在 fp32 得 1：谁错了？（得 0 的） |
# | “公式说放得下，就放得下” | 编译器多用了几个临时值，公式知道吗？（不知道，要看报告） |

# %% [markdown] id="conditions-teach-en" lang="en" tags=["instructor"]
# **Say:** Read the four conditions in one breath and stop at the third answer: not checked. Say it once: nobody looked is not nothing wrong.
#
# **Ask:** "Backend lowered it": who can answer that?
#
# **Answer:** Only the compiler: compile once and see whether it produced this one kernel. Neither a formula nor float64 can stand in for it.
#
# | you hear | ask back |
# | --- | --- |
# | "Same meaning is bit-equal." | (2048 + 1) − 2048: 0 with a trip through fp16, 1 kept in fp32. Which is wrong? (the 0) |
# | "The formula says it fits, so it fits." | The compiler uses a few temporaries more: does the formula know? (no; its report does) |

# %% id="conditions-code"
from lessons_lib import fusion_decision

MIB = 2**20
print(fusion_decision(True, True, True, True))
print(fusion_decision(True, False, True, True))
print(fusion_decision(True, True, True, True, reorder_bytes=8 * MIB))

# %% [markdown] id="panel-intro-zh" lang="zh" minutes=2
# ## 动手：谁看过了？
#
# 先答前两问：
#
# 1. 三条通过、一条未核对，结论是什么？
# 2. 一条不通过、一条未核对呢？
#
# 面板里已经有一份证据：把 GELU 融合进矩阵乘的尾声，和 float64 对照过。其余三条还没有人看过。改一改各条的状态，看结论怎么变；再看你改的那几条，表里“看到了什么”“谁看的”两栏写着什么：这是第 3 问。

# %% [markdown] id="panel-intro-en" lang="en" minutes=2
# ## Move it: who has looked?
#
# Two questions first:
#
# 1. Three pass and one is not checked: what is the conclusion?
# 2. And if one fails and one is not checked?
#
# The panel starts with one piece of evidence: GELU fused into a GEMM's epilogue was compared with float64. Nobody has looked at the other three conditions. Set them and watch the conclusion change; then read the columns "what was seen" and "who looked" for those you set: what do they say? That is question 3.

# %% [markdown] id="panel-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**先口头答前两问，再点。第 3 问要他们读“谁看的”那一栏：自己点出来的“通过”，写的是“你”。
#
# **问：**要让“后端已生成”从未核对变成真的通过，该做什么？
#
# **答：**编译一次，记下谁看的、看到了什么。在面板上点一下不算证据。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “三条通过、没人反对，就成立” | 法庭上没有证人，就是有罪或无罪吗？（都不是，是未定） |
# | “一条不通过，其余还要查” | 查出来全通过，结论会变吗？（不会） |

# %% [markdown] id="panel-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** The first two answers aloud, then click. For the third have them read "who looked": a pass they set themselves says so.
#
# **Ask:** What turns "backend lowered it" from not checked into a real pass?
#
# **Answer:** Compile it once, and note who looked and what was seen. A click in the panel is no evidence.
#
# | you hear | ask back |
# | --- | --- |
# | "Three pass and nobody objects: it holds." | A court without a witness: guilty, or not? (neither: open) |
# | "One fails, but check the rest." | If all of them pass, does the conclusion change? (no) |

# %% id="panel" tags=["answer"]
from lessons_lib import DecisionPanel, examine

fused = examine("gemm").plans[0]
panel = DecisionPanel(item for item in fused.evidence if item.condition == "semantics_match")
panel

# %% [markdown] id="panel-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 未定，还不能下结论。没有反对的证据，不等于有支持的证据。
# 2. 不成立。一条不通过就够了，剩下的不用再查；可以改方案，再从头核对。
# 3. 写的是：这是你填的，没有证据。自己点出来的“通过”，和没核对一样。
#
# </details>
#
# 证据可以来自任何地方：公式、NumPy、编译器。到了讲核函数的那一课，由编译器来回答“后端已生成”。

# %% [markdown] id="panel-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. Open. No evidence against it is not evidence for it.
# 2. Refused. One failure is enough, and the rest need not be checked; change the plan, then check it afresh.
# 3. That you set it, and that there is no evidence: a pass that you clicked is worth as much as one not checked.
#
# </details>
#
# Evidence may come from anywhere: a formula, NumPy, a compiler. In the kernel lesson a compiler answers "backend lowered it".

# %% [markdown] id="ledger-zh" lang="zh" minutes=2
# ## 代价一：布局转换的账
#
# 融合后的核函数有时要求张量换一种布局，也就是换一种元素次序。换一次，要读一遍、写一遍：
#
# $$\text{净省} = \text{每次省} \times \text{调用次数} - 2 \times \text{张量字节} \times \text{转换次数}$$
#
# 先猜：融合每次调用省 8 MiB。
#
# 1. 32 MiB 的权重（训练好就不再变的参数），装载时转换一次：第几次调用打平？
# 2. 8 MiB 的激活（前一层刚算出来、每次都不同的张量），每次调用都要转换：第几次打平？
#
# 面板一打开就是第 1 问。看第 2 问时，把“要转换的张量”改成 8 MiB，“何时转换”选“每次调用”。

# %% [markdown] id="ledger-en" lang="en" minutes=2
# ## First cost: the ledger of a layout conversion
#
# A fused kernel sometimes wants a tensor in another layout. A conversion reads the tensor once and writes it once:
#
# $$\text{net} = \text{saved per call} \times \text{calls} - 2 \times \text{tensor bytes} \times \text{conversions}$$
#
# Guess: the fusion saves 8 MiB per call.
#
# 1. A 32 MiB weight (a parameter that no longer changes), converted once at loading: at which call does it break even?
# 2. An 8 MiB activation (what the layer before has just computed, different each time), converted at every call: at which call?
#
# The panel opens on the first. For the second, set "tensor re-ordered" to 8 MiB and "converted" to "at each call".

# %% [markdown] id="ledger-teach-zh" lang="zh" tags=["instructor"]
# **说：**一次转换 = 读一遍 + 写一遍 = 2 × 张量。权重转换一次，第 8 次打平；激活每次转换，永远打不平。
#
# **问：**权重那一例，第 9 次净省多少？第 100 次呢？
#
# **答：**8 × 次数 − 64：第 9 次 8 MiB，第 100 次 736 MiB。激活那一例每次净亏 8 MiB，次数越多亏得越多。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 第 4 次（只算了写） | 转换只写不读吗？（也要读一遍） |
# | “激活那个，调用多了总会赚” | 每多调用一次，差额是变大还是变小？（多亏 8 MiB） |

# %% [markdown] id="ledger-teach-en" lang="en" tags=["instructor"]
# **Say:** A conversion reads once and writes once: 2 × tensor. A weight converted once is even at call 8; an activation converted each time never is.
#
# **Ask:** The weight: what is the net after 9 calls, and after 100?
#
# **Answer:** 8 × calls − 64: 8 MiB, and 736 MiB. The activation loses 8 MiB with each call, so more calls lose more.
#
# | you hear | ask back |
# | --- | --- |
# | call 4 (only the write) | Does a conversion write without reading? (it reads, too) |
# | "The activation pays once there are enough calls." | With each further call, does the gap grow or shrink? (it grows by 8 MiB) |

# %% id="ledger-panel" tags=["answer"]
from lessons_lib import LayoutPanel

ledger = LayoutPanel()
ledger

# %% [markdown] id="ledger-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 1. 2 × 32 ÷ 8 = 8：第 8 次调用打平，第 9 次起净省。
# 2. 永远打不平：每次花 16 MiB，只省 8 MiB。可见转换并不否决融合；这一例不划算，是因为**每次都要转换**。
#
# </details>

# %% [markdown] id="ledger-answer-en" lang="en"
# <details><summary>Answers</summary>
#
# 1. 2 × 32 ÷ 8 = 8: even at call 8, ahead from call 9 on.
# 2. Never: each call pays 16 MiB to save 8 MiB. A conversion does not veto a fusion; it is converting **at every call** that makes this one a loss.
#
# </details>

# %% [markdown] id="compile-zh" lang="zh" minutes=1
# ## 代价二：编译时间的账
#
# 编译也是先付后省。编译 4 秒，每次调用省 86 µs（第 01 课 A100 那个例子，三个核函数融合成一个）：先猜要调用多少次才打平？

# %% [markdown] id="compile-en" lang="en" minutes=1
# ## Second cost: compile time
#
# Compiling, too, costs first and saves later. It takes 4 seconds to compile and saves 86 µs per call (the A100 case of lesson 01, three kernels to one): guess how many calls it takes to break even.

# %% [markdown] id="compile-teach-zh" lang="zh" tags=["instructor"]
# **说：**同一本账，单位换成时间。4 秒 ÷ 86 微秒，约 4.65 万次；形状一变，账从头记。
#
# **问：**在线服务一天调用几次？你的脚本呢？
#
# **答：**一秒一千次的服务，47 秒就回本；一共调用一百次的脚本，花 4 秒编译，只省回 8.6 毫秒。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “编译几秒钟，不算什么” | 这个函数你会调用几次？（少于 46,512 次就亏） |
# | “编译一次，以后都白用” | 换一个形状、换一块 GPU 呢？（多半要再编译） |

# %% [markdown] id="compile-teach-en" lang="en" tags=["instructor"]
# **Say:** The same ledger in time: 4 s ÷ 86 µs, about 46,500 calls. With a new shape it starts again.
#
# **Ask:** How often a day does a server call it? And your script?
#
# **Answer:** A server with a thousand calls a second is even after 47 seconds. A script with a hundred calls spends 4 s to save 8.6 ms.
#
# | you hear | ask back |
# | --- | --- |
# | "A few seconds of compiling are nothing." | How many times will you call this function? (below 46,512 it is a loss) |
# | "Compile once, and it is free for ever." | And with another shape, or another GPU? (mostly compiled again) |

# %% id="compile-panel" tags=["answer"]
from lessons_lib import CompilePanel

compile_time = CompilePanel()
compile_time

# %% [markdown] id="compile-answer-zh" lang="zh"
# <details><summary>对答案</summary>
#
# 4 s ÷ 86 µs，约 46,512 次。每次 110 µs，加起来是 GPU 上的 5 秒：在线服务一眨眼就过去了，只调用一百次的脚本永远回不了本。
#
# </details>

# %% [markdown] id="compile-answer-en" lang="en"
# <details><summary>Answer</summary>
#
# 4 s ÷ 86 µs, about 46,512 calls. At 110 µs each that is five seconds of GPU time: nothing for a server, and out of reach for a script that makes a hundred calls.
#
# </details>

# %% [markdown] id="court-zh" lang="zh" minutes=6
# ## 由你来判：六个案子
#
# 每个案子三问：
#
# - **合法吗？** 核对过的条件没有不通过的，结果在约定的容差内（与 float64 的相对误差，fp16 不超过 0.2%，fp32 不超过 0.001%；以计算途中最大的数为基准，以最后结果为基准的另外注明）。这比面板里的“四条都成立”要求低：编译器还没有作证，判“是”只表示可以接着去编译；
# - **划算吗？** 这里没有计时，看的是预测：加速比不低于 1.1。没有预测时间的几案，瓶颈都在读写上，就用逻辑读写之比代替，它是加速比的上限；布局转换看那本账；
# - **逐位相等吗？** 输出一位都不变。
#
# 两个方案的答案不同，或者答案取决于题目没给的数，就判“看情况”。
#
# 三问都答了，证据才会在你的机器上用 NumPy 现算出来，和你的判断摆在一起。拿不准也先判，判完再看错在哪里。

# %% [markdown] id="court-en" lang="en" minutes=6
# ## You are the judge: six cases
#
# Three questions per case:
#
# - **Legal?** No checked condition fails, and the result lies within the agreed tolerance (its error against float64, relative to the largest value on the way unless a case says otherwise: 0.2% for fp16, 0.001% for fp32). That is less than the panel's "all four hold": no compiler has been heard yet, so a yes means "go on and compile it";
# - **Profitable?** No clock runs here: predicted at least 1.1× faster. The cases without a predicted time are bound by memory, and there the ratio of logical bytes decides, the ceiling on their speed-up; for a layout conversion, its ledger does;
# - **Bit-equal?** Not one bit of the output changes.
#
# "It depends" is right when the two plans of a case differ, or when the answer hangs on a number that the case does not give.
#
# Once all three are answered, the evidence is computed on your machine with NumPy and laid beside your ruling. When unsure, rule first and see where you went wrong.

# %% [markdown] id="court-teach-zh" lang="zh" tags=["instructor"]
# **说：**一案一分钟：全场先判三问，再看现算的证据，说一句为什么。最值得停的是 rounding：融合后**更准**，所以不逐位相等；和 gemm：合法，可是不划算。
#
# 判决（合法、划算、逐位相等）：rounding 是、是、否；reorder 是、看情况、是；tile 看情况、看情况、是；softmax 是、是、否；gemm 是、否、否；fan_out 是、是、是。
#
# **问：**不逐位相等，是错了还是更准？拿什么比？
#
# **答：**和 float64 比。rounding 一案，融合的误差是 0，分开的是 1：不相等，正因为更准。
#
# | 听到的 | 反问 |
# | --- | --- |
# | rounding 判“不合法” | 容差是多少？和 float64 比，谁更近？（0.2%；融合的） |
# | reorder 判“不划算” | 转换几次？调用几次？题目给全了吗？（没有，看情况） |
# | tile 判“不合法” | 两个方案里，有没有放得下的？（有一个，看情况） |
# | gemm 判“划算” | K 很大时，时间花在哪里？（乘加；只快 4% 到 5%） |

# %% [markdown] id="court-teach-en" lang="en" tags=["instructor"]
# **Say:** A minute a case: the room rules on all three, then the evidence, then one sentence why. Dwell on rounding, where the fused result is **more accurate** and so not bit-equal, and on gemm, which is legal and does not pay.
#
# Rulings (legal, profitable, bit-equal): rounding yes, yes, no; reorder yes, depends, yes; tile depends, depends, yes; softmax yes, yes, no; gemm yes, no, no; fan_out yes, yes, yes.
#
# **Ask:** Not bit-equal: wrong, or more accurate? Compared with what?
#
# **Answer:** With float64. In rounding the fused error is 0 and the separate one 1: not equal, because it is more accurate.
#
# | you hear | ask back |
# | --- | --- |
# | rounding "not legal" | What is the tolerance? Which is nearer to float64? (0.2%; the fused one) |
# | reorder "does not pay" | How many conversions, how many calls? Does the case say? (No: it depends.) |
# | tile "not legal" | Does one of the two plans fit? (Yes: it depends.) |
# | gemm "pays" | With a large K, where does the time go? (multiplying; 4% to 5% is gained) |

# %% id="case-rounding"
from lessons_lib import Trial

rounding = Trial("rounding")
rounding

# %% id="case-reorder"
reorder = Trial("reorder")
reorder

# %% id="case-tile"
tile = Trial("tile")
tile

# %% id="case-softmax"
softmax = Trial("softmax")
softmax

# %% id="case-gemm"
gemm = Trial("gemm")
gemm

# %% id="case-fan-out"
fan_out = Trial("fan_out")
fan_out

# %% [markdown] id="record-zh" lang="zh"
# 六个案子都判完了，再看总表。证据每次现算，但这些结论在任何机器上都一样：判“相等”的，只用了浮点标准规定了结果的运算；判“不相等”的，差别之大，换哪台机器的 `exp`、`tanh` 都抹不平；其余的只看在不在容差之内。

# %% [markdown] id="record-en" lang="en"
# When you have ruled on all six, look at the record. The evidence is computed afresh each time, yet these rulings are the same on any machine: every "bit-equal: yes" rests only on operations whose results the floating-point standard fixes, every "no" on differences far larger than `exp` or `tanh` differ between machines; everything else is held to a tolerance.

# %% id="court-record" tags=["answer"]
from lessons_lib import court_record

court_record("rounding", "reorder", "tile", "softmax", "gemm", "fan_out")

# %% [markdown] id="not-zh" lang="zh"
# ### 这些结论不代表什么
#
# - **条件都成立，不代表更快。** 它们只说明可以这样融合。
# - **逐位相等不是条件。** 融合后少舍入几次，往往更准，也因此不相等。
# - **布局转换不是否决票。** 它是一笔账，取决于转换几次、调用几次。
# - **净省字节不等于净省时间。** 计算受限的核函数，字节再少也快不了多少。

# %% [markdown] id="not-en" lang="en"
# ### What these conclusions are not
#
# - **Conditions that hold are no proof of speed.** They only say that it can be done.
# - **Bit equality is not a condition.** A fused kernel rounds less often; it is often more accurate, and for that reason not equal.
# - **A layout conversion is no veto.** It is an entry in a ledger, and what it comes to depends on how many conversions and how many calls there are.
# - **Net bytes are not net time.** A compute-bound kernel gains little from fewer bytes.

# %% [markdown] id="exercise-1-zh" lang="zh" minutes=2
# ## 练习 1：写出净省字节
#
# 写一个函数：给定要转换的张量的字节数、每次调用省下的字节数、调用次数，以及是不是每次调用都要转换，返回净省的字节数（可以为负）。

# %% [markdown] id="exercise-1-en" lang="en" minutes=2
# ## Exercise 1: the net bytes
#
# Write a function: given the bytes of the tensor to convert, the bytes saved per call, the number of calls and whether every call converts, return the net bytes saved (possibly negative).

# %% [markdown] id="exercise-1-teach-zh" lang="zh" tags=["instructor"]
# **说：**和账本同一条式子，多一个开关。让快的人用面板验自己的函数。
#
# **问：**each_call 为真时，哪一项要乘调用次数？
#
# **答：**两项都乘：省下的本来就乘，转换也一样；为假时，转换那一项只算 1 次。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 代价只算一个张量 | 读了吗？写了吗？（各一遍） |
# | 不管开关都乘调用次数 | 权重装载几次？（一次） |

# %% [markdown] id="exercise-1-teach-en" lang="en" tags=["instructor"]
# **Say:** The ledger's formula with a switch. Whoever is quick checks the function against the panel.
#
# **Ask:** When each_call is true, which term is multiplied by the calls?
#
# **Answer:** Both: the saving always is, and now the conversion as well. When it is false, the conversion counts once.
#
# | you hear | ask back |
# | --- | --- |
# | one tensor as the cost | Was it read? Was it written? (once each) |
# | multiplied whatever the switch | How often is a weight loaded? (once) |

# %% id="net-bytes" tags=["exercise"]
from lessons_lib import check_net_bytes


def net_bytes(tensor_bytes, saved_bytes, calls, each_call):
    return None


check_net_bytes(net_bytes)

# %% id="net-bytes-solution" tags=["solution"]
from lessons_lib import check_net_bytes


def net_bytes(tensor_bytes, saved_bytes, calls, each_call):
    conversions = calls if each_call else 1
    return saved_bytes * calls - 2 * tensor_bytes * conversions


check_net_bytes(net_bytes)

# %% [markdown] id="exercise-2-zh" lang="zh" minutes=1
# ## 练习 2：第几次打平
#
# 48 MiB 的权重，装载时转换一次；融合每次调用省 6 MiB。第几次调用打平？

# %% [markdown] id="exercise-2-en" lang="en" minutes=1
# ## Exercise 2: the break-even call
#
# A 48 MiB weight is converted once, at loading; the fusion saves 6 MiB per call. At which call does it break even?

# %% [markdown] id="exercise-2-teach-zh" lang="zh" tags=["instructor"]
# **说：**口算：96 ÷ 6 = 16。打平的那次净省是 0，下一次才开始赚。
#
# **问：**第 16 次净省多少？
#
# **答：**0：16 × 6 − 2 × 48。第 17 次起，每次净省 6 MiB。
#
# | 听到的 | 反问 |
# | --- | --- |
# | 8 | 转换的代价是几个张量？（两个） |
# | 17 | 打平和赚，是同一次吗？（不是，晚一次） |

# %% [markdown] id="exercise-2-teach-en" lang="en" tags=["instructor"]
# **Say:** In the head: 96 ÷ 6 = 16. At break-even the net is 0; the call after gains.
#
# **Ask:** What is the net at call 16?
#
# **Answer:** 0: 16 × 6 − 2 × 48. From call 17 on each adds 6 MiB.
#
# | you hear | ask back |
# | --- | --- |
# | 8 | How many tensors does the conversion cost? (two) |
# | 17 | Is even the same call as ahead? (no, that is one later) |

# %% id="break-even" tags=["exercise"]
from lessons_lib import check_break_even

calls = None
check_break_even(calls)

# %% id="break-even-solution" tags=["solution"]
from lessons_lib import check_break_even

calls = 2 * 48 // 6
check_break_even(calls)

# %% [markdown] id="quiz-intro-zh" lang="zh" minutes=2
# ## 三个小问题

# %% [markdown] id="quiz-intro-en" lang="en" minutes=2
# ## Three questions

# %% [markdown] id="quiz-intro-teach-zh" lang="zh" tags=["instructor"]
# **说：**三题问的是同一件事：没有证据，和证据说“不”，是两回事；条件成立，和更快，也是两回事。
#
# **问：**第 2 题里，少的是什么：一个“是”，还是一次检查？
#
# **答：**一次检查：还没有人编译过，看过才知道是“是”还是“否”。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “不相等就是错” | 和谁比？未融合的那个结果，离 float64 有多远？（它也有误差，常常更大） |
# | “没人反对就算成立” | 编译器真的生成了一个核函数吗？谁看过？（还没有人） |
# | “至少不会更慢” | 计算受限的、并行度下降的，哪一条条件管得着？（哪一条也管不着） |

# %% [markdown] id="quiz-intro-teach-en" lang="en" tags=["instructor"]
# **Say:** All three ask for one distinction: no evidence is not evidence against, and conditions met is not faster.
#
# **Ask:** In question 2, what is missing: a yes, or a look?
#
# **Answer:** A look: nobody has compiled it, and only then is it a yes or a no.
#
# | you hear | ask back |
# | --- | --- |
# | "Not equal means wrong." | Compared with what? How far is the unfused result from float64? (it is off as well, often further) |
# | "Nobody objects, so it holds." | Did the compiler really emit one kernel? Who looked? (nobody yet) |
# | "At least it is no slower." | Which of the four conditions looks at lost parallelism, or at a compute-bound kernel? (none) |

# %% id="quiz"
from lessons_lib import decision_quiz

quiz = decision_quiz()
quiz

# %% [markdown] id="takeaway-zh" lang="zh" minutes=1
# ## 带走三句话
#
# 1. 条件回答“能不能”，代价回答“值不值”，分开记。
# 2. 未核对不是通过：每个“通过”都要说得出谁看的、看到了什么。
# 3. 条件都成立、账也算得过来，才值得编译出来量一次。
#
# 上一课：{{previous}}
#
# 下一课：{{next}}

# %% [markdown] id="takeaway-en" lang="en" minutes=1
# ## Take away three lines
#
# 1. Conditions say whether it can be done, costs whether it is worth it: keep two lists.
# 2. Not checked is not pass: behind every pass stands someone who looked, and what they saw.
# 3. Once the conditions hold and the ledger comes out ahead, it is worth compiling and measuring.
#
# Previous: {{previous}}
#
# Next: {{next}}

# %% [markdown] id="takeaway-teach-zh" lang="zh" tags=["instructor"]
# **说：**指着黑板上的两栏收尾。第 05 课会请编译器来当证人。
#
# **问：**你桌上的那个融合，哪一条还没有人看过？
#
# **答：**多半是“后端已生成”：这一课只有公式和 NumPy 作证，还没有编译过。
#
# | 听到的 | 反问 |
# | --- | --- |
# | “四条都成立，那就融合” | 哪一条里有时间？（没有；还要算账、要量） |
# | “没查的先当通过” | 谁看的？看到了什么？（说不出，就是未核对） |

# %% [markdown] id="takeaway-teach-en" lang="en" tags=["instructor"]
# **Say:** End at the two columns. In lesson 05 a compiler takes the stand.
#
# **Ask:** The fusion on your own desk: which condition has nobody checked?
#
# **Answer:** "Backend lowered it", as a rule: in this lesson only formulas and NumPy have testified, and nothing was compiled.
#
# | you hear | ask back |
# | --- | --- |
# | "All four hold, so fuse it." | Which of them contains a time? (none: there is still a ledger, and a clock) |
# | "Take it for a pass until somebody checks." | Who looked, and what did they see? (no answer means not checked) |
