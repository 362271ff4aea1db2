"""Whether the rows of the embedded document store agree with each other."""

from __future__ import annotations

import sqlite3

from storage.sqlite.tenant import TenantTables

_CHECKS = {
    "message in a MemCell that does not exist": """
        SELECT r.id FROM rows r LEFT JOIN memcells m
        ON m.tenant_id = r.tenant_id AND m.id = r.memcell_id AND m.deleted_at IS NULL
        WHERE r.tenant_id = ?1 AND r.memory_type = 'raw_message' AND r.deleted_at IS NULL AND r.memcell_id IS NOT NULL
        AND m.id IS NULL""",
    "message listed by a MemCell that is not its own": """
        SELECT m.id || ' ' || k.value FROM memcells m, json_each(m.body, '$.message_keys') k LEFT JOIN rows r
        ON r.tenant_id = m.tenant_id AND r.id = k.value AND r.deleted_at IS NULL AND r.memcell_id = m.id
        WHERE m.tenant_id = ?1 AND m.deleted_at IS NULL AND r.id IS NULL""",
    "message whose MemCell does not list it": """
        SELECT r.id FROM rows r JOIN memcells m ON m.tenant_id = r.tenant_id AND m.id = r.memcell_id AND m.deleted_at IS NULL
        WHERE r.tenant_id = ?1 AND r.memory_type = 'raw_message' AND r.deleted_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM json_each(m.body, '$.message_keys') WHERE value = r.id)""",
    "memory of a MemCell that does not list it": """
        SELECT r.id FROM rows r LEFT JOIN memcells m
        ON m.tenant_id = r.tenant_id AND m.id = r.memcell_id AND m.deleted_at IS NULL
        AND EXISTS (SELECT 1 FROM json_each(m.children) WHERE value = r.id)
        WHERE r.tenant_id = ?1 AND r.memory_type NOT IN ('raw_message', 'profile') AND r.deleted_at IS NULL
        AND r.memcell_id IS NOT NULL AND m.id IS NULL""",
}


class CheckTables(TenantTables):
    """See storage.ports.Documents."""

    async def broken_links(self, *, limit: int = 1_000) -> list[tuple[str, str]]:
        def work(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            return [
                (what, row[0])
                for what, query in _CHECKS.items()
                for row in connection.execute(f"{query} LIMIT ?2", (self.tenant_id, limit))
            ]

        return await self._db.read(work)
