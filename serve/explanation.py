"""Why an answer is what it is: each arm's ranks, scores and times, and the evidence that was added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serve.arms import Arm
from serve.found import Found
from serve.fusion import ranks
from storage.records import AtomicFact

PARTS = ("meaning", "words", "neighbours", "around", "moment")


def explanation_of(
    arms: Sequence[Arm], *, found: Found, hits: Sequence[str], facts_of: Mapping[str, Sequence[AtomicFact]]
) -> dict[str, Any]:
    """For every arm what it did, for every shown hit where each arm ranked it and its evidence in log-odds."""
    places = {arm.name: ranks(arm.raw) for arm in arms}
    return {
        "arms": {
            arm.name: {
                "candidates": len(arm.raw),
                "milliseconds": round(arm.milliseconds, 2),
                "embedding_milliseconds": round(arm.embedding_milliseconds, 2),
                "error": arm.error or None,
            }
            for arm in arms
        },
        "hits": {
            row_id: {
                "score": round(found.scores[row_id], 6),
                "evidence": {part: round(getattr(found.evidence[row_id], part), 4) for part in PARTS},
                "found_by_facts": [fact.id for fact in facts_of.get(row_id, ())],
                "arms": {
                    arm.name: {
                        "rank": places[arm.name][row_id],
                        "raw": round(arm.raw[row_id], 6),
                        "score": round(arm.scores[row_id], 6),
                    }
                    for arm in arms
                    if row_id in arm.raw
                },
            }
            for row_id in hits
        },
    }
