"""Event times as exports write them. A time without a zone never becomes UTC in silence."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from primitives.clock import EARLIEST_MS, LATEST_MS
from primitives.errors import InvalidInputError, UnreadableInputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_UNITS = ((1e11, 1_000), (1e14, 1), (1e17, 1e-3))
"""Numbers below the bound, in absolute value, and what makes milliseconds of them; larger ones are nanoseconds."""


class BadTimeError(ValueError):
    """The value is there and is no time."""


class NaiveTimeError(UnreadableInputError):
    """The value is a time without a zone, and nobody said which zone is meant."""


def zone_of(name: str | None) -> ZoneInfo | None:
    """The zone of that name; InvalidInputError where there is none."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as fault:
        raise InvalidInputError(f"unknown time zone {name!r}", hint="Give one such as Asia/Shanghai or UTC.") from fault


def moment(value: object, zone: ZoneInfo | None, *, where: str) -> int | None:
    """Milliseconds since 1970 of a number (seconds, ms, us or ns by size) or an ISO 8601 string; None for no time.

    BadTimeError where it is no time, NaiveTimeError where it lacks a zone and `zone` is None.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        text = value.strip()
        return _number(float(text)) if _NUMBER.fullmatch(text) else _iso(text, zone, where)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadTimeError(repr(value)[:60])
    return _number(value)


def _number(value: float) -> int:
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer that is no float
        finite = False
    if not finite:
        raise BadTimeError(repr(value)[:60])
    factor = next((factor for bound, factor in _UNITS if abs(value) < bound), 1e-6)
    return _within(round(value * factor))


def _iso(text: str, zone: ZoneInfo | None, where: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as fault:
        raise BadTimeError(repr(text[:60])) from fault
    if found.tzinfo is None:
        if zone is None:
            raise NaiveTimeError(
                f"{where}: the time {text!r} names no zone",
                hint="Say which zone the file's times are in: --timezone Asia/Shanghai (or UTC, if they are UTC).",
            )
        found = found.replace(tzinfo=zone)
    try:
        return _within((found - _EPOCH) // _MILLISECOND)
    except OverflowError as fault:
        raise BadTimeError(repr(text[:60])) from fault


def _within(milliseconds: int) -> int:
    if not EARLIEST_MS <= milliseconds <= LATEST_MS:
        raise BadTimeError(f"{milliseconds} ms is outside the calendar")
    return milliseconds
