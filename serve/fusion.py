"""Two rankings made one: by the evidence of both, or by reciprocal rank fusion.

Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009, https://doi.org/10.1145/1571941.1572114) adds 1 / (60 + rank)
over the rankings a row stands in. It forgets by how much a row is better, and lost to the sum of evidence on every
development set (benchmarks/retrieval.py), so it is the alternative: EVERCORE_SEARCH_FUSION=rrf. Its score is shown in
each hit's `scores` either way. Ranks are counted over all types together, so that scores of different types compare;
equal scores share a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from serve.arms import Arm
from serve.evidence import Weighing
from storage.records import MemoryType

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


def reciprocal_ranks(arms: Iterable[Arm], weighing: Weighing, kinds: Sequence[MemoryType]) -> dict[str, float]:
    """The fused score of each row of these types; an episode stands where its best message or fact does."""
    return fuse([ranks(_lifted(arm, weighing, frozenset(kinds))) for arm in arms])


def _lifted(arm: Arm, weighing: Weighing, kinds: frozenset[MemoryType]) -> dict[str, float]:
    raw = {row_id: score for row_id, score in arm.raw.items() if arm.types[row_id] in kinds}
    if MemoryType.EPISODE in kinds:
        for row_id, score in arm.raw.items():
            episode_id = weighing.episode_of(row_id)
            if episode_id is not None and score > raw.get(episode_id, float("-inf")):
                raw[episode_id] = score
    return raw
