"""MemCells in the embedded document store: cut and build are two commits, each with its own checks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from primitives.clock import now_ms
from primitives.errors import ConflictError, LeaseLostError, StaleEpochError
from primitives.hashing import stable_id
from storage.ports import Lease
from storage.records import MemCell, Memory, ProfileEvidence
from storage.sqlite.codec import INSERT, dumps, id_list, to_columns
from storage.sqlite.tenant import TenantTables

_IN_COLUMNS = {"id", "tenant_id", "state", "generation", "result", "children", "owner_epoch"}


class MemCellTables(TenantTables):
    """See storage.ports.Documents."""

    async def commit_cut(self, cells: Sequence[MemCell], *, lease: Lease) -> list[MemCell]:
        return await self._db.write(lambda connection: self._cut(connection, cells, lease))

    def _cut(self, connection: sqlite3.Connection, cells: Sequence[MemCell], lease: Lease) -> list[MemCell]:
        held = connection.execute("SELECT fence, holder FROM leases WHERE name = ?", (lease.name,)).fetchone()
        if held != (lease.fence, lease.holder):
            raise LeaseLostError(f"the lease {lease.name} was lost before the cut was committed", hint="Try again.")
        stored = []
        for cell in cells:
            self._check_epoch(connection, cell)
            there = self._select(connection, "m.id = ?", [cell.id], limit=1)
            if there:  # it lost its first and last message, which were restored since: they make a MemCell of their own
                cell = cell.model_copy(update={"id": stable_id("memcell again", cell.id, *cell.message_keys)})
            connection.execute(
                "INSERT INTO memcells VALUES (?, ?, ?, ?, 'cut', 0, ?, ?, ?, NULL, NULL, '[]', ?) "
                # Deleted before and restored since: the generation goes on, so that no id of old comes back.
                "ON CONFLICT DO UPDATE SET state = 'cut', result = NULL, deleted_at = NULL, children = '[]', "
                "message_count = excluded.message_count, body = excluded.body WHERE deleted_at IS NOT NULL",
                (self.tenant_id, cell.id, cell.conversation_id, cell.partition, cell.order_time,
                 len(cell.message_keys), cell.imported_at, dumps(cell.model_dump(exclude=_IN_COLUMNS))),
            )  # fmt: skip
            changed = connection.execute(
                "UPDATE rows SET memcell_id = ? WHERE tenant_id = ? AND memcell_id IS NULL AND deleted_at IS NULL "
                "AND id IN (SELECT value FROM json_each(?))",
                (cell.id, self.tenant_id, id_list(cell.message_keys)),
            ).rowcount
            if changed != len(cell.message_keys):
                raise ConflictError("messages of this cut were consumed or deleted meanwhile", hint="Try again.")
            stored.append(self._current(connection, cell))
        return stored

    def _check_epoch(self, connection: sqlite3.Connection, cell: MemCell) -> None:
        if self._epoch(connection, cell.partition) != cell.owner_epoch:
            raise StaleEpochError("the owner was deleted from while this was being built", hint="Try again.")

    async def memcells(self, ids: Sequence[str]) -> list[MemCell]:
        where = "m.id IN (SELECT value FROM json_each(?))"
        return await self._db.read(lambda c: self._select(c, where, [id_list(ids)], limit=len(ids)))

    async def unfinished_memcells(
        self,
        *,
        conversation_id: str | None = None,
        cut_before: int | None = None,
        undone: bool = False,
        limit: int = 10_000,
    ) -> list[MemCell]:
        where, values = "m.state != 'indexed'", list[Any]()
        if undone:
            where += " AND m.generation > 0 AND m.state = 'cut'"
        if conversation_id is not None:
            where += " AND m.conversation_id = ?"
            values.append(conversation_id)
        if cut_before is not None:
            where += " AND m.imported_at < ?"
            values.append(cut_before)
        return await self._db.read(lambda c: self._select(c, where, values, limit=limit))

    def _select(
        self, connection: sqlite3.Connection, where: str, values: Sequence[Any], *, limit: int
    ) -> list[MemCell]:
        rows = connection.execute(
            "SELECT m.id, m.state, m.generation, m.result, m.children, m.body, ifnull(o.epoch, 0) FROM memcells m "
            "LEFT JOIN owners o ON o.tenant_id = m.tenant_id AND o.partition = m.partition "
            f"WHERE m.tenant_id = ? AND m.deleted_at IS NULL AND {where} ORDER BY m.order_time, m.id LIMIT ?",
            (self.tenant_id, *values, limit),
        )
        return [
            MemCell.model_validate(
                orjson.loads(body)
                | {"id": cell, "tenant_id": self.tenant_id, "state": state, "generation": generation,
                   "result": orjson.loads(result) if result else None, "children": orjson.loads(children),
                   "owner_epoch": epoch}
            )
            for cell, state, generation, result, children, body, epoch in rows
        ]  # fmt: skip

    async def save_result(self, cell: MemCell, result: dict[str, Any]) -> MemCell:
        return await self._db.write(lambda connection: self._save_result(connection, cell, result))

    def _save_result(self, connection: sqlite3.Connection, cell: MemCell, result: dict[str, Any]) -> MemCell:
        self._check_epoch(connection, cell)
        connection.execute(
            "UPDATE memcells SET result = ? WHERE tenant_id = ? AND id = ? AND generation = ? AND result IS NULL "
            "AND deleted_at IS NULL",
            (dumps(result), self.tenant_id, cell.id, cell.generation),
        )
        return self._current(connection, cell)

    def _current(self, connection: sqlite3.Connection, cell: MemCell) -> MemCell:
        found = self._select(connection, "m.id = ?", [cell.id], limit=1)
        if not found:
            raise ConflictError(f"MemCell {cell.id} was deleted while it was being built")
        return found[0]

    async def commit_build(
        self, cell: MemCell, memories: Sequence[Memory], evidence: Sequence[ProfileEvidence]
    ) -> MemCell:
        return await self._db.write(lambda connection: self._build(connection, cell, memories, evidence))

    def _build(
        self, connection: sqlite3.Connection, cell: MemCell, memories: Sequence[Memory],
        evidence: Sequence[ProfileEvidence],
    ) -> MemCell:  # fmt: skip
        self._check_epoch(connection, cell)
        current = self._current(connection, cell)
        if (current.generation, current.state) != (cell.generation, "cut"):
            raise ConflictError(f"MemCell {cell.id} was built by somebody else meanwhile")
        gone = self._forgotten(connection, current)
        memories = [
            m
            for m in memories
            if m.mark not in current.suppressed and not (current.user_id is None and m.user_id in gone)
        ]
        evidence = [e for e in evidence if e.user_id not in gone]
        now = now_ms()
        if current.children:
            connection.execute(
                "UPDATE rows SET deleted_at = ?, changed_at = ? WHERE tenant_id = ? AND deleted_at IS NULL "
                "AND id IN (SELECT value FROM json_each(?))",
                (now, now, self.tenant_id, id_list(current.children)),
            )
        connection.executemany(
            INSERT, (to_columns(memory, changed_at=now, place=i) for i, memory in enumerate(memories))
        )
        connection.execute(
            "UPDATE rows SET vector_wanted = 1, unindexed = 1, changed_at = ? WHERE tenant_id = ? AND memcell_id = ? "
            "AND memory_type = 'raw_message' AND vector_wanted = 0 AND deleted_at IS NULL",
            (now, self.tenant_id, cell.id),
        )
        self._replace_evidence(connection, cell.id, evidence)
        connection.execute(
            "UPDATE memcells SET state = 'built', generation = generation + 1, children = ? "
            "WHERE tenant_id = ? AND id = ?",
            (dumps([memory.id for memory in memories]), self.tenant_id, cell.id),
        )
        return self._current(connection, cell)

    def _forgotten(self, connection: sqlite3.Connection, cell: MemCell) -> set[str]:
        """Participants who were deleted after the MemCell was cut."""
        rows = connection.execute(
            "SELECT user_id FROM forgotten WHERE tenant_id = ? AND at >= ? AND user_id IN (SELECT value FROM json_each(?))",
            (self.tenant_id, cell.imported_at, id_list(cell.participants)),
        )
        return {row[0] for row in rows}

    def _replace_evidence(
        self, connection: sqlite3.Connection, memcell: str, evidence: Sequence[ProfileEvidence]
    ) -> None:
        """A MemCell's evidence gives way to the new; everybody whose evidence changes is folded anew."""
        gone = connection.execute(
            "DELETE FROM profile_evidence WHERE tenant_id = ? AND memcell_id = ? RETURNING user_id",
            (self.tenant_id, memcell),
        ).fetchall()
        connection.executemany(
            "INSERT INTO profile_evidence VALUES (?, ?, ?, ?, ?, ?)",
            [
                (self.tenant_id, e.user_id, e.memcell_id, e.ordinal, e.order_time, e.item.model_dump_json())
                for e in evidence
            ],
        )
        users = {row[0] for row in gone} | {e.user_id for e in evidence}
        connection.executemany(
            "INSERT INTO profiles VALUES (?, ?, 1, 0) ON CONFLICT DO UPDATE SET version = version + 1",
            [(self.tenant_id, user) for user in sorted(users)],
        )

    async def finish_memcell(self, cell: MemCell) -> None:
        await self._db.write(
            lambda c: c.execute(
                "UPDATE memcells SET state = 'indexed' WHERE tenant_id = ? AND id = ? AND generation = ? AND state = 'built'",
                (self.tenant_id, cell.id, cell.generation),
            )
        )
