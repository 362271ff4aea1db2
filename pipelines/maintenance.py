"""Finishing what crashes left behind, and checking that the stores agree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from pipelines.deletion import purge
from pipelines.indexing import embed_and_index, unindex
from pipelines.profiles import refresh_profiles
from pipelines.tools import Tools
from pipelines.window import build_unfinished
from primitives.clock import now_ms
from storage.ports import Index

T = TypeVar("T", bound=tuple[Any, ...])

RUNNING_MS = 300_000
"""Work younger than this is somebody's who may still be at it."""
SCAN = 5_000
BATCH = 256


@dataclass
class SweepReport:
    """What a sweep found undone and did."""

    memcells: int = 0
    indexed: int = 0
    purged: int = 0
    profiles: int = 0
    failures: int = 0
    """MemCells that could not be built; the log says why, and the next sweep tries again."""

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


async def sweep(tools: Tools, *, older_than_ms: int = RUNNING_MS) -> SweepReport:
    """Build MemCells that were cut and left, index rows that wait, finish deletions, fold profiles."""
    report = SweepReport()
    report.purged = await purge(tools)
    built = await build_unfinished(tools, cut_before=now_ms() - older_than_ms)
    report.memcells, report.failures = built.memcells, built.failures
    seen: set[str] = set()
    while rows := await tools.stores.documents.unindexed(limit=BATCH, older_than=older_than_ms):
        if not {row.id for row in rows} - seen:
            break  # what is left belongs to an index generation that this process cannot write
        seen |= {row.id for row in rows}
        await embed_and_index(tools.stores, tools.embedder, rows)
        report.indexed += len(rows)
    report.profiles = await refresh_profiles(tools, None)
    report.purged += await purge(tools)
    return report


@dataclass
class Difference:
    """One disagreement: `where` is an index generation or `documents`."""

    where: str
    what: str
    id: str


@dataclass
class VerifyReport:
    """How far the stores agree. `pending` rows are known to be unindexed, which is no difference."""

    checked: dict[str, int] = field(default_factory=dict)
    pending: int = 0
    differences: list[Difference] = field(default_factory=list)
    repaired: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


async def verify(tools: Tools, *, repair: bool = False, _passes: int = 2) -> VerifyReport:
    """Compare documents with every index generation by id and revision, streaming; then the links among documents.

    A difference counts when it is seen twice, since writers that run meanwhile are between two steps. `repair` brings
    the indexes in line with the documents, which are the truth.
    """
    report = VerifyReport()
    stores = tools.stores
    for index in [*await stores.indexes.keywords(), *await stores.indexes.vectors()]:
        found = await _compare(tools, index, report)
        for _ in range(_passes - 1):
            if found:
                await asyncio.sleep(1.0)
                again = {(d.what, d.id) for d in await _compare(tools, index, VerifyReport())}
                found = [d for d in found if (d.what, d.id) in again]
        report.differences += found
    report.differences += [Difference("documents", what, row) for what, row in await stores.documents.broken_links()]
    if repair:
        wrong = sorted({d.id for d in report.differences if d.where != "documents"})
        for start in range(0, len(wrong), BATCH):
            ids = wrong[start : start + BATCH]
            await unindex(stores, ids)
            await embed_and_index(stores, tools.embedder, list((await stores.documents.fetch(ids)).values()))
        report.repaired = len(wrong)
    return report


async def _compare(tools: Tools, index: Index, report: VerifyReport) -> list[Difference]:
    """Merge the two id-ordered streams."""
    name = index.generation.name
    documents, kind = tools.stores.documents, index.generation.kind

    async def wanted(after: str) -> list[tuple[str, int, bool]]:
        return await documents.scan_revisions(kind, after=after, limit=SCAN)

    async def there(after: str) -> list[tuple[str, int]]:
        return await index.scan(after=after, limit=SCAN)

    left, right = _stream(wanted), _stream(there)
    a, b = await anext(left, None), await anext(right, None)
    found = []
    while a is not None or b is not None:
        if b is None or (a is not None and a[0] < b[0]):
            assert a is not None
            if a[2]:
                report.pending += 1
            else:
                found.append(Difference(name, "missing", a[0]))
            a = await anext(left, None)
        elif a is None or b[0] < a[0]:
            found.append(Difference(name, "orphan", b[0]))
            b = await anext(right, None)
        else:
            report.checked[name] = report.checked.get(name, 0) + 1
            if a[1] != b[1] and not a[2]:
                found.append(Difference(name, f"revision {b[1]} instead of {a[1]}", a[0]))
            a, b = await anext(left, None), await anext(right, None)
    return found


async def _stream(read: Callable[[str], Awaitable[list[T]]]) -> AsyncIterator[T]:
    after = ""
    while rows := await read(after):
        for row in rows:
            yield row
        after = str(rows[-1][0])
