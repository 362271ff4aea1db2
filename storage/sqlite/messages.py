"""Raw messages and their conversations in the embedded document store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import orjson

from primitives.clock import now_ms
from primitives.errors import ConflictError
from storage.ids import Owner
from storage.ports import AddOutcome, Conversation, ImportBatch, Outline, Span
from storage.records import Message
from storage.sqlite.codec import INSERT, SELECT, dumps, from_row, id_list, to_columns
from storage.sqlite.tenant import TenantTables

PENDING = "memory_type = 'raw_message' AND memcell_id IS NULL AND deleted_at IS NULL"


class MessageTables(TenantTables):
    """See storage.ports.Documents."""

    async def add_messages(
        self, messages: Sequence[Message], *, batch: ImportBatch | None = None, restore: bool = False
    ) -> AddOutcome:
        return await self._db.write(lambda connection: self._add(connection, messages, batch, restore))

    def _add(
        self, connection: sqlite3.Connection, messages: Sequence[Message], batch: ImportBatch | None, restore: bool
    ) -> AddOutcome:
        if (
            batch is not None
            and connection.execute(
                "SELECT 1 FROM import_batches WHERE tenant_id = ? AND job = ? AND file = ? AND number = ?",
                (self.tenant_id, batch.job, batch.file, batch.number),
            ).fetchone()
        ):
            return AddOutcome()
        known = self._known(connection, [message.id for message in messages])
        now = now_ms()
        fresh: dict[str, Message] = {}
        conflicts: list[str] = []
        duplicates = deleted = 0
        for message in messages:
            there = known.get(message.id) or fresh.get(message.id)
            if there is None and message.id in known and not restore:
                deleted += 1
            elif there is None:
                fresh[message.id] = message
            elif same_content(there, message):
                duplicates += 1
            else:
                conflicts.append(message.message_id)
        if conflicts and batch is None:
            raise ConflictError(
                f"{len(conflicts)} message(s) are stored with other content under the same message_id",
                hint="Send changed messages under new ids.", details={"message_ids": conflicts[:100]},
            )  # fmt: skip
        added = self._placed(connection, fresh.values(), now)
        if any(message.id in known for message in added):
            connection.execute(
                "DELETE FROM rows WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, id_list([message.id for message in added if message.id in known])),
            )
        connection.executemany(INSERT, (to_columns(message, changed_at=now) for message in added))
        if batch is not None:
            self._note_batch(connection, batch, messages, added, duplicates, conflicts, deleted)
        pending = 0
        if batch is None and messages:
            pending = connection.execute(
                f"SELECT count(*) FROM rows WHERE tenant_id = ? AND conversation_id = ? AND {PENDING}",
                (self.tenant_id, messages[0].conversation_id),
            ).fetchone()[0]
        return AddOutcome(added=added, duplicates=duplicates, conflicts=conflicts, deleted=deleted, pending=pending)

    def _known(self, connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Message | None]:
        """Stored messages by key; None for a tombstone."""
        found: dict[str, Message | None] = {}
        for row_id, gone in connection.execute(
            "SELECT id, deleted_at IS NOT NULL FROM rows WHERE tenant_id = ? AND id IN (SELECT value FROM json_each(?))",
            (self.tenant_id, id_list(ids)),
        ).fetchall():
            found[row_id] = None
            if not gone:
                row = connection.execute(
                    f"{SELECT} WHERE tenant_id = ? AND id = ?", (self.tenant_id, row_id)
                ).fetchone()
                message = from_row(row)
                assert isinstance(message, Message)
                found[row_id] = message
        return found

    def _placed(self, connection: sqlite3.Connection, messages: Iterable[Message], now: int) -> list[Message]:
        """The messages with places and order times, and their conversations' rows brought up to date.

        Online messages (place -1) get the next places of their conversation. An undated one among them takes the
        order time of the message before it, so that the order of arrival stands.
        """
        next_place: dict[str, int] = {}
        last_time: dict[str, int] = {}
        placed: list[Message] = []
        for message in messages:
            conversation = message.conversation_id
            if conversation not in next_place:
                next_place[conversation], last_time[conversation] = self._open(connection, message, now)
            if message.place < 0:
                order_time = message.order_time if message.timestamp is not None else last_time[conversation]
                message = message.model_copy(update={"place": next_place[conversation], "order_time": order_time})
            next_place[conversation] = max(next_place[conversation], message.place + 1)
            last_time[conversation] = max(last_time[conversation], message.order_time)
            placed.append(message)
        connection.executemany(
            "UPDATE conversations SET next_place = ?, last_added_at = ? WHERE tenant_id = ? AND id = ?",
            [(place, now, self.tenant_id, conversation) for conversation, place in next_place.items()],
        )
        return placed

    def _open(self, connection: sqlite3.Connection, message: Message, now: int) -> tuple[int, int]:
        """The conversation's next place and last order time; its row is made where it is new."""
        found = connection.execute(
            "SELECT next_place FROM conversations WHERE tenant_id = ? AND id = ?",
            (self.tenant_id, message.conversation_id),
        ).fetchone()
        if found is None:
            solo = message.user_id is not None
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
                (self.tenant_id, message.conversation_id, message.user_id, None if solo else message.group_id,
                 message.session_id, message.partition, now),
            )  # fmt: skip
            return 0, 0
        if message.place >= 0 or message.timestamp is not None:
            return found[0], 0
        last = connection.execute(
            "SELECT max(order_time) FROM rows WHERE tenant_id = ? AND conversation_id = ? AND memory_type = 'raw_message'",
            (self.tenant_id, message.conversation_id),
        ).fetchone()[0]
        return found[0], last or 0

    def _note_batch(
        self, connection: sqlite3.Connection, batch: ImportBatch, messages: Sequence[Message],
        added: Sequence[Message], duplicates: int, conflicts: Sequence[str], deleted: int,
    ) -> None:  # fmt: skip
        counts = dict(batch.counts)
        for name, value in (
            ("new", len(added)), ("duplicate", duplicates), ("conflict", len(conflicts)), ("deleted_before", deleted),
        ):  # fmt: skip
            counts[name] = counts.get(name, 0) + value
        connection.execute(
            "INSERT INTO import_batches VALUES (?, ?, ?, ?, ?)",
            (self.tenant_id, batch.job, batch.file, batch.number, dumps(counts)),
        )
        # Duplicates count too: a stopped job, begun anew under another name, still builds what the first one left.
        connection.executemany(
            "INSERT OR IGNORE INTO job_conversations VALUES (?, ?, ?, 0)",
            [(self.tenant_id, batch.job, key) for key in dict.fromkeys(m.conversation_id for m in messages)],
        )

    async def conversation(self, conversation_id: str) -> Conversation | None:
        found = await self._db.read(lambda c: self._conversations(c, "c.id = ?", [conversation_id], limit=1))
        return found[0] if found else None

    async def pending_conversations(
        self,
        *,
        user_id: str | None = None,
        group_id: str | None = None,
        idle_since: int | None = None,
        limit: int = 100,
    ) -> list[Conversation]:
        wanted: list[str] = []
        values: list[object] = []
        if user_id is not None or group_id is not None:
            owner = Owner(user_id=user_id, group_id=group_id)
            wanted.append("c.partition = ?")
            values.append(owner.partition)
        if idle_since is not None:
            wanted.append("c.last_added_at <= ?")
            values.append(idle_since)
            wanted.append(
                "NOT EXISTS (SELECT 1 FROM job_conversations j JOIN jobs ON jobs.tenant_id = j.tenant_id AND "
                "jobs.name = j.job WHERE j.tenant_id = c.tenant_id AND j.conversation_id = c.id AND "
                "jobs.state NOT IN ('done', 'failed'))"
            )
        wanted.append(
            f"EXISTS (SELECT 1 FROM rows r WHERE r.tenant_id = c.tenant_id AND r.conversation_id = c.id AND {PENDING})"
        )
        return await self._db.read(lambda c: self._conversations(c, " AND ".join(wanted), values, limit=limit))

    def _conversations(
        self, connection: sqlite3.Connection, where: str, values: Sequence[object], *, limit: int
    ) -> list[Conversation]:
        pending = f"(SELECT count(*) FROM rows WHERE tenant_id = c.tenant_id AND conversation_id = c.id AND {PENDING})"
        rows = connection.execute(
            f"SELECT c.id, c.user_id, c.group_id, c.session_id, ifnull(o.epoch, 0), {pending} FROM conversations c "
            "LEFT JOIN owners o ON o.tenant_id = c.tenant_id AND o.partition = c.partition "
            f"WHERE c.tenant_id = ? AND {where} ORDER BY c.id LIMIT ?",
            (self.tenant_id, *values, limit),
        )
        return [Conversation(*row) for row in rows]

    async def outline(self, conversation_id: str) -> list[Outline]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT id, order_time, timestamp IS NOT NULL, place, json_extract(body, '$.tokens') FROM rows "
                f"WHERE tenant_id = ? AND conversation_id = ? AND {PENDING} ORDER BY order_time, place, id",
                (self.tenant_id, conversation_id),
            ).fetchall()
        )
        return [Outline(row[0], row[1], bool(row[2]), row[3], row[4]) for row in rows]

    async def pending_messages(self, conversation_id: str, span: Span | None = None) -> list[Message]:
        where, values = "", []
        if span is not None:
            where = " AND (order_time, place, id) BETWEEN (?, ?, ?) AND (?, ?, ?)"
            values = [*span.first, *span.last]
        rows = await self._db.read(
            lambda c: c.execute(
                f"{SELECT} WHERE tenant_id = ? AND conversation_id = ? AND {PENDING}{where} "
                "ORDER BY order_time, place, id",
                (self.tenant_id, conversation_id, *values),
            ).fetchall()
        )
        return [message for row in rows if isinstance(message := from_row(row), Message)]

    async def messages(self, ids: Sequence[str]) -> list[Message]:
        found = await self.fetch(ids)
        return [message for key in ids if isinstance(message := found.get(key), Message)]


def same_content(left: Message, right: Message) -> bool:
    """Whether two messages of one key are the same: sender, role, time, text and other parts.

    Times are compared only where both are known, so that a later export without times is still a duplicate.
    """
    same_time = left.timestamp == right.timestamp or left.timestamp is None or right.timestamp is None
    return (
        same_time and left.text == right.text and left.sender_id == right.sender_id and left.role == right.role
        and orjson.dumps(left.content_items) == orjson.dumps(right.content_items)
    )  # fmt: skip
