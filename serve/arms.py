"""The two arms of a search, keyword and vector: which rows each finds, how well, and in what time.

As many rows of each type are asked for, so that a type with many rows never crowds out another. An arm that fails says why
and does not take the other one with it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder
from primitives.errors import EverCoreError, ModelError, OverloadedError, UnavailableError
from primitives.text import query_words, storable
from serve.query import ALL_ABOVE_THRESHOLD, MOST_HITS, Query
from storage.ports import Hit
from storage.records import MemoryType
from storage.stores import TenantStores

FEWEST_CANDIDATES = 50
CANDIDATES_PER_HIT = 3
DEFAULT_THRESHOLD = 0.6
"""Least calibrated vector score of a hit where all hits above the threshold are asked for."""
KEYWORD_HALF = 5.0
"""The BM25 that becomes 0.5."""

LOG_SECONDS = 60.0
"""A dead arm is logged once in a while and not with every search; the answers and the metrics say it each time."""

logger = logging.getLogger(__name__)
_quiet_until: dict[str, float] = {}


@dataclass
class Arm:
    """What one arm found. `scores` are in [0, 1]; `raw` is BM25 or cosine."""

    name: str
    raw: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    types: dict[str, MemoryType] = field(default_factory=dict)
    milliseconds: float = 0.0
    embedding_milliseconds: float = 0.0
    query_vector: NDArray[np.float32] | None = None
    error: str = ""
    full: set[MemoryType] = field(default_factory=set)
    """Types of which there may be more rows than were fetched."""

    def take(self, hits: Sequence[Hit], scores: Sequence[float]) -> None:
        for hit, score in zip(hits, scores, strict=True):
            self.raw[hit.id], self.scores[hit.id], self.types[hit.id] = hit.score, score, MemoryType(hit.memory_type)

    def note_full(self, hits: Sequence[Hit], *, limit: int) -> None:
        counts = Counter(hit.memory_type for hit in hits)
        self.full |= {MemoryType(kind) for kind, count in counts.items() if count >= limit}


def candidates_of(query: Query) -> int:
    """How many rows of a type an arm fetches."""
    if query.top_k == ALL_ABOVE_THRESHOLD:
        return MOST_HITS + 1
    return max(FEWEST_CANDIDATES, CANDIDATES_PER_HIT * query.top_k)


def threshold_of(query: Query) -> float | None:
    """The least calibrated vector score, where there is one."""
    if query.radius is not None:
        return query.radius
    return DEFAULT_THRESHOLD if query.top_k == ALL_ABOVE_THRESHOLD else None


def keyword_score(bm25: float) -> float:
    """BM25 brought into [0, 1), in the same order."""
    return max(0.0, bm25) / (max(0.0, bm25) + KEYWORD_HALF)


async def keyword_arm(query: Query, kinds: Sequence[MemoryType], stores: TenantStores) -> Arm:
    """Rows that share words with the query."""
    arm = Arm("keyword")
    began = time.perf_counter()
    try:
        index = await stores.indexes.keyword()
        limit = candidates_of(query)
        hits = await index.search(query_words(query.text), query.scope(*kinds), limit=limit)
        arm.take(hits, [keyword_score(hit.score) for hit in hits])
        arm.note_full(hits, limit=limit)
    except (UnavailableError, OverloadedError) as fault:
        arm.error = _reason("keyword", fault)
    arm.milliseconds = (time.perf_counter() - began) * 1000
    return arm


async def vector_arm(query: Query, kinds: Sequence[MemoryType], stores: TenantStores, embedder: Embedder) -> Arm:
    """Rows whose meaning is near the query's."""
    arm = Arm("vector")
    began = time.perf_counter()
    try:
        arm.query_vector = await embedder.embed_query(storable(query.text))
        arm.embedding_milliseconds = (time.perf_counter() - began) * 1000
        index = await stores.indexes.vector()
        if index.generation.model_id != embedder.identity.space:
            raise ModelError(
                f"the vectors are {index.generation.model_id}'s and the model is {embedder.identity.space}",
                hint="Run `evercore rebuild-index`, or configure the model that made them.",
            )
        limit = candidates_of(query)
        hits = await index.search(arm.query_vector, query.scope(*kinds), limit=limit)
        arm.note_full(hits, limit=limit)
        least = threshold_of(query)
        scores = calibrated([hit.score for hit in hits], embedder)
        kept = sum(score >= least for score in scores) if least is not None else len(hits)
        arm.take(hits[:kept], scores[:kept])
    except (UnavailableError, OverloadedError) as fault:
        arm.error = _reason("vector", fault)
    arm.milliseconds = (time.perf_counter() - began) * 1000
    return arm


async def similarities(
    query: Query, arm: Arm, ids: Sequence[str], stores: TenantStores, embedder: Embedder
) -> dict[str, float]:
    """Calibrated similarities of rows that the vector arm did not bring; none where that arm is dead."""
    if arm.query_vector is None or arm.error or not ids:
        return {}
    try:
        index = await stores.indexes.vector()
        found = await index.similarities(arm.query_vector, ids, query.partitions)
    except (UnavailableError, OverloadedError) as fault:
        arm.error = _reason("vector", fault)
        return {}
    return dict(zip(found, calibrated(list(found.values()), embedder), strict=True))


def calibrated(cosines: Sequence[float], embedder: Embedder) -> list[float]:
    """Cosines as scores in [0, 1] that mean the same for every model."""
    scores = embedder.calibrate(np.asarray(cosines, dtype=np.float64))
    return [float(score) for score in np.clip(scores, 0.0, 1.0)]


def _reason(name: str, fault: EverCoreError) -> str:
    if time.monotonic() > _quiet_until.get(name, 0.0):
        _quiet_until[name] = time.monotonic() + LOG_SECONDS
        logger.warning("the %s arm of searches fails: %s", name, fault)
    return fault.message
