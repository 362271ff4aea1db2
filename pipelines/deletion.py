"""Deleting: hidden in one transaction, then out of the indexes, then the text itself is gone."""

from __future__ import annotations

from pipelines.indexing import unindex
from pipelines.profiles import refresh_profiles
from pipelines.tools import Tools
from pipelines.window import build_unfinished
from storage.filters import Filter

BATCH = 1_000


async def delete(tools: Tools, *, memory_id: str | None = None, where: Filter | None = None) -> int:
    """Delete one row, or all that a filter names, with what was made of them; returns how many rows went.

    What is left of a MemCell that lost messages is built anew here; what fails or crashes, by the sweeper.
    """
    hidden = await tools.stores.documents.tombstone(memory_id=memory_id, where=where)
    await purge(tools)  # first of all: whatever fails below, the text is gone
    await build_unfinished(tools, undone=True)
    await refresh_profiles(tools, None)
    await purge(tools)
    return hidden


async def purge(tools: Tools) -> int:
    """Finish deletions, also those that a crash interrupted: first the index entries, then the text."""
    purged = 0
    while ids := await tools.stores.documents.unpurged(limit=BATCH):
        await unindex(tools.stores, ids)
        await tools.stores.documents.purge(ids)
        purged += len(ids)
    return purged
