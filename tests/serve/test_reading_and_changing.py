"""Listing, showing, changing and deleting memories; tasks, resources, stats."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from primitives.clock import now_ms
from serve.services import Services
from tests.serve.calls import MEMORIES, START, add, assert_error, flush, get, group_message, search


async def test_pages(client: httpx.AsyncClient) -> None:
    await add(client, *(f"number {n}" for n in range(7)))
    first = await get(client, "raw_message", page_size=3)
    last = await get(client, "raw_message", page_size=3, page=3)
    assert (first["total_count"], first["count"], last["count"]) == (7, 3, 1)
    assert [row["message_id"] for row in first["raw_messages"]] == ["m6", "m5", "m4"]
    oldest = await get(client, "raw_message", rank_order="asc", page_size=1)
    assert oldest["raw_messages"][0]["message_id"] == "m0"
    assert (await get(client, "raw_message", page=99))["raw_messages"] == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("episodic_memory", "episodes"),
        ("atomic_fact", "atomic_facts"),
        ("foresight", "foresights"),
        ("profile", "profiles"),
        ("raw_message", "raw_messages"),
        ("agent_case", "agent_cases"),
        ("agent_skill", "agent_skills"),
    ],
)
async def test_each_type_has_its_list(client: httpx.AsyncClient, kind: str, name: str) -> None:
    assert (await get(client, kind))[name] == []


@pytest.mark.parametrize(
    "change",
    [
        {"memory_type": "dreams"},
        {"page": 0},
        {"page_size": 0},
        {"page_size": 101},
        {"rank_by": "score"},
        {"rank_order": "up"},
        {"filters": {}},
        {"limit": 5},
    ],
)
async def test_what_get_refuses(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    body = {"memory_type": "raw_message", "filters": {"user_id": "u1"}} | change
    assert_error(await client.post(f"{MEMORIES}/get", json=body), 422)


async def test_a_profile_is_listed(client: httpx.AsyncClient) -> None:
    await add(client, "My name is Ann and I work as a nurse. I like strong coffee.", "nice to meet you")
    await flush(client, user_id="u1")
    profiles = (await get(client, "profile"))["profiles"]
    assert profiles
    assert profiles[0]["profile_data"]["explicit_info"] == profiles[0]["explicit_info"]
    assert all(item["sources"] == ["m0"] for item in profiles[0]["explicit_info"])


async def test_a_changed_memory_is_found_by_its_new_text(client: httpx.AsyncClient) -> None:
    await add(client, "the dentist is on Friday", "noted, the dentist on Friday")
    await flush(client, user_id="u1")
    episode = (await get(client, "episodic_memory"))["episodes"][0]
    path = f"{MEMORIES}/{episode['id']}"
    changed = await client.patch(path, json={"summary": "orthodontist visit", "tags": ["health"]})
    assert changed.status_code == 200, changed.text
    assert changed.json()["data"]["revision"] == episode["revision"] + 1
    assert (await client.get(path)).json()["data"]["summary"] == "orthodontist visit"
    found = await search(client, "orthodontist", memory_types=["episodic_memory"])
    assert [hit["id"] for hit in found["episodes"]] == [episode["id"]]
    by_tag = {"user_id": "u1", "tags": {"in": ["health"]}}
    assert (await get(client, "episodic_memory", filters=by_tag))["total_count"] == 1
    assert_error(await client.patch(path, json={"id": "other"}), 422)
    assert_error(await client.patch(path, json={}), 422)
    assert_error(await client.patch(path, json={"summary": 5}), 422)
    assert_error(await client.patch(f"{MEMORIES}/none", json={"summary": "x"}), 404)


async def test_a_change_must_be_text_that_can_be_stored(client: httpx.AsyncClient) -> None:
    await add(client, "the dentist is on Friday", "noted, the dentist on Friday")
    await flush(client, user_id="u1")
    fact = (await get(client, "atomic_fact"))["atomic_facts"][0]
    path = f"{MEMORIES}/{fact['id']}"
    for blank in ("", " \n"):
        assert_error(await client.patch(path, json={"atomic_fact": blank}), 422)
    cleaned = await client.patch(path, content='{"atomic_fact": "half \\ud800 face", "tags": ["\\ud800"]}')
    assert cleaned.status_code == 200, cleaned.text
    shown = (await client.get(path)).json()["data"]
    assert (shown["atomic_fact"], shown["tags"]) == ("half \ufffd face", ["\ufffd"])


@pytest.mark.parametrize("field", ["memory_id", "user_id", "group_id", "session_id", "sender_id"])
async def test_ids_of_a_deletion_are_checked(client: httpx.AsyncClient, field: str) -> None:
    owner = "" if field in ("memory_id", "user_id") else '"user_id": "u1", '
    for bad in ("\\ud800", "a\\u0000b", "x" * 600):
        raw = f'{{{owner}"{field}": "{bad}"}}'
        assert_error(await client.post(f"{MEMORIES}/delete", content=raw), 422)


async def test_deleting_one_message_takes_what_was_made_of_it(client: httpx.AsyncClient) -> None:
    await add(client, "my secret is peanut butter", "I keep it")
    await flush(client, user_id="u1")
    raw = (await search(client, "secret"))["raw_messages"][0]
    answer = await client.post(f"{MEMORIES}/delete", json={"memory_id": raw["id"]})
    assert (answer.status_code, answer.content) == (204, b"")
    kinds = ["episodic_memory", "atomic_fact", "raw_message", "profile"]
    found = await search(client, "secret peanut butter", method="hybrid", memory_types=kinds)
    assert "secret" not in str({name: found[name] for name in ("episodes", "atomic_facts", "raw_messages", "profiles")})
    assert_error(await client.get(f"{MEMORIES}/{raw['id']}"), 404)
    assert_error(await client.post(f"{MEMORIES}/delete", json={"memory_id": raw["id"]}), 404)
    again = await add(client, "my secret is peanut butter", "I keep it")
    assert (again["deleted"], again["duplicates"]) == (1, 1), "a deleted message stays away"


async def test_deleting_a_person_leaves_others_alone(client: httpx.AsyncClient) -> None:
    for user in ("u1", "u2"):
        await add(client, "red apple", "green pear", user=user)
        await flush(client, user_id=user)
    assert (await client.post(f"{MEMORIES}/delete", json={"user_id": "u1"})).status_code == 204
    assert (await client.post(f"{MEMORIES}/delete", json={"user_id": "u1"})).status_code == 204, "nothing left is fine"
    for kind in ("raw_message", "episodic_memory", "atomic_fact"):
        assert (await get(client, kind))["total_count"] == 0
        assert (await get(client, kind, filters={"user_id": "u2"}))["total_count"] > 0


async def test_the_three_states_of_a_deletion(client: httpx.AsyncClient) -> None:
    async def left() -> set[str | None]:
        return {row["session_id"] for row in (await get(client, "raw_message"))["raw_messages"]}

    await add(client, "with session", session="s1")
    await add(client, "another", session="s2")
    await add(client, "without")
    body = {"user_id": "u1", "group_id": "__all__", "session_id": "s1", "sender_id": "__all__"}
    assert (await client.post(f"{MEMORIES}/delete", json=body)).status_code == 204
    assert await left() == {"s2", None}
    assert (await client.post(f"{MEMORIES}/delete", json={"user_id": "u1", "session_id": None})).status_code == 204
    assert await left() == {"s2"}
    body = {"user_id": "u1", "sender_id": "nobody"}
    assert (await client.post(f"{MEMORIES}/delete", json=body)).status_code == 204
    assert await left() == {"s2"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"user_id": "__all__"},
        {"user_id": None},
        {"session_id": "s1"},
        {"memory_id": "m", "user_id": "u1"},
        {"user_id": "u1", "sesion_id": "s1"},
    ],
)
async def test_what_delete_refuses(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    await add(client, "stays")
    assert_error(await client.post(f"{MEMORIES}/delete", json=body), 422)
    assert (await get(client, "raw_message"))["total_count"] == 1


async def test_flushing_without_waiting_is_a_task(client: httpx.AsyncClient) -> None:
    await add(client, "hello there", "good day")
    answer = await client.post(f"{MEMORIES}/flush", json={"user_id": "u1", "wait": False})
    assert answer.status_code == 202
    path = f"/api/v1/tasks/{answer.json()['data']['task_id']}"
    for _ in range(100):
        task = (await client.get(path)).json()["data"]
        if task["status"] not in ("queued", "running"):
            break
        await asyncio.sleep(0.05)
    assert task["status"] == "succeeded"
    assert task["result"]["status"] == "extracted"


async def test_a_task_whose_process_died_runs_again(
    services: Services, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(client, "hello there", "good day")
    documents = (await services.tools("default")).stores.documents
    request = {"user_id": "u1", "session_id": None}
    await documents.put_resource("task", "t1", {"status": "running", "request": request})
    assert (await client.get("/api/v1/tasks/t1")).json()["data"]["status"] == "running"
    assert (await get(client, "episodic_memory"))["total_count"] == 0

    monkeypatch.setattr("serve.tasks.now_ms", lambda: now_ms() + 120_000)
    await client.get("/api/v1/tasks/t1")
    await services.tasks.drain(10)
    assert (await client.get("/api/v1/tasks/t1")).json()["data"]["status"] == "succeeded"
    assert (await get(client, "episodic_memory"))["total_count"] == 1


async def test_flushing_by_session_and_all(client: httpx.AsyncClient) -> None:
    await add(client, "first talk", session="s1")
    await add(client, "second talk", session="s2")
    assert (await flush(client, user_id="u1", session_id="none"))["status"] == "no_extraction"
    one = await flush(client, user_id="u1", session_id="s1")
    assert (one["status"], one["memcells"]) == ("extracted", 1)
    rest = await flush(client, user_id="u1")
    assert (rest["status"], rest["memcells"]) == ("extracted", 1)
    assert (await flush(client, user_id="u1"))["status"] == "no_extraction"
    assert "skipped" in rest


async def test_groups_senders_and_settings(client: httpx.AsyncClient) -> None:
    made = (await client.post("/api/v1/groups", json={"group_id": "g1", "name": "Hikers"})).json()["data"]
    assert set(made) == {"group_id", "name", "description", "created_at", "updated_at"}
    changed = (await client.patch("/api/v1/groups/g1", json={"description": "Sundays"})).json()["data"]
    assert (changed["name"], changed["description"]) == ("Hikers", "Sundays")
    assert_error(await client.patch("/api/v1/groups/g1", json={}), 422)
    assert_error(await client.patch("/api/v1/groups/g1", json={"colour": "red"}), 422)
    await client.post("/api/v1/senders", json={"sender_id": "ann", "name": "Ann"})
    assert (await client.patch("/api/v1/senders/ann", json={"name": "Anna"})).json()["data"]["name"] == "Anna"
    assert_error(await client.put("/api/v1/settings", json={"unknown": 1}), 422)
    custom = {"boundary": {"provider": "openai", "model": "x"}}
    await client.put("/api/v1/settings", json={"llm_custom_setting": custom})
    assert (await client.get("/api/v1/settings")).json()["data"]["llm_custom_setting"] == custom


async def test_stats_and_metrics(client: httpx.AsyncClient) -> None:
    await add(client, "hello there", "good day")
    stats = (await client.get("/api/v1/stats")).json()["data"]
    assert (stats["documents"]["raw_message"], stats["pending_messages"]) == (2, 2)
    await flush(client, user_id="u1")
    assert (await client.get("/api/v1/stats")).json()["data"]["pending_messages"] == 0
    await client.get("/api/v1/nothing")
    text = (await client.get("/metrics")).text
    assert 'evercore_http_requests_total{method="POST",route="/api/v1/memories",status="200"} 1.0' in text
    assert 'route="unmatched",status="404"' in text
    assert 'evercore_rows{memory_type="raw_message",tenant="default"} 2.0' in text
    assert 'evercore_messages_added_total{tenant="default"} 2.0' in text


async def test_the_group_view_shows_group_rows(client: httpx.AsyncClient) -> None:
    body = {"group_id": "g1", "messages": [group_message(0, "ann", "the lake was frozen")]}
    await client.post(f"{MEMORIES}/group", json=body)
    rows = (await get(client, "raw_message", filters={"group_id": "g1"}))["raw_messages"]
    assert [row["sender_id"] for row in rows] == ["ann"]
    assert rows[0]["timestamp"] == "2024-03-05T09:00:00.000Z"
    assert START == 1_709_629_200_000
