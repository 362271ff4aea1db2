"""Messages for tests."""

from __future__ import annotations

from typing import Any

from storage.ids import Owner, assistant_id, message_key
from storage.records import Message

START = 1_709_629_200_000
TENANT = "t1"


def message(
    number: int, text: str, *, owner: Owner | None = None, session: str | None = None, tenant: str = TENANT,
    sender: str | None = None, role: str = "user", gap_ms: int = 30_000, **fields: Any,
) -> Message:  # fmt: skip
    """Message `number` of a conversation, `gap_ms` after the one before."""
    owner = owner or Owner.user("u1")
    conversation = owner.conversation_id(tenant, session)
    name = sender or (owner.user_id if role == "user" else assistant_id(owner.user_id or "")) or "someone"
    moment = fields.pop("timestamp", START + number * gap_ms)
    values: dict[str, Any] = {
        "id": message_key(conversation, f"m{number}"), "tenant_id": tenant, "user_id": owner.user_id,
        "group_id": owner.row_group_id, "session_id": session, "partition": owner.partition, "timestamp": moment,
        "order_time": moment or 0, "conversation_id": conversation, "message_id": f"m{number}", "sender_id": name,
        "sender_name": name, "role": role, "text": text, "tokens": max(1, len(text) // 4),
    }  # fmt: skip
    return Message(**values | fields)
