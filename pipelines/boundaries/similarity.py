"""Cohesion of utterance embeddings around each gap, in units of the conversation's own spread.

Engines differ in where their cosines lie (e5 puts all of them in .75-.89), so nothing here is absolute: a similarity
counts as how many standard deviations it is over the mean of all pairs that stand near each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEAR = 30
"""Messages at most so far apart are pairs that set the scale."""
FLAT = 1e-3
"""Standard deviation of similarities under which a conversation shows no topics at all."""


def cohesion_features(vectors: NDArray[np.float32]) -> dict[str, Floats] | None:
    """Features of the len(vectors) - 1 gaps, for 4 messages and more; None where all messages are alike.

    Similarities are rounded to 1e-4: the last bits of a vector depend on the machine, and must decide nothing.
    """
    count = len(vectors)
    exact = vectors.astype(np.float64)
    similarity = (exact @ exact.T).round(4)
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    near = similarity[(distance > 0) & (distance <= NEAR)]
    if near.std() < FLAT:
        return None
    scaled = (similarity - near.mean()) / near.std()
    one, two, three = (np.diagonal(scaled, lag) for lag in (1, 2, 3))
    # Pairs across the gap between i and i + 1, of the two messages on either side; fewer at the ends.
    gaps = count - 1
    across, pairs = one.copy(), np.ones(gaps)
    across[1:] += two
    pairs[1:] += 1
    across[:-1] += two
    pairs[:-1] += 1
    across[1:-1] += three
    pairs[1:-1] += 1
    across /= pairs
    # How alike the two messages on each side are among themselves.
    inside, sides = np.zeros(gaps), np.zeros(gaps)
    inside[1:] += one[:-1]
    sides[1:] += 1
    inside[:-1] += one[1:]
    sides[:-1] += 1
    # Does the message after the gap go better with what follows than with what was before?
    behind = one.copy()
    behind[1:] = np.maximum(one[1:], two)
    ahead = np.full(gaps, -np.inf)
    ahead[:-1] = one[1:]
    ahead[:-2] = np.maximum(ahead[:-2], two[1:])
    fits = np.where(np.isfinite(ahead), ahead, behind) - behind
    return {
        "similarity_1": one.copy(),
        "similarity_2": across,
        "contrast": inside / sides - across,
        "fits_what_follows": fits,
        "depth": standard(_depths(_block_cosines(exact))),
    }


def standard(values: Floats) -> Floats:
    """Centred, in standard deviations."""
    scaled: Floats = (values - values.mean()) / max(float(values.std()), 1e-6)
    return scaled


def _block_cosines(vectors: Floats) -> Floats:
    """Cosine of the mean of the two utterances before each gap and that of the two after it (TextTiling's blocks)."""
    count = len(vectors)
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)])
    gaps = np.arange(1, count)
    before = sums[gaps] - sums[np.maximum(gaps - 2, 0)]
    after = sums[np.minimum(gaps + 2, count)] - sums[gaps]
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines: Floats = np.einsum("ij,ij->i", before, after) / np.maximum(norms, 1e-12)
    return cosines.round(4)


def _depths(similarity: Floats) -> Floats:
    """How far similarity rises from each gap to the nearest peak on either side, added (Hearst 1997)."""
    values = similarity.tolist()
    depths = np.zeros(len(values))
    for ordered in (range(len(values)), range(len(values) - 1, -1, -1)):
        peak = previous = -np.inf
        for gap in ordered:
            value = values[gap]
            # Walking away from the gap, similarity climbs as long as it does not fall.
            peak = peak if value <= previous else value
            depths[gap] += peak - value
            previous = value
    return depths
