"""From the messages of a request to what construction takes in, by EverCore V1's rules on ids and content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.incoming import Incoming
from primitives.errors import InvalidInputError
from serve.api.schemas import MessageItem
from storage.ids import Owner, assistant_id


def incoming_messages(items: Sequence[MessageItem], *, owner: Owner) -> list[Incoming]:
    """The messages in their order; InvalidInputError lists every message that breaks a rule."""
    made, faults = [], []
    for number, item in enumerate(items):
        text, others = content_of(item.content)
        fault = _rule_broken(item, owner) or ("has no content" if not text.strip() and not others else "")
        if fault:
            faults.append({"field": f"messages.{number}", "message": fault})
            continue
        made.append(
            Incoming(
                conversation="",
                sender_id=item.sender_id or "",
                text=text if text.strip() else _placeholder(others),
                sender_name=item.sender_name or "",
                role=item.role,
                timestamp=item.timestamp,
                message_id=item.message_id,
                content_items=tuple(others),
            )
        )
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InvalidInputError(f"{faults[0]['field']} {faults[0]['message']}{more}", details={"errors": faults[:50]})
    return made


def _rule_broken(item: MessageItem, owner: Owner) -> str:
    if owner.user_id is None:
        return "" if item.sender_id else "has no sender_id, which every message of a group needs"
    if item.role == "user" and item.sender_id not in (None, "user", owner.user_id):
        return f"has role user and a sender_id other than the user_id {owner.user_id!r}"
    if item.role == "assistant" and item.sender_id == owner.user_id:
        return "has role assistant and the sender_id of the user"
    if item.sender_id and item.sender_id.startswith("gen_") and item.sender_id != assistant_id(owner.user_id):
        return "has a sender_id that begins with gen_, which only the server makes"
    return ""


def content_of(content: str | list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The text of a message's content, and its other items as they came."""
    if isinstance(content, str):
        return content, []
    texts, others = [], []
    for item in content:
        text = item.get("text", item.get("content"))
        if item.get("type", "text") == "text" and isinstance(text, str):
            texts.append(text)
        else:
            others.append(item)
    return "\n".join(texts), others


def _placeholder(items: Sequence[dict[str, Any]]) -> str:
    """What stands for a message without words, so that it has its place in the conversation and is found by name."""
    return " ".join(
        f"[{item.get('type', 'item')}{': ' + str(item['name']) if item.get('name') else ''}]" for item in items
    )
