"""The build stage: one row a window; workers keep many windows in flight behind one model each.

Ray Data's own asynchronous calls block their event loop while they hand results on, which would stop the renewal of
leases. So each worker runs a loop in a thread of its own; two calls at a time feed it, and no gap opens between two
batches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, Datasink
from ray.data.block import Block

from pipelines.jobs.blocks import table_of, values_of, values_of_blocks
from pipelines.jobs.setup import Setup, quiet_data
from pipelines.tools import Tools
from pipelines.window import WindowReport, build_window
from primitives.errors import ConflictError, EverCoreError, OverloadedError, UnavailableError
from primitives.hashing import stable_id
from storage.ports import Span, Window
from storage.stores import TenantStores

WORKER_MESSAGES = 300
"""Starting a worker takes seconds; for fewer messages another one is not worth it."""
IN_FLIGHT = 16
"""Windows at a time in one worker."""
BLOCK_MESSAGES = 1_500
BLOCK_WINDOWS = 64
"""A row block is one task: large enough to be worth a call, small enough for a short tail."""
LEASE_WAIT_S = 1_800.0
"""Windows of one conversation queue for its lease; so long a wait means that somebody else holds it and is stuck."""
TRIES = 3
PAUSE_S = 1.0
LEDGER_PAGE = 10_000
ERROR_LENGTH = 500


class WindowBuilder:
    """A Ray Data actor: stores and models opened once, windows built side by side."""

    def __init__(self, setup: Setup) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="windows", daemon=True).start()
        self._tools, _ = self._run(setup.tools())
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __call__(self, table: pa.Table) -> pa.Table:
        windows = [load_window(data) for data in values_of("window", table)]
        outcomes = self._run(self._build_all(windows))
        return window_table(outcomes)

    async def _build_all(self, windows: Sequence[Window]) -> list[Window]:
        return await asyncio.gather(*(self._build(window) for window in windows))

    async def _build(self, window: Window) -> Window:
        async with self._slots:
            return await outcome_of(self._tools, window)


async def outcome_of(tools: Tools, window: Window, *, wait_s: float = LEASE_WAIT_S) -> Window:
    """Build one window and say what became of it. What may pass is tried again; nothing is raised, so that one
    window never stops a job."""
    for attempt in range(1, TRIES + 1):
        try:
            report = await build_window(tools, window.conversation_id, window.span, wait_s=wait_s)
            return replace(window, state="done", error="", counts=counts_of(report))
        except Exception as fault:  # noqa: BLE001 - whatever it was, it goes to the dead letters
            passing = isinstance(fault, UnavailableError | ConflictError | OverloadedError)
            if not passing or attempt == TRIES:
                return replace(window, state="failed", error=describe(fault))
            await asyncio.sleep(PAUSE_S * attempt)
    raise AssertionError("unreachable")


def describe(fault: Exception) -> str:
    """An error in one line, without what people wrote."""
    text = str(fault) if isinstance(fault, EverCoreError) else f"{type(fault).__name__}: {fault}"
    return text[:ERROR_LENGTH]


def counts_of(report: WindowReport) -> dict[str, int]:
    """A window's report as integers that the ledger adds up."""
    counts = {"memcells": report.memcells, "consumed": report.messages, "embedded": report.embedded}
    counts |= {f"memory:{kind}": number for kind, number in sorted(report.memories.items())}
    return counts | {f"left out:{kind}\t{reason}": 1 for kind, reason in sorted(report.skipped.items())}


# ---------------------------------------------------------------- windows as rows


def dump_window(window: Window) -> bytes:
    span = [window.span.first, window.span.last]
    return orjson.dumps(
        [window.number, window.conversation_id, span, window.messages, window.state, window.error, window.counts]
    )


def load_window(data: bytes) -> Window:
    number, conversation_id, span, messages, state, error, counts = orjson.loads(data)
    first, last = (tuple(end) for end in span)
    return Window(number, conversation_id, Span(first, last), messages, state, error, counts)


def window_table(windows: Iterable[Window]) -> pa.Table:
    return table_of("window", [dump_window(window) for window in windows])


def blocks_of(windows: Iterable[Window]) -> list[pa.Table]:
    """Blocks of rows: large windows first, so that the tail is short, and windows of one conversation apart."""
    blocks: list[pa.Table] = []
    block: list[Window] = []
    messages = 0
    for window in sorted(windows, key=lambda w: (-w.messages, stable_id(w.conversation_id, w.number))):
        block.append(window)
        messages += window.messages
        if messages >= BLOCK_MESSAGES or len(block) >= BLOCK_WINDOWS:
            blocks.append(window_table(block))
            block, messages = [], 0
    return [*blocks, window_table(block)] if block else blocks


class LedgerDatasink(Datasink[int]):
    """Writes what became of windows; a failed one becomes a dead letter."""

    def __init__(self, *, job: str, setup: Setup) -> None:
        self._job = job
        self._setup = setup

    def write(self, blocks: Iterable[Block], ctx: Any) -> int:
        outcomes = [load_window(data) for data in values_of_blocks("window", blocks)]
        asyncio.run(self._setup.stores().ledger.finish_windows(self._job, outcomes))
        return len(outcomes)


async def planned_windows(stores: TenantStores, job: str) -> list[Window]:
    """All windows that are still to be built."""
    found: list[Window] = []
    while page := await stores.ledger.windows(job, after=found[-1].number if found else -1, limit=LEDGER_PAGE):
        found += page
    return found


def pool_size(windows: Sequence[Window], *, workers: int, blocks: int) -> int:
    """How many workers to start."""
    messages = sum(window.messages for window in windows)
    return max(1, min(workers, blocks, messages // WORKER_MESSAGES))


def build_windows(windows: Sequence[Window], *, setup: Setup, sink: Datasink[Any], workers: int) -> None:
    """Build windows on a pool of workers and hand the outcomes to `sink`."""
    blocks = blocks_of(windows)
    if not blocks:
        return
    size = pool_size(windows, workers=workers, blocks=len(blocks))
    # num_cpus=1 makes Ray set OMP_NUM_THREADS=1, which BLAS libraries follow: one core a worker. A runtime_env would say
    # the same and cost seconds, since no worker process of the import stage could be used again.
    with quiet_data():
        ray.data.from_arrow(blocks).map_batches(
            WindowBuilder, batch_size=None, batch_format="pyarrow", fn_constructor_kwargs={"setup": setup},
            compute=ActorPoolStrategy(
                size=size, max_tasks_in_flight_per_actor=4, max_concurrent_calls_per_actor=2,
                enable_true_multi_threading=True,
            ),
            num_cpus=1,
        ).write_datasink(sink, ray_remote_args={"num_cpus": 0}, concurrency=1)  # fmt: skip


def run_build(windows: Sequence[Window], *, job: str, setup: Setup, workers: int) -> None:
    """Build the windows of a job; returns when each has an outcome in the ledger."""
    build_windows(windows, setup=setup, sink=LedgerDatasink(job=job, setup=setup), workers=workers)
