"""Trying dead letters again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ray.data import Datasink
from ray.data.block import Block

from models.settings import ModelSettings
from pipelines.jobs.blocks import values_of_blocks
from pipelines.jobs.build_stage import build_windows, load_window
from pipelines.jobs.setup import Setup, check_cluster, worker_count
from pipelines.profiles import refresh_profiles
from pipelines.settings import PipelineSettings
from storage.ports import Span, Window
from storage.settings import StorageSettings

PAGE = 100_000
EXAMPLES = 5
LETTER_MESSAGES = 25
"""A guess, for the number of workers; a letter does not say how many messages it is about."""


@dataclass
class ReplayReport:
    """What became of the dead letters. Those that failed again stay."""

    tried: int = 0
    resolved: int = 0
    failed: int = 0
    memcells: int = 0
    memories: dict[str, int] = field(default_factory=dict)
    profiles: int = 0
    examples: list[str] = field(default_factory=list)
    """First errors of those that failed again."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ReplayDatasink(Datasink[list[bytes]]):
    """Resolves the dead letters whose windows went well; `outcomes` has all of them afterwards."""

    def __init__(self, *, setup: Setup) -> None:
        self._setup = setup
        self.outcomes: list[Window] = []

    def write(self, blocks: Iterable[Block], ctx: Any) -> list[bytes]:
        rows = list(values_of_blocks("window", blocks))
        done = [window.number for window in map(load_window, rows) if window.state == "done"]
        asyncio.run(self._setup.stores().ledger.resolve_dead_letters(done))
        return rows

    def on_write_complete(self, write_result: Any) -> None:
        self.outcomes = [load_window(data) for rows in write_result.write_returns for data in rows]


def run_replay(
    *,
    tenant: str,
    storage: StorageSettings,
    models: ModelSettings,
    pipeline: PipelineSettings,
    job: str | None = None,
    workers: int | None = None,
) -> ReplayReport:
    """Build the windows of dead letters (of one job, or of all) again; blocks."""
    check_cluster()
    setup = Setup(tenant_id=tenant, storage=storage, models=models, pipeline=pipeline).anywhere()
    letters = asyncio.run(setup.stores().ledger.dead_letters(job=job, limit=PAGE))
    windows = [window for letter in letters if (window := _window(letter)) is not None]
    sink = ReplayDatasink(setup=setup)
    build_windows(windows, setup=setup, sink=sink, workers=worker_count(workers))
    report = ReplayReport(tried=len(windows))
    for outcome in sink.outcomes:
        if outcome.state == "done":
            report.resolved += 1
            report.memcells += outcome.counts.get("memcells", 0)
            for key, number in outcome.counts.items():
                if key.startswith("memory:"):
                    kind = key.removeprefix("memory:")
                    report.memories[kind] = report.memories.get(kind, 0) + number
        else:
            report.failed += 1
            report.examples = [*report.examples, outcome.error][:EXAMPLES]
    if report.resolved:
        report.profiles = asyncio.run(_profiles(setup))
    return report


def _window(letter: dict[str, Any]) -> Window | None:
    """The stretch that a letter is about, numbered by the letter; None for a letter about something else."""
    if "span" not in letter or "conversation_id" not in letter:
        return None
    first, last = (tuple(end) for end in letter["span"])
    return Window(letter["id"], letter["conversation_id"], Span(first, last), messages=LETTER_MESSAGES)


async def _profiles(setup: Setup) -> int:
    tools, backend = await setup.tools()
    try:
        return await refresh_profiles(tools, None)
    finally:
        await tools.embedder.close()
        await backend.close()
