"""What every lease store and ledger does; run on each backend."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from primitives.errors import ConflictError
from storage.ports import Span, Window
from storage.sqlite.backend import SqliteBackend
from tests.support.messages import TENANT

SPAN = Span((1, 0, "a"), (9, 3, "b"))


async def test_one_holder_at_a_time_and_growing_fences(backend: SqliteBackend) -> None:
    leases = backend.tenant(TENANT).leases
    found = await asyncio.gather(*(leases.acquire("x") for _ in range(20)))
    held = [lease for lease in found if lease is not None]
    assert len(held) == 1
    assert await leases.renew(held[0])
    await leases.release(held[0])
    again = await leases.acquire("x")
    assert again is not None
    assert again.fence == held[0].fence + 1
    assert not await leases.renew(held[0])
    await leases.release(held[0])  # the old holder cannot let go of the new one's
    assert await leases.acquire("x") is None
    assert await backend.tenant("t2").leases.acquire("x") is not None


async def test_a_lease_ends(backend: SqliteBackend) -> None:
    leases = backend.tenant(TENANT).leases
    first = await leases.acquire("x", ttl_ms=30)
    assert await leases.acquire("x") is None
    await asyncio.sleep(0.06)
    second = await leases.acquire("x")
    assert first is not None
    assert second is not None
    assert second.fence > first.fence


async def test_a_killed_holder_is_noticed_at_once(backend: SqliteBackend) -> None:
    code = textwrap.dedent(
        f"""
        import asyncio, os, pathlib, signal
        from tests.support.tools import backend_in
        async def main():
            stores = backend_in(pathlib.Path({str(backend.folder)!r})).tenant({TENANT!r})
            assert await stores.leases.acquire("x", ttl_ms=600_000)
            os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())
        """
    )
    root = Path(__file__).parents[2]
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}
    )
    assert done.returncode == -9
    assert await backend.tenant(TENANT).leases.acquire("x") is not None


async def test_jobs_by_name(backend: SqliteBackend) -> None:
    ledger = backend.tenant(TENANT).ledger
    job = await ledger.open_job("j", {"paths": ["a"]})
    assert job.state == "importing"
    assert await ledger.open_job("j", {"paths": ["a"]}) == job
    with pytest.raises(ConflictError, match="other arguments"):
        await ledger.open_job("j", {"paths": ["b"]})
    await ledger.update_job("j", state="done", report={"new": 3})
    done = await ledger.job("j")
    assert done is not None
    assert (done.state, done.report) == ("done", {"new": 3})
    assert await ledger.job("other") is None
    assert await backend.tenant("t2").ledger.jobs() == []


async def test_windows_and_dead_letters(backend: SqliteBackend) -> None:
    ledger = backend.tenant(TENANT).ledger
    await ledger.open_job("j", {})
    await ledger.plan("j", [Window(0, "c1", SPAN, 5), Window(0, "c2", SPAN, 7)], conversations=["c1", "c2"])
    await ledger.plan("j", [Window(0, "c3", SPAN, 1)], conversations=["c3"])
    planned = await ledger.windows("j")
    assert [(w.number, w.conversation_id, w.span) for w in planned] == [
        (0, "c1", SPAN),
        (1, "c2", SPAN),
        (2, "c3", SPAN),
    ]
    good = Window(0, "c1", SPAN, 5, state="done", counts={"memcells": 2})
    bad = Window(1, "c2", SPAN, 7, state="failed", error="model gone")
    for _ in range(2):  # a sink that runs again changes nothing
        await ledger.finish_windows("j", [good, bad])
    assert await ledger.window_counts("j") == {
        "done": 1, "failed": 1, "planned": 1, "done_messages": 5, "failed_messages": 7, "planned_messages": 1,
        "memcells": 2,
    }  # fmt: skip
    (letter,) = await ledger.dead_letters()
    assert (letter["window"], letter["error"], letter["conversation_id"]) == (1, "model gone", "c2")
    await ledger.resolve_dead_letters([letter["id"]])
    assert await ledger.dead_letters() == []
    assert [w.number for w in await ledger.windows("j", state="failed")] == [1]
