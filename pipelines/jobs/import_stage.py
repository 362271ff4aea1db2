"""The import stage: files are parsed in parallel into raw messages, each record batch stored in one transaction."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasink, Datasource, ReadTask
from ray.data.block import Block, BlockMetadata
from ray.data.datasource.datasink import WriteResult

from pipelines.indexing import index_messages
from pipelines.intake import to_messages
from pipelines.jobs.blocks import table_of, values_of, values_of_blocks
from pipelines.jobs.reading import FilePlan, RecordBatch, read_batches
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.setup import Setup, quiet_data
from primitives.clock import now_ms
from storage.ports import AddOutcome, ImportBatch
from storage.stores import TenantStores

READER_CPUS = 0.01
"""Readers wait for the workers most of the time; they must not take a core from them."""
CONFLICTS_SHOWN = 100
WORKER_CPUS = 0.9
"""Leaves room for the readers beside one worker a core."""


class ExportDatasource(Datasource):
    """Export files; one read task a file, one row a record batch."""

    def __init__(self, plans: Sequence[FilePlan], *, job: str, request: BackfillRequest, setup: Setup) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._plans = plans
        self._read = partial(read_file, job=job, request=request, setup=setup)

    def estimate_inmemory_data_size(self) -> int | None:
        return sum(plan.size for plan in self._plans)

    def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[ReadTask]:
        """As many as there are files, whatever `parallelism` says: a file has one order."""
        tasks = []
        for plan in self._plans:
            metadata = BlockMetadata(
                num_rows=None, size_bytes=plan.size, exec_stats=None, input_files=(str(plan.source.path),)
            )
            tasks.append(ReadTask(partial(self._read, plan), metadata))
        return tasks


def read_file(plan: FilePlan, *, job: str, request: BackfillRequest, setup: Setup) -> Iterator[Block]:
    """The record batches of one file that the ledger does not have yet."""
    done = asyncio.run(setup.stores().ledger.imported_batches(job, plan.identity))
    for batch in read_batches(plan, request, max_bytes=setup.pipeline.message_max_bytes, done=done):
        yield table_of("batch", [batch.dump()])


def prepare(table: pa.Table, *, plans: dict[str, FilePlan], setup: Setup) -> pa.Table:
    """Record batches with finished messages: owner, keys, language, tokens."""
    prepared = []
    for data in values_of("batch", table):
        batch = RecordBatch.load(data)
        plan = plans[batch.file]
        messages = to_messages(
            batch.placed, tenant_id=setup.tenant_id, ownership=plan.ownership, imported_at=now_ms(),
            source=plan.source.path.name, file_number=plan.number,
        )  # fmt: skip
        prepared.append(pickle.dumps((batch.file, batch.number, batch.counts, messages), protocol=5))
    return table_of("batch", prepared)


class MessageDatasink(Datasink[list[str]]):
    """Upserts record batches. A batch that is in the ledger changes nothing, so a retried task is harmless."""

    def __init__(self, *, job: str, setup: Setup) -> None:
        self._job = job
        self._setup = setup
        self.conflicts: list[str] = []
        """First message ids that are stored with other content; known once all is written."""

    def on_write_complete(self, write_result: WriteResult[list[str]]) -> None:
        self.conflicts = [key for ids in write_result.write_returns for key in ids][:CONFLICTS_SHOWN]

    def write(self, blocks: Iterable[Block], ctx: Any) -> list[str]:
        """Returns message ids that are stored with other content."""
        return asyncio.run(self._write(blocks))

    async def _write(self, blocks: Iterable[Block]) -> list[str]:
        stores = self._setup.stores()
        conflicts: list[str] = []
        for data in values_of_blocks("batch", blocks):
            outcome = await store_batch(stores, self._job, data)
            conflicts += outcome.conflicts
        return conflicts[:CONFLICTS_SHOWN]


async def store_batch(stores: TenantStores, job: str, data: bytes) -> AddOutcome:
    """One prepared batch: documents and ledger in one commit, then the keyword index."""
    file, number, counts, messages = pickle.loads(data)
    outcome = await stores.documents.add_messages(messages, batch=ImportBatch(job, file, number, counts))
    await index_messages(stores, outcome.added)
    return outcome


def run_import(
    plans: Sequence[FilePlan], *, job: str, request: BackfillRequest, setup: Setup, workers: int
) -> list[str]:
    """Import all files; returns, when every batch is stored, the message ids that met other content under their key."""
    if not plans:
        return []
    sink = MessageDatasink(job=job, setup=setup)
    by_file = {plan.identity: plan for plan in plans}
    with quiet_data():
        dataset = ray.data.read_datasource(
            ExportDatasource(plans, job=job, request=request, setup=setup), override_num_blocks=len(plans),
            concurrency=min(len(plans), workers), num_cpus=READER_CPUS,
        )  # fmt: skip
        remote: dict[str, Any] = {"num_cpus": WORKER_CPUS}
        dataset.map_batches(
            prepare, batch_size=None, batch_format="pyarrow", fn_kwargs={"plans": by_file, "setup": setup},
            zero_copy_batch=True, **remote,
        ).write_datasink(sink, ray_remote_args=remote)  # fmt: skip
    return sink.conflicts
