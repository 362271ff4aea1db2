"""A search's answer as the API gives it."""

from __future__ import annotations

from typing import Any

from serve.found import Hit
from serve.query import Query
from serve.retrieval import Answer
from serve.rows import LISTS, as_json
from storage.records import MemoryType

AGENT_LISTS = {MemoryType.AGENT_CASE: "cases", MemoryType.AGENT_SKILL: "skills"}


def as_data(query: Query, found: Answer) -> dict[str, Any]:
    """All lists are there, also those of types that were not asked for: a client need not know which."""
    data: dict[str, Any] = {
        name: [hit_as_json(hit) for hit in found.hits.get(kind, ())]
        for kind, name in LISTS.items()
        if kind not in AGENT_LISTS
    }
    data["agent_memory"] = {
        name: [hit_as_json(hit) for hit in found.hits.get(kind, ())] for kind, name in AGENT_LISTS.items()
    }
    data["query"] = {
        "text": query.text,
        "method": query.method,
        "filters_applied": query.filters,
        "memory_types": [str(kind) for kind in query.memory_types],
        "top_k": query.top_k,
    }
    data |= {"degraded": found.degraded, "truncated": found.truncated, "timings_ms": found.timings_ms}
    if found.explain is not None:
        data["explain"] = found.explain
    return data


def hit_as_json(hit: Hit) -> dict[str, Any]:
    out = as_json(hit.row)
    out["score"], out["scores"] = hit.score, hit.scores
    if hit.row.memory_type is MemoryType.EPISODE:
        out["atomic_facts"] = [hit_as_json(fact) for fact in hit.facts]
    return out
