"""Episodes found through their facts: a fact that is hit lifts the episode it belongs to; the best fact counts."""

from __future__ import annotations

from collections.abc import Iterable

from serve.arms import Arm
from storage.ports import Documents, Row
from storage.records import AtomicFact, MemoryType

MOST_FACTS = 50
"""Facts of each arm, best first, that may lift an episode."""


async def lift_episodes(arms: Iterable[Arm], *, documents: Documents, rows: dict[str, Row]) -> dict[str, list[str]]:
    """Give episodes the score of their best fact, in each arm. Returns fact ids by episode; `rows` gains the facts."""
    best = {arm.name: _best_facts(arm) for arm in arms}
    missing = list(dict.fromkeys(i for ids in best.values() for i in ids if i not in rows))
    rows |= await documents.fetch(missing) if missing else {}
    lifted: dict[str, list[str]] = {}
    for arm in arms:
        for fact_id in best[arm.name]:
            fact = rows.get(fact_id)
            if not isinstance(fact, AtomicFact) or fact.parent_type != "episode" or fact.parent_id is None:
                continue
            facts = lifted.setdefault(fact.parent_id, [])
            if fact_id not in facts:
                facts.append(fact_id)
            if arm.raw[fact_id] > arm.raw.get(fact.parent_id, float("-inf")):
                arm.raw[fact.parent_id], arm.scores[fact.parent_id] = arm.raw[fact_id], arm.scores[fact_id]
                arm.types[fact.parent_id] = MemoryType.EPISODE
    return lifted


def _best_facts(arm: Arm) -> list[str]:
    facts = [row_id for row_id, kind in arm.types.items() if kind is MemoryType.ATOMIC_FACT]
    return sorted(facts, key=lambda row_id: -arm.raw[row_id])[:MOST_FACTS]
