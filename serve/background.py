"""Upkeep while the server runs: finish what crashes left, flush conversations that fell silent.

One leader for each tenant, whatever the number of replicas: the round of a tenant is run by who holds its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from pipelines.flush import flush_idle
from pipelines.leasing import held
from pipelines.maintenance import sweep
from primitives.errors import ConflictError, EverCoreError
from serve.services import Services

LEASE = "background"

logger = logging.getLogger(__name__)


class Background:
    """The upkeep loop of one process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="background")

    async def stop(self) -> None:
        """Stop between two steps; whatever was begun is resumed by the next leader."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(self._services.settings.serve.evercore_sweep_seconds)
            try:
                await self.round()
            except Exception:
                # The loop must outlive any fault of one round; the next round tries again.
                logger.exception("a round of background upkeep failed")
                self._services.metrics.background("failed")

    async def round(self) -> None:
        """Upkeep of every tenant, once."""
        tenants = await self._services.backend.tenants()
        for tenant_id in dict.fromkeys([self._services.default_tenant, *tenants]):
            tools = await self._services.tools(tenant_id)
            try:
                async with held(tools.stores.leases, LEASE, wait_s=0):
                    report = await sweep(tools)
                    flushed = await flush_idle(tools)
            except ConflictError:
                self._services.metrics.background("not leader")
                continue
            except EverCoreError as fault:
                logger.warning("upkeep of tenant %s failed: %s", tenant_id, fault)
                self._services.metrics.background("failed")
                continue
            self._services.metrics.background("done")
            if flushed or any(report.to_dict().values()):
                logger.info("upkeep of tenant %s: %s, %d idle flushes", tenant_id, report.to_dict(), flushed)
