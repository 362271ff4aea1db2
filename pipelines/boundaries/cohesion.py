"""Topic boundaries without a language model: cohesion, lexical chains, cue words, who speaks, and silences.

Every gap of a window gets a strength, a weighted sum of its features (pipelines.boundaries.features); how many topics
there are follows from how much neighbouring messages cohere in this conversation. The strongest gaps of the whole
window, at least two messages apart, are the boundaries. The weights are learned by benchmarks/boundaries.py and stand
in weights.json. A silence in event time that is long in itself and for this conversation is a boundary in any case.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.boundaries.features import gap_features
from pipelines.boundaries.similarity import Floats
from primitives.errors import ModelError
from storage.records import Message

UNUSUAL = 4.0
"""How many times the median silence of the window a long silence must be."""
LEAST = 2
"""Fewest messages in a segment, silences apart."""
SHORT = 6
"""Windows of fewer messages are one topic, silences apart: too little to judge by."""
PAUSE_MS = 300_000
"""Pauses under five minutes say nothing."""
PAUSE_WEIGHT = 0.5
"""What each doubling of an unusual pause adds to a gap; a prior, since the sets that weights are learned on have no times."""
RARER = 0.93
"""Slightly fewer boundaries than expected: a wrong one costs more than a missed one."""
PATIENCE = 4.0
"""Weight, in gaps, of the usual coherence beside that of a short window."""


@cache
def shipped_weights() -> Mapping[str, Any]:
    """weights.json: `weights` by feature, `density` of boundaries by coherence."""
    text = resources.files("pipelines.boundaries").joinpath("weights.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


class CohesionDetector:
    """See pipelines.tools.BoundaryDetector. `gap_minutes`: a silence from which a new topic is likely."""

    name = "cohesion"

    def __init__(self, *, gap_minutes: float, weights: Mapping[str, Any] | None = None) -> None:
        self._gap_ms = gap_minutes * 60_000
        self._weights = weights or shipped_weights()

    async def boundaries(self, messages: Sequence[Message], vectors: NDArray[np.float32]) -> list[int]:
        """Split-after positions, 1-based; `vectors` is (len(messages), dimension), normalised.

        ModelError where the vectors are not one a message.
        """
        if len(vectors) != len(messages):
            raise ModelError(f"{len(messages)} messages came with {len(vectors)} vectors", hint="Flush again.")
        if len(messages) < 2:
            return []
        gaps = _pauses(messages)
        usual = float(np.median(gaps))
        silences = [int(i) + 1 for i in np.flatnonzero(gaps >= max(self._gap_ms, UNUSUAL * usual))]
        if len(messages) < SHORT:
            return silences
        features = gap_features(messages, vectors)
        if features is None:
            return silences
        strength = sum((weight * features[name] for name, weight in self._weights["weights"].items()), np.zeros(len(gaps)))
        strength += PAUSE_WEIGHT * np.log2(np.maximum(gaps / max(PAUSE_MS, UNUSUAL * usual), 1.0))
        for place, message in enumerate(messages[1:]):
            if message.role == "tool":  # a tool's result belongs to its call
                strength[place] = -math.inf
        expected = expected_boundaries(features, self._weights["density"])
        return strongest(strength, count=round(expected) - len(silences), given=silences)


def _pauses(messages: Sequence[Message]) -> Floats:
    """Milliseconds between neighbours; 0 where one of them has no known time."""
    return np.array(
        [
            b.timestamp - a.timestamp if a.timestamp is not None and b.timestamp is not None else 0
            for a, b in zip(messages, messages[1:], strict=False)
        ],
        dtype=np.float64,
    )


def expected_boundaries(features: Mapping[str, Floats], density: Mapping[str, float]) -> float:
    """How many boundaries a window of such coherence has: fewer where neighbours are much alike."""
    similarity = features["similarity_1"]
    count = len(similarity)
    coherence = (float(similarity.sum()) + PATIENCE * density["usual_coherence"]) / (count + PATIENCE)
    return RARER * count * min(0.5, math.exp(density["level"] + density["slope"] * coherence))


def strongest(strength: Floats, *, count: int, given: Sequence[int]) -> list[int]:
    """`given` and the `count` strongest gaps that leave segments of LEAST messages; of equal ones the earlier."""
    edges = {0, len(strength) + 1, *given}
    chosen = list(given)
    for gap in np.argsort(-strength.round(6), kind="stable"):
        position = int(gap) + 1
        if count <= 0 or strength[gap] == -math.inf:
            break
        if not any(position + step in edges for step in range(1 - LEAST, LEAST)):
            edges.add(position)
            chosen.append(position)
            count -= 1
    return sorted(chosen)
