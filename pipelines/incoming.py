"""What an importer or the API hands over: messages as they were read, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Incoming:
    """One message as a source has it, before it has an owner or a key."""

    conversation: str
    """The source's name of the conversation."""
    sender_id: str
    text: str
    sender_name: str = ""
    role: str = "user"
    timestamp: int | None = None
    """Milliseconds since 1970, UTC; None where the source has no time."""
    message_id: str | None = None
    content_items: tuple[dict[str, Any], ...] = ()
    owner_user_id: str | None = None
    """Whose talk with an assistant it is, where the source says so."""


@dataclass(frozen=True)
class Rejected:
    """A record that is not a message: `skipped` on purpose (blank, system line), or unreadable."""

    reason: str
    """Short and countable: `blank text`, `bad JSON`."""
    where: str
    """File and line or element, so that a person finds it."""
    skipped: bool = False
    sample: str = field(default="")
    """The beginning of what could not be read."""
