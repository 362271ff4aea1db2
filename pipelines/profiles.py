"""Profiles: what a person said of themselves, folded from the evidence of all their MemCells.

A profile is a function of its evidence in (event time, MemCell) order, so the order in which MemCells were built, or how
often building was interrupted, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.indexing import embed_and_index
from pipelines.leasing import held
from pipelines.tools import Tools
from primitives.text import fold, language_of
from storage.ids import profile_id, user_partition
from storage.records import Profile, ProfileEvidence, ProfileItem

MAX_ITEMS = 25
"""EverCore's limit; the latest stay."""
LEASE_WAIT_S = 60.0


async def refresh_profiles(tools: Tools, user_ids: Sequence[str] | None) -> int:
    """Fold the stale profiles (of these users, or of all); returns how many there were."""
    refreshed = 0
    while users := await tools.stores.documents.stale_profiles(user_ids=user_ids):
        for user in users:
            async with held(tools.stores.leases, f"profile:{user}", wait_s=LEASE_WAIT_S):
                version, evidence = await tools.stores.documents.profile_evidence(user)
                profile = fold_profile(tools.stores.tenant_id, user, evidence)
                await tools.stores.documents.save_profile(user, profile, version=version)
            if profile is not None:
                found = await tools.stores.documents.fetch([profile.id])
                await embed_and_index(tools.stores, tools.embedder, list(found.values()))
        refreshed += len(users)
    return refreshed


def fold_profile(tenant_id: str, user_id: str, evidence: Sequence[ProfileEvidence]) -> Profile | None:
    """The profile of a person; None where nothing is known. A statement made again is kept once, with all evidence."""
    if not evidence:
        return None
    items: dict[tuple[str, str], ProfileItem] = {}
    for piece in evidence:
        key = (piece.item.category, fold(piece.item.description))
        there = items.pop(key, None)  # the latest statement goes to the end
        items[key] = (
            piece.item
            if there is None
            else piece.item.model_copy(
                update={
                    "evidence": list(dict.fromkeys([*there.evidence, *piece.item.evidence])),
                    "sources": list(dict.fromkeys([*there.sources, *piece.item.sources])),
                }
            )
        )
    kept = list(items.values())[-MAX_ITEMS:]
    times = [item.timestamp for item in kept if item.timestamp is not None]
    text = "\n".join(f"{item.category}: {item.description}" for item in kept)
    cells = list(dict.fromkeys(piece.memcell_id for piece in evidence))
    return Profile(
        id=profile_id(tenant_id, user_id), tenant_id=tenant_id, user_id=user_id, partition=user_partition(user_id),
        timestamp=max(times, default=None), order_time=evidence[-1].order_time, language=language_of(text),
        parent_type="user", parent_id=user_id, participants=[user_id], sender_ids=[user_id],
        source_message_ids=list(dict.fromkeys(source for item in kept for source in item.sources)),
        embedding_text=text, explicit_info=kept, memcell_count=len(cells),
    )  # fmt: skip
