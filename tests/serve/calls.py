"""Short ways to call the API in tests."""

from __future__ import annotations

from typing import Any

import httpx

START = 1_709_629_200_000
MEMORIES = "/api/v1/memories"


def message(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    """Message `number` of a talk: the user's where even, the assistant's where odd."""
    role = "user" if number % 2 == 0 else "assistant"
    return {"message_id": f"m{number}", "role": role, "timestamp": START + number * 60_000, "content": content} | fields


def group_message(number: int, sender: str, content: Any, **fields: Any) -> dict[str, Any]:
    return message(number, content, role="user", sender_id=sender) | fields


async def add(client: httpx.AsyncClient, *texts: str, user: str = "u1", session: str | None = None) -> dict[str, Any]:
    body = {"user_id": user, "session_id": session, "messages": [message(n, text) for n, text in enumerate(texts)]}
    answer = await client.post(MEMORIES, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["data"])


async def flush(client: httpx.AsyncClient, **owner: Any) -> dict[str, Any]:
    path = f"{MEMORIES}/flush" if "user_id" in owner else f"{MEMORIES}/group/flush"
    answer = await client.post(path, json=owner)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["data"])


async def search(client: httpx.AsyncClient, query: str, **body: Any) -> dict[str, Any]:
    body = {"filters": {"user_id": "u1"}, "memory_types": ["raw_message"], "method": "keyword", "top_k": 10} | body
    answer = await client.post(f"{MEMORIES}/search", json={"query": query} | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["data"])


async def get(client: httpx.AsyncClient, memory_type: str, **body: Any) -> dict[str, Any]:
    body = {"memory_type": memory_type, "filters": {"user_id": "u1"}} | body
    answer = await client.post(f"{MEMORIES}/get", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["data"])


def assert_error(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The one shape of an error, with this status."""
    assert answer.status_code == status, answer.text
    body = dict(answer.json())
    assert set(body) == {"code", "message", "request_id", "timestamp", "path", "details"}
    assert body["message"]
    assert body["request_id"]
    assert code is None or body["code"] == code
    return body
