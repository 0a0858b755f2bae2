"""Which kernels wait for themselves: against reachability, pair by pair."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lessons_lib.graph.quotient import strongly_connected

EDGES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=24)
NODES = st.sets(st.integers(0, 8))


def reached(succs: list[set[int]], within: set[int], start: int) -> set[int]:
    """What ``start`` reaches in one step or more."""
    found, waiting = set[int](), [start]
    while waiting:
        fresh = (succs[waiting.pop()] & within) - found
        found |= fresh
        waiting += fresh
    return found


@given(EDGES, NODES)
def test_nodes_are_together_exactly_where_each_reaches_the_other(
    edges: list[tuple[int, int]], within: set[int]
) -> None:
    succs = [{b for a, b in edges if a == node} - {node} for node in range(9)]
    ways = {node: reached(succs, within, node) for node in within}
    expected = {frozenset({a, *(b for b in within if b in ways[a] and a in ways[b])}) for a in within}
    rings = list(strongly_connected(succs, within))
    assert {frozenset(ring) for ring in rings} == expected
    assert sorted(node for ring in rings for node in ring) == sorted(within)


def test_a_long_ring_and_a_long_chain_need_no_deep_recursion() -> None:
    count = 20_000
    ring = [{(node + 1) % count} for node in range(count)]
    assert [len(found) for found in strongly_connected(ring, set(range(count)))] == [count]
    chain = [{node + 1} if node + 1 < count else set() for node in range(count)]
    assert len(list(strongly_connected(chain, set(range(count))))) == count
