"""Remembers vectors, so that a text that comes again is not embedded again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder, ModelIdentity, Vectors

# What an entry takes beside its floats: array object, key, and its place in the dictionary.
_ENTRY_BYTES = 330


class CachingEmbedder:
    """An embedder around an embedder, with a least-recently-used store bounded by ``max_bytes``.

    The store holds hashes and vectors, never texts. A text that stands several times in one call is embedded once.
    ``texts_asked`` and ``texts_embedded`` count what came in and what reached the engine.
    """

    def __init__(self, engine: Embedder, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._engine = engine
        self._entries: OrderedDict[bytes, Vectors] = OrderedDict()
        self._capacity = max_bytes // (engine.identity.dimension * 4 + _ENTRY_BYTES)
        self.texts_asked = 0
        self.texts_embedded = 0

    @property
    def identity(self) -> ModelIdentity:
        return self._engine.identity

    @property
    def engine(self) -> Embedder:
        """The embedder inside."""
        return self._engine

    def __len__(self) -> int:
        return len(self._entries)

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        return self._engine.calibrate(cosines)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        keys = [_key(text, query=False) for text in texts]
        self.texts_asked += len(keys)
        known: dict[bytes, Vectors | None] = {key: self._find(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
        if missing:
            self.texts_embedded += len(missing)
            fresh = await self._engine.embed_documents(list(missing.values()))
            for key, vector in zip(missing, fresh, strict=True):
                known[key] = vector
                self._store(key, vector)
        result = np.empty((len(keys), self.identity.dimension), dtype=np.float32)
        for row, key in enumerate(keys):
            result[row] = known[key]
        return result

    async def embed_query(self, text: str) -> Vectors:
        key = _key(text, query=True)
        self.texts_asked += 1
        vector = self._find(key)
        if vector is None:
            self.texts_embedded += 1
            vector = await self._engine.embed_query(text)
            self._store(key, vector)
        return vector.copy()

    def clear(self) -> None:
        """Forget every vector (a person is erased)."""
        self._entries.clear()

    async def close(self) -> None:
        self.clear()
        await self._engine.close()

    def _find(self, key: bytes) -> Vectors | None:
        vector = self._entries.get(key)
        if vector is not None:
            self._entries.move_to_end(key)
        return vector

    def _store(self, key: bytes, vector: Vectors) -> None:
        if self._capacity < 1:
            return
        # A copy: a row would keep its whole batch alive.
        self._entries[key] = vector.copy()
        self._entries.move_to_end(key)
        while len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


def _key(text: str, *, query: bool) -> bytes:
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"query" if query else b"document"
    ).digest()
