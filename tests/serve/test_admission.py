"""Searches beyond what runs and waits are turned away at once."""

from __future__ import annotations

import asyncio

import pytest

from primitives.errors import OverloadedError
from serve.admission import Admission


async def test_running_waiting_and_turned_away() -> None:
    admission = Admission(running=1, waiting=1)
    release = asyncio.Event()
    order: list[int] = []

    async def work(number: int) -> None:
        async with admission.place():
            order.append(number)
            await release.wait()

    first, second = asyncio.create_task(work(1)), asyncio.create_task(work(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await work(3)
    assert order == [1]
    release.set()
    await asyncio.gather(first, second)
    assert order == [1, 2]
    await work(4)


async def test_one_that_gives_up_frees_its_place() -> None:
    admission = Admission(running=1, waiting=0)

    async def endless() -> None:
        async with admission.place():
            await asyncio.Event().wait()

    task = asyncio.create_task(endless())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with admission.place():
        pass
