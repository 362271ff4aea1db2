"""A backfill without storing anything: what it would read, and about how long it would take."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

from models.factory import build_embedder
from models.settings import ModelSettings
from models.tokens import count_tokens
from pipelines.incoming import Rejected
from pipelines.intake import Placed
from pipelines.jobs.reading import FilePlan, read_batches
from pipelines.jobs.report import BackfillReport, Stage
from pipelines.jobs.request import BackfillRequest
from pipelines.settings import PipelineSettings
from primitives.hashing import stable_id

IMPORT_RATE, CUT_RATE = 1_000.0, 400.0
"""Messages a second of one worker, without embedding; measured with the embedded stores, an estimate, no promise."""
TEXTS_PER_MESSAGE = 1.25
"""Texts embedded: the message itself, and the memories made of it."""
MESSAGES_PER_MEMCELL = 4.0
"""As measured on chats without long silences."""
SAMPLE = 48
"""Texts that are embedded to see how fast the model is here."""


def estimate(
    plans: Sequence[FilePlan], request: BackfillRequest, report: BackfillReport, *, passed_over: Sequence[Rejected],
    settings: PipelineSettings, models: ModelSettings,
) -> None:  # fmt: skip
    """Read the files and fill the report in."""
    started = time.monotonic()
    totals: dict[str, int] = {}
    topics = Topics(settings)
    sample: list[str] = []
    tokens = messages = 0
    for plan in plans:
        for batch in read_batches(plan, request, max_bytes=settings.message_max_bytes):
            for key, value in batch.counts.items():
                totals[key] = totals.get(key, 0) + value
            texts = [f"{p.incoming.sender_name or p.incoming.sender_id}: {p.incoming.text}" for p in batch.placed]
            tokens += sum(count_tokens(texts))
            messages += len(texts)
            sample += texts[: 2 * SAMPLE - len(sample)]
            for placed in batch.placed:
                topics.add(placed)
    report.add_import(totals, passed_over)
    report.tokens, report.conversations, report.memcells = tokens, len(topics.seen), round(topics.estimate())
    report.stages.append(Stage("Reading", "messages", messages, time.monotonic() - started))
    workers = request.workers or os.cpu_count() or 1
    embedding = TEXTS_PER_MESSAGE * asyncio.run(seconds_per_text(sample, models))
    report.estimated_seconds = messages * (1 / IMPORT_RATE + 1 / CUT_RATE + embedding) / workers
    report.state = "dry run"


async def seconds_per_text(sample: Sequence[str], models: ModelSettings) -> float:
    """How long the embedding model takes for a text of this import, its loading left out."""
    if not sample:
        return 0.0
    half = max(1, len(sample) // 2)
    embedder = build_embedder(models)
    try:
        await embedder.embed_documents(sample[:half])
        started = time.monotonic()
        await embedder.embed_documents(sample[half:] or sample)
        return (time.monotonic() - started) / (len(sample) - half or 1)
    finally:
        await embedder.close()


class Topics:
    """About how many MemCells: at least one a conversation, one after each long silence, and one every few messages."""

    def __init__(self, settings: PipelineSettings) -> None:
        self._gap = settings.boundary_gap_minutes * 60_000
        self.seen: dict[int, tuple[int, int]] = {}
        """Conversation -> (messages since the last silence, time of the last message)."""
        self._closed = 0.0

    def add(self, placed: Placed) -> None:
        key = int(stable_id(placed.incoming.conversation)[:16], 16)
        count, last = self.seen.get(key, (0, placed.order_time))
        if placed.order_time - last > self._gap:
            self._closed += _cells(count)
            count = 0
        self.seen[key] = (count + 1, placed.order_time)

    def estimate(self) -> float:
        return self._closed + sum(_cells(count) for count, _ in self.seen.values())


def _cells(count: int) -> float:
    return max(1.0, count / MESSAGES_PER_MEMCELL)
