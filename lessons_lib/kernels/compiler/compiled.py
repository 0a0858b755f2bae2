"""What a compiler made of one kernel for one GPU: the figures, what follows from them, and the words for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lessons_lib.base.gpus import Gpu
from lessons_lib.base.text import Text
from lessons_lib.base.units import count_of, format_bytes
from lessons_lib.reuse.occupancy import NOT_MODELLED, Limiter, Occupancy, is_modelled, occupancy
from lessons_lib.show.shown import Shown, report
from lessons_lib.show.table import Table

Status = Literal["ok", "over_shared", "failed", "timeout", "unsupported", "no_triton"]
Family = Literal["tcgen05", "wgmma", "mma", "mfma", "fma"]

FAMILY_WORDS: dict[Family, Text] = {
    "tcgen05": Text(zh="张量核心（tcgen05）", en="tensor cores (tcgen05)"),
    "wgmma": Text(zh="张量核心（wgmma）", en="tensor cores (wgmma)"),
    "mma": Text(zh="张量核心（mma）", en="tensor cores (mma)"),
    "mfma": Text(zh="矩阵核心（mfma）", en="matrix cores (mfma)"),
    "fma": Text(zh="普通乘加单元（fma）", en="ordinary units (fma)"),
}
LIMITER_WORDS: dict[Limiter, Text] = {
    "warps": Text(zh="warp 数", en="warps"),
    "registers": Text(zh="寄存器", en="registers"),
    "shared_memory": Text(zh="共享内存", en="shared memory"),
    "blocks": Text(zh="线程块数", en="blocks"),
}
NO_BF16 = Text(zh="{gpu} 没有 bfloat16 硬件", en="the {gpu} has no bfloat16 units")
TOO_MANY_THREADS = Text(
    zh="每个线程块 {threads} 个线程，超过 {gpu} 的上限 {limit}",
    en="a block of {threads} threads is more than the {gpu} can launch ({limit})",
)
TIMED_OUT = Text(zh="{limit:g} 秒内没有编译完，放弃了", en="not compiled within {limit:g} s: given up")
NOT_COMPILED = Text(zh="这里没有 Triton，没法编译", en="there is no Triton here to compile with")
_COMPILER_SAYS = Text(zh="编译器报错：{error}", en="the compiler says: {error}")

NONE, UNKNOWN = Text(zh="无", en="none"), "–"
_A_THREAD = Text(zh="每线程 {bytes}", en="{bytes} per thread")
_OVER = Text(
    zh="编译得过，启动不了：一个线程块要 {asked} 共享内存，{gpu} 最多给 {limit}",
    en="compiles, but does not launch: a block asks for {asked} of shared memory, the {gpu} gives {limit} at most",
)
_RUNS = Text(zh="可以启动，没有寄存器溢出", en="launches, no register spill")
_SPILLS = Text(
    zh="可以启动，但寄存器溢出：每个线程有 {bytes} 放到了显存里",
    en="launches, but spills registers: {bytes} per thread go to device memory",
)
_MADE_BY = Text(
    zh="Triton {version} 为 {target} 编译，没有用到 GPU；{sizes}。换一个版本，寄存器数会变。",
    en="Compiled by Triton {version} for {target}, without a GPU; {sizes}. Another version, other register counts.",
)
_MULTIPLE = Text(zh="各个大小都是 16 的倍数", en="sizes are multiples of 16")
_ANY_SIZE = Text(zh="各个大小不是 16 的倍数", en="sizes are not multiples of 16")
_NEEDED = Text(zh="这个核函数", en="this kernel")
_LIMIT = Text(zh="{gpu} 的上限", en="limit of the {gpu}")
_VERDICT = Text(zh="结论", en="verdict")


@dataclass(frozen=True, repr=False)
class CompileReport:
    """One kernel compiled for one GPU, specialized as a launch would be. Displayed as a table.

    Attributes:
        kernel: its name.
        gpu: whose limits the figures are held against.
        dtype: of the tensors.
        tile: what one program works on, in elements.
        num_warps, num_stages: as given to Triton.
        sizes_multiple_of_16: whether sizes and strides were said to be.
        status: ``"ok"``; ``"over_shared"``: compiled, and asks for more shared memory than a block may have;
            ``"failed"``: did not compile; ``"timeout"``: given up; ``"unsupported"``: the GPU cannot do it, not
            tried; ``"no_triton"``: nothing here to compile with. Only the first two have figures.
        detail: why there are no figures.
        registers_per_thread: 32-bit (vector) registers.
        spill_bytes: of each thread's values that went to memory (its stack; on AMD its scratch memory).
        shared_bytes: a block asks for, LDS on AMD.
        instruction_family: the unit that multiplies: a generation of tensor cores, AMD's matrix cores, or the
            ordinary units (``"fma"``).
        load_bytes: the widest load of one thread from device memory; 0 where none is left to a single thread.
        compile_seconds: on the machine that compiled it.
        triton_version: that compiled it; figures differ from version to version.

    A figure is ``None`` where there is none.
    """

    kernel: str
    gpu: Gpu
    dtype: str
    tile: tuple[int, ...]
    num_warps: int
    num_stages: int
    sizes_multiple_of_16: bool
    status: Status
    detail: Text | None = None
    registers_per_thread: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    instruction_family: Family | None = None
    load_bytes: int | None = None
    compile_seconds: float | None = None
    triton_version: str | None = None

    @property
    def compiled(self) -> bool:
        return self.status in ("ok", "over_shared")

    @property
    def threads_per_block(self) -> int:
        return self.num_warps * self.gpu.warp_size

    @property
    def launches(self) -> bool | None:
        """Whether the GPU would start it; ``None`` where it was not compiled. Compiling is not launching."""
        return self.status == "ok" if self.compiled else None

    @property
    def spills(self) -> bool | None:
        return None if self.spill_bytes is None else self.spill_bytes > 0

    @property
    def occupancy(self) -> Occupancy | None:
        """Blocks and warps on one SM; ``None`` where it was not compiled, and on AMD, whose rules are others."""
        if not self.compiled or not self.registers_per_thread or not is_modelled(self.gpu):
            return None
        return occupancy(self.gpu, self.threads_per_block, self.registers_per_thread, self.shared_bytes or 0)

    # -- in words

    @property
    def tile_words(self) -> str:
        return tile_words(self.tile)

    @property
    def block_words(self) -> Text:
        """A thread block and the depth of its pipeline: ``4 warps × 32 threads, 1 stage``."""
        warps, size, stages = self.num_warps, self.gpu.warp_size, self.num_stages
        return Text(
            zh=f"{warps} 个 warp × {size} 线程，流水线 {stages} 级",
            en=f"{count_of(warps, 'warp')} × {size} threads, {count_of(stages, 'stage')}",
        )

    @property
    def verdict(self) -> Text:
        """What became of it, in one line."""
        if self.status == "over_shared":
            asked, limit = format_bytes(self.shared_bytes or 0), format_bytes(self.gpu.shared_bytes_per_block)
            return _OVER.format(asked=asked, limit=limit, gpu=self.gpu.name)
        if not self.compiled:
            return self.detail or NOT_COMPILED
        return _SPILLS.format(bytes=format_bytes(self.spill_bytes)) if self.spill_bytes else _RUNS

    @property
    def spill_words(self) -> str:
        if self.spill_bytes is None:
            return UNKNOWN
        return str(_A_THREAD.format(bytes=format_bytes(self.spill_bytes)) if self.spill_bytes else NONE)

    @property
    def blocks_words(self) -> str:
        """Blocks on one SM and the warp slots they fill."""
        found = self.occupancy
        return UNKNOWN if found is None else f"{found['blocks_per_sm']} ({share_words(found['occupancy'])})"

    @property
    def made_by(self) -> Text:
        """Which compiler, which target, which sizes: what the figures hold for."""
        sizes = _MULTIPLE if self.sizes_multiple_of_16 else _ANY_SIZE
        return _MADE_BY.format(version=self.triton_version, target=self.gpu.target, sizes=sizes)

    def limiter_words(self) -> Text | None:
        """What keeps more blocks off an SM."""
        found = self.occupancy
        if found is None:
            return None
        names = [LIMITER_WORDS[name] for name in found["limiters"]]
        return Text(zh="、".join(name.zh for name in names), en=" and ".join(name.en for name in names))

    def __repr__(self) -> str:
        return self._shown().plain

    def _repr_html_(self) -> str:
        return self._shown().html

    def _shown(self) -> Shown:
        title = f"{self.kernel}, {self.dtype}, {self.tile_words}"
        header = [title, str(_NEEDED), str(_LIMIT.format(gpu=self.gpu.name))]
        if not self.compiled:
            return report(Table([title, str(_VERDICT)], [[self.gpu.name, str(self.verdict)]], prose=True))
        words = [sentence(self.verdict), sentence(self.block_words), self.made_by]
        words += [] if is_modelled(self.gpu) else [sentence(NOT_MODELLED)]
        return report(Table(header, self._rows()), words)

    def _rows(self) -> list[list[str]]:
        gpu, found = self.gpu, self.occupancy
        rows = [
            (
                Text(zh="每线程寄存器", en="registers per thread"),
                _count(self.registers_per_thread),
                f"{gpu.max_registers_per_thread}",
            ),
            (Text(zh="寄存器溢出", en="register spill"), self.spill_words, UNKNOWN),
            (
                Text(zh="每线程块共享内存", en="shared memory per block"),
                format_bytes(self.shared_bytes or 0),
                format_bytes(gpu.shared_bytes_per_block),
            ),
            (
                Text(zh="每线程块线程数", en="threads per block"),
                f"{self.threads_per_block:,}",
                f"{gpu.threads_per_block:,}",
            ),
        ]
        if found is not None:
            warps = Text(zh="一个 SM 上的 warp", en="warps on one SM")
            blocks = Text(zh="一个 SM 上的线程块", en="blocks on one SM")
            limiter = f"{found['blocks_per_sm']} ({self.limiter_words()})"
            rows += [
                (blocks, limiter, str(gpu.blocks_per_sm)),
                (warps, f"{found['active_warps']} ({share_words(found['occupancy'])})", str(gpu.warps_per_sm)),
            ]
        rows += [
            (Text(zh="乘加单元", en="multiplies on"), str(family_words(self.instruction_family)), UNKNOWN),
            (Text(zh="每线程每次最多读", en="widest load per thread"), load_words(self.load_bytes), UNKNOWN),
        ]
        return [[str(label), needed, limit] for label, needed, limit in rows]


def share_words(share: float) -> str:
    """``0.125`` as ``12.5%``: warp slots come in eighths and sixteenths."""
    return f"{100 * share:.3g}%"


def tile_words(tile: tuple[int, ...]) -> str:
    """``(64, 64, 32)`` as ``64 × 64 × 32``."""
    return " × ".join(f"{side:,}" for side in tile)


def family_words(family: Family | None) -> str:
    """The unit that multiplies, in words."""
    return UNKNOWN if family is None else str(FAMILY_WORDS[family])


def load_words(load_bytes: int | None) -> str:
    """The width of a load; a dash where no thread loads for itself."""
    return format_bytes(load_bytes) if load_bytes else UNKNOWN


def compiler_error(error: str) -> Text:
    """The compiler's own line, introduced."""
    return _COMPILER_SAYS.format(error=error.replace("{", "(").replace("}", ")"))


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def sentence(words: Text) -> Text:
    """A clause as a sentence of its own."""
    return Text(zh=f"{words.zh.rstrip('。')}。", en=f"{words.en[:1].upper()}{words.en[1:].rstrip('.')}.")
