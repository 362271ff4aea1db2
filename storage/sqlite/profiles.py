"""Profiles in the embedded document store: evidence by person, and the one row that is folded from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from primitives.clock import now_ms
from storage.ids import profile_id
from storage.ports import Row
from storage.records import Memory, ProfileEvidence, ProfileItem
from storage.sqlite.codec import INSERT, body_of, id_list, to_columns
from storage.sqlite.tenant import TenantTables


class ProfileTables(TenantTables):
    """See storage.ports.Documents."""

    async def stale_profiles(self, *, user_ids: Sequence[str] | None = None, limit: int = 1_000) -> list[str]:
        chosen, values = "", list[str]()
        if user_ids is not None:
            chosen, values = " AND user_id IN (SELECT value FROM json_each(?))", [id_list(user_ids)]
        rows = await self._db.read(
            lambda c: c.execute(
                f"SELECT user_id FROM profiles WHERE tenant_id = ? AND version != folded{chosen} ORDER BY user_id LIMIT ?",
                (self.tenant_id, *values, limit),
            ).fetchall()
        )
        return [row[0] for row in rows]

    async def profile_evidence(self, user_id: str) -> tuple[int, list[ProfileEvidence]]:
        def work(connection: sqlite3.Connection) -> tuple[int, list[ProfileEvidence]]:
            found = connection.execute(
                "SELECT version FROM profiles WHERE tenant_id = ? AND user_id = ?", (self.tenant_id, user_id)
            ).fetchone()
            rows = connection.execute(
                "SELECT memcell_id, ordinal, order_time, body FROM profile_evidence WHERE tenant_id = ? AND user_id = ? "
                "ORDER BY order_time, memcell_id, ordinal",
                (self.tenant_id, user_id),
            )
            return (found[0] if found else 0), [
                ProfileEvidence(
                    user_id=user_id, memcell_id=cell, ordinal=ordinal, order_time=order_time,
                    item=ProfileItem.model_validate(orjson.loads(body)),
                )
                for cell, ordinal, order_time, body in rows
            ]  # fmt: skip

        return await self._db.read(work)

    async def save_profile(self, user_id: str, profile: Memory | None, *, version: int) -> None:
        await self._db.write(lambda connection: self._save(connection, user_id, profile, version))

    def _save(self, connection: sqlite3.Connection, user_id: str, profile: Memory | None, version: int) -> None:
        key = profile.id if profile is not None else profile_id(self.tenant_id, user_id)
        now = now_ms()
        found = connection.execute(
            "SELECT revision, deleted_at IS NULL FROM rows WHERE tenant_id = ? AND id = ?", (self.tenant_id, key)
        ).fetchone()
        if profile is None:
            connection.execute(
                "UPDATE rows SET deleted_at = ?, changed_at = ?, unindexed = 0 WHERE tenant_id = ? AND id = ? "
                "AND deleted_at IS NULL",
                (now, now, self.tenant_id, key),
            )
        else:
            # The revision goes on over deletion and return, so that an index row of old never wins.
            revision = found[0] + 1 if found else 1
            profile = profile.model_copy(update={"revision": revision})
            current: Row | None = self._fetch(connection, [key]).get(key)
            if current is None or body_of(current) != body_of(profile) or current.timestamp != profile.timestamp:
                connection.execute("DELETE FROM rows WHERE tenant_id = ? AND id = ?", (self.tenant_id, key))
                connection.execute(INSERT, to_columns(profile, changed_at=now))
        connection.execute(
            "UPDATE profiles SET folded = ? WHERE tenant_id = ? AND user_id = ? AND folded < ?",
            (version, self.tenant_id, user_id, version),
        )
