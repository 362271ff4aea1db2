"""The last step of every method where a reranker is configured: rows ordered by reading them with the query."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from models.protocols import Reranker
from primitives.errors import OverloadedError, UnavailableError
from serve.query import Query
from storage.records import MemoryType

if TYPE_CHECKING:
    from serve.found import Hit

logger = logging.getLogger(__name__)


async def rerank(
    reranker: Reranker, query: Query, hits: dict[MemoryType, list[Hit]]
) -> tuple[dict[MemoryType, list[Hit]], str]:
    """Hits in the reranker's order with its scores, and "" ; or the hits as they were, and why it failed."""
    flat = [hit for kind in hits for hit in hits[kind]]
    if not flat:
        return hits, ""
    try:
        scores = await reranker.rerank(query.text, [hit.row.search_text for hit in flat])
    except (UnavailableError, OverloadedError) as fault:
        logger.warning("the reranker failed: %s", fault)
        return hits, fault.message
    out: dict[MemoryType, list[Hit]] = {kind: [] for kind in hits}
    for hit, score in sorted(zip(flat, scores, strict=True), key=lambda pair: -pair[1]):
        out[hit.row.memory_type].append(hit.with_score("reranker", score))
    return out, ""
