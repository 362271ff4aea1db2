"""The three calls of the mission's example, word for word, with the embedded default model."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from models.factory import build_embedder
from models.settings import ModelSettings
from serve.services import Services
from storage.sqlite.backend import SqliteBackend
from tests.serve.conftest import MakeSettings, client_of


@pytest.fixture
async def real(make_settings: MakeSettings, backend: SqliteBackend) -> AsyncIterator[httpx.AsyncClient]:
    embedder = build_embedder(ModelSettings())
    services = Services(settings=make_settings(), backend=backend, embedder=embedder)
    async with client_of(services) as opened:
        yield opened
    await embedder.close()


async def fetch(client: httpx.AsyncClient, path: str, body: object, *, content_type: str) -> dict:
    answer = await client.post(
        path, content=json.dumps(body, ensure_ascii=False), headers={"Content-Type": content_type}
    )
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"request_id", "data"}
    return dict(answer.json()["data"])


async def test_the_visit_to_the_museum_is_found(real: httpx.AsyncClient) -> None:
    message = {"role": "user", "content": "我今天去了上海博物馆", "timestamp": int(time.time() * 1000)}
    added = await fetch(
        real,
        "/api/v1/memories",
        {"user_id": "user-001", "session_id": "session-001", "messages": [message]},
        content_type="application/json",
    )
    assert (added["status"], added["message_count"]) == ("accumulated", 1)

    # fetch() labels a string body text/plain where nothing else is said.
    flushed = await fetch(
        real,
        "/api/v1/memories/flush",
        {"user_id": "user-001", "session_id": "session-001"},
        content_type="text/plain;charset=UTF-8",
    )
    assert flushed["status"] == "extracted"

    found = await fetch(
        real,
        "/api/v1/memories/search",
        {
            "query": "博物馆",
            "method": "hybrid",
            "memory_types": ["episodic_memory", "profile"],
            "filters": {"user_id": "user-001"},
            "top_k": 5,
        },
        content_type="text/plain;charset=UTF-8",
    )
    assert "上海博物馆" in found["episodes"][0]["episode"]
    assert found["degraded"] == {}


async def test_whom_i_like_is_found(real: httpx.AsyncClient) -> None:
    texts = ["我喜欢路小雨", "她弹钢琴弹得很好", "我今天去了上海博物馆", "晚饭吃了牛肉面"]
    messages = [
        {"role": "user", "content": text, "timestamp": 1_709_629_200_000 + n * 86_400_000}
        for n, text in enumerate(texts)
    ]
    await fetch(
        real, "/api/v1/memories", {"user_id": "user-001", "messages": messages}, content_type="application/json"
    )
    await fetch(real, "/api/v1/memories/flush", {"user_id": "user-001"}, content_type="text/plain")
    body = {"query": "我喜欢谁", "method": "hybrid", "filters": {"user_id": "user-001"}, "top_k": 3}
    kinds = ["episodic_memory", "atomic_fact", "raw_message"]
    found = await fetch(real, "/api/v1/memories/search", body | {"memory_types": kinds}, content_type="text/plain")
    assert found["raw_messages"][0]["content"] == "我喜欢路小雨"
    assert "我喜欢路小雨" in found["episodes"][0]["episode"]
