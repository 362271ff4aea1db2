"""What one search found, weighed: the order of its rows, their scores, and the hits that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from serve.arms import Arm, keyword_score
from serve.evidence import Evidence, Weighing, Weights, chance
from serve.fusion import reciprocal_ranks
from serve.query import Query
from storage.ports import Row
from storage.records import AtomicFact, MemoryType

Fusion = Literal["evidence", "rrf"]
OFFSET = 1.5
"""Log-odds taken off the sum of both arms, so that 0.5 is where as many related rows are missed as unrelated ones are
taken: 1.0 on LoCoMo, 2.0 on MemDaily."""
MOST_FACTS = 50
"""Facts shown with one episode."""


@dataclass(frozen=True)
class Hit:
    """One row of an answer. `score` is in [0, 1] and comparable with all others of the answer."""

    row: Row
    score: float
    scores: dict[str, float]
    facts: tuple[Hit, ...] = ()
    """Of an episode: its facts that matched, best first."""

    def with_score(self, part: str, score: float) -> Hit:
        """The same row with a score of a later step."""
        return replace(self, score=score, scores={**self.scores, part: round(score, 6)})


class Found:
    """The rows of all living arms with one score each."""

    def __init__(
        self, query: Query, arms: Sequence[Arm], weighing: Weighing, *, fusion: Fusion, milliseconds: float
    ) -> None:
        self.milliseconds = milliseconds
        self.evidence = weighing.all()
        self._arms = arms
        self._weighing = weighing
        self._types = {**dict.fromkeys(self.evidence, MemoryType.EPISODE), **weighing.types}
        self._rrf: dict[str, float] = {}
        self.scores = {row_id: _score(arms, evidence, weighing.weights) for row_id, evidence in self.evidence.items()}
        if query.method in ("hybrid", "agentic"):
            self._rrf = reciprocal_ranks(arms, weighing, query.memory_types)
            if fusion == "rrf":  # facts that were searched only to find episodes keep a score among themselves
                others = [kind for kind in MemoryType if kind not in query.memory_types]
                self.scores |= reciprocal_ranks(arms, weighing, others) | self._rrf

    def in_order(self, kinds: Sequence[MemoryType]) -> dict[MemoryType, list[str]]:
        """Ids of each asked type, best first; equal scores in the order of ids, so that an answer never flickers."""
        ordered: dict[MemoryType, list[str]] = {kind: [] for kind in kinds}
        for row_id in sorted(self.scores, key=lambda row_id: (-self.scores[row_id], row_id)):
            if self._types[row_id] in ordered:
                ordered[self._types[row_id]].append(row_id)
        return ordered

    def full(self, kinds: Sequence[MemoryType]) -> bool:
        """Whether there may be more rows of these types than were fetched."""
        return any(arm.full & set(kinds) for arm in self._arms)

    def facts_of(self, episodes: Sequence[Row]) -> dict[str, list[str]]:
        """Ids of the facts of each of these episodes that the arms found, best first."""
        facts: dict[str, list[str]] = {row.id: [] for row in episodes}
        for row_id, kind in self._types.items():
            episode_id = self._weighing.episode_of(row_id)
            if kind is MemoryType.ATOMIC_FACT and episode_id in facts:
                facts[episode_id].append(row_id)
        return {i: sorted(ids, key=lambda row_id: (-self.scores[row_id], row_id))[:MOST_FACTS]
                for i, ids in facts.items() if ids}  # fmt: skip

    def hit(self, row: Row, facts: Sequence[AtomicFact] = ()) -> Hit:
        """`row` as a hit, with what each arm and the fusion say of it."""
        scores = {arm.name: round(arm.scores[row.id], 6) for arm in self._arms if row.id in arm.scores}
        scores |= {f"{arm.name}_raw": round(arm.raw[row.id], 6) for arm in self._arms if row.id in arm.raw}
        if row.id in self._rrf:
            scores["rrf"] = round(self._rrf[row.id], 6)
        return Hit(row, round(self.scores[row.id], 6), scores, tuple(self.hit(fact) for fact in facts))


def _score(arms: Sequence[Arm], evidence: Evidence, weights: Weights) -> float:
    """By the arms that live. Words alone tell no chance, so they keep the scale of BM25."""
    names = {arm.name for arm in arms}
    if names == {"keyword"}:
        return keyword_score(evidence.total / weights.words)
    return chance(evidence.total - (OFFSET if "keyword" in names else 0.0))
