"""Reading and editing visible rows of the embedded document store: pages, counts, the whole content in order."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import ValidationError

from primitives.clock import now_ms
from primitives.errors import InvalidInputError, NotFoundError
from storage.filters import Scope, to_sql
from storage.ids import memory_id
from storage.ports import Row, Standing
from storage.records import Memory, MemoryType
from storage.sqlite.codec import SELECT, body_of, dumps, from_row, id_list
from storage.sqlite.tenant import TenantTables

EDITABLE = {
    MemoryType.EPISODE: ("subject", "summary", "episode", "tags"),
    MemoryType.ATOMIC_FACT: ("atomic_fact", "tags"),
    MemoryType.FORESIGHT: ("content", "evidence", "start_time", "end_time", "tags"),
    MemoryType.AGENT_CASE: ("task_intent", "approach", "key_insight", "tags"),
    MemoryType.AGENT_SKILL: ("name", "description", "content", "tags"),
}
"""What a client may change of each type; profiles are folded from evidence, and messages are what was said."""

_EMBEDDED_FIELD = {
    MemoryType.EPISODE: ("subject", "summary"),
    MemoryType.ATOMIC_FACT: ("atomic_fact",),
    MemoryType.FORESIGHT: ("content",),
    MemoryType.AGENT_CASE: ("task_intent",),
    MemoryType.AGENT_SKILL: ("name", "description"),
}
"""The fields that a changed memory's vector is made of."""

PAGE = 2_000


class RowTables(TenantTables):
    """See storage.ports.Documents."""

    async def standings(self, ids: Sequence[str]) -> dict[str, Standing]:
        rows = await self._db.read(
            lambda connection: connection.execute(
                "SELECT r.id, r.timestamp, r.conversation_id, r.place, r.memory_type, r.memcell_id, c.generation "
                "FROM rows r LEFT JOIN memcells c ON c.tenant_id = r.tenant_id AND c.id = r.memcell_id "
                "WHERE r.tenant_id = ? AND r.id IN (SELECT value FROM json_each(?)) AND r.deleted_at IS NULL",
                (self.tenant_id, id_list(ids)),
            ).fetchall()
        )
        episodes: dict[tuple[str, int], str] = {}
        found = {}
        for row_id, timestamp, conversation_id, place, kind, cell, generation in rows:
            episode = None
            if generation and kind != MemoryType.EPISODE:
                key = (cell, generation)
                episode = episodes.get(key) or episodes.setdefault(key, memory_id(*key, MemoryType.EPISODE, None, 0))
            found[row_id] = Standing(timestamp, conversation_id, place, episode)
        return found

    async def page(self, scope: Scope, *, offset: int, limit: int, descending: bool = True) -> tuple[list[Row], int]:
        return await self._db.read(lambda connection: self._page(connection, scope, offset, limit, descending))

    def _page(
        self, connection: sqlite3.Connection, scope: Scope, offset: int, limit: int, descending: bool
    ) -> tuple[list[Row], int]:
        where, values = to_sql(scope.where) if scope.where else ("1", [])
        where = (
            "tenant_id = ? AND deleted_at IS NULL AND partition IN (SELECT value FROM json_each(?)) "
            f"AND memory_type IN (SELECT value FROM json_each(?)) AND {where}"
        )
        values = [self.tenant_id, dumps(list(scope.partitions)), dumps(list(scope.memory_types)), *values]
        total = connection.execute(f"SELECT count(*) FROM rows WHERE {where}", values).fetchone()[0]
        order = "DESC" if descending else "ASC"
        rows = connection.execute(
            f"{SELECT} WHERE {where} ORDER BY order_time {order}, place {order}, id {order} LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [from_row(row) for row in rows.fetchall()], total

    async def update_memory(self, memory_id: str, changes: dict[str, Any]) -> Row:
        return await self._db.write(lambda connection: self._update(connection, memory_id, changes))

    def _update(self, connection: sqlite3.Connection, memory_id: str, changes: dict[str, Any]) -> Row:
        row = self._fetch(connection, [memory_id]).get(memory_id)
        if row is None:
            raise NotFoundError(f"no memory {memory_id}")
        allowed = EDITABLE.get(row.memory_type, ())
        wrong = sorted(set(changes) - set(allowed))
        if wrong or not changes or not isinstance(row, Memory):
            raise InvalidInputError(
                f"cannot change {', '.join(wrong) or 'nothing'} of {row.memory_type}",
                hint=f"Fields that can be changed: {', '.join(allowed) or 'none'}.",
            )
        fields = row.model_dump() | changes | {"revision": row.revision + 1}
        try:
            changed = type(row).model_validate(fields)
            text = "\n".join(str(getattr(changed, name)) for name in _EMBEDDED_FIELD[row.memory_type])
            changed = changed.model_copy(update={"embedding_text": text})
        except ValidationError as fault:
            raise InvalidInputError(f"the change does not fit {row.memory_type}: {fault.errors()[0]['msg']}") from fault
        connection.execute(
            "UPDATE rows SET revision = ?, unindexed = 1, changed_at = ?, tags = ?, body = ? WHERE tenant_id = ? AND id = ?",
            (changed.revision, now_ms(), dumps(changed.tags), body_of(changed), self.tenant_id, memory_id),
        )
        return changed

    async def counts(self) -> dict[str, int]:
        return await self._db.read(self._counts)

    def _counts(self, connection: sqlite3.Connection) -> dict[str, int]:
        found = dict.fromkeys((str(kind) for kind in MemoryType), 0)
        found |= dict(
            connection.execute(
                "SELECT memory_type, count(*) FROM rows INDEXED BY rows_of_owner WHERE tenant_id = ? "
                "AND deleted_at IS NULL GROUP BY memory_type",
                (self.tenant_id,),
            ).fetchall()
        )
        cells, waiting = connection.execute(
            "SELECT count(*), total(message_count * (state != 'indexed')) FROM memcells "
            "WHERE tenant_id = ? AND deleted_at IS NULL",
            (self.tenant_id,),
        ).fetchone()
        pending = connection.execute(
            "SELECT count(*) FROM rows INDEXED BY rows_pending WHERE tenant_id = ? AND memory_type = 'raw_message' "
            "AND memcell_id IS NULL AND deleted_at IS NULL",
            (self.tenant_id,),
        ).fetchone()[0]
        unindexed = connection.execute(
            "SELECT count(*) FROM rows INDEXED BY rows_unindexed WHERE tenant_id = ? AND unindexed = 1 "
            "AND deleted_at IS NULL",
            (self.tenant_id,),
        ).fetchone()[0]
        return found | {"memcells": cells, "raw_messages": pending + int(waiting), "unindexed": unindexed}

    async def visible_rows(self) -> AsyncIterator[Row]:
        after = ""
        while True:

            def page(connection: sqlite3.Connection, after: str = after) -> list[Any]:
                return connection.execute(
                    f"{SELECT} WHERE tenant_id = ? AND id > ? AND deleted_at IS NULL ORDER BY id LIMIT ?",
                    (self.tenant_id, after, PAGE),
                ).fetchall()

            rows = await self._db.read(page)
            for row in rows:
                yield from_row(row)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]
