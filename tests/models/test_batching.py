"""The micro-batcher: what shares a batch, who goes first, and whom a failure or a cancellation touches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import numpy as np
import pytest

from models.batching import MicroBatcher, bulk_priority
from models.protocols import Embedder, Vectors
from models.text_cleaning import estimate_tokens
from primitives.errors import ModelError, OverloadedError

from .fakes import FakeEngine, vector


async def settle() -> None:
    """Let every ready task run up to its next wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(call: Awaitable[Vectors]) -> asyncio.Task[Vectors]:
    async def run() -> Vectors:
        return await call

    return asyncio.create_task(run())


def bulk(batcher: MicroBatcher, texts: list[str]) -> asyncio.Task[Vectors]:
    with bulk_priority():
        return asyncio.create_task(batcher.embed_documents(texts))


async def test_is_an_embedder_and_an_idle_engine_starts_at_once() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    assert isinstance(batcher, Embedder)
    assert np.array_equal(await batcher.embed_documents(["a", "b"]), np.stack([vector("a"), vector("b")]))
    assert np.array_equal(await batcher.embed_query("q"), vector("q"))
    assert (await batcher.embed_documents([])).shape == (0, 8)
    assert engine.batches == [["a", "b"], ["query: q"]]
    await batcher.close()
    assert engine.closed


async def test_calls_that_arrive_while_the_engine_is_busy_share_the_next_batch() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    engine.gate.clear()
    first = start(batcher.embed_documents(["first"]))
    await settle()
    later = [start(batcher.embed_documents([f"text {i}", "shared"])) for i in range(5)]
    await settle()
    engine.gate.set()
    results = await asyncio.gather(first, *later)
    assert [len(batch) for batch in engine.batches] == [1, 10]
    for i, result in enumerate(results[1:]):
        assert np.array_equal(result, np.stack([vector(f"text {i}"), vector("shared")]))


async def test_a_large_call_is_cut_by_the_token_budget_and_joined_again() -> None:
    engine = FakeEngine()
    texts = [f"text number {i}" for i in range(100)]
    budget = 10 * estimate_tokens(texts[-1])
    batcher = MicroBatcher(engine, batch_tokens=budget)
    result = await batcher.embed_documents(texts)
    assert np.array_equal(result, np.stack([vector(text) for text in texts]))
    assert all(sum(map(estimate_tokens, batch)) <= budget for batch in engine.batches)
    assert batcher.counts.texts == 100
    assert batcher.waiting_texts == 0


async def test_queries_go_first_then_online_then_bulk() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine, batch_tokens=1)
    engine.gate.clear()
    calls = [start(batcher.embed_documents(["running"]))]
    await settle()
    calls.append(bulk(batcher, ["bulk 1", "bulk 2"]))
    await settle()
    calls.append(start(batcher.embed_documents(["online"])))
    await settle()
    calls.append(start(batcher.embed_query("search")))
    await settle()
    engine.gate.set()
    await asyncio.gather(*calls)
    assert engine.batches == [["running"], ["query: search"], ["online"], ["bulk 1"], ["bulk 2"]]


async def test_bulk_moves_on_under_endless_online_load() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine, batch_tokens=1)
    engine.gate.clear()
    online = [start(batcher.embed_documents([f"online {i}"])) for i in range(30)]
    job = bulk(batcher, ["bulk"])
    await settle()
    engine.gate.set()
    await asyncio.gather(job, *online)
    assert engine.batches.index(["bulk"]) < 10


async def test_an_error_fails_only_the_call_that_causes_it() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    engine.gate.clear()
    first = start(batcher.embed_documents(["first"]))
    await settle()
    good = start(batcher.embed_documents(["good"]))
    wrong = start(batcher.embed_documents(["bad"]))
    await settle()
    engine.gate.set()
    assert np.array_equal((await good)[0], vector("good"))
    with pytest.raises(RuntimeError, match="bad text"):
        await wrong
    await first
    assert np.array_equal((await batcher.embed_documents(["after"]))[0], vector("after"))


async def test_the_rest_of_a_failed_large_call_is_not_computed() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine, batch_tokens=1)
    with pytest.raises(RuntimeError):
        await batcher.embed_documents(["bad", *(f"text {i}" for i in range(50))])
    await settle()
    assert len(engine.batches) == 1
    assert batcher.waiting_texts == 0


async def test_a_cancelled_call_leaves_the_queue() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    engine.gate.clear()
    running = start(batcher.embed_documents(["running"]))
    await settle()
    waiting = start(batcher.embed_documents(["cancelled"]))
    kept = start(batcher.embed_documents(["kept"]))
    await settle()
    waiting.cancel()
    await settle()
    assert batcher.waiting_texts == 1
    engine.gate.set()
    await asyncio.gather(running, kept)
    assert waiting.cancelled()
    assert engine.batches == [["running"], ["kept"]]


async def test_a_cancelled_running_call_does_not_disturb_its_batch() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    engine.gate.clear()
    one, two = start(batcher.embed_documents(["one"])), start(batcher.embed_documents(["two"]))
    await settle()
    one.cancel()
    await settle()
    engine.gate.set()
    assert np.array_equal((await two)[0], vector("two"))


async def test_a_full_queue_refuses() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine, queue_texts=3)
    engine.gate.clear()
    running = start(batcher.embed_documents(["running"]))
    await settle()
    waiting = start(batcher.embed_documents(["1", "2"]))
    await settle()
    with pytest.raises(OverloadedError):
        await batcher.embed_documents(["3", "4"])
    assert batcher.counts.refused == 1
    engine.gate.set()
    await asyncio.gather(running, waiting)
    await batcher.embed_documents(["3", "4"])


async def test_closing_fails_what_waits_and_finishes_what_runs() -> None:
    engine = FakeEngine()
    batcher = MicroBatcher(engine)
    engine.gate.clear()
    running = start(batcher.embed_documents(["running"]))
    await settle()
    waiting = start(batcher.embed_documents(["waiting"]))
    await settle()
    closing = asyncio.create_task(batcher.close())
    await settle()
    engine.gate.set()
    await closing
    assert np.array_equal((await running)[0], vector("running"))
    with pytest.raises(ModelError):
        await waiting
    with pytest.raises(ModelError):
        await batcher.embed_documents(["late"])
