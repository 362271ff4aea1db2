"""Leases in the embedded document store, beside the rows whose transactions check their fences."""

from __future__ import annotations

import os
import socket
import sqlite3
import uuid

import psutil

from primitives.clock import now_ms
from storage.ports import Lease
from storage.sqlite.database import Database


class SqliteLeases:
    """See storage.ports.Leases. A holder that died on this machine is noticed at once, others when the lease ends."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._db = database
        self._prefix = f"{tenant_id}/"

    async def acquire(self, name: str, *, ttl_ms: int = 15_000) -> Lease | None:
        name = self._prefix + name
        holder = f"{_process()}/{uuid.uuid4().hex}"

        def work(connection: sqlite3.Connection) -> Lease | None:
            now = now_ms()
            found = connection.execute(
                "SELECT holder, fence, expires_at FROM leases WHERE name = ?", (name,)
            ).fetchone()
            if found and found[2] > now and _lives(found[0]):
                return None
            fence = found[1] + 1 if found else 1
            connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (name, holder, fence, now + ttl_ms))
            return Lease(name, holder, fence)

        return await self._db.write(work)

    async def renew(self, lease: Lease, *, ttl_ms: int = 15_000) -> bool:
        return await self._db.write(
            lambda c: c.execute(
                "UPDATE leases SET expires_at = ? WHERE name = ? AND holder = ? AND fence = ?",
                (now_ms() + ttl_ms, lease.name, lease.holder, lease.fence),
            ).rowcount == 1
        )  # fmt: skip

    async def release(self, lease: Lease) -> None:
        """The row stays, since its fence must go on growing."""
        await self._db.write(
            lambda c: c.execute(
                "UPDATE leases SET expires_at = 0 WHERE name = ? AND holder = ? AND fence = ?",
                (lease.name, lease.holder, lease.fence),
            )
        )


def _process() -> str:
    """Host, process id and the process's start, so that a reused id is not taken for the old process."""
    pid = os.getpid()
    return f"{socket.gethostname()}|{pid}|{psutil.Process(pid).create_time():.2f}"


def _lives(holder: str) -> bool:
    host, pid, started = holder.split("/", 1)[0].split("|")
    if host != socket.gethostname():
        return True
    try:
        process = psutil.Process(int(pid))
        # A killed process that nobody has waited for yet writes no more.
        return f"{process.create_time():.2f}" == started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
