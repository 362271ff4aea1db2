"""From what was read to messages of the document store: owner, conversation, key, place and order.

`SourceOrder` looks at the records of one source in their order and keeps 8-byte hashes only, so that millions of
messages without ids fit. What it finds out (`Placed`) can be turned into messages anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from models.tokens import count_tokens
from pipelines.importers.contract import OwnerRule
from pipelines.incoming import Incoming
from primitives.errors import InvalidInputError, TooLargeError
from primitives.hashing import stable_id
from primitives.text import language_of, storable
from storage.ids import Owner, assistant_id, check_identifier, derived_message_key, message_key
from storage.records import Message

DERIVED_MESSAGE_PREFIX = "gen_msg_"
_NEVER = -(2**63)
_BITS = 64
FILE_PLACES = 2**32
"""Places kept for each file of a job."""
_ROOM = 16
"""Levels of nesting left free around a content part, for the rows and answers that it becomes part of."""


class Placed(NamedTuple):
    """A message with what only its source's order can tell."""

    incoming: Incoming
    place: int
    """Index of the record within its conversation in its source."""
    order_time: int
    occurrence: int = 0
    """Which one it is of equal messages without an id."""


class SourceOrder:
    """The order of one source: a file, or the messages of one request."""

    def __init__(self) -> None:
        self._conversations: dict[int, int] = {}
        self._once: set[int] = set()
        self._again: dict[int, int] = {}

    def place(self, incoming: Incoming) -> Placed:
        """Note the next record of the source."""
        name = _hash(incoming.conversation)
        packed = self._conversations.get(name)
        place, last = (0, _NEVER) if packed is None else (packed >> _BITS, (packed & (2**_BITS - 1)) + _NEVER)
        if incoming.timestamp is not None:
            last = incoming.timestamp
        self._conversations[name] = (place + 1) << _BITS | (last - _NEVER)
        return Placed(incoming, place, 0 if last == _NEVER else last, self._occurrence(incoming))

    def _occurrence(self, incoming: Incoming) -> int:
        """Undated messages without an id are told apart by their place, so that they need no counting."""
        if incoming.message_id is not None or incoming.timestamp is None:
            return 0
        name = _hash(incoming.conversation, incoming.sender_id, incoming.timestamp, incoming.text)
        if name not in self._once:
            self._once.add(name)
            return 0
        self._again[name] = self._again.get(name, 0) + 1
        return self._again[name]


def _hash(*parts: object) -> int:
    return int(stable_id(*parts)[:16], 16)


@dataclass(frozen=True)
class Ownership:
    """Whose memory an import becomes."""

    rule: OwnerRule = "group"
    user: str | None = None
    group: str | None = None

    def of(self, incoming: Incoming) -> tuple[Owner, str | None]:
        """Owner and session of a message: what the person who imports said goes before what the source says."""
        conversation = storable(incoming.conversation)
        if self.user is not None:
            return Owner.user(self.user), conversation
        if self.group is not None:
            return Owner.group(self.group), conversation
        if incoming.owner_user_id is not None:
            return Owner.user(incoming.owner_user_id), conversation
        if self.rule == "user":
            raise InvalidInputError(
                "these conversations belong to a person, and nobody said to whom",
                hint="Give --user with that person's id.",
            )
        return Owner.group(conversation), None


def refusal(incoming: Incoming, *, max_bytes: int) -> str | None:
    """Why a message cannot be stored; None where it can."""
    if _over(incoming.text, max_bytes):
        return f"text over {max_bytes} bytes"
    named = [("conversation", incoming.conversation), ("sender", incoming.sender_id)]
    named += [("user_id", incoming.owner_user_id)] if incoming.owner_user_id is not None else []
    for name, value in named:
        if (fault := _repeated(name, value)) is not None:
            return fault
    if (fault := content_fault(incoming)) is not None:
        return fault
    return _identifier("message id", incoming.message_id) if incoming.message_id is not None else None


def content_fault(incoming: Incoming) -> str | None:
    """What is wrong with the content parts (nested too deep, a number over 64 bits); None where nothing is."""
    if not incoming.content_items:
        return None
    try:
        parts = _storable(list(incoming.content_items))
        for _ in range(_ROOM):
            parts = [parts]
        orjson.dumps(parts)
    except (TypeError, RecursionError):  # orjson's own error is a TypeError
        return "content that cannot be stored"
    return None


def _over(text: str, max_bytes: int) -> bool:
    return len(text) * 4 > max_bytes and len(storable(text).encode()) > max_bytes


def _identifier(name: str, value: str) -> str | None:
    """What is wrong with an id; None where nothing is."""
    try:
        check_identifier(name, storable(value))
    except InvalidInputError as fault:
        return fault.message
    return None


_repeated = lru_cache(maxsize=10_000)(_identifier)
"""Conversations and senders come again and again."""


def to_messages(
    placed: Iterable[Placed], *, tenant_id: str, ownership: Ownership, imported_at: int, source: str = "",
    file_number: int = 0,
) -> list[Message]:  # fmt: skip
    """The messages of one file. `source` is its name, which goes into the keys of undated messages without ids;
    `file_number` puts the files of a job one after the other, and goes into no key."""
    made = []
    for item in placed:
        owner, session_id = ownership.of(item.incoming)
        fields = message_fields(item, owner, session_id, tenant_id, online=False, source=source)
        made.append(fields | {"place": file_number * FILE_PLACES + item.place})
    return _counted(made, imported_at)


def _counted(made: Sequence[dict[str, Any]], imported_at: int) -> list[Message]:
    tokens = count_tokens([f"{fields['sender_name']}: {fields['text']}" for fields in made])
    return [Message(**fields, tokens=n, imported_at=imported_at) for fields, n in zip(made, tokens, strict=True)]


def message_fields(
    placed: Placed, owner: Owner, session_id: str | None, tenant_id: str, *, online: bool, source: str = ""
) -> dict[str, Any]:
    """All fields of a message but its tokens and its time of import. `online` leaves the place to the store, which
    knows what came before."""
    incoming = placed.incoming
    text = storable(incoming.text)
    sender_id, sender_name = _sender(incoming, owner)
    conversation_id = owner.conversation_id(tenant_id, session_id)
    if incoming.message_id is not None:
        message_id = storable(incoming.message_id)
        key = message_key(conversation_id, message_id)
    else:
        key = derived_message_key(
            conversation_id, sender_id=sender_id, timestamp=incoming.timestamp, place=placed.place, text=text,
            occurrence=placed.occurrence, source=source,
        )  # fmt: skip
        message_id = DERIVED_MESSAGE_PREFIX + key[:16]
    return {
        "id": key, "tenant_id": tenant_id, "user_id": owner.user_id, "group_id": owner.row_group_id,
        "session_id": session_id, "partition": owner.partition, "timestamp": incoming.timestamp,
        "order_time": placed.order_time, "language": language_of(text), "conversation_id": conversation_id,
        "message_id": message_id, "sender_id": sender_id, "sender_name": sender_name, "role": incoming.role,
        "text": text, "content_items": _storable(list(incoming.content_items)), "place": -1 if online else placed.place,
    }  # fmt: skip


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(str(key)): _storable(item) for key, item in value.items()}
    return value


def _sender(incoming: Incoming, owner: Owner) -> tuple[str, str]:
    """Sender id and name. In a talk with an assistant, `user` and `assistant` are the owner and the owner's
    assistant, as they are for the API, so that a conversation is the same whichever way it came."""
    sender_id, name = storable(incoming.sender_id), storable(incoming.sender_name)
    if owner.user_id is not None and sender_id in ("", incoming.role):
        if incoming.role == "user":
            return owner.user_id, name or owner.user_id
        if incoming.role == "assistant":
            return assistant_id(owner.user_id), name or "assistant"
    return sender_id, name or sender_id


def messages_of_request(
    messages: Sequence[Incoming], *, tenant_id: str, owner: Owner, session_id: str | None, imported_at: int,
    max_bytes: int,
) -> list[Message]:  # fmt: skip
    """The messages of one API request. An empty sender id means the role's own: the user, or the user's assistant.

    TooLargeError where a text is over the limit. InvalidInputError where one has neither message_id nor timestamp: sent
    again, it could not be told from a new one.
    """
    order = SourceOrder()
    made: list[dict[str, Any]] = []
    for number, incoming in enumerate(messages):
        where = f"messages[{number}]"
        if incoming.message_id is None and incoming.timestamp is None:
            raise InvalidInputError(
                f"{where} has neither message_id nor timestamp",
                hint="Give one of them, so that a retry is recognised.", details={"index": number},
            )  # fmt: skip
        if (fault := content_fault(incoming)) is not None:
            raise InvalidInputError(f"{where}: {fault}", details={"index": number})
        if _over(incoming.text, max_bytes):
            raise TooLargeError(
                f"{where}: text over {max_bytes} bytes", hint="Send the text in several messages.",
                details={"index": number, "limit": max_bytes},
            )  # fmt: skip
        fields = message_fields(order.place(incoming), owner, session_id, tenant_id, online=True)
        if not fields["text"].strip() and not fields["content_items"]:
            raise InvalidInputError(f"{where} has no content", details={"index": number})
        if not fields["sender_id"]:
            raise InvalidInputError(f"{where} has no sender_id", hint="In a group, each message names its sender.",
                                    details={"index": number})  # fmt: skip
        named = incoming if incoming.sender_id else replace(incoming, sender_id=fields["sender_id"])
        reason = refusal(replace(named, conversation=incoming.conversation or "default"), max_bytes=max_bytes)
        if reason is not None:
            raise InvalidInputError(f"{where}: {reason}", details={"index": number})
        made.append(fields)
    return _counted(made, imported_at)
