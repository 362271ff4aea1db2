"""Two rankings made one by reciprocal rank fusion.

Cormack, Clarke and Buettcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods"
(https://doi.org/10.1145/1571941.1572114): a row's score is the sum of 1 / (60 + rank) over the rankings it stands in.
Ranks are counted over all types together, so that scores of different types compare; equal scores share a rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RANK_CONSTANT = 60


def ranks(scores: Mapping[str, float]) -> dict[str, int]:
    """The rank of each id, from 1, best score first; equal scores have equal ranks."""
    out: dict[str, int] = {}
    last: float | None = None
    rank = 0
    for place, row_id in enumerate(sorted(scores, key=lambda row_id: -scores[row_id]), start=1):
        if scores[row_id] != last:
            rank, last = place, scores[row_id]
        out[row_id] = rank
    return out


def fuse(rankings: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """The fused score of each id, in (0, 1]: 1 for a row that every ranking puts first."""
    best = len(rankings) / (RANK_CONSTANT + 1)
    sums: dict[str, float] = {}
    for ranking in rankings:
        for row_id, rank in ranking.items():
            sums[row_id] = sums.get(row_id, 0.0) + 1.0 / (RANK_CONSTANT + rank)
    return {row_id: min(1.0, total / best) for row_id, total in sums.items()}
