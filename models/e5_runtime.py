"""Runs the converted multilingual-e5-small with onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from models.e5_onnx_names import GRAPH_FILE
from models.e5_tokens import UnigramTokenizer
from models.text_cleaning import clean
from primitives.errors import ModelError

DIMENSION = 384
WINDOW = 512
VOCABULARY_FILE = "vocabulary.txt"
SCORES_FILE = "scores.npy"
CENTRES_FILE = "centres.npy"
_BEGIN, _END, _UNKNOWN = 0, 2, 3
# More tokens in one run are no faster and take more memory.
_TOKENS_PER_RUN = 256
_NORMALISER = 1e-12


class E5Runtime:
    """Tokenizer and session of one folder written by the conversion; used by one thread at a time."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self._tokenizer = self.load_tokenizer(folder)
        self._centres_path = folder / CENTRES_FILE
        self._centres: NDArray[np.float64] | None = None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Plans of memory are kept per shape, and every length is a shape.
        options.enable_mem_pattern = False
        # Several worker processes share few cores: a thread that waits must sleep.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / GRAPH_FILE), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises many types, all of them final
            raise ModelError(
                f"The embedding model in {folder} cannot be loaded: {error}", hint="Delete that folder and start again."
            ) from error

    @staticmethod
    def load_tokenizer(folder: Path) -> UnigramTokenizer:
        """The tokenizer of a folder that may hold no graph yet."""
        scores = np.load(folder / SCORES_FILE).tolist()
        return UnigramTokenizer.load(folder / VOCABULARY_FILE, scores=scores, unknown_id=_UNKNOWN)

    @staticmethod
    def frame(tokenizer: UnigramTokenizer, text: str) -> list[int]:
        """Ids of a prefixed text with the special tokens around it, 512 at most."""
        return [_BEGIN, *tokenizer.encode(clean(text), limit=WINDOW - 2), _END]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of texts that carry their prefix, shape (len(texts), 384). Raises ``ModelError``.

        Only texts of exactly equal length share a run. Padding would move the last bits of a softmax, and 8-bit
        rounding turns a moved bit into a difference of 1e-4; without padding every text's numbers are bit-identical
        whatever it runs with.
        """
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        by_length: dict[int, list[tuple[int, list[int]]]] = {}
        for index, text in enumerate(texts):
            ids = self.frame(self._tokenizer, text)
            by_length.setdefault(len(ids), []).append((index, ids))
        for length, members in by_length.items():
            at_once = max(1, _TOKENS_PER_RUN // length)
            for start in range(0, len(members), at_once):
                group = members[start : start + at_once]
                vectors[[index for index, _ in group]] = self._run([ids for _, ids in group])
        return vectors

    def centred(self, vectors: NDArray[np.float32], *, query: bool) -> NDArray[np.float32]:
        """``vectors`` of :meth:`embed` without what all vectors of queries (or of passages) share; unit length again.

        E5 puts every text into one narrow cone, at a different place for each language (unrelated pairs: cosine 0.78
        in English, 0.84 in Chinese). Without the common part unrelated pairs lie near 0.2 and related ones near 0.4
        in both, so that one threshold can mean something; the order within a language hardly changes.
        """
        if self._centres is None:
            self._centres = np.load(self._centres_path)
        moved = vectors.astype(np.float64) - self._centres[0 if query else 1]
        norm = np.sqrt((moved * moved).sum(axis=1, keepdims=True))
        return np.asarray(moved / np.maximum(norm, _NORMALISER), dtype=np.float32)

    def _run(self, rows: list[list[int]]) -> NDArray[np.float32]:
        try:
            states: NDArray[np.float32] = self._session.run(None, {"ids": np.array(rows, dtype=np.int64)})[0]
        except Exception as error:  # onnxruntime raises many types; the caller needs to know only that it failed
            raise ModelError(f"The embedding model failed: {error}") from error
        # Sums in float64 in a fixed order: a row's result cannot depend on the number of rows.
        mean = states.mean(axis=1, dtype=np.float64)
        norm = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
        return np.asarray(mean / np.maximum(norm, _NORMALISER), dtype=np.float32)
