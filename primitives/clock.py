"""Time as the project keeps it: milliseconds since 1970-01-01 UTC, as integers."""

from __future__ import annotations

import time
from datetime import UTC, datetime

EARLIEST_MS = int(datetime(1, 1, 2, tzinfo=UTC).timestamp() * 1000)
LATEST_MS = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp() * 1000)


def now_ms() -> int:
    """The present, in milliseconds."""
    return time.time_ns() // 1_000_000


def to_iso(milliseconds: int | None) -> str | None:
    """ISO 8601 in UTC with milliseconds and `Z`; None for no time."""
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return (
        moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
        if moment.year >= 1000
        else (moment.isoformat().replace("+00:00", f".{milliseconds % 1000:03d}Z"))
    )


def to_ms(moment: datetime) -> int:
    """Milliseconds of an aware moment; ValueError for a naive one, since its zone would be a guess."""
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {moment.isoformat()}")
    return int(moment.timestamp() * 1000)
