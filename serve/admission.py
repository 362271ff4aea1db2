"""How many searches run and wait at the same time; more are turned away at once.

A search is work for the processor, so many at the same time only make each slower. Those that wait too long have callers
that gave up, so the queue is short, and a search that does not fit is told to come back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from primitives.errors import OverloadedError


class Admission:
    """At most `running` at work and `waiting` in line."""

    def __init__(self, *, running: int, waiting: int) -> None:
        self._places = asyncio.Semaphore(running)
        self._most = running + waiting
        self._inside = 0

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for one search; OverloadedError where the line is full."""
        if self._inside >= self._most:
            raise OverloadedError("too many searches at once", hint="Wait as Retry-After says.")
        self._inside += 1
        try:
            async with self._places:
                yield
        finally:
            self._inside -= 1
