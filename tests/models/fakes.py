"""A deterministic engine for tests of what surrounds an engine."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.protocols import ModelIdentity, Vectors


class FakeEngine:
    """Records its batches; stands still while ``gate`` is cleared; fails on texts that contain "bad"."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(id="fake", revision="1", dimension=8)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        await self.gate.wait()
        if any("bad" in text for text in texts):
            raise RuntimeError("bad text")
        return np.stack([vector(text) for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        self.batches.append([f"query: {text}"])
        await self.gate.wait()
        return vector(text)

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(cosines, dtype=np.float64)

    async def close(self) -> None:
        self.closed = True


def vector(text: str) -> Vectors:
    """A unit vector that depends on the text alone."""
    seed = hashlib.sha256(text.encode()).digest()
    values = np.frombuffer(seed[:8], np.uint8).astype(np.float32) + 1
    return np.asarray(values / np.linalg.norm(values), dtype=np.float32)
