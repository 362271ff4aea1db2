"""One owner's vectors in memory: a growing matrix that takes new, replaced and deleted rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from storage.ports import Hit


class OwnerMatrix:
    """Exact cosine search over float32 rows; `sequence` is the last row taken."""

    def __init__(self, dimension: int) -> None:
        self.sequence = 0
        self._vectors: NDArray[np.float32] = np.zeros((0, dimension), np.float32)
        self._ids: list[str] = []
        self._kinds: NDArray[np.int16] = np.zeros(0, np.int16)  # number of the type, -1 where the row is deleted
        self._kind_numbers: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Memory in use; ids are counted with 120 bytes each, as measured for their strings and places."""
        return self._vectors.nbytes + self._kinds.nbytes + 120 * len(self._ids)

    def lock(self) -> asyncio.Lock:
        """Held while rows are taken, so that each is taken once."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def take(self, rows: Sequence[tuple[int, str, str, bytes | None]]) -> None:
        """Rows (sequence, id, type, vector or None where deleted) that are newer than what is here."""
        self._reserve(len(self._ids) + len(rows))
        for sequence, row_id, kind, blob in rows:
            self.sequence = sequence
            place = self._places.get(row_id)
            if blob is None:
                if place is not None:
                    self._kinds[place] = -1
                continue
            if place is None:
                place = self._places[row_id] = len(self._ids)
                self._ids.append(row_id)
            self._vectors[place] = np.frombuffer(blob, np.float32)
            self._kinds[place] = self._kind_numbers.setdefault(kind, len(self._kind_numbers))

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._vectors):
            return
        size = max(rows, len(self._vectors) * 3 // 2)
        vectors = np.zeros((size, self._vectors.shape[1]), np.float32)
        vectors[: len(self._vectors)] = self._vectors
        kinds = np.full(size, -1, np.int16)
        kinds[: len(self._kinds)] = self._kinds
        self._vectors, self._kinds = vectors, kinds

    def best(self, query: NDArray[np.float32], kinds: frozenset[str], limit: int) -> list[Hit]:
        """The `limit` rows of these types nearest to the query, best first; ties go by id."""
        count = len(self._ids)
        numbers = [self._kind_numbers[kind] for kind in kinds if kind in self._kind_numbers]
        if not count or not numbers:
            return []
        scores = self._vectors[:count] @ query
        allowed = np.isin(self._kinds[:count], numbers)
        places = np.flatnonzero(allowed)
        if len(places) > limit:
            kept = scores[places]
            # All rows that tie with the last one stay in, so that the order of writing decides nothing.
            threshold = np.partition(kept, len(kept) - limit)[len(kept) - limit]
            places = places[kept >= threshold]
        ordered = sorted(((float(scores[p]), self._ids[p]) for p in places), key=lambda pair: (-pair[0], pair[1]))
        return [Hit(row_id, score) for score, row_id in ordered[:limit]]
