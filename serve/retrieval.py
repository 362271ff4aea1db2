"""Search over one tenant's memories: both arms, fusion, reranking where there is a reranker, and hydration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from models.protocols import Embedder, Reranker
from primitives.clock import now_ms
from primitives.errors import StoreError
from serve.arms import Arm, keyword_arm, similarities, vector_arm
from serve.evidence import WEIGHTS, Weighing, Weights
from serve.explanation import explanation_of
from serve.found import Found, Fusion, Hit
from serve.hydrate import hydrate
from serve.moments import stretches_in
from serve.query import ALL_ABOVE_THRESHOLD, Query
from serve.reranking import rerank
from serve.visibility import shown
from storage.ports import Row
from storage.records import AtomicFact, MemoryType
from storage.stores import TenantStores

NO_LANGUAGE_MODEL = "no language model is configured; answered by hybrid"
TOPICAL = frozenset({MemoryType.EPISODE, MemoryType.ATOMIC_FACT, MemoryType.RAW_MESSAGE})
"""Types that tell the same stretch of a conversation, so that each speaks for the others."""


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

    def __init__(
        self, *, stores: TenantStores, embedder: Embedder, reranker: Reranker | None = None,
        fusion: Fusion = "evidence", weights: Weights = WEIGHTS,
    ) -> None:  # fmt: skip
        self._weights = weights
        self._fusion = fusion
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
        if all(arm.error for arm in arms):
            faults = degraded | {arm.name: arm.error for arm in arms}
            raise StoreError("nothing could be searched", details=faults, hint="`evercore doctor` says what is down.")
        found = await self._weigh(query, arms)
        degraded |= {arm.name: arm.error for arm in arms if arm.error}

        rows: dict[str, Row] = {}
        reading = time.perf_counter()
        shown_rows, more = await hydrate(
            found.in_order(query.memory_types), query, documents=self._stores.documents, rows=rows,
            partitions=frozenset(query.partitions),
        )  # fmt: skip
        facts_of = await self._facts(query, found, shown_rows.get(MemoryType.EPISODE, ()), rows)
        read_ms = (time.perf_counter() - reading) * 1000
        hits = {k: [found.hit(row, facts_of.get(row.id, ())) for row in shown_rows[k]] for k in shown_rows}
        if self._reranker is not None:
            hits, fault = await rerank(self._reranker, query, hits)
            degraded |= {"reranker": fault} if fault else {}
        timings = {arm.name: arm.milliseconds for arm in arms} | {"weigh": found.milliseconds, "hydrate": read_ms}
        embedding_ms = sum(arm.embedding_milliseconds for arm in arms)
        timings |= {"embed": embedding_ms} if embedding_ms else {}
        timings["total"] = (time.perf_counter() - began) * 1000
        return Answer(
            hits=hits,
            degraded=degraded,
            truncated=query.top_k == ALL_ABOVE_THRESHOLD and (more or found.full(query.memory_types)),
            timings_ms={name: round(value, 2) for name, value in timings.items()},
            explain=explanation_of(arms, found=found, hits=[h.row.id for k in hits for h in hits[k]], facts_of=facts_of)
            if query.explain
            else None,
        )

    async def _arms(self, query: Query) -> list[Arm]:
        kinds = list(query.memory_types)
        if TOPICAL & set(kinds):  # they find each other, also those that nobody asks to see
            kinds += [kind for kind in MemoryType if kind in TOPICAL and kind not in kinds]
        runs = []
        if query.method != "vector":
            runs.append(keyword_arm(query, kinds, self._stores))
        if query.method != "keyword":
            runs.append(vector_arm(query, kinds, self._stores, self._embedder))
        return list(await asyncio.gather(*runs))

    async def _weigh(self, query: Query, arms: Sequence[Arm]) -> Found:
        began = time.perf_counter()
        ids = {row_id for arm in arms for row_id in arm.types}
        standings = await self._stores.documents.standings(list(ids))
        episodes = {there.episode_id for there in standings.values() if there.episode_id is not None}
        similar: dict[str, float] = {}
        for arm in arms:
            if arm.name == "vector":
                missing = sorted((ids | episodes) - arm.scores.keys())
                similar = await similarities(query, arm, missing, self._stores, self._embedder)
        alive = [arm for arm in arms if not arm.error]
        now = query.as_of if query.as_of is not None else now_ms()
        weighing = Weighing(alive, standings, similar, stretches_in(query.text, now=now), self._weights)
        return Found(query, alive, weighing, fusion=self._fusion, milliseconds=(time.perf_counter() - began) * 1000)

    async def _facts(
        self, query: Query, found: Found, episodes: Sequence[Row], rows: dict[str, Row]
    ) -> dict[str, list[AtomicFact]]:
        """The visible facts of these episodes that matched, best first."""
        ids = found.facts_of(episodes)
        missing = [fact_id for facts in ids.values() for fact_id in facts if fact_id not in rows]
        rows |= await self._stores.documents.fetch(missing) if missing else {}
        partitions = frozenset(query.partitions)
        return {
            episode_id: [
                fact for fact_id in facts
                if isinstance(fact := rows.get(fact_id), AtomicFact) and shown(fact, query, partitions=partitions)
            ]
            for episode_id, facts in ids.items()
        }  # fmt: skip
