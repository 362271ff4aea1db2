"""Groups, senders, settings and tasks in the embedded document store: small JSON objects by kind and id."""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from primitives.clock import now_ms
from storage.sqlite.codec import dumps
from storage.sqlite.tenant import TenantTables


class ResourceTables(TenantTables):
    """See storage.ports.Documents."""

    async def resource(self, kind: str, resource_id: str) -> dict[str, Any] | None:
        return await self._db.read(lambda connection: self._resource(connection, kind, resource_id))

    def _resource(self, connection: sqlite3.Connection, kind: str, resource_id: str) -> dict[str, Any] | None:
        found = connection.execute(
            "SELECT body, created_at, updated_at FROM resources WHERE tenant_id = ? AND kind = ? AND id = ?",
            (self.tenant_id, kind, resource_id),
        ).fetchone()
        return orjson.loads(found[0]) | {"created_at": found[1], "updated_at": found[2]} if found else None

    async def put_resource(self, kind: str, resource_id: str, body: dict[str, Any]) -> dict[str, Any]:
        def work(connection: sqlite3.Connection) -> dict[str, Any]:
            there = self._resource(connection, kind, resource_id) or {}
            now = now_ms()
            created = there.pop("created_at", now)
            there.pop("updated_at", None)
            merged = there | body
            connection.execute(
                "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?, ?)",
                (self.tenant_id, kind, resource_id, dumps(merged), created, now),
            )
            return merged | {"created_at": created, "updated_at": now}

        return await self._db.write(work)
