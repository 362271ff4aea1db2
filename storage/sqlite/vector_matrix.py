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
        self._asked: tuple[NDArray[np.float32], int, NDArray[np.float32]] | None = None
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

    def _cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """With every row. One search asks several times, for each type and for rows by name, so the last are kept."""
        if self._asked is None or self._asked[0] is not query or self._asked[1] != self.sequence:
            self._asked = (query, self.sequence, self._vectors[: len(self._ids)] @ query)
        return self._asked[2]

    def similarities(self, query: NDArray[np.float32], ids: Sequence[str]) -> dict[str, float]:
        """Cosines of the given rows, those that are here."""
        places = ((row_id, self._places.get(row_id)) for row_id in ids)
        there = {row_id: place for row_id, place in places if place is not None and self._kinds[place] >= 0}
        if not there:
            return {}
        cosines = self._cosines(query)[list(there.values())]
        return dict(zip(there, map(float, cosines), strict=True))

    def best(self, query: NDArray[np.float32], kind: str, limit: int) -> list[Hit]:
        """The `limit` rows of this type nearest to the query, best first; ties go by id."""
        number = self._kind_numbers.get(kind)
        if number is None:
            return []
        scores = self._cosines(query)
        places = np.flatnonzero(self._kinds[: len(self._ids)] == number)
        if len(places) > limit:
            kept = scores[places]
            # All rows that tie with the last one stay in, so that the order of writing decides nothing.
            threshold = np.partition(kept, len(kept) - limit)[len(kept) - limit]
            places = places[kept >= threshold]
        ordered = sorted(((float(scores[p]), self._ids[p]) for p in places), key=lambda pair: (-pair[0], pair[1]))
        return [Hit(row_id, score, kind) for score, row_id in ordered[:limit]]
