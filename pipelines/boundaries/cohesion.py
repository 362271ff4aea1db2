"""Topic boundaries without a language model: lexical cohesion over utterance embeddings, and silences.

TextTiling (Hearst 1997, Computational Linguistics 23-1) with sentence embeddings in place of word counts: at each gap
the blocks before and after it are compared; a gap is a boundary where similarity dips deep enough between its two
neighbouring peaks, measured against all dips of the same window. A silence in event time that is long in itself and for
this conversation is a boundary too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from storage.records import Message

BLOCK = 2
"""Utterances on each side of a gap that are compared."""
DEVIATIONS = 0.5
"""How far over the mean depth, in standard deviations, a dip must be."""
UNUSUAL = 4.0
"""How many times the median silence of the window a long silence must be."""
LEAST = 2
"""Fewest messages in a segment, silences apart."""


class CohesionDetector:
    """See pipelines.tools.BoundaryDetector. `gap_minutes`: a silence from which a new topic is likely."""

    name = "cohesion"

    def __init__(self, *, gap_minutes: float) -> None:
        self._gap_ms = gap_minutes * 60_000

    async def boundaries(self, messages: Sequence[Message], vectors: NDArray[np.float32]) -> list[int]:
        """Split-after positions, 1-based; `vectors` is (len(messages), dimension), normalised."""
        if len(messages) < 2:
            return []
        silences = self._silences(messages)
        found = set(silences)
        for start, end in zip([0, *silences], [*silences, len(messages)], strict=True):
            found.update(start + cut for cut in dips(vectors[start:end]))
        return sorted(found)

    def _silences(self, messages: Sequence[Message]) -> list[int]:
        gaps = np.array(
            [
                b.timestamp - a.timestamp if a.timestamp is not None and b.timestamp is not None else 0
                for a, b in zip(messages, messages[1:], strict=False)
            ],
            dtype=np.float64,
        )
        limit = max(self._gap_ms, UNUSUAL * float(np.median(gaps)))
        return [int(i) + 1 for i in np.flatnonzero(gaps >= limit)]


def dips(vectors: NDArray[np.float32]) -> list[int]:
    """Split-after positions, 1-based, at the deep dips of block similarity within one stretch."""
    count = len(vectors)
    if count < 2 * LEAST:
        return []
    similarity = block_similarity(vectors)
    depth = np.array([_depth(similarity, i) for i in range(count - 1)])
    threshold = float(depth.mean() + DEVIATIONS * depth.std())
    chosen: list[int] = []
    for gap in np.argsort(-depth, kind="stable"):
        position = int(gap) + 1
        if depth[gap] <= max(threshold, 1e-9):
            break
        edges = [0, *chosen, count]
        if all(abs(position - edge) >= LEAST for edge in edges):
            chosen.append(position)
    return sorted(chosen)


def block_similarity(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of the mean of the BLOCK utterances before each gap and that of those after it.

    Rounded to 1e-4: the last bits of a vector depend on the machine, and must decide nothing.
    """
    count = len(vectors)
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0, dtype=np.float64)])
    gaps = np.arange(1, count)
    before = sums[gaps] - sums[np.maximum(gaps - BLOCK, 0)]
    after = sums[np.minimum(gaps + BLOCK, count)] - sums[gaps]
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines: NDArray[np.float64] = np.einsum("ij,ij->i", before, after) / np.maximum(norms, 1e-12)
    return cosines.round(4)


def _depth(similarity: NDArray[np.float64], gap: int) -> float:
    """How far similarity rises from this gap to the nearest peak on either side, added."""
    total = 0.0
    for step in (-1, 1):
        peak = similarity[gap]
        i = gap + step
        while 0 <= i < len(similarity) and similarity[i] >= peak:
            peak = similarity[i]
            i += step
        total += float(peak - similarity[gap])
    return total
