"""A compiler's own account of its kernels, brought back to the operators of the graph that a learner sees.

The compiler's nodes and the graph's operators come from one exported program, so most nodes have a parent there; that,
the operator's name and its place among its like tell which is which. Where the compiler replaced a stretch of the graph
by a pattern and kept no record, the stretch is found by what lies around it.

Pure: the standard library and this package only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lessons_lib.graph.compiler_groups import CompilerGroups
from lessons_lib.graph.grouping import grouping_of
from lessons_lib.graph.opgraph import OpGraph
from lessons_lib.graph.quotient import Quotient


@dataclass(frozen=True)
class Origin:
    """A node of the compiler's own graph: its name there, the operator's, and the exported node that it comes from.

    ``parent`` is blank where the compiler replaced something by a pattern and kept no record.
    """

    node: str
    operator: str
    parent: str


@dataclass(frozen=True)
class CompilerKernel:
    """One group of the compiler's: what it computes; ``call``: the library's operator, blank for generated loops."""

    origins: tuple[Origin, ...]
    call: str = ""


@dataclass(frozen=True)
class Mapped:
    """Operator by operator the number of its kernel; see ``CompilerGroups`` for the other two."""

    kernel_of: Mapping[str, int]
    repeated: tuple[str, ...]
    guessed: tuple[str, ...]


def mapped(
    core: OpGraph, parent_of: Mapping[str, str], names: Mapping[str, str], kernels: Sequence[CompilerKernel]
) -> Mapped:
    """Which kernel each operator of ``core`` is in.

    Args:
        parent_of: operator -> the exported node that it comes from.
        names: operator -> the name of its ATen operator.
        kernels: in the order in which they run. Operators that share no kernel get numbers of their own.
    """
    return _Mapping(core, parent_of, names, kernels).mapped()


class _Mapping:
    def __init__(
        self,
        core: OpGraph,
        parent_of: Mapping[str, str],
        names: Mapping[str, str],
        kernels: Sequence[CompilerKernel],
    ) -> None:
        self.core, self.kernels = core, kernels
        self.wiring = core.wiring
        self.parts: dict[str, list[str]] = {}
        for name in core.launching:
            self.parts.setdefault(parent_of.get(name, ""), []).append(name)
        self.aten = {name: _alike(aten) for name, aten in names.items()}
        self.kernel_of: dict[str, int] = {}
        self.repeated: list[str] = []
        self.guessed: list[str] = []

    def mapped(self) -> Mapped:
        candidates: dict[str, set[int]] = {}
        for parent, parts in self.parts.items():
            candidates.update(self._candidates(parts, parent))
        for name in reversed(self.core.launching):  # readers first
            if name in candidates:
                self._choose(name, candidates[name])
        self._place_gemms()
        self._place_components()
        self._place_rest()
        self._part_cycles()
        place = {name: index for index, name in enumerate(self.core.launching)}
        return Mapped(
            dict(self.kernel_of), tuple(self.repeated), tuple(sorted(set(self.guessed), key=place.__getitem__))
        )

    # -- what the compiler has a record of ---------------------------------------------------------------------

    def _candidates(self, parts: list[str], parent: str) -> dict[str, set[int]]:
        """The kernels that compute the parts of one exported node: k-th of its operator there, k-th of it here."""
        where: dict[str, set[int]] = {}
        nodes: dict[str, list[str]] = {}
        for number, kernel in enumerate(self.kernels):
            for origin in kernel.origins:
                if parent and origin.parent == parent:
                    if origin.node not in where:
                        nodes.setdefault(_alike(origin.operator), []).append(origin.node)
                    where.setdefault(origin.node, set()).add(number)
        everywhere = set().union(*where.values()) if where else set()
        if len(parts) == 1 or len(everywhere) == 1:
            return dict.fromkeys(parts, everywhere) if everywhere else {}
        found = {}
        for name in parts:
            alike = nodes.get(self.aten.get(name, ""), [])
            if alike:
                found[name] = where[alike.pop(0)]
        return found

    def _choose(self, name: str, kernels: set[int]) -> None:
        """Of several kernels that compute an operator, the last from which all its readers can still get it.

        A GEMM, or another operator that a library has, is where the library is called; the other kernels only prepare
        its operands.
        """
        called = {number for number in kernels if self.kernels[number].call}
        if called and self.core.op(name).kind in ("gemm", "opaque"):
            kernels = called
        if len(kernels) > 1:
            self.repeated.append(name)
        readers = [self.kernel_of[other] for other in self._names(self.wiring.succs, name) if other in self.kernel_of]
        in_time = [number for number in kernels if number <= min(readers, default=number)]
        self.kernel_of[name] = max(in_time, default=min(kernels))

    # -- what it has none of -----------------------------------------------------------------------------------

    def _place_gemms(self) -> None:
        """GEMMs that a pattern gave a sum (``addmm``): they are where that sum is, in a library call without a GEMM."""
        taken = {number for name, number in self.kernel_of.items() if self.core.op(name).kind == "gemm"}
        for name in self.core.launching:
            if name in self.kernel_of or self.core.op(name).kind != "gemm":
                continue
            for reader in self._names(self.wiring.succs, name):
                number = self.kernel_of.get(reader, -1)
                if number >= 0 and self.kernels[number].call and number not in taken:
                    taken.add(number)
                    self._guess([name], number)
                    break

    def _place_components(self) -> None:
        """Operators that a pattern replaced: a stretch of the graph for each kernel whose nodes have no parent."""
        nameless = {n for n, kernel in enumerate(self.kernels) if any(not origin.parent for origin in kernel.origins)}
        whole = sorted(n for n in nameless if n not in self.kernel_of.values())
        stretches = self._unplaced_stretches()
        for stretch in stretches:
            beside = {self.kernel_of[name] for name in self._neighbours(stretch) if name in self.kernel_of}
            chosen = sorted(beside & nameless - set(whole))
            if chosen:
                self._guess(stretch, chosen[0])
        left = [stretch for stretch in stretches if stretch[0] not in self.kernel_of]
        with_gemms = [s for s in left if any(self.core.op(name).kind == "gemm" for name in s)]
        left = with_gemms if len(with_gemms) == len(whole) else left
        if len(left) == len(whole):
            for stretch, number in zip(left, whole, strict=True):
                self._guess(stretch, number)

    def _unplaced_stretches(self) -> list[list[str]]:
        """Connected operators without a kernel, in order."""
        seen: set[str] = set()
        stretches = []
        for start in self.core.launching:
            if start in self.kernel_of or start in seen:
                continue
            stretch, waiting = {start}, [start]
            while waiting:
                for other in self._neighbours([waiting.pop()]):
                    if other not in self.kernel_of and other not in stretch:
                        stretch.add(other)
                        waiting.append(other)
            seen |= stretch
            stretches.append([name for name in self.core.launching if name in stretch])
        return stretches

    def _place_rest(self) -> None:
        """The remaining ones, from the last: into the loops that read them, else those that feed them, else alone."""
        for name in reversed(self.core.launching):
            if name not in self.kernel_of:
                after = {self.kernel_of[other] for other in self._names(self.wiring.succs, name)}
                if after and self._loops(min(after)):
                    self._guess([name], min(after))
        for name in self.core.launching:
            if name not in self.kernel_of:
                before = [self.kernel_of.get(other, -1) for other in self._names(self.wiring.preds, name)]
                found = max(before, default=-1)
                self._guess([name], found if self._loops(found) else self._fresh())

    def _part_cycles(self) -> None:
        """Guessed operators leave kernels that would otherwise wait for one another."""
        while True:
            ids = self.wiring.ids
            numbers = sorted(set(self.kernel_of.values()))
            groups = [
                tuple(sorted(ids[name] for name, kernel in self.kernel_of.items() if kernel == number))
                for number in numbers
            ]
            quotient = Quotient(self.wiring, groups)
            if quotient.is_acyclic():
                return
            waiting = {numbers[position] for position in quotient.waiting()}
            movable = [
                name
                for name in dict.fromkeys([*self.guessed, *self.repeated])
                if self.kernel_of[name] in waiting and list(self.kernel_of.values()).count(self.kernel_of[name]) > 1
            ]
            if not movable:
                return
            self._guess([movable[0]], self._fresh())

    # -- parts -------------------------------------------------------------------------------------------------

    def _guess(self, names: Iterable[str], number: int) -> None:
        for name in names:
            self.kernel_of[name] = number
            self.guessed.append(name)

    def _loops(self, number: int) -> bool:
        return number >= len(self.kernels) or (number >= 0 and not self.kernels[number].call)

    def _fresh(self) -> int:
        return max([len(self.kernels) - 1, *self.kernel_of.values()]) + 1

    def _neighbours(self, names: Iterable[str]) -> set[str]:
        return {
            other
            for name in names
            for edges in (self.wiring.preds, self.wiring.succs)
            for other in self._names(edges, name)
        }

    def _names(self, edges: Sequence[Sequence[int]], name: str) -> list[str]:
        return [self.wiring.names[op] for op in edges[self.wiring.ids[name]]]


def groups_from(
    core: OpGraph, found: Mapped, kernels: Sequence[CompilerKernel], functions: Sequence[int], **about: Any
) -> CompilerGroups:
    """The mapping as ``CompilerGroups``; ``functions``: kernel by kernel; ``about``: its other fields."""
    by_kernel: dict[int, list[str]] = {}
    for name in core.launching:
        by_kernel.setdefault(found.kernel_of[name], []).append(name)
    grouping = grouping_of(core, by_kernel.values())
    numbers = [found.kernel_of[group[0]] for group in grouping.groups]
    beyond = max([-1, *functions]) + 1
    raw = [functions[n] if n < len(functions) else beyond + n for n in numbers]
    order = {number: index for index, number in enumerate(dict.fromkeys(raw))}
    return CompilerGroups(
        grouping,
        tuple(order[number] for number in raw),
        calls=tuple(kernels[n].call if n < len(kernels) else "" for n in numbers),
        repeated=found.repeated,
        guessed=found.guessed,
        extra=len(set(range(len(kernels))) - set(found.kernel_of.values())),
        **about,
    )


def _alike(operator: str) -> str:
    """One name for operators that compilers write in two ways."""
    return {"convert_element_type": "_to_copy", "_unsafe_index": "index"}.get(operator, operator)
