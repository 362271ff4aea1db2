"""The embedded keyword index: SQLite FTS5 over words that primitives.text has made, one table a generation.

Each row carries one token for (tenant, partition, type) in a column of its own, so that whose rows are searched is part
of the full-text query and costs no join. That column has weight 0 and never moves a score. FTS5's Porter stemmer makes
`camped` and `camping` one word (benchmarks/retrieval.py shows what that is worth); Chinese is left as it is.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from primitives.hashing import stable_id
from primitives.text import words
from storage.filters import Scope, to_sql
from storage.ports import Hit, IndexEntry, IndexGeneration
from storage.sqlite.bm25 import weighted
from storage.sqlite.codec import dumps, id_list
from storage.sqlite.database import Database

FIRST_CANDIDATES = 2_000
"""How many of the best rows a filter beside the owner looks at first; more follow until enough are found."""
MAX_QUERY_WORDS = 200
LONG_TEXTS = 65_536
"""Characters of one write from which words are made in a thread of its own."""


def prepare(connection: sqlite3.Connection) -> None:
    """Nothing is shared between generations; each makes its own tables."""


def create(connection: sqlite3.Connection, name: str) -> None:
    """The tables of one generation."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS entries_{name} (rowid INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, id TEXT NOT NULL, "
        "revision INTEGER NOT NULL, memory_type TEXT NOT NULL, user_id TEXT, group_id TEXT, session_id TEXT, "
        "timestamp INTEGER, sender_ids TEXT NOT NULL, tags TEXT NOT NULL)"
    )
    connection.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS entries_{name}_ids ON entries_{name} (tenant_id, id)")
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS words_{name} USING fts5(scope, body, tokenize = 'porter ascii')"
    )


def _prepared(entries: Sequence[IndexEntry]) -> list[tuple[IndexEntry, str]]:
    return [(entry, " ".join(words(entry.text))) for entry in entries]


class SqliteKeywordIndex:
    """See storage.ports.KeywordIndex."""

    def __init__(self, database: Database, tenant_id: str, generation: IndexGeneration) -> None:
        self._db = database
        self.tenant_id = tenant_id
        self.generation = generation
        self._entries = f"entries_{generation.name}"
        self._words = f"words_{generation.name}"

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        if sum(len(entry.text) for entry in entries) > LONG_TEXTS:  # seconds of work must not hold up the event loop
            prepared = await asyncio.to_thread(_prepared, entries)
        else:
            prepared = _prepared(entries)
        await self._db.write(lambda connection: self._upsert(connection, prepared))

    def _upsert(self, connection: sqlite3.Connection, prepared: Sequence[tuple[IndexEntry, str]]) -> None:
        there = {
            row_id: (rowid, revision)
            for row_id, rowid, revision in connection.execute(
                f"SELECT id, rowid, revision FROM {self._entries} WHERE tenant_id = ? "
                "AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list([entry.id for entry, _ in prepared])),
            )
        }
        for entry, body in prepared:
            rowid, revision = there.get(entry.id, (None, 0))
            if revision >= entry.revision:
                continue
            if rowid is not None:
                self._remove(connection, rowid)
            new = connection.execute(
                f"INSERT INTO {self._entries} (tenant_id, id, revision, memory_type, user_id, group_id, session_id, "
                "timestamp, sender_ids, tags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self.tenant_id, entry.id, entry.revision, entry.memory_type, entry.user_id, entry.group_id,
                 entry.session_id, entry.timestamp, dumps(list(entry.sender_ids)), dumps(list(entry.tags))),
            ).lastrowid  # fmt: skip
            there[entry.id] = (new, entry.revision)
            connection.execute(
                f"INSERT INTO {self._words} (rowid, scope, body) VALUES (?, ?, ?)",
                (new, self._token(entry.partition, entry.memory_type), body),
            )

    def _remove(self, connection: sqlite3.Connection, rowid: int) -> None:
        connection.execute(f"DELETE FROM {self._words} WHERE rowid = ?", (rowid,))
        connection.execute(f"DELETE FROM {self._entries} WHERE rowid = ?", (rowid,))

    def _token(self, partition: str, memory_type: str) -> str:
        """Digits alone, which no stemmer changes."""
        return str(int(stable_id(self.tenant_id, partition, memory_type), 16))

    async def delete(self, ids: Sequence[str]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for (rowid,) in connection.execute(
                f"SELECT rowid FROM {self._entries} WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list(ids)),
            ).fetchall():
                self._remove(connection, rowid)

        await self._db.write(work)

    async def search(self, words: Sequence[str], scope: Scope, *, limit: int) -> list[Hit]:
        # Quoted, so that nothing in a word is read as FTS5 syntax.
        asked = [f'"{word.replace(chr(34), "")}"' for word in dict.fromkeys(words) if word.strip('"')][:MAX_QUERY_WORDS]
        if not asked or not scope.partitions or limit <= 0:
            return []
        return await self._db.read(lambda c: self._search(c, asked, scope, limit))

    def _search(self, connection: sqlite3.Connection, asked: Sequence[str], scope: Scope, limit: int) -> list[Hit]:
        parts = weighted(connection, self._words, self._entries, asked)
        found = [hit for kind in scope.memory_types for hit in self._of_type(connection, parts, scope, kind, limit)]
        # Equal scores come in the order of ids, so that an answer does not depend on when rows were written.
        return sorted(found, key=lambda hit: (-hit.score, hit.id))

    def _of_type(
        self, connection: sqlite3.Connection, parts: Sequence[tuple[float, str]], scope: Scope, kind: str, limit: int
    ) -> list[Hit]:
        whose = f"scope : ({' OR '.join(self._token(partition, kind) for partition in scope.partitions)})"
        one = f"SELECT rowid, ? * -bm25({self._words}, 0.0, 1.0) AS score FROM {self._words} WHERE {self._words} MATCH ?"
        several = f"SELECT rowid, sum(score) AS score FROM ({' UNION ALL '.join([one] * len(parts))}) GROUP BY rowid"
        ranked = several if len(parts) > 1 else one
        query = [value for factor, match in parts for value in (factor, f"{whose} AND {match}")]
        where, values = to_sql(scope.where, table="e.") if scope.where else ("1", [])
        candidates = limit if scope.where is None else max(FIRST_CANDIDATES, limit)
        while True:
            found = connection.execute(
                f"WITH best AS ({ranked} ORDER BY score DESC LIMIT ?) SELECT e.id, best.score, "
                f"(SELECT count(*) FROM best) FROM best JOIN {self._entries} e ON e.rowid = best.rowid WHERE {where} "
                "ORDER BY best.score DESC, e.id LIMIT ?",
                (*query, candidates, *values, limit),
            ).fetchall()
            enough = scope.where is None or len(found) >= limit
            if enough or (found and found[0][2] < candidates) or candidates >= 2**31:
                return [Hit(row[0], row[1], kind) for row in found]
            if not found:
                # Nothing passed, so the number of candidates is not in the answer: ask for it.
                total = connection.execute(
                    f"SELECT count(*) FROM ({ranked} LIMIT ?)", (*query, candidates)
                ).fetchone()[0]
                if total < candidates:
                    return []
            candidates *= 8

    async def scan(self, *, after: str = "", limit: int = 5_000) -> list[tuple[str, int]]:
        return await self._db.read(
            lambda c: c.execute(
                f"SELECT id, revision FROM {self._entries} WHERE tenant_id = ? AND id > ? ORDER BY id LIMIT ?",
                (self.tenant_id, after, limit),
            ).fetchall()
        )

    async def count(self) -> int:
        return await self._db.read(
            lambda c: int(
                c.execute(f"SELECT count(*) FROM {self._entries} WHERE tenant_id = ?", (self.tenant_id,)).fetchone()[0]
            )
        )

    async def drop(self) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"DROP TABLE IF EXISTS {self._entries}")
            connection.execute(f"DROP TABLE IF EXISTS {self._words}")

        await self._db.write(work)
