"""The embedded backend: three SQLite files in one folder, for any number of processes on one machine."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from primitives.errors import NotFoundError, StoreError
from storage.ports import IndexGeneration
from storage.settings import StorageSettings
from storage.sqlite import keyword, schema, vector
from storage.sqlite.database import Database
from storage.sqlite.documents import SqliteDocuments
from storage.sqlite.keyword import SqliteKeywordIndex
from storage.sqlite.leases import SqliteLeases
from storage.sqlite.ledger import SqliteLedger
from storage.sqlite.vector import MatrixCache, SqliteVectorIndex
from storage.stores import TenantStores

DOCUMENTS, KEYWORD, VECTOR = "documents.sqlite", "keyword.sqlite", "vector.sqlite"
GENERATIONS_SECONDS = 0.5
"""How long the list of index generations is trusted. A rebuild waits longer than this before it looks for rows that
the new generation lacks, so that a writer with the old list is noticed."""


class SqliteIndexes:
    """See storage.stores.Indexes."""

    def __init__(self, backend: SqliteBackend, documents: SqliteDocuments) -> None:
        self._backend = backend
        self._documents = documents
        self._listed: list[IndexGeneration] = []
        self._until = 0.0

    async def _generations(self, kind: str) -> list[IndexGeneration]:
        if time.monotonic() > self._until:
            self._listed = await self._documents.generations()
            self._until = time.monotonic() + GENERATIONS_SECONDS
        return [generation for generation in self._listed if generation.kind == kind]

    async def keywords(self) -> list[SqliteKeywordIndex]:
        return [await self._keyword(g) for g in await self._generations("keyword")]

    async def vectors(self) -> list[SqliteVectorIndex]:
        return [await self._vector(g) for g in await self._generations("vector")]

    async def keyword(self) -> SqliteKeywordIndex:
        return next(index for index in await self.keywords() if index.generation.live)

    async def vector(self) -> SqliteVectorIndex:
        for index in await self.vectors():
            if index.generation.live:
                return index
        raise StoreError("there is no vector index yet", hint="Start the server, or run a backfill.")

    async def open(self, name: str) -> SqliteKeywordIndex | SqliteVectorIndex:
        for generation in await self._documents.generations():
            if generation.name == name:
                return await (self._keyword(generation) if generation.kind == "keyword" else self._vector(generation))
        raise NotFoundError(f"no index generation {name}")

    async def _keyword(self, generation: IndexGeneration) -> SqliteKeywordIndex:
        await self._backend.make_tables(self._backend.keyword_file, keyword.create, generation.name)
        return SqliteKeywordIndex(self._backend.keyword_file, self._documents.tenant_id, generation)

    async def _vector(self, generation: IndexGeneration) -> SqliteVectorIndex:
        await self._backend.make_tables(self._backend.vector_file, vector.create, generation.name)
        return SqliteVectorIndex(
            self._backend.vector_file, self._documents.tenant_id, generation, self._backend.matrices
        )


class SqliteBackend:
    """See storage.stores.Backend."""

    def __init__(self, settings: StorageSettings) -> None:
        self.folder: Path = settings.evercore_data_dir
        self.documents_file = Database(self.folder / DOCUMENTS, prepare=schema.prepare)
        self.keyword_file = Database(self.folder / KEYWORD, prepare=keyword.prepare)
        self.vector_file = Database(self.folder / VECTOR, prepare=vector.prepare)
        self.matrices = MatrixCache(settings.vector_cache_bytes)
        self._made: set[str] = set()

    async def make_tables(
        self, database: Database, create: Callable[[sqlite3.Connection, str], None], name: str
    ) -> None:
        if name not in self._made:
            await database.write(lambda connection: create(connection, name))
            self._made.add(name)

    def tenant(self, tenant_id: str) -> TenantStores:
        documents = SqliteDocuments(self.documents_file, tenant_id)
        return TenantStores(
            tenant_id=tenant_id,
            documents=documents,
            leases=SqliteLeases(self.documents_file, tenant_id),
            ledger=SqliteLedger(self.documents_file, tenant_id),
            indexes=SqliteIndexes(self, documents),
        )

    async def tenants(self) -> list[str]:
        rows = await self.documents_file.read(
            lambda c: c.execute("SELECT DISTINCT tenant_id FROM conversations ORDER BY tenant_id").fetchall()
        )
        return [row[0] for row in rows]

    async def close(self) -> None:
        for database in (self.documents_file, self.keyword_file, self.vector_file):
            await database.close()
