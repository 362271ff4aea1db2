"""From documents to the two indexes: the one order of writing, for whoever writes.

Documents are there first (pending). Keyword and vector entries follow in parallel, in bulk, to every active generation;
then the documents are marked with the revision that was written, unless they moved on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder
from storage.ports import IndexEntry, Row
from storage.records import Message
from storage.stores import TenantStores

Vectors = Mapping[str, NDArray[np.float32]]


def entry_of(row: Row, vector: NDArray[np.float32] | None = None) -> IndexEntry:
    """What the indexes know of a row."""
    return IndexEntry(
        id=row.id, revision=row.revision, memory_type=str(row.memory_type), partition=row.partition, user_id=row.user_id,
        group_id=row.group_id, session_id=row.session_id, timestamp=row.timestamp, sender_ids=row.sender_ids,
        tags=row.tags, text=row.search_text, vector=vector,
    )  # fmt: skip


async def index_messages(stores: TenantStores, added: Sequence[Message]) -> None:
    """Make just added messages findable by keyword; their vectors come when their MemCell is built."""
    if not added:
        return
    indexes = await stores.indexes.keywords()
    entries = [entry_of(message) for message in added]
    await asyncio.gather(*(index.upsert(entries) for index in indexes))
    await _mark(stores, [index.generation.name for index in indexes], entries)


async def index_rows(stores: TenantStores, rows: Sequence[Row], vectors: Vectors, *, model_id: str) -> None:
    """Write rows to the keyword indexes, and those with a vector to the vector indexes of that model.

    A row that some generation still lacks afterwards stays unindexed, and the sweeper looks after it.
    """
    if not rows:
        return
    keywords = await stores.indexes.keywords()
    of_model = [index for index in await stores.indexes.vectors() if index.generation.model_id == model_id]
    entries = [entry_of(row, vectors.get(row.id)) for row in rows]
    embedded = [entry for entry in entries if entry.vector is not None]
    await asyncio.gather(
        *(index.upsert(entries) for index in keywords),
        *(index.upsert(embedded) for index in of_model if embedded),
    )
    names = [index.generation.name for index in keywords]
    bare = [entry for entry in entries if entry.vector is None]
    await _mark(stores, names, bare)
    await _mark(stores, [*names, *(index.generation.name for index in of_model)], embedded)


async def _mark(stores: TenantStores, generations: Sequence[str], entries: Sequence[IndexEntry]) -> None:
    gone = await stores.documents.mark_indexed(generations, [(entry.id, entry.revision) for entry in entries])
    if gone:  # deleted while they were being written
        await unindex(stores, gone)


async def unindex(stores: TenantStores, ids: Sequence[str]) -> None:
    """Take rows out of every index generation."""
    indexes = [*await stores.indexes.keywords(), *await stores.indexes.vectors()]
    await asyncio.gather(*(index.delete(ids) for index in indexes))


async def embed_and_index(stores: TenantStores, embedder: Embedder, rows: Sequence[Row]) -> int:
    """Index rows from their documents alone; returns how many vectors were made."""
    wanted = await stores.documents.wants_vector([row.id for row in rows])
    chosen = [row for row in rows if row.id in wanted]
    made: dict[str, NDArray[np.float32]] = {}
    if chosen:
        vectors = await embedder.embed_documents([row.embedding_text for row in chosen])
        made = {row.id: vector for row, vector in zip(chosen, vectors, strict=True)}
    await index_rows(stores, rows, made, model_id=embedder.identity.space)
    return len(made)
