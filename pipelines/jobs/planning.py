"""From imported conversations to windows in the ledger."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby

from pipelines.settings import PipelineSettings
from pipelines.windows import plan_windows, span_of
from storage.ports import Outline, Span, Window
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


async def plan_late(stores: TenantStores, job: str, settings: PipelineSettings) -> int:
    """Plan what came to conversations of the job after they were planned, such as the rest of a file that grew.

    Messages within a window that is planned or failed are that window's, or its dead letter's, and left alone.
    """
    spans: dict[str, list[Span]] = {}
    for state in ("planned", "failed"):
        after = -1
        while page := await stores.ledger.windows(job, state=state, after=after):
            for window in page:
                spans.setdefault(window.conversation_id, []).append(window.span)
            after = page[-1].number
    added = 0
    for key in await stores.ledger.job_conversations(job):
        runs = _uncovered(await stores.documents.outline(key), spans.get(key, []))
        late = [
            Window(0, key, span_of(window), messages=len(window))
            for run in runs
            for window in plan_windows(run, settings)
        ]
        if late:
            await stores.ledger.plan(job, late, conversations=[key])
            added += len(late)
    return added


def _uncovered(outline: Sequence[Outline], spans: Sequence[Span]) -> list[list[Outline]]:
    """The runs of messages that lie in none of the spans, which do not overlap."""
    ordered = sorted(spans, key=lambda span: span.first)
    firsts = [span.first for span in ordered]

    def covered(item: Outline) -> bool:
        at = bisect_right(firsts, item.position) - 1
        return at >= 0 and item.position <= ordered[at].last

    return [list(run) for inside, run in groupby(outline, covered) if not inside]
