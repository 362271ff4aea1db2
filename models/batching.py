"""Joins embedding calls that arrive while the engine is busy into one engine batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder, ModelIdentity, Vectors
from models.text_cleaning import estimate_tokens
from primitives.errors import ModelError, OverloadedError

# Online work goes first, but an online stream without end must not stop a job: one batch in so many starts with bulk.
_BULK_TURN = 8
_bulk: ContextVar[bool] = ContextVar("evercore_embedding_is_bulk", default=False)


@contextmanager
def bulk_priority() -> Iterator[None]:
    """Calls inside this block (and in tasks started there) yield to online calls, through any wrapper."""
    token = _bulk.set(True)
    try:
        yield
    finally:
        _bulk.reset(token)


@dataclass(eq=False, kw_only=True)
class _Call:
    texts: Sequence[str]
    costs: Sequence[int]
    query: bool
    vectors: Vectors
    done: asyncio.Future[Vectors]
    taken: int = 0
    stored: int = 0


@dataclass(kw_only=True)
class _Share:
    """The part of a call that is in one batch."""

    call: _Call
    start: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        return self.call.texts[self.start : self.stop]


@dataclass(kw_only=True)
class BatchCounts:
    """What went through, for benchmarks and metrics."""

    calls: int = 0
    batches: int = 0
    texts: int = 0
    refused: int = 0


class MicroBatcher:
    """An embedder around an embedder. Belongs to one event loop.

    There is no waiting time: an idle engine starts at once, and whatever arrives meanwhile forms the next batch, up to
    ``batch_tokens`` (estimated). Queries go first; calls marked by :func:`bulk_priority` fill what online calls leave.
    When more than ``queue_texts`` texts wait, calls raise ``OverloadedError``; one call alone may be larger than that.
    A cancelled call leaves the queue. When a batch fails, its calls are tried apart, so that one bad call fails alone.
    """

    def __init__(self, engine: Embedder, *, batch_tokens: int = 1024, queue_texts: int = 20_000) -> None:
        self._engine = engine
        self._batch_tokens = batch_tokens
        self._queue_texts = queue_texts
        self._searches: deque[_Call] = deque()
        self._online: deque[_Call] = deque()
        self._background: deque[_Call] = deque()
        self._waiting = 0
        self._runner: asyncio.Task[None] | None = None
        self._closed = False
        self.counts = BatchCounts()

    @property
    def identity(self) -> ModelIdentity:
        return self._engine.identity

    @property
    def waiting_texts(self) -> int:
        """Texts that no batch has taken yet."""
        return self._waiting

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        return self._engine.calibrate(cosines)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.identity.dimension), dtype=np.float32)
        return await self._submit(list(texts), query=False)

    async def embed_query(self, text: str) -> Vectors:
        first: Vectors = (await self._submit([text], query=True))[0]
        return first

    async def close(self) -> None:
        """Calls that wait raise ``ModelError``; the batch that runs is finished first."""
        self._closed = True
        for queue in (self._searches, self._online, self._background):
            for call in queue:
                _fail(call, ModelError("The embedder was closed while this call waited."))
            queue.clear()
        self._waiting = 0
        if self._runner is not None:
            await asyncio.wait([self._runner])
        await self._engine.close()

    async def _submit(self, texts: Sequence[str], *, query: bool) -> Vectors:
        if self._closed:
            raise ModelError("The embedder is closed.")
        if self._waiting and self._waiting + len(texts) > self._queue_texts:
            self.counts.refused += 1
            raise OverloadedError(
                f"{self._waiting} texts wait to be embedded, {self._queue_texts} are allowed.",
                hint="Try again shortly.",
            )
        call = _Call(
            texts=texts,
            costs=[estimate_tokens(text) for text in texts],
            query=query,
            vectors=np.empty((len(texts), self.identity.dimension), dtype=np.float32),
            done=asyncio.get_running_loop().create_future(),
        )
        online = self._searches if query else self._online
        queue = self._background if _bulk.get() else online
        queue.append(call)
        self._waiting += len(texts)
        self.counts.calls += 1
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        try:
            return await call.done
        finally:
            # In the queue still: cancelled while it waited, or failed in part.
            if call.taken < len(call.texts) and call in queue:
                queue.remove(call)
                self._waiting -= len(call.texts) - call.taken

    async def _run(self) -> None:
        while self._searches or self._online or self._background:
            batch = self._take()
            if not batch:
                continue
            self.counts.batches += 1
            self.counts.texts += sum(share.stop - share.start for share in batch)
            try:
                await self._embed(batch)
            except Exception as error:  # noqa: BLE001 - whatever the engine raises belongs to the callers
                await self._embed_apart(batch, error)

    def _take(self) -> list[_Share]:
        queues = [self._searches, self._online, self._background]
        if self.counts.batches % _BULK_TURN == _BULK_TURN - 1:
            queues.reverse()
        batch: list[_Share] = []
        room = self._batch_tokens
        for queue in queues:
            while queue and (room > 0 or not batch):
                call = queue[0]
                if call.done.done():
                    queue.popleft()
                    self._waiting -= len(call.texts) - call.taken
                    continue
                if call.query and batch:
                    return batch  # a query has its own prefix and goes alone
                start = call.taken
                while call.taken < len(call.texts) and (
                    room >= call.costs[call.taken] or (not batch and call.taken == start)
                ):
                    room -= call.costs[call.taken]
                    call.taken += 1
                if call.taken == start:
                    return batch
                self._waiting -= call.taken - start
                batch.append(_Share(call=call, start=start, stop=call.taken))
                if call.taken == len(call.texts):
                    queue.popleft()
                if call.query:
                    return batch
        return batch

    async def _embed(self, batch: Sequence[_Share]) -> None:
        if batch[0].call.query:
            vectors = (await self._engine.embed_query(batch[0].texts[0]))[None, :]
        else:
            vectors = await self._engine.embed_documents([text for share in batch for text in share.texts])
        at = 0
        for share in batch:
            size = share.stop - share.start
            call = share.call
            call.vectors[share.start : share.stop] = vectors[at : at + size]
            at += size
            call.stored += size
            if call.stored == len(call.texts) and not call.done.done():
                call.done.set_result(call.vectors)

    async def _embed_apart(self, batch: Sequence[_Share], error: Exception) -> None:
        for share in batch:
            if len(batch) > 1:
                try:
                    await self._embed([share])
                    continue
                except Exception as own:  # noqa: BLE001 - likewise
                    error = own
            _fail(share.call, error)


def _fail(call: _Call, error: Exception) -> None:
    if not call.done.done():
        call.done.set_exception(error)
