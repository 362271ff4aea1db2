"""Bad input, in one table: what is sent to the API or the command line, and the answer that says what is wrong.

`ANSWERS` has what is refused over HTTP, `COMMANDS` what the command line refuses. What is odd and yet right (large texts,
equal, missing, future and disordered times, half characters) has tests below them. Files with bad records are the
importers' business: tests/pipelines/importers.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest

from primitives.clock import now_ms
from serve.cli import main
from serve.services import Services
from storage.sqlite.backend import SqliteBackend
from tests.serve.calls import MEMORIES, START, add, assert_error, flush, get, group_message, message, search
from tests.serve.conftest import MakeSettings, client_of
from tests.support.embedder import BagOfCharacters

SEARCH, FLUSH, GET, DELETE = f"{MEMORIES}/search", f"{MEMORIES}/flush", f"{MEMORIES}/get", f"{MEMORIES}/delete"
WHOLE = json.dumps({"user_id": "u1", "messages": [message(0, "hello")]})


def adding(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"user_id": "u1", "messages": list(messages) or [message(0, "hello")]} | fields


def searching(**fields: Any) -> dict[str, Any]:
    return {"query": "x", "filters": {"user_id": "u1"}} | fields


@dataclass(frozen=True)
class Bad:
    """What is sent (bytes as they are, anything else as JSON) and what comes back; nothing may be stored by it."""

    name: str
    path: str
    sent: Any
    status: int
    code: str
    message: str
    """Words of the message."""
    hint: str = ""
    """Words of `details`: the hint, or the fault of a field."""
    method: str = "POST"


ANSWERS = (
    # The body is no JSON object
    Bad("empty body", MEMORIES, b"", 400, "BAD_REQUEST", "the body is empty", "Send a JSON object"),
    Bad("blank body", MEMORIES, b" \n", 400, "BAD_REQUEST", "the body is empty", "Send a JSON object"),
    Bad("truncated JSON", MEMORIES, WHOLE[:-3].encode(), 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("truncated in a character", MEMORIES, '{"user_id": "安'.encode()[:-1], 400, "BAD_REQUEST", "is not JSON"),
    Bad("truncated in an escape", MEMORIES, b'{"user_id": "\\ud8', 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("form data", MEMORIES, b"user_id=u1&content=hello", 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("XML", MEMORIES, b"<message>hello</message>", 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("JSON lines", MEMORIES, b'{"user_id": "u1"}\n{"user_id": "u2"}', 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("gzip", MEMORIES, b"\x1f\x8b\x08\x00\x00", 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("Latin-1", MEMORIES, '{"user_id": "é"}'.encode("latin-1"), 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("not a number", SEARCH, b'{"query": "x", "radius": NaN}', 400, "BAD_REQUEST", "the body is not JSON"),
    Bad("a list", MEMORIES, [], 422, "VALIDATION_ERROR", "body: "),
    Bad("null", MEMORIES, None, 422, "VALIDATION_ERROR", "body: "),
    # Fields
    Bad("no messages", MEMORIES, {"user_id": "u1"}, 422, "VALIDATION_ERROR", "messages: Field required"),
    Bad("no owner", MEMORIES, {"messages": [message(0, "x")]}, 422, "VALIDATION_ERROR", "user_id: Field required"),
    Bad("an id that is a number", MEMORIES, adding(user_id=7), 422, "VALIDATION_ERROR", "user_id: "),
    Bad("a blank id", MEMORIES, adding(user_id=" "), 422, "VALIDATION_ERROR", "the id is blank"),
    Bad("a derived id", MEMORIES, adding(user_id="gen_solo_1"), 422, "VALIDATION_ERROR", "are made by the server"),
    Bad("half a character in an id", MEMORIES, WHOLE.replace("u1", "u\\ud800").encode(), 422, "VALIDATION_ERROR",
        "lone surrogate"),
    Bad("half a character in a filter", SEARCH, b'{"query": "x", "filters": {"user_id": "\\ud800"}}', 422,
        "INVALID_FILTER", "lone surrogate"),
    Bad("501 messages", MEMORIES, adding(*(message(n, "x") for n in range(501))), 422, "VALIDATION_ERROR",
        "messages: List should have at most 500 items"),
    Bad("a message over its limit", MEMORIES, adding(message(0, "x" * (8 * 2**20 + 1))), 413, "TOO_LARGE",
        "text over 8388608 bytes"),
    Bad("no content", MEMORIES, adding(message(0, " ")), 422, "INVALID_INPUT", "messages.0 has no content"),
    Bad("an unknown role", MEMORIES, adding(message(0, "x", role="tool")), 422, "VALIDATION_ERROR", "messages.0.role"),
    # Times
    Bad("seconds", MEMORIES, adding(message(0, "x", timestamp=1_709_629_200)), 422, "VALIDATION_ERROR",
        "looks like seconds; timestamps are milliseconds"),
    Bad("a time as text", MEMORIES, adding(message(0, "x", timestamp="2024-03-05")), 422, "VALIDATION_ERROR",
        "messages.0.timestamp: "),
    Bad("after the year 9999", MEMORIES, adding(message(0, "x", timestamp=10**18)), 422, "VALIDATION_ERROR",
        "is not a time in milliseconds"),
    Bad("neither time nor id", MEMORIES, adding(message(0, "x", timestamp=None, message_id=None)), 422,
        "INVALID_INPUT", "neither message_id nor timestamp"),
    # Searching, listing, flushing, deleting
    Bad("an unknown filter field", SEARCH, searching(filters={"user": "u1"}), 422, "INVALID_FILTER",
        "unknown filter field 'user'", "Known: user_id, group_id, session_id"),
    Bad("an unknown operator", SEARCH, searching(filters={"user_id": {"like": "u"}}), 422, "INVALID_FILTER",
        "unknown operator 'like'", "Operators: eq, in"),
    Bad("an unknown filter field in a list", GET, {"memory_type": "episodic_memory", "filters": {
        "user_id": "u1", "OR": [{"color": "red"}]}}, 422, "INVALID_FILTER", "unknown filter field 'color'", "Known: "),
    Bad("no owner in the filters", SEARCH, searching(filters={"session_id": "s"}), 422, "INVALID_FILTER",
        "filters name no owner", "user_id"),
    Bad("an unknown method", SEARCH, searching(method="magic"), 422, "VALIDATION_ERROR", "method: ", "agentic"),
    Bad("an unknown type", SEARCH, searching(memory_types=["dreams"]), 422, "INVALID_INPUT", "dreams",
        "episodic_memory"),
    Bad("a misspelt field", SEARCH, searching(top_K=5), 422, "VALIDATION_ERROR", "top_K: Extra inputs"),
    Bad("no query", SEARCH, {"filters": {"user_id": "u1"}}, 422, "VALIDATION_ERROR", "query: Field required"),
    Bad("a page below the first", GET, {"memory_type": "raw_message", "filters": {"user_id": "u1"}, "page": 0}, 422,
        "VALIDATION_ERROR", "page: "),
    Bad("a flush of nobody", FLUSH, {}, 422, "VALIDATION_ERROR", "user_id: Field required"),
    Bad("a deletion of everybody", DELETE, {"user_id": "__all__"}, 422, "VALIDATION_ERROR", "give memory_id, or"),
    Bad("a deletion both ways", DELETE, {"memory_id": "m", "user_id": "u1"}, 422, "VALIDATION_ERROR", "not both"),
    Bad("an unknown memory", f"{MEMORIES}/none", {"summary": "x"}, 404, "NOT_FOUND", "none", method="PATCH"),
    Bad("a deletion of an unknown memory", DELETE, {"memory_id": "none"}, 404, "NOT_FOUND", "none"),
    Bad("an unknown setting", "/api/v1/settings", {"colour": "red"}, 422, "VALIDATION_ERROR", "colour: Extra inputs",
        method="PUT"),
    Bad("another method", MEMORIES, {}, 405, "METHOD_NOT_ALLOWED", "PUT is not allowed here", method="PUT"),
    Bad("another path", "/api/v1/memory", {}, 404, "NOT_FOUND", "nothing is at /api/v1/memory"),
)  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
async def test_what_is_refused(client: httpx.AsyncClient, case: Bad) -> None:
    content = case.sent if isinstance(case.sent, bytes) else json.dumps(case.sent)
    fault = assert_error(await client.request(case.method, case.path, content=content), case.status, case.code)
    assert case.message in fault["message"]
    assert case.hint in json.dumps(fault["details"], ensure_ascii=False)
    assert (await client.get("/api/v1/stats")).json()["data"]["documents"]["raw_message"] == 0


COMMANDS = (
    # arguments, environment, exit code, words that standard error has
    (("status",), {"EVERCORE_PROT": "1"}, 1, ("unknown setting EVERCORE_PROT", "Did you mean EVERCORE_PORT?")),
    (("status",), {"EVERCORE_PORT": "none"}, 1, ("setting EVERCORE_PORT is not usable", "evercore settings")),
    (("up",), {"EVERCORE_HOST": "0.0.0.0"}, 1, ("no API keys", "EVERCORE_API_KEYS")),
    (("up", "--prot", "2000"), {}, 2, ("No such option", "--prot")),
    (("search",), {}, 2, ("Missing argument",)),
    (("search", "x"), {}, 1, ("whose", "--user")),
    (("search", "x", "--user", "u1", "--method", "magic"), {}, 1, ("magic", "keyword")),
    (("search", "x", "--user", "u1", "--top-k", "0"), {}, 1, ("top_k",)),
    (("flush", "--user", "u1", "--group", "g1"), {}, 1, ("both --user and --group",)),
    (("backfill", "nowhere.jsonl"), {}, 1, ("nowhere.jsonl",)),
    (("backfill", "chat.jsonl", "--format", "msn"), {}, 1, ("msn", "jsonl")),
    (("backfill", "chat.jsonl", "--since", "yesterday"), {}, 1, ("--since", "ISO 8601", "2024-03-05")),
    (("backfill", "chat.jsonl", "--limit", "0"), {}, 2, ("--limit",)),
    (("backfill", "chat.jsonl", "--fields", "colour=c"), {}, 1, ("colour",)),
    (("backfill", "chat.jsonl"), {"RAY_ADDRESS": "http://127.0.0.1:8265"}, 1, ("RAY_ADDRESS", "ray job submit")),
    (("rebuild-index",), {"RAY_ADDRESS": "127.0.0.1:6379", "RAY_AUTH_MODE": ""}, 1, ("RAY_AUTH_MODE", "token")),
    (("rebuild-index", "--index", "images"), {}, 2, ("images", "keyword")),
    (("dream",), {}, 2, ("No such command", "dream")),
)  # fmt: skip


@pytest.mark.parametrize(("arguments", "environment", "code", "words"), COMMANDS, ids=lambda value: str(value)[:60])
def test_what_a_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], environment: dict[str, str], code: int, words: tuple[str, ...],
) -> None:  # fmt: skip
    (tmp_path / "chat.jsonl").write_text('{"conversation": "c", "sender": "ann", "text": "hello"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["evercore", *arguments])
    ours = {"EVERCORE_DATA_DIR": str(tmp_path / "data"), "COLUMNS": "200"} | environment
    # The whole environment is put back, since commands prepare it for the Ray that they would start.
    with mock.patch.dict(os.environ, ours), pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr().err
    assert ended.value.code == code, shown
    assert all(word in shown for word in words), shown
    assert "Traceback" not in shown


# ---------------------------------------------------------------- odd and yet right


async def test_half_characters_in_texts(client: httpx.AsyncClient) -> None:
    raw = json.dumps(adding(message(0, "half \ud83d face", sender_name="\udc00"), message(1, "whole 😂")))
    assert "\\ud83d" in raw
    assert (await client.post(MEMORIES, content=raw)).status_code == 200
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert [row["content"] for row in rows] == ["half \ufffd face", "whole 😂"]
    found = await client.post(SEARCH, content=json.dumps(searching(query="half \ud83d face", memory_types=["raw_message"])))
    assert found.json()["data"]["raw_messages"][0]["message_id"] == "m0"


class ShortSighted(BagOfCharacters):
    """Sees the beginning of a text only, as real engines do."""

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        return await super().embed_documents([text[:2_000] for text in texts])


async def test_a_message_of_5_mb(services: Services, client: httpx.AsyncClient) -> None:
    services.embedder = ShortSighted()
    services._tools.clear()
    text = "The river was high. 河水很高。" * (5 * 2**20 // 35)
    assert len(text.encode()) > 4.9 * 2**20
    await add(client, text, "noted")
    assert (await flush(client, user_id="u1"))["status"] == "extracted"
    rows = (await get(client, "raw_message", rank_order="asc"))["raw_messages"]
    assert rows[0]["content"] == text
    assert (await search(client, "river high", method="hybrid"))["raw_messages"][0]["message_id"] == "m0"


TIMES = {
    "equal": [START] * 6,
    "none": [None] * 6,
    "in the future": [now_ms() + 10 * 365 * 86_400_000 + n for n in range(6)],
    "out of order": [START + 60_000 * n for n in (3, 0, 5, 1, 4, 2)],
    "before 1970": [-1_000_000_000_000 + n for n in range(6)],
    "some missing": [START, None, START + 60_000, None, None, START + 120_000],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
async def test_odd_times(client: httpx.AsyncClient, times: list[int | None]) -> None:
    """Everything is kept with the time it has, told apart, found and built; a second time adds nothing."""
    talk = [message(n, f"walnut number {n} of the day", timestamp=moment) for n, moment in enumerate(times)]
    assert (await client.post(MEMORIES, json=adding(*talk))).json()["data"]["added"] == 6
    again = (await client.post(MEMORIES, json=adding(*talk))).json()["data"]
    assert (again["added"], again["duplicates"]) == (0, 6)
    assert (await flush(client, user_id="u1"))["status"] == "extracted"
    rows = (await get(client, "raw_message", page_size=100))["raw_messages"]
    assert {row["message_id"]: row["time_known"] for row in rows} == {f"m{n}": t is not None for n, t in enumerate(times)}
    assert all(row["memcell_id"] for row in rows)
    assert len((await search(client, "walnut"))["raw_messages"]) == 6
    sources = [one for row in (await get(client, "episodic_memory", rank_order="asc"))["episodes"] for one in row["source_message_ids"]]
    assert sorted(sources) == [f"m{n}" for n in range(6)]
    if None not in times and len(set(times)) > 1:
        assert sources == [f"m{n}" for n in sorted(range(6), key=lambda n: times[n] or 0)], "in the order of their times"


# ---------------------------------------------------------------- ids of somebody else


@pytest.fixture
async def two_tenants(
    make_settings: MakeSettings, backend: SqliteBackend
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    settings = make_settings(evercore_api_keys={"key-of-a": "a", "key-of-b": "b"})
    services = Services(settings=settings, backend=backend, embedder=BagOfCharacters())
    a, b = ({"X-API-Key": key} for key in ("key-of-a", "key-of-b"))
    async with client_of(services, headers=a) as of_a, client_of(services, headers=b) as of_b:
        yield of_a, of_b
    await services.tasks.drain(5)


async def test_ids_of_another_tenant_do_not_exist(two_tenants: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    of_a, of_b = two_tenants
    await add(of_a, "the safe is behind the mirror", "I keep that")
    await flush(of_a, user_id="u1")
    task = (await of_a.post(FLUSH, json={"user_id": "u1", "wait": False})).json()["data"]["task_id"]
    await of_a.post("/api/v1/groups", json={"group_id": "g1", "name": "Family"})
    rows = [(await get(of_a, kind))[name][0] for kind, name in (
        ("raw_message", "raw_messages"), ("episodic_memory", "episodes"))]  # fmt: skip
    for row in rows:
        path = f"{MEMORIES}/{row['id']}"
        assert (await of_a.get(path)).status_code == 200
        for answer in (
            await of_b.get(path),
            await of_b.patch(path, json={"summary": "mine"}),
            await of_b.post(DELETE, json={"memory_id": row["id"]}),
        ):
            fault = assert_error(answer, 404, "NOT_FOUND")
            assert "mirror" not in str(fault)
    for path in (f"/api/v1/tasks/{task}", "/api/v1/groups/g1"):
        assert_error(await of_b.get(path), 404, "NOT_FOUND")
    assert (await search(of_b, "safe mirror", method="hybrid"))["raw_messages"] == []
    assert (await flush(of_b, user_id="u1"))["status"] == "no_extraction"
    assert (await of_b.post(DELETE, json={"user_id": "u1"})).status_code == 204
    assert [(await of_a.get(f"{MEMORIES}/{row['id']}")).json()["data"] for row in rows] == rows, "a's rows are untouched"


async def test_another_owners_rows_are_not_found_nor_deleted(client: httpx.AsyncClient) -> None:
    await add(client, "the safe is behind the mirror", user="u1")
    await add(client, "the ladder is in the cellar", user="u2")
    theirs = {"user_id": "u2"}
    found = await search(client, "safe mirror ladder", method="hybrid", filters=theirs)
    assert {row["user_id"] for row in found["raw_messages"]} == {"u2"}
    row = (await get(client, "raw_message"))["raw_messages"][0]
    both = assert_error(await client.post(DELETE, json={"memory_id": row["id"], **theirs}), 422)
    assert "not both" in both["message"], "an id and an owner that may not fit are not guessed at"
    assert (await client.post(DELETE, json=theirs)).status_code == 204
    assert (await get(client, "raw_message"))["total_count"] == 1
    assert (await get(client, "raw_message", filters=theirs))["total_count"] == 0


async def test_a_message_id_that_another_owner_used_is_another_message(client: httpx.AsyncClient) -> None:
    for user in ("u1", "u2"):
        assert (await add(client, f"said by {user}", user=user))["added"] == 1
    assert (await add(client, "in a session", session="s1"))["added"] == 1
    body = {"group_id": "g1", "messages": [group_message(0, "ann", "said in a group")]}
    assert (await client.post(f"{MEMORIES}/group", json=body)).json()["data"]["added"] == 1
    seen = []
    for filters in ({"user_id": "u1"}, {"user_id": "u2"}, {"group_id": "g1"}):
        seen += (await get(client, "raw_message", filters=filters))["raw_messages"]
    assert {row["message_id"] for row in seen} == {"m0"}
    assert len({row["id"] for row in seen}) == 4
    assert {row["content"] for row in seen} == {"said by u1", "said by u2", "in a session", "said in a group"}
    fault = assert_error(await client.post(MEMORIES, json=adding(message(0, "something else"))), 409, "CONFLICT")
    assert fault["details"]["message_ids"] == ["m0"]
