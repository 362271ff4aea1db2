"""Which stored rows a search may show, decided on the row itself and never on what an index said."""

from __future__ import annotations

from primitives.clock import now_ms
from serve.query import Query
from storage.filters import matches
from storage.ports import Row
from storage.records import Message

FADED_BELOW = 0.2
"""Strength under which a memory has faded: it is kept, but left out unless asked for."""


def shown(row: Row, query: Query, *, partitions: frozenset[str], now: int | None = None) -> bool:
    """Whether `row` is an answer to `query`: its owner, its filter, its time of validity, its strength."""
    if row.partition not in partitions:
        return False
    if not matches(query.where, row):
        return False
    if isinstance(row, Message):
        return query.as_of is None or row.timestamp is None or row.timestamp <= query.as_of
    if not query.include_faded and row.strength < FADED_BELOW:
        return False
    if query.as_of is not None:
        since = row.valid_from if row.valid_from is not None else row.timestamp
        return (since is None or since <= query.as_of) and (row.valid_to is None or row.valid_to > query.as_of)
    moment = now_ms() if now is None else now
    return row.superseded_by is None or (row.valid_to is not None and row.valid_to > moment)
