"""What the processes of a job share: settings, stores opened once a process, and a quiet Ray Data."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import ray
from ray.data import DataContext

from models.settings import ModelSettings
from pipelines.jobs.nodes import require_one_node
from pipelines.settings import PipelineSettings
from pipelines.tools import Tools
from primitives.errors import ConfigurationError
from storage.settings import StorageSettings
from storage.sqlite import open_backend
from storage.stores import Backend, TenantStores

BLOCK_BYTES = 256 * 2**10
"""About one record batch: little memory, and work for all workers in a small file."""
STORE_BYTES = 64 * 2**20
"""Object store that one job may fill with blocks on their way. Readers are faster than writers and wait then."""


@dataclass(frozen=True)
class Setup:
    """Picklable; each process opens what it needs from it."""

    tenant_id: str
    storage: StorageSettings
    models: ModelSettings
    pipeline: PipelineSettings

    def anywhere(self) -> Setup:
        """With absolute paths, since Ray's workers run in other folders."""
        folder = self.storage.evercore_data_dir.absolute()
        return replace(self, storage=self.storage.model_copy(update={"evercore_data_dir": folder}))

    def stores(self) -> TenantStores:
        """The tenant's stores, over connections that this process opens once."""
        return _backend(self.storage.model_dump_json()).tenant(self.tenant_id)

    async def tools(self) -> tuple[Tools, Backend]:
        """Stores and models of a process's own; to be closed."""
        from pipelines.assemble import open_tools  # here, so that import workers carry no model engines

        _check_here()
        return await open_tools(
            tenant_id=self.tenant_id, storage=self.storage, models=self.models, pipeline=self.pipeline
        )


@cache
def _backend(settings: str) -> Backend:
    _check_here()
    return open_backend(StorageSettings.model_validate_json(settings))


def _check_here() -> None:
    """A worker on a node that joined during the job must not begin new stores in a folder of the same name there."""
    if ray.is_initialized():
        require_one_node()


def check_cluster() -> None:
    """ConfigurationError where there is no Ray, or where embedded stores would be opened on several machines."""
    if not ray.is_initialized():
        raise ConfigurationError("no Ray to run on", hint="Start one with `evercore up`, or call ray.init() first.")
    require_one_node()


def worker_count(asked: int | None) -> int:
    """One worker a core at most."""
    known: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    cores = max(1, min(int(known.get("CPU", 1)), os.cpu_count() or 1))
    return min(asked or cores, cores)


@contextmanager
def quiet_data() -> Iterator[DataContext]:
    """Ray Data with small blocks and without its own progress bars; its settings are put back afterwards."""
    context = DataContext.get_current()
    wanted = {
        "target_max_block_size": BLOCK_BYTES, "target_min_block_size": 1, "enable_progress_bars": False,
        "enable_operator_progress_bars": False, "print_on_execution_start": False, "enable_auto_log_stats": False,
        "use_ray_tqdm": False,
    }  # fmt: skip
    before = {name: getattr(context, name) for name in wanted}
    limits = context.execution_options.resource_limits
    context.execution_options.resource_limits = limits.copy(object_store_memory=STORE_BYTES)
    logger = logging.getLogger("ray.data")
    level = logger.level
    for name, value in wanted.items():
        setattr(context, name, value)
    logger.setLevel(logging.ERROR)
    try:
        yield context
    finally:
        for name, value in before.items():
            setattr(context, name, value)
        context.execution_options.resource_limits = limits
        logger.setLevel(level)
