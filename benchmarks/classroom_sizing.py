"""From what one learner takes to what a class takes: memory, cores and machines, as arithmetic that can be followed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GB = 1e9


@dataclass(frozen=True)
class Share:
    """What one learner with a server of their own takes.

    Args:
        server_bytes, kernel_bytes: held while the lesson is open; nothing shared is taken off.
        moving_cores: processors in use while a slider is moved.
        starting_seconds, lesson_seconds: processor time to start the server, and to open and run the lesson.
    """

    server_bytes: float
    kernel_bytes: float
    moving_cores: float
    starting_seconds: float
    lesson_seconds: float


@dataclass(frozen=True)
class Node:
    """A machine of a cluster: what of it learners may have.

    Args:
        cores, bytes: of the machine.
        for_learners: what is left of both once the system and the cluster have taken theirs.
    """

    cores: int
    bytes: float
    for_learners: float = 0.85


@dataclass(frozen=True)
class Size:
    """What a class takes in all."""

    learners: int
    bytes: float
    moving_cores: float
    opening_cores: float
    nodes: int


def size(learners: int, share: Share, opening_seconds: float, node: Node) -> Size:
    """A class in which everybody opens the lesson within ``opening_seconds``, on machines like ``node``."""
    memory = learners * (share.server_bytes + share.kernel_bytes)
    moving = learners * share.moving_cores
    opening = learners * (share.starting_seconds + share.lesson_seconds) / opening_seconds
    nodes = max(
        memory / (node.bytes * node.for_learners), max(moving, opening) / (node.cores * node.for_learners), 1.0
    )
    return Size(learners, memory, moving, opening, math.ceil(nodes))


def sizing_rows(learners: Sequence[int], share: Share, opening_seconds: float, node: Node) -> list[list[str]]:
    """One row a class, every figure with the product or quotient that it comes from."""
    return [_row(size(count, share, opening_seconds, node), share, opening_seconds, node) for count in learners]


def sizing_header(node: Node, opening_seconds: float) -> list[str]:
    """The header of ``sizing_rows``."""
    machine = f"machines of {node.cores} cores, {node.bytes / GB:.0f} GB"
    return ["learners", "memory", "cores: moving sliders", f"cores: all open within {opening_seconds:.0f} s", machine]


def _row(found: Size, share: Share, opening_seconds: float, node: Node) -> list[str]:
    memory = f"({share.server_bytes / 1e6:.0f} + {share.kernel_bytes / 1e6:.0f}) MB"
    opening = f"({share.starting_seconds:.1f} + {share.lesson_seconds:.1f}) s"
    usable = f"{node.for_learners:.0%}"
    by_memory = found.bytes / (node.bytes * node.for_learners)
    by_cores = max(found.moving_cores, found.opening_cores) / (node.cores * node.for_learners)
    return [
        f"{found.learners:,}",
        f"{found.learners:,} × {memory} = {found.bytes / GB:,.1f} GB",
        f"{found.learners:,} × {share.moving_cores:.3f} = {found.moving_cores:,.1f}",
        f"{found.learners:,} × {opening} ÷ {opening_seconds:.0f} s = {found.opening_cores:,.1f}",
        f"{found.nodes:,} (of {usable} of each: {by_memory:.2f} by memory, {by_cores:.2f} by cores)",
    ]
