"""Runs a blocking embedding engine in a thread of its own, so that the event loop is never blocked."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.protocols import ModelIdentity, Vectors
from primitives.errors import ModelError

Result = TypeVar("Result")


class ThreadedEmbedder(ABC):
    """An :class:`~models.protocols.Embedder` whose engine is loaded at the first call, in its thread."""

    def __init__(self, *, identity: ModelIdentity) -> None:
        self._identity = identity
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=identity.id)
        self._closed = False

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    @abstractmethod
    def _load(self) -> None:
        """Make the engine ready; called before each use, in the engine's thread."""

    @abstractmethod
    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        """Vectors of ``texts``; called in the engine's thread, never with an empty list."""

    @abstractmethod
    def _unload(self) -> None:
        """Let go of the engine."""

    @abstractmethod
    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        """See :meth:`models.protocols.Embedder.calibrate`."""

    async def start(self) -> None:
        """Load the engine now instead of at the first text."""
        await self._in_thread(self._load)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self._identity.dimension), dtype=np.float32)
        return await self._in_thread(lambda: self._embed_loaded(list(texts), query=False))

    async def embed_query(self, text: str) -> Vectors:
        vectors = await self._in_thread(lambda: self._embed_loaded([text], query=True))
        first: Vectors = vectors[0]
        return first

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Not waited for on the loop: a batch that is running may take a second.
        await asyncio.to_thread(self._executor.shutdown, wait=True, cancel_futures=True)
        self._unload()

    def _embed_loaded(self, texts: Sequence[str], *, query: bool) -> Vectors:
        self._load()
        return self._embed(texts, query=query)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        if self._closed:
            raise ModelError(f"The embedder {self._identity.id} is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
