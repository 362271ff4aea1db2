"""GET /console and its files: what is served, under which headers, and nothing else. Also what the page asks of the API."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import serve
from serve.api.console import assets
from serve.services import Services
from storage.sqlite.backend import SqliteBackend
from tests.serve.calls import MEMORIES, add, assert_error, flush, get, group_message
from tests.serve.conftest import MakeSettings, client_of
from tests.support.embedder import BagOfCharacters

FOLDER = Path(serve.__file__).parent / "console"


async def test_the_page_and_all_its_files(client: httpx.AsyncClient) -> None:
    page = await client.get("/console")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    linked = set(re.findall(r'(?:src|href)="console/([^"]+)"', page.text))
    for file in FOLDER.glob("*.js"):
        linked |= set(re.findall(r'from "\./([^"]+)"', file.read_text(encoding="utf-8")))
    assert linked | {"index.html"} == {file.name for file in FOLDER.iterdir()}, "a file that nobody loads, or none"
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for name in linked:
        answer = await client.get(f"/console/{name}")
        assert (answer.status_code, answer.content) == (200, (FOLDER / name).read_bytes())
        assert answer.headers["content-type"] == types[name.rpartition(".")[2]]


async def test_nothing_foreign_runs_and_nothing_is_written_into_the_page(client: httpx.AsyncClient) -> None:
    page = await client.get("/console")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://", page.text)
    for name in assets():
        if name.endswith((".js", ".css")):
            text = (FOLDER / name).read_text(encoding="utf-8")
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://|@import", text
            )
            assert len(text) < 15_000


async def test_a_file_is_sent_once(client: httpx.AsyncClient) -> None:
    first = await client.get("/console/main.js")
    again = await client.get("/console/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    "path",
    [
        "nothing.js",
        "..%2f__init__.py",
        "%2e%2e%2fsettings.py",
        "..",
        "../settings.py",
        "a/b.js",
        "%2fetc%2fpasswd",
        "index.html%00",
    ],
)
async def test_there_is_nothing_else(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"/console/{path}")
    assert_error(answer, 404, "NOT_FOUND")
    assert b"import" not in answer.content


async def test_the_page_needs_no_key_and_says_nothing_of_a_tenant(
    make_settings: MakeSettings, backend: SqliteBackend
) -> None:
    settings = make_settings(evercore_api_keys={"key-of-a": "acme"})
    services = Services(settings=settings, backend=backend, embedder=BagOfCharacters())
    async with client_of(services) as client:
        page = await client.get("/console")
        assert page.status_code == 200
        assert "acme" not in page.text
        assert_error(await client.get("/api/v1/stats"), 401)
        assert_error(await client.get(f"{MEMORIES}/x/sources"), 401)


async def test_the_counters_of_every_store(client: httpx.AsyncClient) -> None:
    """The mission's table: what a send moves, and what a flush moves. Messages are found by keyword at once."""

    async def counters() -> tuple[int, ...]:
        stats = (await client.get("/api/v1/stats")).json()["data"]
        entries = {index["kind"]: index["entries"] for index in stats["indexes"]}
        documents = stats["documents"]
        return (
            stats["pending_messages"], documents["memcells"], documents["episodic_memory"], documents["atomic_fact"],
            entries["vector"], entries["keyword"],
        )  # fmt: skip

    assert await counters() == (0, 0, 0, 0, 0, 0)
    await add(client, "我喜欢路小雨")
    assert await counters() == (1, 0, 0, 0, 0, 1)
    await flush(client, user_id="u1")
    assert await counters() == (0, 1, 1, 1, 4, 4)  # message, episode, fact, profile
    episode = (await get(client, "episodic_memory"))["episodes"][0]
    assert (await client.post(f"{MEMORIES}/delete", json={"memory_id": episode["id"]})).status_code == 204
    assert (await counters())[4:] == (3, 3)


async def test_a_memory_at_its_sources(client: httpx.AsyncClient) -> None:
    await add(client, "我喜欢路小雨", "好的，记住了", "我今天去了上海博物馆，看到了青铜器展览")
    await flush(client, user_id="u1")
    fact = next(f for f in (await get(client, "atomic_fact"))["atomic_facts"] if "博物馆" in f["atomic_fact"])
    found = (await client.get(f"{MEMORIES}/{fact['id']}/sources")).json()["data"]
    (topic,) = found["topics"]
    assert found["memory"]["id"] == fact["id"]
    assert [(m["message_id"], m["is_source"]) for m in topic["messages"]] == [
        ("m0", False),
        ("m1", False),
        ("m2", True),
    ]
    assert (topic["memcell_id"], topic["state"], found["pending"]) == (fact["memcell_id"], "indexed", [])
    assert fact["parent_id"] in {memory["id"] for memory in topic["memories"]}
    message = topic["messages"][0]
    assert message["sender_id"] == "u1"
    own = (await client.get(f"{MEMORIES}/{message['id']}/sources")).json()["data"]
    assert [m["is_source"] for m in own["topics"][0]["messages"]] == [True, False, False]


async def test_a_message_in_no_topic_stands_alone(client: httpx.AsyncClient) -> None:
    body = {"group_id": "g", "messages": [group_message(0, "ann", "the boat leaves at nine")]}
    assert (await client.post(f"{MEMORIES}/group", json=body)).is_success
    (row,) = (await get(client, "raw_message", filters={"group_id": "g"}))["raw_messages"]
    found = (await client.get(f"{MEMORIES}/{row['id']}/sources")).json()["data"]
    assert (found["topics"], [m["content"] for m in found["pending"]]) == ([], ["the boat leaves at nine"])


async def test_a_profile_shows_only_its_own_evidence(client: httpx.AsyncClient) -> None:
    """Client ids repeat in other sessions: m0 of the second one is no source of what m0 of the first one says."""
    await add(client, "我喜欢路小雨", session="a")
    await add(client, "今天下雨了", "是的", "我喜欢爬山", session="b")
    await flush(client, user_id="u1")
    (profile,) = (await get(client, "profile"))["profiles"]
    found = (await client.get(f"{MEMORIES}/{profile['id']}/sources")).json()["data"]
    marked = {m["content"]: m["is_source"] for topic in found["topics"] for m in topic["messages"]}
    assert marked == {"我喜欢路小雨": True, "今天下雨了": False, "是的": False, "我喜欢爬山": True}


async def test_sources_of_nothing(client: httpx.AsyncClient) -> None:
    assert_error(await client.get(f"{MEMORIES}/nothing/sources"), 404, "NOT_FOUND")
