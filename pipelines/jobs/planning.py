"""From imported conversations to windows in the ledger."""

from __future__ import annotations

import asyncio

from pipelines.settings import PipelineSettings
from pipelines.windows import plan_windows, span_of
from storage.ports import Window
from storage.stores import TenantStores

CONVERSATIONS = 500
"""Planned in one commit."""


async def plan_job(stores: TenantStores, job: str, settings: PipelineSettings) -> int:
    """Plan every conversation of the job that has none of its windows yet; returns how many windows were added."""
    added = 0
    while conversations := await stores.ledger.unplanned(job, limit=CONVERSATIONS):
        outlines = await asyncio.gather(*(stores.documents.outline(key) for key in conversations))
        windows = [
            Window(0, key, span_of(window), messages=len(window))  # the ledger numbers them
            for key, outline in zip(conversations, outlines, strict=True)
            for window in plan_windows(outline, settings)
        ]
        await stores.ledger.plan(job, windows, conversations=conversations)
        added += len(windows)
    return added
