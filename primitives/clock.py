"""Time as the project keeps it: milliseconds since 1970-01-01 UTC, as integers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_MS = (datetime(1, 1, 2, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
LATEST_MS = (datetime(9999, 12, 30, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def now_ms() -> int:
    """The present, in milliseconds."""
    return time.time_ns() // 1_000_000


def to_iso(milliseconds: int | None) -> str | None:
    """ISO 8601 in UTC with milliseconds and `Z`; None for no time."""
    if milliseconds is None:
        return None
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_ms(moment: datetime) -> int:
    """Milliseconds of an aware moment; ValueError for a naive one, since its zone would be a guess."""
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {moment.isoformat()}")
    return (moment - EPOCH) // timedelta(milliseconds=1)  # integers: a float loses the last digit
