"""Tombstones in the embedded document store: what is deleted is hidden in one transaction, with what was made of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import orjson

from primitives.clock import now_ms
from primitives.errors import InvalidInputError, NotFoundError
from storage.filters import Filter, scope_of, to_sql
from storage.ids import user_partition
from storage.records import Memory, MemoryType
from storage.sqlite.codec import SELECT, dumps, from_row, id_list
from storage.sqlite.memcells import MemCellTables


class DeletionTables(MemCellTables):
    """See storage.ports.Documents."""

    async def tombstone(self, *, memory_id: str | None = None, where: Filter | None = None) -> int:
        if (memory_id is None) == (where is None):
            raise InvalidInputError("delete takes either a memory_id or filters")
        return await self._db.write(lambda connection: self._tombstone(connection, memory_id, where))

    def _tombstone(self, connection: sqlite3.Connection, memory_id: str | None, where: Filter | None) -> int:
        found = self._doomed(connection, memory_id, where)
        if memory_id is not None and not found:
            raise NotFoundError(f"no memory {memory_id}")
        hidden = self._hide(connection, [row[0] for row in found])
        messages = [row[0] for row in found if row[1] == MemoryType.RAW_MESSAGE]
        cells = {row[2] for row in found if row[1] == MemoryType.RAW_MESSAGE and row[2] is not None}
        hidden += self._undo_cells(connection, cells, set(messages))
        self._suppress(connection, [row for row in found if row[1] != MemoryType.RAW_MESSAGE and row[2] is not None])
        named = self._people(where)
        for user in named | {row[4] for row in found if row[1] == MemoryType.PROFILE and row[4] is not None}:
            self._forget_evidence(connection, user)
        connection.executemany(
            "INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)",
            [(self.tenant_id, user, now_ms()) for user in sorted(named)],
        )
        partitions = {row[3] for row in found} | self._partitions(where)
        connection.executemany(
            "INSERT INTO owners VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET epoch = epoch + 1",
            [(self.tenant_id, partition) for partition in sorted(partitions)],
        )
        return hidden

    @staticmethod
    def _partitions(where: Filter | None) -> set[str]:
        """Owners that are named, also those without a row yet: a writer may be about to bring some."""
        return set(scope_of(where, list(MemoryType)).partitions) if where is not None else set()

    @staticmethod
    def _people(where: Filter | None) -> set[str]:
        """Users all of whose rows a filter names."""
        scope = scope_of(where, list(MemoryType)) if where is not None else None
        if scope is None or scope.where is not None:
            return set()
        prefix = user_partition("")
        return {p.removeprefix(prefix) for p in scope.partitions if p.startswith(prefix)}

    def _suppress(
        self, connection: sqlite3.Connection, found: Sequence[tuple[str, str, str | None, str, str | None]]
    ) -> None:
        """Note deleted memories on their MemCells, since building anew gives other ids."""
        rows = connection.execute(
            f"{SELECT} WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?))",
            (self.tenant_id, id_list([row[0] for row in found])),
        ).fetchall()
        for memory in map(from_row, rows):
            if isinstance(memory, Memory):
                connection.execute(
                    "UPDATE memcells SET body = json_insert(body, '$.suppressed[#]', ?) WHERE tenant_id = ? AND id = ? "
                    "AND deleted_at IS NULL",
                    (memory.mark, self.tenant_id, memory.memcell_id),
                )

    def _doomed(
        self, connection: sqlite3.Connection, memory_id: str | None, where: Filter | None
    ) -> list[tuple[str, str, str | None, str, str | None]]:
        head = "SELECT id, memory_type, memcell_id, partition, user_id FROM rows WHERE tenant_id = ? AND deleted_at IS NULL AND "
        if where is None:
            return connection.execute(head + "id = ?", (self.tenant_id, memory_id)).fetchall()
        scope = scope_of(where, list(MemoryType))
        condition, values = to_sql(scope.where) if scope.where else ("1", [])
        return connection.execute(
            f"{head} partition IN (SELECT value FROM json_each(?)) AND {condition}",
            (self.tenant_id, dumps(list(scope.partitions)), *values),
        ).fetchall()

    def _hide(self, connection: sqlite3.Connection, ids: Iterable[str]) -> int:
        now = now_ms()
        return connection.execute(
            "UPDATE rows SET deleted_at = ?, changed_at = ?, unindexed = 0 WHERE tenant_id = ? AND deleted_at IS NULL "
            "AND id IN (SELECT value FROM json_each(?))",
            (now, now, self.tenant_id, id_list(list(ids))),
        ).rowcount

    def _forget_evidence(self, connection: sqlite3.Connection, user_id: str) -> None:
        """With a profile goes what it was folded from, or the next fold would bring it back."""
        connection.execute(
            "DELETE FROM profile_evidence WHERE tenant_id = ? AND user_id = ?", (self.tenant_id, user_id)
        )
        connection.execute(
            "UPDATE profiles SET version = version + 1 WHERE tenant_id = ? AND user_id = ?", (self.tenant_id, user_id)
        )

    def _undo_cells(self, connection: sqlite3.Connection, cells: set[str], messages: set[str]) -> int:
        """MemCells that lost messages lose what was built of them; what is left of them is built anew."""
        hidden = 0
        for cell, body, children in connection.execute(
            "SELECT id, body, children FROM memcells WHERE tenant_id = ? AND deleted_at IS NULL "
            "AND id IN (SELECT value FROM json_each(?))",
            (self.tenant_id, id_list(sorted(cells))),
        ).fetchall():
            hidden += self._hide(connection, orjson.loads(children))
            self._replace_evidence(connection, cell, [])
            fields = orjson.loads(body)
            kept = [
                (key, source)
                for key, source in zip(fields["message_keys"], fields["source_message_ids"], strict=True)
                if key not in messages
            ]
            if not kept:
                connection.execute(
                    "UPDATE memcells SET deleted_at = ?, result = NULL, children = '[]', body = '{}' "
                    "WHERE tenant_id = ? AND id = ?",
                    (now_ms(), self.tenant_id, cell),
                )
                continue
            fields["message_keys"], fields["source_message_ids"] = map(list, zip(*kept, strict=True))
            rows = connection.execute(
                "SELECT json_extract(body, '$.sender_id'), timestamp, order_time FROM rows WHERE tenant_id = ? "
                "AND id IN (SELECT value FROM json_each(?)) ORDER BY order_time, place, id",
                (self.tenant_id, id_list(fields["message_keys"])),
            ).fetchall()
            left = {row[0] for row in rows}
            fields["timestamp"] = next((row[1] for row in reversed(rows) if row[1] is not None), None)
            fields["order_time"] = rows[-1][2]
            fields["participants"] = [sender for sender in fields["participants"] if sender in left]
            fields["sender_ids"] = [sender for sender in fields["sender_ids"] if sender in left]
            connection.execute(
                "UPDATE memcells SET state = 'cut', result = NULL, children = '[]', message_count = ?, order_time = ?, "
                "body = ? WHERE tenant_id = ? AND id = ?",
                (len(kept), fields["order_time"], dumps(fields), self.tenant_id, cell),
            )
        return hidden

    async def unpurged(self, *, limit: int = 1_000) -> list[str]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT id FROM rows INDEXED BY rows_unpurged WHERE tenant_id = ? AND deleted_at IS NOT NULL "
                "AND purged = 0 LIMIT ?",
                (self.tenant_id, limit),
            ).fetchall()
        )
        return [row[0] for row in rows]

    async def purge(self, ids: Sequence[str]) -> None:
        await self._db.write(
            lambda c: c.execute(
                "UPDATE rows SET body = '{}', sender_ids = '[]', tags = '[]', session_id = NULL, timestamp = NULL, "
                "purged = 1 WHERE tenant_id = ? AND deleted_at IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list(ids)),
            )
        )
