"""A small deterministic embedder for tests that are about stores and flow, not about meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.protocols import ModelIdentity

DIMENSION = 48


class BagOfCharacters:
    """Counts of hashed character pairs, normalised: texts that share pairs are near each other."""

    identity = ModelIdentity(id="bag-of-characters", revision="1", dimension=DIMENSION)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        out = np.zeros((len(texts), DIMENSION), np.float32)
        for i, text in enumerate(texts):
            for a, b in zip(text, text[1:] + " ", strict=False):
                digest = hashlib.blake2b((a + b).encode("utf-8", "replace"), digest_size=2).digest()
                out[i, int.from_bytes(digest, "big") % DIMENSION] += 1
            out[i, 0] += 0.01
            out[i] /= np.linalg.norm(out[i])
        return out

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self.embed_documents([text]))[0]

    def calibrate(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(cosines, 0, 1)

    async def close(self) -> None:
        return None
