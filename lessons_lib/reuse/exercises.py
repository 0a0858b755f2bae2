"""Lesson 02: the guesses, the exercises and the quiz."""

from __future__ import annotations

from lessons_lib.base.text import Text
from lessons_lib.base.units import KIB, MIB, format_bytes
from lessons_lib.reuse.gemm import tile_operand_bytes
from lessons_lib.reuse.model import onchip_reuse, produced_reuse
from lessons_lib.show.exercise import Feedback, FunctionExercise, Mistake, ValueExercise
from lessons_lib.show.quiz import Choice, Question, Quiz, Vote

_LESSON = "02"

# -- guesses ----------------------------------------------------------------------------------------------------


def reuse_vote() -> Vote:
    """The guess before the formula: reads avoided for a 32 KiB tile read three times; ``value`` in bytes."""
    words = Text(
        zh="一个 32 KiB 的数据块要被读 3 次，片上预算是 96 KiB。把它留在片上，能少读多少？",
        en="A 32 KiB tile is read three times; the on-chip budget is 96 KiB. How many bytes of reads does keeping it on "
        "chip avoid?",
    )
    return Vote(
        words,
        [(Text(zh=f"{kib} KiB", en=f"{kib} KiB"), kib * KIB) for kib in (0, 32, 64, 96)],
        key="reuse_vote",
        lesson=_LESSON,
    )


def tile_vote() -> Vote:
    """The guess before the sweep: the tile size that is fastest on this CPU; ``value`` in bytes."""
    words = Text(
        zh="64 MiB 的张量切成多大的数据块，在这台机器上跑得最快？",
        en="Which tile size runs fastest for a 64 MiB tensor on this machine?",
    )
    sizes = (4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB)
    return Vote(
        words,
        [(Text(zh=format_bytes(size), en=format_bytes(size)), size) for size in sizes],
        key="tile_vote",
        lesson=_LESSON,
    )


# -- exercise 1: a function -------------------------------------------------------------------------------------


def _avoided_bytes(tile_bytes: int, reuse_count: int, budget_bytes: int, produced: bool) -> int:
    if produced:
        return produced_reuse(tile_bytes, reuse_count, budget_bytes)["avoided_bytes"]
    return onchip_reuse(tile_bytes, reuse_count, budget_bytes)["avoided_read_bytes"]


def _case(tile_kib: int, reuse_count: int, budget_kib: int, produced: bool) -> dict[str, int | bool]:
    return {
        "tile_bytes": tile_kib * KIB,
        "reuse_count": reuse_count,
        "budget_bytes": budget_kib * KIB,
        "produced": produced,
    }


_AVOIDED = FunctionExercise(
    reference=_avoided_bytes,
    cases=[
        _case(32, 3, 96, False),
        _case(128, 3, 96, False),
        _case(96, 3, 96, False),
        _case(32, 1, 96, True),
        _case(32, 3, 96, True),
        _case(128, 3, 96, True),
        _case(1, 1, 1, False),
    ],
    mistakes=[
        Mistake(
            lambda tile_bytes, reuse_count, budget_bytes, produced: (
                tile_bytes * (reuse_count if produced else reuse_count - 1) if tile_bytes <= budget_bytes else 0
            ),
            Text(
                zh="片上产生的数据块还省了一次写：读 reuse_count 次，写 1 次。",
                en="A tile produced on chip saves its write as well: reuse_count reads and one write.",
            ),
        ),
        Mistake(
            lambda tile_bytes, reuse_count, budget_bytes, produced: tile_bytes * reuse_count,
            Text(
                zh="第一次还是要从显存读：读入的数据块省下的是 reuse_count − 1 次。",
                en="The first read still comes from memory: a tile that is read avoids reuse_count - 1 of them.",
            ),
        ),
        Mistake(
            lambda tile_bytes, reuse_count, budget_bytes, produced: (
                tile_bytes * (reuse_count - 1) if tile_bytes <= budget_bytes else 0
            ),
            Text(
                zh="把片上产生的数据块当成了读入的：它连第一次读也不经过显存，还少一次写。",
                en="A tile produced on chip was counted like one that is read in: its first read and its write stay out "
                "of memory too.",
            ),
        ),
        Mistake(
            lambda tile_bytes, reuse_count, budget_bytes, produced: (
                tile_bytes * (reuse_count - 1) if tile_bytes < budget_bytes else 0
            ),
            Text(
                zh="和预算一样大的数据块放得下：要用 <=，不是 <。",
                en="A tile exactly as large as the budget fits: <= and not <.",
            ),
        ),
        Mistake(
            lambda tile_bytes, reuse_count, budget_bytes, produced: (
                tile_bytes * (reuse_count + (1 if produced else -1))
            ),
            Text(
                zh="别忘了核对预算：放不下，省下的就是 0。", en="Check the budget: a tile that does not fit avoids 0."
            ),
        ),
    ],
    hints=(
        Text(
            zh="先看放不放得下：tile_bytes <= budget_bytes 吗？放不下就返回 0。",
            en="Does it fit at all: is tile_bytes <= budget_bytes? If not, return 0.",
        ),
        Text(
            zh="读入的数据块：第一次读免不了，省下 reuse_count − 1 次。片上产生的：一次写、reuse_count 次读都省了。",
            en="A tile that is read: the first read remains, reuse_count - 1 are saved. One that is produced on chip: one "
            "write and reuse_count reads are saved.",
        ),
        Text(
            zh="passages = reuse_count + 1 if produced else reuse_count - 1，再乘 tile_bytes。",
            en="passages = reuse_count + 1 if produced else reuse_count - 1, times tile_bytes.",
        ),
    ),
    done=Text(
        zh="读入和片上产生差两个数据块：一次写，加上读入时省不掉的第一次读。",
        en="Read and produced differ by two tiles: the write, and the first read that nothing avoids.",
    ),
    key="check_avoided_bytes",
    lesson=_LESSON,
)


def check_avoided_bytes(attempt: object) -> Feedback:
    """Check the learner's ``avoided_bytes(tile_bytes, reuse_count, budget_bytes, produced)``."""
    return _AVOIDED.check(attempt)


# -- exercise 2: a number worked out by hand --------------------------------------------------------------------

_GEMM_TILE = ValueExercise(
    answer=tile_operand_bytes(128, 256, 64, buffers=3, element_bytes=2)["total_bytes"] // KIB,
    mistakes={
        48: Text(zh="48 KiB 是一份缓冲；题目要三份。", en="48 KiB is one buffer; the question has three of them."),
        96: Text(zh="96 KiB 是两份缓冲；题目要三份。", en="96 KiB is two buffers; the question has three."),
        72: Text(
            zh="fp16 每个元素 2 字节；72 是按 1 字节算的。", en="An fp16 element has 2 bytes; 72 comes from 1 byte."
        ),
        288: Text(
            zh="fp16 每个元素 2 字节；288 是按 fp32 的 4 字节算的。",
            en="An fp16 element has 2 bytes; 288 comes from fp32's 4.",
        ),
    },
    hints=(
        Text(
            zh="A 的数据块是 128 × 64，B 的是 64 × 256。各有多少个元素？",
            en="A's tile is 128 x 64, B's is 64 x 256. How many elements each?",
        ),
        Text(
            zh="(128 × 64 + 64 × 256) × 2 字节 = 48 KiB，这是一份。",
            en="(128 x 64 + 64 x 256) x 2 bytes = 48 KiB; that is one buffer.",
        ),
        Text(zh="三份：3 × 48 KiB。", en="Three of them: 3 x 48 KiB."),
    ),
    done=Text(
        zh="147,456 字节：A10 的一个线程块最多用 101,376 字节，放不下；A100 最多 166,912 字节，放得下。",
        en="147,456 bytes: too much for a block on an A10 (101,376), within an A100's limit (166,912).",
    ),
    key="check_gemm_tile_kib",
    lesson=_LESSON,
)


def check_gemm_tile_kib(attempt: object) -> Feedback:
    """Check the KiB of shared memory of a 128 x 256 x 64 fp16 GEMM tile with three buffers."""
    return _GEMM_TILE.check(attempt)


# -- quiz -------------------------------------------------------------------------------------------------------


def reuse_quiz() -> Quiz:
    """Three questions on fitting, on what ends fusion, and on occupancy."""
    return Quiz([_too_large(), _reduction(), _occupancy()], key="reuse_quiz", lesson=_LESSON)


def _too_large() -> Question:
    return Question(
        Text(
            zh="128 KiB 的数据块放不进 96 KiB 的预算。由此能得出什么？",
            en="A 128 KiB tile does not fit a 96 KiB budget. What follows?",
        ),
        (
            Choice(
                Text(zh="这几个算子不能融合", en="These operators cannot be fused"),
                Text(
                    zh="放不下的只是这一种切法。切成 2 × 64 KiB，省下的读和整块放得下时一样多。",
                    en="Only this size does not fit. Cut into 2 x 64 KiB it avoids what the whole tile would have avoided.",
                ),
            ),
            Choice(
                Text(zh="换一个切法再核对", en="Cut it differently and check again"),
                Text(
                    zh="容量否定的只是这个大小。逐元素算子怎么切都行；归约和矩阵乘切小了要付一点代价。",
                    en="Capacity rules out this size only. Elementwise operators take any cut; reductions and GEMMs pay "
                    "something for it.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="可以只放一部分，省下 96/128 的读", en="Keep part of it and avoid 96/128 of the reads"),
                Text(
                    zh="模型假设整块驻留。只留一部分就是重新切块：先说清切成几块，再算。",
                    en="The model assumes that the whole tile stays. Keeping a part is cutting it: say into how many pieces, "
                    "and count.",
                ),
            ),
        ),
    )


def _reduction() -> Question:
    return Question(
        Text(
            zh="softmax 要等一整行到齐才能写出结果。行很长、放不进片上时呢？",
            en="A softmax must see its whole row before it writes. What if the row is too long for the chip?",
        ),
        (
            Choice(
                Text(zh="归约把融合打断了，只能退回五个核函数", en="The reduction ends fusion: back to five kernels"),
                Text(
                    zh="边读边更新最大值与和，再读一遍并写出：还是一个核函数，只多读一遍。",
                    en="Update maximum and sum while reading, read once more and write: one kernel, one extra read.",
                ),
            ),
            Choice(
                Text(zh="读两遍：三份矩阵，而不是八份", en="Read it twice: three matrices instead of eight"),
                Text(
                    zh="第一遍求最大值与和，第二遍写出。比整行驻留的两份多一份，比逐个算子的八份少得多。",
                    en="One pass for maximum and sum, one to write: one matrix more than with the row resident, far fewer than "
                    "the eight of separate operators.",
                ),
                right=True,
            ),
            Choice(
                Text(zh="没有区别，缓存会兜底", en="No difference: the caches take care of it"),
                Text(
                    zh="L2 由整块 GPU 共用；同时处理的行加起来超过了 L2，第二遍就要回显存去读。",
                    en="The whole GPU shares the L2. When the rows being processed at once exceed it, the second pass reads "
                    "device memory again.",
                ),
            ),
        ),
    )


def _occupancy() -> Question:
    return Question(
        Text(
            zh="数据块减半，一个 SM 上驻留的线程块从 2 个变成 4 个，占用率翻倍。速度呢？",
            en="Halving the tile takes an SM from 2 resident blocks to 4 and doubles occupancy. What happens to the speed?",
        ),
        (
            Choice(
                Text(zh="翻倍，占用率就是利用率", en="It doubles: occupancy is utilization"),
                Text(
                    zh="占用率说的是驻留了多少 warp，不是它们干了多少活。",
                    en="Occupancy says how many warps are resident, not how much work they do.",
                ),
            ),
            Choice(
                Text(zh="一定变慢，数据块小了复用就少", en="It surely falls: a smaller tile has less reuse"),
                Text(
                    zh="矩阵乘的复用确实会变少，但更多的 warp 能掩盖更多延迟；哪边赢要量。",
                    en="A GEMM does lose reuse, but more warps hide more latency. Which one wins must be measured.",
                ),
            ),
            Choice(
                Text(zh="说不准，要实测", en="You cannot tell: measure"),
                Text(
                    zh="延迟掩盖得更多，复用却可能变少，一正一反；不少很快的核函数，占用率并不高。",
                    en="More latency is hidden, but less may be reused: it can go either way. Many fast kernels run at modest "
                    "occupancy.",
                ),
                right=True,
            ),
        ),
    )
