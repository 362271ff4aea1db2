"""Index hits made into rows of the document store, which decides what is there and who may see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from serve.query import Query
from serve.visibility import shown
from storage.ports import Documents, Row
from storage.records import MemoryType

SLACK = 8
"""Rows read beyond the number asked for, since some may be gone or hidden."""


async def hydrate(
    ordered: Mapping[MemoryType, Sequence[str]],
    query: Query,
    *,
    documents: Documents,
    rows: dict[str, Row],
    partitions: frozenset[str],
) -> tuple[dict[MemoryType, list[Row]], bool]:
    """The best `query.limit` visible rows of each type, and whether any type had more.

    `rows` holds what was read before and gains what is read here. Reading goes on behind hidden rows until each type
    has enough, so that a stale index costs time and never an answer.
    """
    found: dict[MemoryType, list[Row]] = {kind: [] for kind in ordered}
    place = dict.fromkeys(ordered, 0)
    open_types = [kind for kind in ordered if ordered[kind]]
    while open_types:
        reach = {k: place[k] + query.limit - len(found[k]) + SLACK for k in open_types}
        await _read((i for k in open_types for i in ordered[k][place[k] : reach[k]]), documents=documents, rows=rows)
        for kind in open_types:
            while place[kind] < min(reach[kind], len(ordered[kind])) and len(found[kind]) < query.limit:
                row = rows.get(ordered[kind][place[kind]])
                place[kind] += 1
                if row is not None and row.memory_type is kind and shown(row, query, partitions=partitions):
                    found[kind].append(row)
        open_types = [k for k in open_types if len(found[k]) < query.limit and place[k] < len(ordered[k])]
    return found, any(place[kind] < len(ordered[kind]) for kind in ordered)


async def _read(ids: Iterable[str], *, documents: Documents, rows: dict[str, Row]) -> None:
    missing = [row_id for row_id in dict.fromkeys(ids) if row_id not in rows]
    if missing:
        rows |= await documents.fetch(missing)
