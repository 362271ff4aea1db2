"""Working on the stores without a server: what commands share when they open them on their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from serve.configuration import Settings
from serve.services import Services, open_services

T = TypeVar("T")


@contextlib.asynccontextmanager
async def services_of(settings: Settings) -> AsyncIterator[Services]:
    """Stores and model of this process, closed at the end."""
    services = await open_services(settings)
    try:
        yield services
    finally:
        await services.close()


def with_services(settings: Settings, work: Callable[[Services], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on stores and model of this process."""

    async def run() -> T:
        async with services_of(settings) as services:
            return await work(services)

    return asyncio.run(run())
