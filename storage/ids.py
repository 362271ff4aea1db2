"""Whose memory a row is, and the deterministic ids of conversations, messages, MemCells and memories."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict, model_validator

from primitives.errors import InvalidInputError
from primitives.hashing import stable_id

DERIVED_PREFIX = "gen_"
SOLO_GROUP_PREFIX = "gen_solo_"


def solo_group_id(user_id: str) -> str:
    """EverCore's derived group of one user: `gen_solo_` and twelve hexadecimal characters of the MD5 of the id."""
    raw = user_id.encode("utf-8", "surrogatepass")
    return SOLO_GROUP_PREFIX + hashlib.md5(raw, usedforsecurity=False).hexdigest()[:12]


def assistant_id(user_id: str) -> str:
    """EverCore's derived sender id of a user's assistant."""
    raw = user_id.encode("utf-8", "surrogatepass")
    return "gen_sdr_" + hashlib.md5(raw, usedforsecurity=False).hexdigest()[:12]


class Owner(BaseModel):
    """Whose conversation it is: a user's (solo scene) or a group's (team scene)."""

    model_config = ConfigDict(frozen=True)

    user_id: str | None = None
    group_id: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Owner:
        if (self.user_id is None) == (self.group_id is None):
            raise ValueError("an owner has either a user_id or a group_id")
        return self

    @classmethod
    def user(cls, user_id: str) -> Owner:
        return cls(user_id=user_id)

    @classmethod
    def group(cls, group_id: str) -> Owner:
        return cls(group_id=group_id)

    @property
    def scene(self) -> str:
        """`solo` or `team`."""
        return "solo" if self.user_id is not None else "team"

    @property
    def row_group_id(self) -> str:
        """The group id that this owner's rows carry; of a user, EverCore's derived one."""
        return solo_group_id(self.user_id) if self.user_id is not None else str(self.group_id)

    @property
    def partition(self) -> str:
        """Where this owner's own rows lie in every index."""
        return group_partition(self.row_group_id)

    def conversation_id(self, tenant_id: str, session_id: str | None) -> str:
        """The id of (tenant, owner, session); without a session, of the owner's default conversation."""
        return stable_id("conversation", tenant_id, self.user_id, self.group_id, session_id)


def group_partition(group_id: str) -> str:
    """The partition of a group's rows; a solo user's rows lie in that of the derived group."""
    return f"g:{group_id}"


def user_partition(user_id: str) -> str:
    """The partition of one person's rows inside groups, and of that person's profile."""
    return f"u:{user_id}"


def check_identifier(name: str, value: str, *, limit: int = 512) -> str:
    """`value`, or InvalidInputError where it is blank, too long or holds what no store can keep."""
    if not value.strip():
        raise InvalidInputError(f"{name} is blank", hint="Give a non-empty id.")
    if len(value.encode("utf-8", "surrogatepass")) > limit:
        raise InvalidInputError(f"{name} is longer than {limit} bytes", hint="Use a shorter id.")
    if any("\ud800" <= c <= "\udfff" or c == "\x00" for c in value):
        raise InvalidInputError(f"{name} holds a lone surrogate or a NUL character", hint="Send valid Unicode.")
    return value


def message_key(conversation_id: str, message_id: str) -> str:
    """The key of a message with an id of the client's, which stays the string it is."""
    return stable_id("message", conversation_id, message_id)


def derived_message_key(
    conversation_id: str, *, sender_id: str, timestamp: int | None, place: int, text: str, occurrence: int,
    source: str = "",
) -> str:  # fmt: skip
    """The key of a message without an id: sender, event time, content and occurrence number.

    Undated messages use their source's name and their place in it instead of the time, so a second import of one
    file gives the same keys, and two files of one conversation do not. In a renamed file, such a message is new.
    """
    where = f"p{place}@{source}" if source else f"p{place}"
    when = f"t{timestamp}" if timestamp is not None else where
    return stable_id("derived", conversation_id, sender_id, when, text, occurrence)


def memcell_id(first_message_key: str, last_message_key: str) -> str:
    """The id of a MemCell, from its first and last message; a message is in one MemCell only."""
    return stable_id("memcell", first_message_key, last_message_key)


def memory_id(memcell: str, generation: int, memory_type: str, perspective: str | None, ordinal: int) -> str:
    """The id of one memory built from a MemCell. `perspective` is the person whose view it is, None for the group."""
    return stable_id("memory", memcell, generation, memory_type, perspective, ordinal)


def profile_id(tenant_id: str, user_id: str) -> str:
    """The id of a person's profile."""
    return stable_id("profile", tenant_id, user_id)
