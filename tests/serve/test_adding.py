"""Adding messages: EverCore V1's rules, idempotence, and whatever clients send."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest

from pipelines.intake import messages_of_request
from serve.services import Services
from storage.ids import assistant_id
from tests.serve.calls import MEMORIES, START, add, assert_error, flush, get, group_message, message, search


async def test_adding_again_is_counted_and_changes_nothing(client: httpx.AsyncClient) -> None:
    first = await add(client, "one two", "three four")
    again = await add(client, "one two", "three four")
    assert (first["status"], first["message_count"], first["duplicates"], first["pending"]) == ("accumulated", 2, 0, 2)
    assert (again["message_count"], again["duplicates"], again["pending"]) == (2, 2, 2)


async def test_an_id_with_other_content_is_a_conflict(client: httpx.AsyncClient) -> None:
    await add(client, "one", "two")
    body = {"user_id": "u1", "messages": [message(0, "changed"), message(7, "new")]}
    fault = assert_error(await client.post(MEMORIES, json=body), 409, "CONFLICT")
    assert fault["details"]["message_ids"] == ["m0"]
    assert (await get(client, "raw_message"))["total_count"] == 2, "nothing of a refused add is stored"


async def test_messages_at_the_same_moment_without_ids_stay_apart(client: httpx.AsyncClient) -> None:
    same = [{"role": "user", "timestamp": START, "content": text} for text in ("a b", "c d", "a b")]
    for expected in (0, 3):
        answer = await client.post(MEMORIES, json={"user_id": "u1", "messages": same})
        assert answer.json()["data"]["duplicates"] == expected
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert [row["content"] for row in rows] == ["a b", "c d", "a b"]
    assert all(row["message_id"].startswith("gen_msg_") for row in rows)


async def test_a_message_is_found_by_keyword_at_once(client: httpx.AsyncClient) -> None:
    await add(client, "the dentist is on Friday", "noted")
    assert [hit["message_id"] for hit in (await search(client, "dentist"))["raw_messages"]] == ["m0"]


async def test_who_speaks(client: httpx.AsyncClient) -> None:
    await add(client, "hello there", "good day")
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert [row["sender_id"] for row in rows] == ["u1", assistant_id("u1")]


async def test_content_may_be_a_list_of_items(client: httpx.AsyncClient) -> None:
    image = {"type": "image", "uri": "https://example.org/cat.png", "name": "cat.png"}
    items = [{"type": "text", "text": "look at"}, image, {"type": "text", "text": "my cat"}]
    body = {"user_id": "u1", "messages": [message(0, items), message(2, [image])]}
    assert (await client.post(MEMORIES, json=body)).status_code == 200
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert [row["content"] for row in rows] == ["look at\nmy cat", "[image: cat.png]"]
    assert [row["content_items"] for row in rows] == [[image], [image]]
    assert (await search(client, "cat.png"))["raw_messages"]


async def test_groups_keep_their_names(client: httpx.AsyncClient) -> None:
    body = {
        "group_id": "g1",
        "group_meta": {"name": "Hikers", "description": "on Sundays", "colour": "green"},
        "messages": [group_message(0, "ann", "to the lake", sender_name="Ann")],
    }
    assert (await client.post(f"{MEMORIES}/group", json=body)).status_code == 200
    assert (await client.get("/api/v1/groups/g1")).json()["data"]["name"] == "Hikers"
    assert (await client.get("/api/v1/senders/ann")).json()["data"]["name"] == "Ann"
    assert (await flush(client, group_id="g1"))["status"] == "extracted"


@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "gen_solo_1"},
        {"user_id": ""},
        {"user_id": "   "},
        {"user_id": 7},
        {"user_id": "u" * 600},
        {"user_id": "a\x00b"},
        {"session_id": "-1"},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [message(0, "")]},
        {"messages": [message(0, "   ")]},
        {"messages": [message(0, [])]},
        {"messages": [message(0, 5)]},
        {"messages": [message(0, "x", role="tool")]},
        {"messages": [message(0, "x", role="nobody")]},
        {"messages": [message(0, "x", timestamp=1_709_629_200)]},
        {"messages": [message(0, "x", timestamp="2024-03-05")]},
        {"messages": [message(0, "x", timestamp=True)]},
        {"messages": [message(0, "x", timestamp=10**18)]},
        {"messages": [message(0, "x", timestamp=None, message_id=None)]},
        {"messages": [message(0, "x", sender_id="somebody else")]},
        {"messages": [message(1, "x", sender_id="u1")]},
        {"messages": [message(n, "x") for n in range(501)]},
    ],
)
async def test_what_is_refused(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    body = {"user_id": "u1", "messages": [message(0, "fine")]} | change
    assert_error(await client.post(MEMORIES, json=body), 422)
    assert (await client.get("/api/v1/stats")).json()["data"]["documents"]["raw_message"] == 0


async def test_every_fault_is_listed(client: httpx.AsyncClient) -> None:
    body = {"user_id": "u1", "messages": [message(0, "x", role="nobody"), message(1, "y", timestamp=12)]}
    fault = assert_error(await client.post(MEMORIES, json=body), 422, "VALIDATION_ERROR")
    assert [one["field"] for one in fault["details"]["errors"]] == ["messages.0.role", "messages.1.timestamp"]
    assert "seconds" in fault["details"]["errors"][1]["message"]

    rules = {"user_id": "u1", "messages": [message(0, "x", sender_id="b"), message(1, "y", sender_id="u1")]}
    fault = assert_error(await client.post(MEMORIES, json=rules), 422)
    assert [one["field"] for one in fault["details"]["errors"]] == ["messages.0", "messages.1"]


async def test_a_group_message_needs_a_sender(client: httpx.AsyncClient) -> None:
    body = {"group_id": "g1", "messages": [message(0, "hello")]}
    assert "sender_id" in assert_error(await client.post(f"{MEMORIES}/group", json=body), 422)["message"]


async def test_500_messages_are_taken(client: httpx.AsyncClient) -> None:
    body = {"user_id": "u1", "messages": [message(n, f"number {n}") for n in range(500)]}
    assert (await client.post(MEMORIES, json=body)).json()["data"]["added"] == 500


async def test_lone_surrogates_and_nul_are_stored(client: httpx.AsyncClient) -> None:
    raw = '{"user_id": "u1", "messages": [{"role": "user", "timestamp": 1709629200000, "content": "half \\ud83d face"},'
    raw += '{"role": "user", "timestamp": 1709629260000, "sender_name": "\\ud83d", "content": "nul \\u0000 inside"}]}'
    answer = await client.post(MEMORIES, content=raw)
    assert answer.status_code == 200, answer.text
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert rows[0]["content"] == "half \ufffd face"
    assert "inside" in rows[1]["content"]
    assert (await flush(client, user_id="u1"))["status"] == "extracted"
    assert len((await search(client, "half face inside"))["raw_messages"]) == 2


async def test_lone_surrogates_in_ids_are_refused(client: httpx.AsyncClient) -> None:
    raw = '{"user_id": "u\\ud83d", "messages": [{"role": "user", "timestamp": 1709629200000, "content": "x"}]}'
    assert_error(await client.post(MEMORIES, content=raw), 422)
    assert_error(
        await client.post(f"{MEMORIES}/search", content='{"query": "x", "filters": {"user_id": "\\ud83d"}}'), 422
    )


async def test_a_text_of_5_mb_is_stored_whole(client: httpx.AsyncClient) -> None:
    text = "蓝色的天空 and blue water. " * (5 * 2**20 // 35)
    await add(client, text)
    row = (await get(client, "raw_message"))["raw_messages"][0]
    assert row["content"] == text


async def test_large_texts_are_prepared_off_the_event_loop(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def noting(*args: Any, **named: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return messages_of_request(*args, **named)

    monkeypatch.setattr("serve.api.memories_write.messages_of_request", noting)
    await add(client, "small")
    await add(client, "large " * 20_000, user="u2")
    assert threads == [True, False]


async def test_a_text_over_the_limit_is_413(services: Services, client: httpx.AsyncClient) -> None:
    limit = services.settings.pipeline.message_max_bytes
    body = {"user_id": "u1", "messages": [message(0, "x" * (limit + 1))]}
    assert str(limit) in assert_error(await client.post(MEMORIES, json=body), 413, "TOO_LARGE")["message"]


async def test_the_body_is_read_whatever_it_is_called(client: httpx.AsyncClient) -> None:
    raw = json.dumps({"user_id": "u1", "messages": [message(0, "hello")]})
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert (await client.post(MEMORIES, content=raw, headers=headers)).status_code == 200
