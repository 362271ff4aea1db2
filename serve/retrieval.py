"""Search over one tenant's memories: both arms, fusion, reranking where there is a reranker, and hydration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from models.protocols import Embedder, Reranker
from primitives.errors import StoreError
from serve.arms import Arm, keyword_arm, vector_arm
from serve.explanation import explanation_of
from serve.fusion import fuse, ranks
from serve.hydrate import hydrate
from serve.lift import lift_episodes
from serve.query import ALL_ABOVE_THRESHOLD, Query
from serve.reranking import rerank
from serve.visibility import shown
from storage.ports import Row
from storage.records import AtomicFact, MemoryType
from storage.stores import TenantStores

NO_LANGUAGE_MODEL = "no language model is configured; answered by hybrid"


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


@dataclass
class Answer:
    """What was found, by type, best first."""

    hits: dict[MemoryType, list[Hit]]
    degraded: dict[str, str] = field(default_factory=dict)
    truncated: bool = False
    timings_ms: dict[str, float] = field(default_factory=dict)
    explain: dict[str, Any] | None = None


class Retriever:
    """Searches one tenant's stores."""

    def __init__(self, *, stores: TenantStores, embedder: Embedder, reranker: Reranker | None = None) -> None:
        self._stores = stores
        self._embedder = embedder
        self._reranker = reranker

    async def search(self, query: Query) -> Answer:
        """An answer, also where one arm fails; StoreError or ModelError where nothing is left to answer with."""
        began = time.perf_counter()
        degraded = {"agentic": NO_LANGUAGE_MODEL} if query.method == "agentic" else {}
        if not query.partitions:
            return Answer({kind: [] for kind in query.memory_types}, degraded)
        arms = await self._arms(query)
        alive = [arm for arm in arms if not arm.error]
        degraded |= {arm.name: arm.error for arm in arms if arm.error}
        if not alive:
            raise StoreError("nothing could be searched", details=degraded, hint="`evercore doctor` says what is down.")

        rows: dict[str, Row] = {}
        partitions = frozenset(query.partitions)
        documents = self._stores.documents
        facts_of: dict[str, list[str]] = {}
        if MemoryType.EPISODE in query.memory_types:
            facts_of = await lift_episodes(alive, documents=documents, rows=rows)
        fused = score_all(alive, fused=query.method in ("hybrid", "agentic"), kinds=query.memory_types)
        ordered = in_order(fused, alive, query.memory_types)
        reading = time.perf_counter()
        found, more = await hydrate(ordered, query, documents=documents, rows=rows, partitions=partitions)
        read_ms = (time.perf_counter() - reading) * 1000

        hits = {k: [self._hit(row, fused, alive, facts_of, rows, query) for row in found[k]] for k in found}
        if self._reranker is not None:
            hits, fault = await rerank(self._reranker, query, hits)
            degraded |= {"reranker": fault} if fault else {}
        timings = {arm.name: arm.milliseconds for arm in arms} | {"hydrate": read_ms}
        embedding_ms = sum(arm.embedding_milliseconds for arm in arms)
        timings |= {"embed": embedding_ms} if embedding_ms else {}
        timings["total"] = (time.perf_counter() - began) * 1000
        return Answer(
            hits=hits,
            degraded=degraded,
            truncated=query.top_k == ALL_ABOVE_THRESHOLD and (more or any(arm.full for arm in alive)),
            timings_ms={name: round(value, 2) for name, value in timings.items()},
            explain=explanation_of(arms, fused=fused, hits=[h.row.id for k in hits for h in hits[k]], facts_of=facts_of)
            if query.explain
            else None,
        )

    async def _arms(self, query: Query) -> list[Arm]:
        kinds = list(query.memory_types)
        if MemoryType.EPISODE in kinds and MemoryType.ATOMIC_FACT not in kinds:
            kinds.append(MemoryType.ATOMIC_FACT)  # facts find their episodes, also where nobody asks to see them
        runs = []
        if query.method != "vector":
            runs.append(keyword_arm(query, kinds, self._stores))
        if query.method != "keyword":
            runs.append(vector_arm(query, kinds, self._stores, self._embedder))
        return list(await asyncio.gather(*runs))

    def _hit(
        self,
        row: Row,
        fused: Mapping[str, float],
        arms: Sequence[Arm],
        facts_of: Mapping[str, Sequence[str]],
        rows: Mapping[str, Row],
        query: Query,
    ) -> Hit:
        partitions = frozenset(query.partitions)
        scores = {arm.name: round(arm.scores[row.id], 6) for arm in arms if row.id in arm.scores}
        scores |= {f"{arm.name}_raw": round(arm.raw[row.id], 6) for arm in arms if row.id in arm.raw}
        if query.method in ("hybrid", "agentic"):
            scores["rrf"] = round(fused[row.id], 6)
        facts = []
        for fact_id in facts_of.get(row.id, ()):
            fact = rows.get(fact_id)
            if isinstance(fact, AtomicFact) and shown(fact, query, partitions=partitions):
                facts.append(self._hit(fact, fused, arms, {}, rows, query))
        facts.sort(key=lambda hit: -hit.score)
        return Hit(row, round(fused[row.id], 6), scores, tuple(facts))


def score_all(arms: Sequence[Arm], *, fused: bool, kinds: Sequence[MemoryType]) -> dict[str, float]:
    """One score for each row that any arm found.

    Facts that were searched only to find episodes are ranked among themselves: they must not push down what was asked.
    """
    if not fused:
        return dict(arms[0].scores)
    asked = set(kinds)
    scores = fuse([ranks({i: arm.raw[i] for i, kind in arm.types.items() if kind not in asked}) for arm in arms])
    return scores | fuse([ranks({i: arm.raw[i] for i, kind in arm.types.items() if kind in asked}) for arm in arms])


def in_order(
    scores: Mapping[str, float], arms: Sequence[Arm], kinds: Sequence[MemoryType]
) -> dict[MemoryType, list[str]]:
    """Ids of each asked type, best first; equal scores in the order of ids, so that an answer never flickers."""
    types = {row_id: kind for arm in arms for row_id, kind in arm.types.items()}
    ordered: dict[MemoryType, list[str]] = {kind: [] for kind in kinds}
    for row_id in sorted(scores, key=lambda row_id: (-scores[row_id], row_id)):
        if types[row_id] in ordered:
            ordered[types[row_id]].append(row_id)
    return ordered
