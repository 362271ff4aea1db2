"""Live progress of a job: a thread reads the ledger now and then and tells a listener."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pipelines.jobs.setup import Setup

INTERVAL_S = 0.5


@dataclass(frozen=True)
class Snapshot:
    """How far a stage is."""

    stage: str
    """`import`, `plan`, `build` or `finish`."""
    done: float
    total: float
    """Of what the bar shows: bytes while importing, messages while building."""
    messages: int
    seconds: float
    errors: int = 0
    """Unreadable records, or failed windows."""

    @property
    def rate(self) -> float:
        """Messages a second since the stage began."""
        return self.messages / self.seconds if self.seconds > 0 else 0.0


class ProgressListener(Protocol):
    """Who wants to see how a job goes. Called from a thread of the job's own."""

    def update(self, snapshot: Snapshot) -> None: ...


class RichProgress:
    """Progress bars on a terminal. A context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<8}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[messages]:>11,} messages {task.fields[rate]:>8,.0f}/s"), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[errors]}"), console=console,
        )  # fmt: skip
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> RichProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, snapshot: Snapshot) -> None:
        fields: dict[str, Any] = {
            "messages": snapshot.messages, "rate": snapshot.rate,
            "errors": f"{snapshot.errors:,} errors" if snapshot.errors else "",
        }  # fmt: skip
        if snapshot.stage not in self._tasks:
            self._tasks[snapshot.stage] = self._progress.add_task(snapshot.stage, total=snapshot.total, **fields)
        task = self._tasks[snapshot.stage]
        self._progress.update(task, completed=snapshot.done, total=max(snapshot.total, snapshot.done, 1), **fields)


class Watcher:
    """Reads a job's counts from the ledger while another thread is busy with the job."""

    def __init__(self, *, setup: Setup, job: str, listener: ProgressListener | None) -> None:
        self._setup = setup
        self._job = job
        self._listener = listener

    @contextmanager
    def stage(self, name: str, *, total: float) -> Iterator[None]:
        """Tell the listener about this stage until the block ends, at its end for a last time."""
        if self._listener is None or total <= 0:
            yield
            return
        stop = threading.Event()
        started = time.monotonic()
        before = asyncio.run(self._read(name))
        thread = threading.Thread(target=self._watch, args=(name, total, before, started, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _watch(
        self, stage: str, total: float, before: tuple[int, int, int], started: float, stop: threading.Event
    ) -> None:
        stopped = False
        while not stopped:
            stopped = stop.wait(INTERVAL_S)
            done, messages, errors = asyncio.run(self._read(stage))
            assert self._listener is not None
            self._listener.update(
                Snapshot(stage, done, total, messages - before[1], time.monotonic() - started, errors)
            )

    async def _read(self, stage: str) -> tuple[int, int, int]:
        """(what the bar shows, messages, errors) so far."""
        ledger = self._setup.stores().ledger
        if stage == "import":
            counts = await ledger.import_counts(self._job)
            errors = sum(n for key, n in counts.items() if key.startswith("unreadable:"))
            return counts.get("bytes", 0), counts.get("read", 0), errors
        counts = await ledger.window_counts(self._job)
        done = counts.get("done_messages", 0) + counts.get("failed_messages", 0)
        return done, done, counts.get("failed", 0)
