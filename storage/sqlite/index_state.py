"""Which index generations hold which revision of a row, in the embedded document store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from primitives.clock import now_ms
from primitives.errors import ConflictError
from storage.ports import IndexGeneration, Row
from storage.sqlite.codec import SELECT, from_row, id_list
from storage.sqlite.tenant import TenantTables

_NAME = re.compile(r"[kv]\d+")


def lacks(names: Sequence[str]) -> str:
    """SQL: one of these generations does not hold the row's revision."""
    parts = [f"json_extract(index_state, '$.{_checked(name)}') IS NOT revision" for name in names]
    return "(" + " OR ".join(parts or ["0"]) + ")"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"not the name of an index generation: {name!r}")
    return name


class IndexStateTables(TenantTables):
    """See storage.ports.Documents."""

    async def generations(self) -> list[IndexGeneration]:
        return await self._db.read(self._generations)

    def _generations(self, connection: sqlite3.Connection) -> list[IndexGeneration]:
        rows = connection.execute("SELECT name, kind, live, model_id, dimension FROM generations ORDER BY kind, name")
        return [IndexGeneration(row[0], row[1], bool(row[2]), row[3], row[4]) for row in rows]

    async def add_generation(
        self, kind: str, *, model_id: str = "", dimension: int = 0, first: bool = False
    ) -> IndexGeneration:
        def work(connection: sqlite3.Connection) -> IndexGeneration:
            there = [g for g in self._generations(connection) if g.kind == kind]
            for found in there:
                if (first and found.live) or (not first and not found.live and found.model_id == model_id):
                    return found
            number = 1 + max((int(g.name[1:]) for g in there), default=0)
            new = IndexGeneration(f"{kind[0]}{number}", kind, not there, model_id, dimension)
            connection.execute(
                "INSERT INTO generations VALUES (?, ?, ?, ?, ?)", (new.name, kind, new.live, model_id, dimension)
            )
            return new

        return await self._db.write(work)

    async def promote_generation(self, name: str) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            wanted = "" if _checked(name)[0] == "k" else " AND vector_wanted = 1"
            left = connection.execute(
                f"SELECT 1 FROM rows WHERE deleted_at IS NULL{wanted} AND {lacks([name])} LIMIT 1"
            ).fetchone()
            if left:
                return False
            kind = "keyword" if name[0] == "k" else "vector"
            connection.execute("UPDATE generations SET live = (name = ?) WHERE kind = ?", (name, kind))
            return True

        return await self._db.write(work)

    async def remove_generation(self, name: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            found = connection.execute("SELECT live FROM generations WHERE name = ?", (_checked(name),)).fetchone()
            if found and found[0]:
                raise ConflictError(f"index generation {name} is live", hint="Promote another one first.")
            connection.execute("DELETE FROM generations WHERE name = ?", (name,))

        await self._db.write(work)

    async def mark_indexed(self, generations: Sequence[str], rows: Iterable[tuple[str, int]]) -> list[str]:
        pairs = list(rows)
        return await self._db.write(lambda connection: self._mark(connection, generations, pairs))

    def _mark(
        self, connection: sqlite3.Connection, names: Sequence[str], pairs: Sequence[tuple[str, int]]
    ) -> list[str]:
        if not pairs or not names:
            return []
        paths = ", ".join(f"'$.{_checked(name)}', ?2" for name in names)
        connection.executemany(
            f"UPDATE rows SET index_state = json_set(index_state, {paths}) "
            "WHERE tenant_id = ?1 AND id = ?3 AND revision = ?2 AND deleted_at IS NULL",
            [(self.tenant_id, revision, row_id) for row_id, revision in pairs],
        )
        active = self._generations(connection)
        keyword = lacks([g.name for g in active if g.kind == "keyword"])
        vector = lacks([g.name for g in active if g.kind == "vector"])
        ids = id_list([row_id for row_id, _ in pairs])
        connection.execute(
            f"UPDATE rows SET unindexed = 0 WHERE tenant_id = ? AND unindexed = 1 AND id IN (SELECT value FROM json_each(?)) "
            f"AND NOT {keyword} AND (vector_wanted = 0 OR NOT {vector})",
            (self.tenant_id, ids),
        )
        gone = connection.execute(
            "SELECT id FROM rows WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?)) AND deleted_at IS NOT NULL",
            (self.tenant_id, ids),
        )
        return [row[0] for row in gone]

    async def unindexed(self, *, limit: int = 500, older_than: int | None = None) -> list[Row]:
        """`older_than` (ms): only rows that have waited so long, so that a sweeper leaves running writers alone."""
        before = now_ms() - older_than if older_than is not None else 2**62
        rows = await self._db.read(
            lambda c: c.execute(
                f"{SELECT} INDEXED BY rows_unindexed WHERE tenant_id = ? AND unindexed = 1 AND deleted_at IS NULL "
                "AND changed_at <= ? ORDER BY changed_at LIMIT ?",
                (self.tenant_id, before, limit),
            ).fetchall()
        )
        return [from_row(row) for row in rows]

    async def lacking(self, generation: str, *, after: str = "", limit: int = 500) -> list[Row]:
        wanted = "" if _checked(generation)[0] == "k" else " AND vector_wanted = 1"
        rows = await self._db.read(
            lambda c: c.execute(
                f"{SELECT} WHERE tenant_id = ? AND id > ? AND deleted_at IS NULL{wanted} AND {lacks([generation])} "
                "ORDER BY id LIMIT ?",
                (self.tenant_id, after, limit),
            ).fetchall()
        )
        return [from_row(row) for row in rows]

    async def scan_revisions(self, kind: str, *, after: str = "", limit: int = 5_000) -> list[tuple[str, int, bool]]:
        wanted = "" if kind == "keyword" else " AND vector_wanted = 1"
        rows = await self._db.read(
            lambda c: c.execute(
                f"SELECT id, revision, unindexed FROM rows WHERE tenant_id = ? AND id > ? AND deleted_at IS NULL{wanted} "
                "ORDER BY id LIMIT ?",
                (self.tenant_id, after, limit),
            ).fetchall()
        )
        return [(row[0], row[1], bool(row[2])) for row in rows]

    async def wants_vector(self, ids: Sequence[str]) -> set[str]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT id FROM rows WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?)) AND vector_wanted = 1",
                (self.tenant_id, id_list(ids)),
            ).fetchall()
        )
        return {row[0] for row in rows}
