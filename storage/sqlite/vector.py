"""The embedded vector index: float32 blobs in SQLite, searched exactly in numpy.

Rows carry an ever-growing sequence number, so a searcher keeps each owner's matrix in memory and reads only what is
newer; a deleted row is a newer row without a vector. Matrices of owners that were not searched lately are let go.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primitives.errors import ModelError
from storage.filters import Scope, to_sql
from storage.ports import Hit, IndexEntry, IndexGeneration
from storage.sqlite.codec import dumps, id_list
from storage.sqlite.database import Database
from storage.sqlite.vector_matrix import OwnerMatrix

FIRST_CANDIDATES = 2_000
READ_ROWS = 5_000


def prepare(connection: sqlite3.Connection) -> None:
    """Nothing is shared between generations; each makes its own table."""


def create(connection: sqlite3.Connection, name: str) -> None:
    """The table of one generation."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS entries_{name} (sequence INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, "
        "id TEXT NOT NULL, revision INTEGER NOT NULL, memory_type TEXT NOT NULL, partition TEXT NOT NULL, user_id TEXT, "
        "group_id TEXT, session_id TEXT, timestamp INTEGER, sender_ids TEXT NOT NULL, tags TEXT NOT NULL, "
        "deleted INTEGER NOT NULL, vector BLOB)"
    )
    connection.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS entries_{name}_ids ON entries_{name} (tenant_id, id)")
    connection.execute(
        f"CREATE INDEX IF NOT EXISTS entries_{name}_owner ON entries_{name} (tenant_id, partition, sequence)"
    )
    connection.execute(
        f"CREATE INDEX IF NOT EXISTS entries_{name}_gone ON entries_{name} (tenant_id) WHERE deleted = 1"
    )


class MatrixCache:
    """The matrices of the owners searched last, of all generations of one process, within a number of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._matrices: OrderedDict[tuple[str, str, str], OwnerMatrix] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: tuple[str, str, str], dimension: int) -> OwnerMatrix:
        with self._guard:
            matrix = self._matrices.setdefault(key, OwnerMatrix(dimension))
            self._matrices.move_to_end(key)
            return matrix

    def trim(self) -> None:
        with self._guard:
            while len(self._matrices) > 1 and sum(m.nbytes for m in self._matrices.values()) > self._limit:
                self._matrices.popitem(last=False)


class SqliteVectorIndex:
    """See storage.ports.VectorIndex."""

    def __init__(self, database: Database, tenant_id: str, generation: IndexGeneration, cache: MatrixCache) -> None:
        self._db = database
        self.tenant_id = tenant_id
        self.generation = generation
        self._cache = cache
        self._entries = f"entries_{generation.name}"

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        rows = []
        for entry in entries:
            if entry.vector is None or entry.vector.shape != (self.generation.dimension,):
                raise ModelError(
                    f"index {self.generation.name} holds vectors of {self.generation.dimension} numbers, got "
                    f"{None if entry.vector is None else entry.vector.shape}", hint="Run `evercore rebuild-index`.",
                )  # fmt: skip
            rows.append((entry, np.ascontiguousarray(entry.vector, np.float32).tobytes()))
        await self._db.write(lambda connection: self._upsert(connection, rows))

    def _upsert(self, connection: sqlite3.Connection, rows: Sequence[tuple[IndexEntry, bytes]]) -> None:
        there = dict(
            connection.execute(
                f"SELECT id, revision FROM {self._entries} WHERE tenant_id = ? AND deleted = 0 "
                "AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list([entry.id for entry, _ in rows])),
            ).fetchall()
        )
        values = []
        for entry, blob in rows:
            if there.get(entry.id, 0) < entry.revision:
                there[entry.id] = entry.revision
                values.append(
                    (self.tenant_id, entry.id, entry.revision, entry.memory_type, entry.partition, entry.user_id,
                     entry.group_id, entry.session_id, entry.timestamp, dumps(list(entry.sender_ids)),
                     dumps(list(entry.tags)), 0, blob)
                )  # fmt: skip
        # REPLACE gives the row a new sequence number, which is how searchers hear of it.
        connection.executemany(
            f"INSERT OR REPLACE INTO {self._entries} (tenant_id, id, revision, memory_type, partition, user_id, group_id, "
            "session_id, timestamp, sender_ids, tags, deleted, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    async def delete(self, ids: Sequence[str]) -> None:
        """A tombstone of each row stays for the searchers; it holds no vector and no attributes."""
        await self._db.write(
            lambda c: c.execute(
                f"INSERT OR REPLACE INTO {self._entries} (tenant_id, id, revision, memory_type, partition, sender_ids, "
                f"tags, deleted) SELECT tenant_id, id, revision, memory_type, partition, '[]', '[]', 1 "
                f"FROM {self._entries} WHERE tenant_id = ? AND deleted = 0 AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list(ids)),
            )
        )

    def _check(self, vector: NDArray[np.float32]) -> None:
        if vector.shape != (self.generation.dimension,):
            raise ModelError(
                f"the query vector has {vector.shape[0]} numbers, index {self.generation.name} has "
                f"{self.generation.dimension}", hint="Run `evercore rebuild-index`.",
            )  # fmt: skip

    async def search(self, vector: NDArray[np.float32], scope: Scope, *, limit: int) -> list[Hit]:
        if limit <= 0 or not scope.partitions:
            return []
        self._check(vector)
        matrices = await asyncio.gather(*(self._matrix(partition) for partition in scope.partitions))
        found: list[Hit] = []
        for kind in scope.memory_types:
            found += await self._of_type(matrices, vector, scope, kind, limit)
        return sorted(found, key=lambda hit: (-hit.score, hit.id))

    async def _of_type(
        self, matrices: Sequence[OwnerMatrix], vector: NDArray[np.float32], scope: Scope, kind: str, limit: int
    ) -> list[Hit]:
        candidates = limit if scope.where is None else max(FIRST_CANDIDATES, limit)
        while True:
            best = [hit for matrix in matrices for hit in matrix.best(vector, kind, candidates)]
            best.sort(key=lambda hit: (-hit.score, hit.id))
            if scope.where is None:
                return best[:limit]
            complete = all(len(matrix) <= candidates for matrix in matrices)
            passed = await self._passing([hit.id for hit in best], scope)
            found = [hit for hit in best if hit.id in passed]
            if len(found) >= limit or complete:
                return found[:limit]
            candidates *= 8

    async def similarities(
        self, vector: NDArray[np.float32], ids: Sequence[str], partitions: Sequence[str]
    ) -> dict[str, float]:
        if not ids:
            return {}
        self._check(vector)
        found: dict[str, float] = {}
        for partition in partitions:
            found |= (await self._matrix(partition)).similarities(vector, ids)
        return found

    async def _passing(self, ids: Sequence[str], scope: Scope) -> set[str]:
        assert scope.where is not None
        where, values = to_sql(scope.where)
        rows = await self._db.read(
            lambda c: c.execute(
                f"SELECT id FROM {self._entries} WHERE tenant_id = ? AND deleted = 0 "
                f"AND id IN (SELECT value FROM json_each(?)) AND {where}",
                (self.tenant_id, id_list(ids), *values),
            ).fetchall()
        )
        return {row[0] for row in rows}

    async def _matrix(self, partition: str) -> OwnerMatrix:
        matrix = self._cache.get((self.generation.name, self.tenant_id, partition), self.generation.dimension)
        async with matrix.lock():
            while True:
                rows = await self._db.read(lambda c: self._newer(c, partition, matrix.sequence))
                matrix.take(rows)
                if len(rows) < READ_ROWS:
                    break
        self._cache.trim()
        return matrix

    def _newer(
        self, connection: sqlite3.Connection, partition: str, sequence: int
    ) -> list[tuple[int, str, str, bytes | None]]:
        return connection.execute(
            f"SELECT sequence, id, memory_type, vector FROM {self._entries} WHERE tenant_id = ? AND partition = ? "
            "AND sequence > ? ORDER BY sequence LIMIT ?",
            (self.tenant_id, partition, sequence, READ_ROWS),
        ).fetchall()

    async def vectors(self, ids: Sequence[str]) -> dict[str, tuple[int, NDArray[np.float32]]]:
        rows = await self._db.read(
            lambda c: c.execute(
                f"SELECT id, revision, vector FROM {self._entries} WHERE tenant_id = ? AND deleted = 0 "
                "AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list(ids)),
            ).fetchall()
        )
        return {row[0]: (row[1], np.frombuffer(row[2], np.float32)) for row in rows}

    async def scan(self, *, after: str = "", limit: int = 5_000) -> list[tuple[str, int]]:
        return await self._db.read(
            lambda c: c.execute(
                f"SELECT id, revision FROM {self._entries} WHERE tenant_id = ? AND deleted = 0 AND id > ? "
                "ORDER BY id LIMIT ?",
                (self.tenant_id, after, limit),
            ).fetchall()
        )

    async def count(self) -> int:
        """Both numbers come from indexes alone: counting must not read the vectors."""
        return await self._db.read(
            lambda c: int(
                c.execute(
                    f"SELECT (SELECT count(*) FROM {self._entries} WHERE tenant_id = ?) - "
                    f"(SELECT count(*) FROM {self._entries} WHERE tenant_id = ? AND deleted = 1)",
                    (self.tenant_id, self.tenant_id),
                ).fetchone()[0]
            )
        )

    async def drop(self) -> None:
        await self._db.write(lambda c: c.execute(f"DROP TABLE IF EXISTS {self._entries}"))
