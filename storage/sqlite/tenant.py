"""What the tables of one tenant share: the database and the tenant's name, which no query can be written without."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.ports import Row
from storage.sqlite.codec import SELECT, from_row, id_list
from storage.sqlite.database import Database


class TenantTables:
    """Base of the parts of the embedded document store."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._db = database
        self.tenant_id = tenant_id

    async def fetch(self, ids: Sequence[str]) -> dict[str, Row]:
        return await self._db.read(lambda connection: self._fetch(connection, ids))

    def _fetch(self, connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Row]:
        rows = connection.execute(
            f"{SELECT} WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?)) AND deleted_at IS NULL",
            (self.tenant_id, id_list(ids)),
        )
        return {row.id: row for row in map(from_row, rows.fetchall())}

    def _epoch(self, connection: sqlite3.Connection, partition: str) -> int:
        found = connection.execute(
            "SELECT epoch FROM owners WHERE tenant_id = ? AND partition = ?", (self.tenant_id, partition)
        ).fetchone()
        return found[0] if found else 0
