"""Q2 for attention: the score matrix through memory, or tile by tile on chip with K and V read again."""

from __future__ import annotations

from typing import TypedDict

from lessons_lib.base.units import divided_up, quotient
from lessons_lib.base.validate import require_int


class AttentionTraffic(TypedDict):
    """What ``attention_traffic`` returns."""

    score_bytes: int
    unfused_bytes: int
    query_output_bytes: int
    kv_bytes: int
    kv_reads: int
    kv_reread_bytes: int
    tiled_bytes: int
    tiled_once_bytes: int
    ratio: float


def attention_traffic(
    queries: int, head_dim: int, block_queries: int, keys: int | None = None, element_bytes: int = 2
) -> AttentionTraffic:
    """Bytes of one head of attention: four kernels, or one that keeps blocks of scores on chip.

    Unfused, with Q, O ``[queries, head_dim]``, K, V ``[keys, head_dim]`` and S ``[queries, keys]``: matmul (read Q,
    K, write S), scale (read S, write S), softmax (read S, write S), matmul (read S, V, write O):
    ``6 S + Q + K + V + O``; each GEMM is counted as reading an operand once, though tiles read it more often.

    Tiled (FlashAttention's loop): each block of ``block_queries`` rows of Q goes once through all of K and V, with
    the maximum and the sum of each row carried along; S never leaves the chip:
    ``Q + O + ceil(queries / block_queries) x (K + V)``.

    Args:
        queries: rows of Q, at least 1.
        head_dim: columns of Q, K, V and O, at least 1.
        block_queries: rows of Q in a block, at least 1; more than ``queries`` counts as all.
        keys: rows of K and V, at least 1; ``None``: as many as ``queries``.
        element_bytes: bytes of every element, at least 1 (fp16: 2).

    Returns:
        ``score_bytes``: S once; ``unfused_bytes``; ``query_output_bytes``: Q and O; ``kv_bytes``: K and V once;
        ``kv_reads``: how often they are read in all; ``kv_reread_bytes``: all those reads but the first;
        ``tiled_bytes``: logical, ``query_output_bytes + kv_bytes + kv_reread_bytes``; ``tiled_once_bytes``: the same
        without the re-reads, which is about what DRAM sees when K and V stay in L2 (compare ``kv_bytes`` with
        ``Gpu.l2_bytes``; all heads that run at once share it); ``ratio``: unfused / tiled, both logical.

    Assumes one head, no mask (a causal one would halve the work on both sides) and no dropout; forward only.

    Raises:
        ValueError: an argument is not an integer (``True`` and ``1.0`` are none) or is below 1.

    Source of the tiled loop: T. Dao et al., "FlashAttention", NeurIPS 2022; with queries as the outer loop as in
    T. Dao, "FlashAttention-2", ICLR 2024.
    """
    queries, head_dim = require_int("queries", queries, 1), require_int("head_dim", head_dim, 1)
    block_queries = require_int("block_queries", block_queries, 1)
    keys = queries if keys is None else require_int("keys", keys, 1)
    element_bytes = require_int("element_bytes", element_bytes, 1)
    scores = element_bytes * queries * keys
    query_output = 2 * element_bytes * queries * head_dim
    kv = 2 * element_bytes * keys * head_dim
    kv_reads = divided_up(queries, block_queries)
    unfused, tiled = 6 * scores + query_output + kv, query_output + kv_reads * kv
    return {
        "score_bytes": scores,
        "unfused_bytes": unfused,
        "query_output_bytes": query_output,
        "kv_bytes": kv,
        "kv_reads": kv_reads,
        "kv_reread_bytes": (kv_reads - 1) * kv,
        "tiled_bytes": tiled,
        "tiled_once_bytes": query_output + kv,
        "ratio": quotient(unfused, tiled),
    }
