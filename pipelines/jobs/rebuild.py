"""rebuild-index: a new generation of an index, made from the documents alone, which then takes the old one's place."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import ray
from numpy.typing import NDArray
from ray.data import ActorPoolStrategy

from models.settings import ModelSettings
from pipelines.indexing import entry_of
from pipelines.jobs.setup import Setup, check_cluster, quiet_data, worker_count
from pipelines.settings import PipelineSettings
from pipelines.tools import Tools
from primitives.errors import ConflictError, StoreError
from storage.ports import IndexGeneration, KeywordIndex, Row, VectorIndex
from storage.settings import StorageSettings

Vector = NDArray[np.float32]
IndexKind = Literal["keyword", "vector"]
PAGE = 500
RANGE = 2_000
"""Ids in one task."""
SETTLE_S = 2.0
"""Longer than a writer trusts its list of generations, so that every writer knows the new one before we look for
rows that it lacks."""
ROUNDS = 100


@dataclass
class RebuildReport:
    """One rebuilt index."""

    kind: str
    generation: str
    replaced: str | None
    rows: int = 0
    embedded: int = 0
    reused: int = 0
    """Vectors taken from the old generation, made by the same model from the same revision."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class IdRange:
    """Rows of one tenant with `after` < id <= `last`."""

    tenant_id: str
    after: str
    last: str


class RangeIndexer:
    """A Ray Data actor that writes ranges of rows to one generation."""

    def __init__(self, setup: Setup, generation: str) -> None:
        self._setup = setup
        self._generation = generation
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="rebuild", daemon=True).start()
        self._tools: dict[str, Tools] = {}

    def __call__(self, table: pa.Table) -> pa.Table:
        ranges = [IdRange(*row.values()) for row in table.select(["tenant_id", "after", "last"]).to_pylist()]
        counts = [asyncio.run_coroutine_threadsafe(self._range(one), self._loop).result() for one in ranges]
        return pa.table(dict(zip(("rows", "embedded", "reused"), map(list, zip(*counts, strict=True)), strict=True)))

    async def _range(self, one: IdRange) -> tuple[int, int, int]:
        if one.tenant_id not in self._tools:
            setup = Setup(one.tenant_id, self._setup.storage, self._setup.models, self._setup.pipeline)
            self._tools[one.tenant_id], _ = await setup.tools()
        return await index_range(self._tools[one.tenant_id], self._generation, one)


async def index_range(tools: Tools, generation: str, one: IdRange) -> tuple[int, int, int]:
    """(rows written, texts embedded, vectors reused)."""
    documents = tools.stores.documents
    written = embedded = reused = 0
    after = one.after
    while rows := await documents.lacking(generation, after=after, limit=PAGE):
        rows = [row for row in rows if row.id <= one.last]
        if not rows:
            break
        made, kept = await index_into(tools, generation, rows)
        written, embedded, reused = written + len(rows), embedded + made, reused + kept
        after = rows[-1].id
    return written, embedded, reused


async def index_into(tools: Tools, generation: str, rows: Sequence[Row]) -> tuple[int, int]:
    """Write rows to one generation and mark them; returns how many texts were embedded and how many vectors reused."""
    index = await tools.stores.indexes.open(generation)
    if index.generation.kind == "keyword":
        vectors, embedded = {}, 0
    else:
        vectors = await _vectors_of_live(tools, index.generation, rows)
        missing = [row for row in rows if row.id not in vectors]
        embedded = len(missing)
        if missing:
            made = await tools.embedder.embed_documents([row.embedding_text for row in missing])
            vectors |= {row.id: vector for row, vector in zip(missing, made, strict=True)}
    entries = [entry_of(row, vectors.get(row.id)) for row in rows]
    await index.upsert(entries)
    gone = await tools.stores.documents.mark_indexed([generation], [(entry.id, entry.revision) for entry in entries])
    if gone:  # deleted while they were being written
        await index.delete(gone)
    return embedded, len(vectors) - embedded


async def _vectors_of_live(tools: Tools, generation: IndexGeneration, rows: Sequence[Row]) -> dict[str, Vector]:
    """Vectors of exactly these revisions from the live generation, where the same model made them."""
    live = await tools.stores.indexes.vector()
    if live.generation.model_id != generation.model_id or live.generation.name == generation.name:
        return {}
    found = await live.vectors([row.id for row in rows])
    return {row.id: found[row.id][1] for row in rows if row.id in found and found[row.id][0] == row.revision}


# ---------------------------------------------------------------- the job


def run_rebuild(
    kinds: Sequence[IndexKind],
    *,
    storage: StorageSettings,
    models: ModelSettings,
    pipeline: PipelineSettings,
    workers: int | None = None,
) -> list[RebuildReport]:
    """Rebuild indexes for all tenants; blocks. A stopped rebuild goes on with the generation it had begun."""
    check_cluster()
    setup = Setup(storage.evercore_tenant, storage, models, pipeline).anywhere()
    return [_rebuild(kind, setup, worker_count(workers)) for kind in kinds]


def _rebuild(kind: IndexKind, setup: Setup, workers: int) -> RebuildReport:
    started = time.monotonic()
    generation, old, tenants = asyncio.run(_begin(kind, setup))
    report = RebuildReport(kind=kind, generation=generation, replaced=old)
    time.sleep(SETTLE_S)
    for _ in range(ROUNDS):
        ranges = asyncio.run(_ranges(setup, generation, tenants))
        if not ranges and asyncio.run(setup.stores().documents.promote_generation(generation)):
            break
        _index(ranges, setup, generation, workers, report)
    else:
        raise ConflictError(
            f"index generation {generation} never caught up with the writers", hint="Run it again when less is written."
        )
    asyncio.run(_drop_old(setup, generation, kind))
    report.seconds = time.monotonic() - started
    return report


async def _begin(kind: IndexKind, setup: Setup) -> tuple[str, str | None, list[str]]:
    tools, backend = await setup.tools()
    try:
        documents = tools.stores.documents
        live = [g.name for g in await documents.generations() if g.kind == kind and g.live]
        identity = tools.embedder.identity
        names = {"model_id": identity.space, "dimension": identity.dimension} if kind == "vector" else {}
        new = await documents.add_generation(kind, **cast("dict[str, Any]", names))
        return new.name, next(iter(live), None), await backend.tenants()
    finally:
        await tools.embedder.close()
        await backend.close()


async def _ranges(setup: Setup, generation: str, tenants: Sequence[str]) -> list[IdRange]:
    """Ranges of rows that the generation lacks, over all tenants."""
    found: list[IdRange] = []
    for tenant in tenants:
        documents = Setup(tenant, setup.storage, setup.models, setup.pipeline).stores().documents
        after = ""
        while rows := await documents.lacking(generation, after=after, limit=RANGE):
            found.append(IdRange(tenant, after, rows[-1].id))
            after = rows[-1].id
    return found


def _index(ranges: Sequence[IdRange], setup: Setup, generation: str, workers: int, report: RebuildReport) -> None:
    if not ranges:
        return
    with quiet_data():
        done = ray.data.from_arrow([pa.Table.from_pylist([asdict(one)]) for one in ranges]).map_batches(
            RangeIndexer, batch_size=None, batch_format="pyarrow",
            fn_constructor_kwargs={"setup": setup, "generation": generation},
            compute=ActorPoolStrategy(size=min(workers, len(ranges))), num_cpus=1,
        )  # fmt: skip
        for row in done.iter_rows():
            report.rows += row["rows"]
            report.embedded += row["embedded"]
            report.reused += row["reused"]


async def _drop_old(setup: Setup, generation: str, kind: IndexKind) -> None:
    """Take the generations away that the new one replaced: first out of the list, then the data."""
    stores = setup.stores()
    old: list[KeywordIndex | VectorIndex] = []
    for there in await stores.documents.generations():
        if there.kind == kind and there.name != generation:
            if there.live:
                raise StoreError(f"index generation {there.name} is still live")
            old.append(await stores.indexes.open(there.name))
            await stores.documents.remove_generation(there.name)
    await asyncio.sleep(SETTLE_S)  # writers and searchers that still trust their list
    for index in old:
        await index.drop()
