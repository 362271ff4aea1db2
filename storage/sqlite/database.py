"""One SQLite file with one writer thread and a few readers, for use from asyncio.

Writes that wait at the same time are committed together, each in a savepoint of its own: one fsync serves many
callers, and a failing one takes nobody with it. `write` returns after the commit is on disk (WAL, synchronous FULL).
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from primitives.errors import StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

READERS = 3
GROUP_LIMIT = 256
"""Most writes that share one commit, so that nobody waits for an endless transaction."""
BUSY_TIMEOUT_MS = 60_000


class Database:
    """`read` and `write` run a function on a connection, outside the event loop. Safe for many processes."""

    def __init__(self, path: Path, *, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._prepare = prepare
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix=f"read-{path.stem}")
        self._queue: queue.SimpleQueue[tuple[Work[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._guard = threading.Lock()
        self._closed = False
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(self._connect()) as connection:
                prepare(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cache_size=-8192")
        connection.execute("PRAGMA wal_autocheckpoint=4000")  # 16 MB: fewer stalls while a backfill writes
        return connection

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a connection that sees the last committed state."""
        if self._closed:
            raise StoreError(f"{self.path} is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def _read(self, work: Work[T]) -> T:
        with translated(self.path):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction; its exceptions roll back its own changes and come back here."""
        with self._guard:
            if self._closed:
                raise StoreError(f"{self.path} is closed")
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_loop, name=f"write-{self.path.stem}", daemon=True)
                self._writer.start()
        future: Future[T] = Future()
        self._queue.put((work, future))
        return await asyncio.wrap_future(future)

    def _write_loop(self) -> None:
        connection: sqlite3.Connection | None = None
        while (first := self._queue.get()) is not None:
            group = [first]
            last = False
            while len(group) < GROUP_LIMIT and not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    last = True
                    break
                group.append(item)
            # A caller that was cancelled while it waited is left out; one that runs can be cancelled no more.
            group = [(work, future) for work, future in group if future.set_running_or_notify_cancel()]
            try:
                with translated(self.path):
                    connection = connection or self._connect()
                    outcomes = _run_group(connection, [work for work, _ in group])
            except BaseException as fault:  # noqa: BLE001  # it is handed to those who wait
                for _, future in group:
                    future.set_exception(fault)
            else:
                for (_, future), (value, error) in zip(group, outcomes, strict=True):
                    if error is None:
                        future.set_result(value)
                    else:
                        future.set_exception(error)
            if last:
                break
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        """Finish what was queued and let go of the file."""
        with self._guard:
            self._closed = True
            writer = self._writer
        self._queue.put(None)
        if writer is not None:
            await asyncio.to_thread(writer.join)
        self._readers.shutdown(wait=True)


def _run_group(connection: sqlite3.Connection, works: list[Work[Any]]) -> list[tuple[Any, BaseException | None]]:
    outcomes: list[tuple[Any, BaseException | None]] = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        for work in works:
            connection.execute("SAVEPOINT one")
            try:
                outcomes.append((work(connection), None))
            except Exception as fault:
                if not connection.in_transaction:  # a full disk rolls everything back by itself
                    raise
                connection.execute("ROLLBACK TO one")
                outcomes.append((None, translate(fault)))
            connection.execute("RELEASE one")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes


def translate(fault: Exception, path: Path | None = None) -> Exception:
    """A store error that says what to do, for what SQLite or the file system raised; other errors as they are."""
    if not isinstance(fault, sqlite3.Error | OSError):
        return fault
    where = f" ({path})" if path else ""
    text = str(fault)
    if "full" in text or "No space left" in text:
        return StoreError(f"the disk is full{where}", hint="Free some space; nothing that was acknowledged is lost.")
    if "readonly" in text or "unable to open" in text or isinstance(fault, PermissionError):
        return StoreError(
            f"the data folder is not writable{where}", hint="Check its owner and rights, or EVERCORE_DATA_DIR."
        )
    if "locked" in text:
        return StoreError(
            f"another process held the store for over {BUSY_TIMEOUT_MS // 1000} s{where}", hint="Try again."
        )
    if "malformed" in text or "not a database" in text:
        return StoreError(f"the store is damaged{where}: {text}", hint="Restore a backup, or rebuild the index.")
    return StoreError(f"the store failed{where}: {type(fault).__name__}: {text}")


@contextlib.contextmanager
def translated(path: Path) -> Any:
    """Turns what SQLite raises inside into a StoreError that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as fault:
        raise translate(fault, path) from fault
