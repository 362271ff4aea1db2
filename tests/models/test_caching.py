"""The vector cache: one embedding a text, a bound in bytes, and no mixing of queries and documents."""

from __future__ import annotations

import numpy as np
import pytest

from models.caching import CachingEmbedder
from models.protocols import Embedder

from .fakes import FakeEngine, vector


async def test_a_text_is_embedded_once_within_a_call_and_across_calls() -> None:
    engine = FakeEngine()
    cache = CachingEmbedder(engine)
    assert isinstance(cache, Embedder)
    result = await cache.embed_documents(["a", "b", "a", "a"])
    assert np.array_equal(result, np.stack([vector(text) for text in "abaa"]))
    assert np.array_equal(await cache.embed_documents(["b", "c"]), np.stack([vector("b"), vector("c")]))
    assert engine.batches == [["a", "b"], ["c"]]
    assert (cache.texts_asked, cache.texts_embedded) == (6, 3)
    assert (await cache.embed_documents([])).shape == (0, 8)


async def test_queries_and_documents_are_kept_apart() -> None:
    engine = FakeEngine()
    cache = CachingEmbedder(engine)
    await cache.embed_documents(["a"])
    await cache.embed_query("a")
    await cache.embed_query("a")
    assert engine.batches == [["a"], ["query: a"]]


async def test_callers_cannot_change_what_is_kept() -> None:
    cache = CachingEmbedder(FakeEngine())
    (await cache.embed_query("a"))[:] = 0
    (await cache.embed_documents(["a"]))[:] = 0
    assert np.array_equal(await cache.embed_query("a"), vector("a"))
    assert np.array_equal((await cache.embed_documents(["a"]))[0], vector("a"))


async def test_the_least_recently_used_goes_first() -> None:
    engine = FakeEngine()
    cache = CachingEmbedder(engine, max_bytes=2 * (8 * 4 + 330))
    await cache.embed_documents(["a", "b"])
    await cache.embed_documents(["a"])
    await cache.embed_documents(["c"])
    assert len(cache) == 2
    await cache.embed_documents(["a", "c", "b"])
    assert engine.batches == [["a", "b"], ["c"], ["b"]]


async def test_zero_bytes_keep_nothing_but_still_deduplicate() -> None:
    engine = FakeEngine()
    cache = CachingEmbedder(engine, max_bytes=0)
    result = await cache.embed_documents(["a", "a"])
    assert np.array_equal(result[0], result[1])
    await cache.embed_documents(["a"])
    assert engine.batches == [["a"], ["a"]]


async def test_a_failure_is_not_kept_and_surrogates_are_keys_too() -> None:
    engine = FakeEngine()
    cache = CachingEmbedder(engine)
    with pytest.raises(RuntimeError):
        await cache.embed_documents(["bad"])
    assert len(cache) == 0
    with pytest.raises(UnicodeEncodeError):  # of the fake engine, not of the cache
        await cache.embed_documents(["\ud800"])
    await cache.close()
    assert engine.closed
