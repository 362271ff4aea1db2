"""Holding a lease for as long as a piece of work takes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator

from primitives.errors import ConflictError
from storage.ports import Lease, Leases

TTL_MS = 15_000


@contextlib.asynccontextmanager
async def held(leases: Leases, name: str, *, wait_s: float) -> AsyncIterator[Lease]:
    """The lease, renewed in the background until the block ends; ConflictError where it stays taken for `wait_s`.

    A renewal that fails does not stop the block: the fence is checked where it matters, in the transactions.
    """
    deadline = time.monotonic() + wait_s
    pause = 0.02
    while (lease := await leases.acquire(name, ttl_ms=TTL_MS)) is None:
        if time.monotonic() >= deadline:
            raise ConflictError(f"{name} is being worked on by somebody else", hint="Try again in a few seconds.")
        await asyncio.sleep(min(pause * random.uniform(0.5, 1.5), max(0.0, deadline - time.monotonic())))
        pause = min(pause * 1.5, 0.5)
    renewing = asyncio.create_task(_renew(leases, lease))
    try:
        yield lease
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        await leases.release(lease)


async def _renew(leases: Leases, lease: Lease) -> None:
    while True:
        await asyncio.sleep(TTL_MS / 3000)
        if not await leases.renew(lease, ttl_ms=TTL_MS):
            return
