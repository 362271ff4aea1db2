"""Online and bulk give the same, and work beside each other on the same conversations."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from pipelines.flush import flush
from serve.api.application import create_app
from serve.configuration import Settings
from serve.services import open_services
from serve.settings import ServeSettings
from storage.ports import Row
from storage.records import Memory, Message
from tests.ray.support import backfill, content, differences, settings, stores

pytestmark = pytest.mark.ray

SAMPLES = Path(__file__).parents[2] / "samples"
GROUP, SOLO = SAMPLES / "group_hiking_zh.jsonl", SAMPLES / "solo_daniel_en.jsonl"


@asynccontextmanager
async def api(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    services = await open_services(Settings(serve=ServeSettings(_env_file=None), **settings(folder)))  # type: ignore[call-arg]
    transport = httpx.ASGITransport(app=create_app(services))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1995", timeout=120) as client:
            yield client
    finally:
        await services.close()


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def body_of(rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The path and body of one add that says what the file says."""
    messages = [
        {
            "message_id": row["message_id"], "sender_name": row["sender_name"], "role": row["role"], "content": row["text"],
            "timestamp": int(datetime.fromisoformat(row["time"]).timestamp() * 1000),
        } | ({"sender_id": row["sender"]} if row["role"] == "user" else {})
        for row in rows
    ]  # fmt: skip
    if "user_id" in rows[0]:
        return "/api/v1/memories", {"user_id": rows[0]["user_id"], "session_id": rows[0]["conversation"], "messages": messages}
    return "/api/v1/memories/group", {"group_id": rows[0]["conversation"], "messages": messages}


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def vectors(folder: Path) -> dict[str, Any]:
    opened = stores(folder)
    ids = [row.id async for row in opened.documents.visible_rows()]
    return {key: vector for key, (_, vector) in (await (await opened.indexes.vector()).vectors(ids)).items()}


@pytest.mark.parametrize("path", [GROUP, SOLO], ids=lambda path: path.stem)
def test_the_same_messages_give_the_same_memories(local_ray: None, tmp_path: Path, path: Path) -> None:
    async def online() -> None:
        async with api(tmp_path / "online") as client:
            route, body = body_of(rows_of(path))
            added = await post(client, route, body)
            assert added["message_count"] == len(body["messages"])
            flushed = await post(client, f"{route}/flush", {k: v for k, v in body.items() if k != "messages"})
            assert flushed["status"] == "extracted"

    asyncio.run(online())
    backfill(tmp_path / "bulk", path)
    assert content(tmp_path / "online") == content(tmp_path / "bulk")
    one, other = asyncio.run(vectors(tmp_path / "online")), asyncio.run(vectors(tmp_path / "bulk"))
    assert one.keys() == other.keys()
    assert max(float(np.abs(one[key] - other[key]).max()) for key in one) <= 1e-6


async def all_rows(folder: Path) -> list[Row]:
    return [row async for row in stores(folder).documents.visible_rows()]


def test_a_backfill_beside_four_clients_loses_and_doubles_nothing(local_ray: None, tmp_path: Path) -> None:
    files = [GROUP, SOLO]

    async def client_work(client: httpx.AsyncClient, number: int) -> None:
        for rows in map(rows_of, files):
            for start in range(number * 7, len(rows), 40):
                route, body = body_of(rows[start : start + 10])
                await post(client, route, body)
                owner = {k: v for k, v in body.items() if k != "messages"}
                answer = await client.post(f"{route}/flush", json=owner)
                assert answer.status_code in (200, 409), answer.text

    async def clients(done: asyncio.Event) -> None:
        async with api(tmp_path) as client:
            while not done.is_set():
                await asyncio.gather(*(client_work(client, number) for number in range(4)))

    async def both() -> None:
        done = asyncio.Event()
        working = asyncio.create_task(clients(done))
        await asyncio.sleep(0.5)
        report = await asyncio.to_thread(backfill, tmp_path, *files)
        done.set()
        await working
        assert report.to_dict()["dead_letters"] == 0

    asyncio.run(both())
    asyncio.run(flush_all(tmp_path))
    rows = asyncio.run(all_rows(tmp_path))
    messages = [row for row in rows if isinstance(row, Message)]
    wanted = [row["message_id"] + row["conversation"] for path in files for row in rows_of(path)]
    assert Counter(m.message_id + (m.session_id or m.group_id or "") for m in messages) == Counter(wanted)
    in_cells = Counter(s for row in rows if isinstance(row, Memory) and row.memory_type == "episodic_memory"
                       and (row.user_id is None or row.user_id == "daniel") for s in zip([row.memcell_id] * 99, row.source_message_ids, strict=False))  # fmt: skip
    assert in_cells.total() == len(messages)
    assert all(m.memcell_id for m in messages)
    report = differences(tmp_path)
    assert (report.differences, report.pending) == ([], 0)


async def flush_all(folder: Path) -> None:
    from pipelines.jobs.setup import Setup

    tools, backend = await Setup(tenant_id="default", **settings(folder)).tools()
    pending = await tools.stores.documents.pending_conversations()
    await flush(tools, [conversation.id for conversation in pending], wait_s=30)
    await tools.embedder.close()
    await backend.close()
