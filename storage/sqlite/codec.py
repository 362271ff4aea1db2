"""Records to table rows and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import orjson

from storage.ports import Row
from storage.records import MEMORY_CLASSES, Memory, MemoryType, Message

COLUMNS = (
    "tenant_id, id, memory_type, partition, user_id, group_id, session_id, timestamp, order_time, place, sender_ids, "
    "tags, conversation_id, memcell_id, vector_wanted, revision, index_state, unindexed, imported_at, changed_at, body"
)
INSERT = f"INSERT INTO rows ({COLUMNS}) VALUES ({', '.join('?' * 21)})"
SELECT = (
    "SELECT id, memory_type, partition, user_id, group_id, session_id, timestamp, order_time, place, sender_ids, tags, "
    "conversation_id, memcell_id, revision, imported_at, body, tenant_id FROM rows"
)

IN_COLUMNS = frozenset(
    [
        "id",
        "tenant_id",
        "memory_type",
        "partition",
        "user_id",
        "group_id",
        "session_id",
        "timestamp",
        "order_time",
        "place",
        "sender_ids",
        "tags",
        "conversation_id",
        "memcell_id",
        "revision",
        "imported_at",
    ]
)
"""Fields that have a column of their own and therefore do not stand in `body`."""


def dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def id_list(ids: Sequence[str]) -> str:
    """For `IN (SELECT value FROM json_each(?))`: any number of ids in one parameter."""
    return dumps(list(ids))


def to_columns(row: Row, *, changed_at: int, place: int = 0) -> tuple[Any, ...]:
    """Values in the order of COLUMNS, for a row that no index has yet."""
    message = row if isinstance(row, Message) else None
    return (
        row.tenant_id, row.id, str(row.memory_type), row.partition, row.user_id, row.group_id, row.session_id,
        row.timestamp, row.order_time, message.place if message else place, dumps(row.sender_ids),
        dumps(row.tags),
        message.conversation_id if message else None, row.memcell_id, 0 if message else 1, row.revision, "{}", 1,
        row.imported_at, changed_at, body_of(row),
    )  # fmt: skip


def body_of(row: Row) -> str:
    return dumps(row.model_dump(mode="python", exclude=set(IN_COLUMNS)))


def from_row(found: sqlite3.Row | tuple[Any, ...]) -> Row:
    """A record from the columns of SELECT."""
    (
        row_id, memory_type, partition, user_id, group_id, session_id, timestamp, order_time, place, senders, tags,
        conversation_id, memcell_id, revision, imported_at, body, tenant_id,
    ) = found  # fmt: skip
    fields: dict[str, Any] = orjson.loads(body)
    fields |= {
        "id": row_id, "tenant_id": tenant_id, "partition": partition, "user_id": user_id, "group_id": group_id,
        "session_id": session_id, "timestamp": timestamp, "order_time": order_time, "memcell_id": memcell_id,
        "revision": revision, "imported_at": imported_at,
    }  # fmt: skip
    kind = MemoryType(memory_type)
    if kind is MemoryType.RAW_MESSAGE:
        return Message.model_validate(fields | {"conversation_id": conversation_id, "place": place})
    record: Memory = MEMORY_CLASSES[kind].model_validate(
        fields | {"sender_ids": orjson.loads(senders), "tags": orjson.loads(tags)}
    )
    return record
