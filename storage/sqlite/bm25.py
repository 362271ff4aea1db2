"""BM25 that also works where few rows are: FTS5's own, with Lucene's weight for common words.

FTS5 weighs a word by ln((N - n + 0.5) / (n + 0.5)) and cuts that off near 0, so that in a store of a few rows, where
any word stands in half of them, all scores are 0 and the order is chance. Lucene's ln(1 + ...) stays positive. For rare
words the two agree; a common word is searched on its own and its score multiplied by the quotient of the two weights.
https://www.sqlite.org/fts5.html#the_bm25_function
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from storage.sqlite.codec import dumps

SMALL = 20_000
"""Rows of an index up to which words are counted; in a larger one hardly a word is common that is no stop word."""
COMMON = 0.1
"""Share of the rows from which a word counts as common: the two weights differ by a twentieth there."""
LEAST = 1e-6
"""What FTS5 cuts its weight off at."""


def weighted(connection: sqlite3.Connection, table: str, entries: str, words: Sequence[str]) -> list[tuple[float, str]]:
    """(factor, FTS5 expression over the column `body`) of the parts of a query, whose scores add up.

    `words` are quoted; `entries` has one row for each row of the FTS5 table.
    """
    total = connection.execute(f"SELECT max(rowid) FROM {entries}").fetchone()[0] or 0
    if total > SMALL:
        return [(1.0, _any(words))]
    total = connection.execute(f"SELECT count(*) FROM {entries}").fetchone()[0]
    counts = connection.execute(
        f"SELECT value, (SELECT count(*) FROM {table} WHERE {table} MATCH 'body : ' || value) FROM json_each(?)",
        (dumps(list(words)),),
    ).fetchall()
    rare = [word for word, count in counts if count < COMMON * total]
    parts = [(_quotient(count, total), _any([word])) for word, count in counts if count >= COMMON * total]
    return parts + [(1.0, _any(rare))] * bool(rare)


def _any(words: Sequence[str]) -> str:
    return f"body : ({' OR '.join(words)})"


def _quotient(count: int, total: int) -> float:
    """Lucene's weight of a word by FTS5's."""
    odds = (total - count + 0.5) / (count + 0.5)
    return math.log1p(odds) / (math.log(odds) if odds > 1 and math.log(odds) > LEAST else LEAST)
