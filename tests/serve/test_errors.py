"""Every error has one shape and the right status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from primitives.errors import StoreError
from serve.services import Services
from storage.ids import Owner
from storage.sqlite.backend import SqliteBackend
from tests.serve.calls import MEMORIES, add, assert_error, message, search
from tests.serve.conftest import MakeSettings, client_of
from tests.support.embedder import BagOfCharacters


@pytest.mark.parametrize("raw", [b"", b"{", b"not json", b'"\\ud800', b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000])
async def test_what_is_not_json_is_400(client: httpx.AsyncClient, raw: bytes) -> None:
    assert_error(await client.post(MEMORIES, content=raw), 400, "BAD_REQUEST")


@pytest.mark.parametrize("raw", [b"[]", b"1", b"null", b'"text"'])
async def test_json_of_another_kind_is_422(client: httpx.AsyncClient, raw: bytes) -> None:
    assert_error(await client.post(MEMORIES, content=raw), 422)


async def test_unknown_paths_and_methods(client: httpx.AsyncClient) -> None:
    assert_error(await client.get("/api/v1/nothing"), 404, "NOT_FOUND")
    assert_error(await client.get("/api/v2/memories"), 404)
    assert_error(await client.put(MEMORIES, json={}), 405, "METHOD_NOT_ALLOWED")
    assert_error(await client.get("/api/v1/memories/no-such-memory"), 404)
    assert_error(await client.get("/api/v1/groups/none"), 404)
    assert_error(await client.get("/api/v1/senders/none"), 404)
    assert_error(await client.get("/api/v1/settings"), 404)
    assert_error(await client.get("/api/v1/tasks/none"), 404)
    assert_error(await client.patch("/api/v1/groups/none", json={"name": "x"}), 404)
    for path in ("agent", "agent/flush"):
        fault = assert_error(await client.post(f"{MEMORIES}/{path}", json={}), 404, "NOT_FOUND")
        assert "later release" in fault["message"]
    assert "/agent" not in (await client.get("/openapi.json")).text


async def test_a_body_over_the_limit_is_413_also_without_a_length(
    make_settings: MakeSettings, backend: SqliteBackend
) -> None:
    services = Services(
        settings=make_settings(evercore_max_body_bytes=2_000), backend=backend, embedder=BagOfCharacters()
    )

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b" " * 100

    async with client_of(services) as client:
        body = {"user_id": "u1", "messages": [message(0, "x" * 3_000)]}
        assert_error(await client.post(MEMORIES, json=body), 413, "TOO_LARGE")
        assert_error(await client.post(MEMORIES, content=endless()), 413, "TOO_LARGE")
        assert (await add(client, "small"))["added"] == 1


async def test_too_many_requests_are_429_with_retry_after(make_settings: MakeSettings, backend: SqliteBackend) -> None:
    services = Services(
        settings=make_settings(evercore_rate_per_tenant=1.0), backend=backend, embedder=BagOfCharacters()
    )
    async with client_of(services) as client:
        answers = [await client.get("/api/v1/stats") for _ in range(4)]
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert_error(answers[-1], 429, "OVERLOADED")
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_a_held_conversation_is_409_with_retry_after(make_settings: MakeSettings, backend: SqliteBackend) -> None:
    services = Services(settings=make_settings(flush_wait_seconds=0.1), backend=backend, embedder=BagOfCharacters())
    async with client_of(services) as client:
        await add(client, "hello")
        stores = (await services.tools("default")).stores
        lease = await stores.leases.acquire(f"conversation:{Owner.user('u1').conversation_id('default', None)}")
        assert lease is not None
        answer = await client.post(f"{MEMORIES}/flush", json={"user_id": "u1"})
        assert_error(answer, 409, "CONFLICT")
        assert int(answer.headers["retry-after"]) >= 1
        await stores.leases.release(lease)
        assert (await client.post(f"{MEMORIES}/flush", json={"user_id": "u1"})).status_code == 200


class Broken(BagOfCharacters):
    """A model that fails while it is switched off."""

    off = True

    async def embed_query(self, text: str) -> Any:
        if self.off:
            raise StoreError("the model is gone")
        return await super().embed_query(text)


async def test_a_dead_model_degrades_search_and_readiness(make_settings: MakeSettings, backend: SqliteBackend) -> None:
    services = Services(settings=make_settings(), backend=backend, embedder=Broken())
    async with client_of(services) as client:
        await add(client, "the dentist is on Friday")
        found = await search(client, "dentist", method="hybrid")
        assert found["degraded"] == {"vector": "the model is gone"}
        assert found["raw_messages"]
        by_words = await search(client, "dentist", method="keyword")
        assert found["raw_messages"][0]["score"] == by_words["raw_messages"][0]["score"] > 0
        answer = await client.post(
            f"{MEMORIES}/search", json={"query": "x", "method": "vector", "filters": {"user_id": "u1"}}
        )
        assert_error(answer, 503)
        assert "retry-after" in answer.headers
        ready = await client.get("/health/ready")
        assert "embedder" in assert_error(ready, 503, "NOT_READY")["message"]
        assert ready.json()["details"]["parts"]["documents"] == "ok"
        assert (await client.get("/health/live")).status_code == 200


async def test_a_closed_store_is_503(services: Services, client: httpx.AsyncClient) -> None:
    await services.backend.close()
    fault = assert_error(await client.get("/health/ready"), 503)
    assert "documents" in fault["message"]


async def test_a_fault_of_the_code_is_a_clean_500(services: Services, client: httpx.AsyncClient) -> None:
    services.embedder = None  # type: ignore[assignment]
    answer = await client.post(
        f"{MEMORIES}/search", json={"query": "x", "filters": {"user_id": "u1"}, "method": "vector"}
    )
    assert "NoneType" not in assert_error(answer, 500, "INTERNAL_ERROR")["message"]


async def test_request_ids_are_kept_where_they_are_sane(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health/live", headers={"X-Request-ID": "abc-1"})).json()["request_id"] == "abc-1"
    assert (await client.get("/health/live", headers={"X-Request-ID": "a b<"})).json()["request_id"] != "a b<"


async def test_answers_do_not_mix_under_concurrency(client: httpx.AsyncClient) -> None:
    await asyncio.gather(*(add(client, f"word{n} alone", user=f"user{n}") for n in range(20)))
    found = await asyncio.gather(*(search(client, f"word{n}", filters={"user_id": f"user{n}"}) for n in range(20)))
    assert [len(one["raw_messages"]) for one in found] == [1] * 20
    assert [one["raw_messages"][0]["user_id"] for one in found] == [f"user{n}" for n in range(20)]
