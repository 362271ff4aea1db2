"""The kinds of values that request bodies are made of, with the checks that go with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt

from primitives.clock import LATEST_MS, to_ms
from primitives.errors import InvalidInputError
from primitives.text import storable
from storage.ids import DERIVED_PREFIX, check_identifier

SECONDS_BELOW = 100_000_000_000
"""Smaller numbers are taken for seconds: as milliseconds they lie before 1973-03-03."""
NO_SESSION = "-1"
"""V1's own mark of a missing session, which no client may send."""


def cleaned(value: Any) -> Any:
    """Text that any store can hold: lone surrogates become U+FFFD, also inside lists and objects."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    return value


def _identifier(value: str) -> str:
    try:
        return check_identifier("the id", value)
    except InvalidInputError as fault:
        raise ValueError(fault.message) from fault


def _not_derived(value: str) -> str:
    if value.startswith(DERIVED_PREFIX):
        raise ValueError(f"ids that begin with {DERIVED_PREFIX} are made by the server")
    return value


def _selector(value: str) -> str:
    return _identifier(value) if value else value


def _session(value: str) -> str:
    if value == NO_SESSION:
        raise ValueError('"-1" stands for no session; leave session_id out')
    return value


def _milliseconds(value: int) -> int:
    if abs(value) < SECONDS_BELOW:
        raise ValueError(f"{value} looks like seconds; timestamps are milliseconds since 1970")
    if abs(value) > LATEST_MS:
        raise ValueError(f"{value} is not a time in milliseconds")
    return value


def _iso(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
        return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as fault:
        raise ValueError("not an ISO 8601 time") from fault


Text = Annotated[str, BeforeValidator(cleaned)]
Identifier = Annotated[str, AfterValidator(_identifier)]
OwnerId = Annotated[Identifier, AfterValidator(_not_derived)]
Selector = Annotated[str, AfterValidator(_selector)]
"""An id that a deletion is narrowed to, or "" for rows without a value."""
SessionId = Annotated[Identifier, AfterValidator(_session)]
Milliseconds = Annotated[StrictInt, AfterValidator(_milliseconds), Field(description="Milliseconds since 1970, UTC.")]
Moment = Annotated[Milliseconds, BeforeValidator(_iso), Field(description="Milliseconds since 1970, or ISO 8601.")]
