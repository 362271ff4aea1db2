"""Searching: methods, filters, types, scores, validity in time, and rows that are gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from serve.evidence import chance
from serve.found import OFFSET
from serve.query import make_query
from serve.retrieval import Retriever
from serve.services import Services
from storage.ids import Owner, solo_group_id
from storage.ports import IndexEntry
from storage.records import AtomicFact, MemoryType
from tests.serve.calls import MEMORIES, START, add, assert_error, flush, group_message, message, search

LISTS = ("episodes", "atomic_facts", "foresights", "profiles", "raw_messages")
TALK = (
    "I am allergic to peanuts, please remember that",
    "I will remember the peanut allergy",
    "Next week I travel to Lisbon with my sister",
    "Lisbon is lovely in spring, enjoy the trip",
)


@pytest.fixture
async def filled(client: httpx.AsyncClient) -> httpx.AsyncClient:
    await add(client, *TALK, session="s1")
    await flush(client, user_id="u1")
    body = {
        "group_id": "g1",
        "messages": [
            group_message(0, "ann", "the lake was frozen on Sunday"),
            group_message(1, "bob", "next time we take the frozen path"),
        ],
    }
    assert (await client.post(f"{MEMORIES}/group", json=body)).status_code == 200
    await flush(client, group_id="g1")
    return client


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
async def test_methods_find_the_message(filled: httpx.AsyncClient, method: str) -> None:
    found = await search(filled, "allergic to peanuts", method=method, memory_types=["raw_message"])
    assert found["raw_messages"][0]["message_id"] == "m0"
    assert found["degraded"] == (
        {"agentic": "no language model is configured; answered by hybrid"} if method == "agentic" else {}
    )
    assert found["query"]["method"] == method
    assert all(0 <= hit["score"] <= 1 for hit in found["raw_messages"])


async def test_all_lists_are_there_and_types_are_kept_apart(filled: httpx.AsyncClient) -> None:
    found = await search(filled, "Lisbon", memory_types=["episodic_memory", "atomic_fact", "raw_message"])
    assert all(isinstance(found[name], list) for name in LISTS)
    assert found["agent_memory"] == {"cases": [], "skills": []}
    for name, kind in (
        ("episodes", "episodic_memory"),
        ("atomic_facts", "atomic_fact"),
        ("raw_messages", "raw_message"),
    ):
        assert found[name]
        assert {hit["memory_type"] for hit in found[name]} == {kind}


async def test_a_hit_says_where_it_comes_from(filled: httpx.AsyncClient) -> None:
    found = await search(
        filled, "next week I travel with my sister", method="hybrid", memory_types=["episodic_memory", "raw_message"]
    )
    episode, raw = found["episodes"][0], found["raw_messages"][0]
    assert set(episode["source_message_ids"]) <= {"m0", "m1", "m2", "m3"}
    assert "m2" in episode["source_message_ids"]
    assert raw["source_message_ids"] == [raw["message_id"]] == ["m2"]
    assert raw["memcell_id"] == episode["memcell_id"]
    assert episode["timestamp"].endswith("Z")
    assert episode["time_known"] is True
    assert set(raw["scores"]) == {"keyword", "vector", "keyword_raw", "vector_raw", "rrf"}


async def test_episodes_are_found_by_their_facts(filled: httpx.AsyncClient, services: Services) -> None:
    stores = (await services.tools("default")).stores
    found = await search(filled, "allergic to peanuts", memory_types=["episodic_memory"])
    episode = found["episodes"][0]
    assert [fact["parent_id"] for fact in episode["atomic_facts"]] == [episode["id"]] * len(episode["atomic_facts"])
    assert episode["atomic_facts"]
    assert found["atomic_facts"] == [], "nobody asked for facts as hits of their own"
    # Without its own entry the episode is still found, through the fact.
    await (await stores.indexes.keyword()).delete([episode["id"]])
    again = await search(filled, "allergic to peanuts", memory_types=["episodic_memory"])
    assert [hit["id"] for hit in again["episodes"]] == [episode["id"]]


async def test_scores_of_all_types_are_one_order(filled: httpx.AsyncClient) -> None:
    types = ["episodic_memory", "atomic_fact", "raw_message"]
    found = await search(filled, "allergic to peanuts", method="hybrid", memory_types=types, explain=True)
    explained = found["explain"]["hits"]
    hits = [hit for name in ("episodes", "atomic_facts", "raw_messages") for hit in found[name]]
    assert hits
    for hit in hits:
        assert hit["score"] == pytest.approx(chance(sum(explained[hit["id"]]["evidence"].values()) - OFFSET), abs=1e-4)
    for name in ("episodes", "atomic_facts", "raw_messages"):
        scores = [hit["score"] for hit in found[name]]
        assert scores == sorted(scores, reverse=True)


async def test_reciprocal_rank_fusion_can_be_chosen(filled: httpx.AsyncClient, services: Services) -> None:
    stores = (await services.tools("default")).stores
    query = make_query(
        text="allergic to peanuts", filters={"user_id": "u1"}, memory_types=["raw_message"], top_k=10, explain=True
    )
    by_rank = await Retriever(stores=stores, embedder=services.embedder, fusion="rrf").search(query)
    by_evidence = await Retriever(stores=stores, embedder=services.embedder).search(query)
    hits = by_rank.hits[MemoryType.RAW_MESSAGE]
    assert hits[0].score == hits[0].scores["rrf"] == 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    shown_beside = {hit.row.id: hit.scores["rrf"] for hit in by_evidence.hits[MemoryType.RAW_MESSAGE]}
    assert shown_beside == {hit.row.id: hit.score for hit in hits}


async def test_what_a_person_said_is_found_by_the_persons_name(filled: httpx.AsyncClient) -> None:
    for method in ("keyword", "hybrid"):
        found = await search(filled, "what did Bob say", filters={"group_id": "g1"}, method=method)
        assert found["raw_messages"][0]["sender_id"] == "bob"
        assert found["raw_messages"][0]["content"] == "next time we take the frozen path"


async def test_the_time_in_a_query_lifts_memories_of_that_time(client: httpx.AsyncClient) -> None:
    for year, number in ((2021, 0), (2022, 1), (2023, 2)):
        moment = int(datetime(year, 5, 4, tzinfo=UTC).timestamp() * 1000)
        body = {"user_id": "u1", "messages": [message(number, "we met for dinner", role="user", timestamp=moment)]}
        assert (await client.post(MEMORIES, json=body)).status_code == 200
    await flush(client, user_id="u1")

    async def first(query: str, **body: Any) -> str:
        hits = (await search(client, query, method="hybrid", **body))["raw_messages"]
        assert len(hits) == 3, "a time in the query excludes nothing"
        return str(hits[0]["timestamp"])[:4]

    assert await first("dinner in May 2022") == "2022"
    assert await first("2021年5月 dinner") == "2021"
    as_of = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    assert await first("dinner last spring", as_of=as_of) == "2023"


async def test_filters_mean_what_they_say(filled: httpx.AsyncClient) -> None:
    async def ids(filters: dict[str, Any], query: str = "Lisbon peanut frozen remember") -> set[str]:
        return {hit["message_id"] for hit in (await search(filled, query, filters=filters))["raw_messages"]}

    assert await ids({"user_id": "u1"}) == {"m0", "m1", "m2", "m3"}
    assert await ids({"user_id": "u1", "session_id": "s1"}) == {"m0", "m1", "m2", "m3"}
    assert await ids({"user_id": "u1", "session_id": "s2"}) == set()
    assert await ids({"user_id": "u1", "timestamp": {"gte": START + 120_000}}) == {"m2", "m3"}
    assert await ids({"user_id": "u1", "timestamp": {"lt": START + 120_000}}) == {"m0", "m1"}
    assert await ids({"user_id": "u1", "sender_id": "u1"}) == {"m0", "m2"}
    assert await ids({"user_id": "u1", "NOT": {"sender_id": "u1"}}) == {"m1", "m3"}
    assert await ids({"group_id": solo_group_id("u1")}) == {"m0", "m1", "m2", "m3"}
    assert await ids({"group_id": "g1", "sender_id": {"in": ["bob", "eve"]}}, "frozen") == {"m1"}
    assert await ids({"user_id": "u2"}) == set()
    assert await ids({"user_id": "u1", "group_id": "g1"}) == set()
    either = {"OR": [{"user_id": "u1", "timestamp": {"gte": START + 120_000}}, {"group_id": "g1"}]}
    assert await ids(either) == {"m2", "m3", "m0", "m1"}


async def test_personal_rows_of_a_group(filled: httpx.AsyncClient) -> None:
    found = await search(filled, "frozen lake", filters={"user_id": "ann"}, memory_types=["episodic_memory"])
    assert {hit["user_id"] for hit in found["episodes"]} == {"ann"}
    found = await search(filled, "frozen lake", filters={"group_id": "g1"}, memory_types=["episodic_memory"])
    assert {hit["user_id"] for hit in found["episodes"]} == {None}


@pytest.mark.parametrize(
    "change",
    [
        {"query": ""},
        {"query": "  "},
        {"query": 5},
        {"method": "rrf"},
        {"memory_types": ["episodes"]},
        {"memory_types": []},
        {"memory_types": "episodic_memory"},
        {"top_k": 0},
        {"top_k": 101},
        {"top_k": -2},
        {"top_k": "5"},
        {"radius": 1.5},
        {"radius": -0.1},
        {"filters": {}},
        {"filters": None},
        {"filters": []},
        {"filters": {"user": "u1"}},
        {"filters": {"session_id": "s1"}},
        {"filters": {"user_id": {"like": "u"}}},
        {"filters": {"user_id": None}},
        {"filters": {"user_id": "u1", "OR": []}},
        {"as_of": "yesterday"},
        {"top_K": 5},
    ],
)
async def test_what_is_refused(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    body = {"query": "x", "filters": {"user_id": "u1"}} | change
    assert_error(await client.post(f"{MEMORIES}/search", json=body), 422)


async def test_unknown_types_name_the_known_ones(client: httpx.AsyncClient) -> None:
    body = {"query": "x", "filters": {"user_id": "u1"}, "memory_types": ["dreams"]}
    fault = assert_error(await client.post(f"{MEMORIES}/search", json=body), 422)
    assert "episodic_memory" in fault["details"]["known"]
    body["memory_types"] = ["agent_memory"]
    assert (await client.post(f"{MEMORIES}/search", json=body)).json()["data"]["agent_memory"] == {
        "cases": [],
        "skills": [],
    }


async def test_top_k_counts_per_type_and_all_is_truncated_at_1000(client: httpx.AsyncClient) -> None:
    for start in range(0, 1_200, 400):
        body = {"user_id": "u1", "messages": [message(n, f"apple number {n}") for n in range(start, start + 400)]}
        assert (await client.post(MEMORIES, json=body)).status_code == 200
    found = await search(client, "apple", top_k=-1)
    assert len(found["raw_messages"]) == 1_000
    assert found["truncated"] is True
    found = await search(client, "apple", top_k=7)
    assert len(found["raw_messages"]) == 7
    assert found["truncated"] is False


async def test_the_threshold_acts_where_it_is_asked_for(filled: httpx.AsyncClient) -> None:
    async def scores(**body: Any) -> list[float]:
        found = await search(filled, "allergic to peanuts", method="vector", **body)
        return [hit["scores"]["vector"] for hit in found["raw_messages"]]

    every = await scores(top_k=100)
    assert min(every) < 0.6
    assert await scores(top_k=-1) == [score for score in every if score >= 0.6]
    assert await scores(top_k=100, radius=0.3) == [score for score in every if score >= 0.3]


async def test_a_stale_index_row_is_never_shown(filled: httpx.AsyncClient, services: Services) -> None:
    stores = (await services.tools("default")).stores
    owner = Owner.user("u1")
    ghost = IndexEntry(
        id="ghost", revision=1, memory_type="raw_message", partition=owner.partition, user_id="u1", group_id=None,
        session_id=None, timestamp=None, sender_ids=(), tags=(), text="zebra crossing",
    )  # fmt: skip
    await (await stores.indexes.keyword()).upsert([ghost])
    assert (await search(filled, "zebra"))["raw_messages"] == []


async def test_a_row_of_somebody_else_is_never_shown(filled: httpx.AsyncClient, services: Services) -> None:
    """An index that has a row under the wrong owner does not give it away."""
    stores = (await services.tools("default")).stores
    mine = (await search(filled, "allergic"))["raw_messages"][0]
    wrong = IndexEntry(
        id=mine["id"], revision=9, memory_type="raw_message", partition=Owner.user("u2").partition, user_id="u2",
        group_id=None, session_id=None, timestamp=None, sender_ids=(), tags=(), text="allergic",
    )  # fmt: skip
    await (await stores.indexes.keyword()).upsert([wrong])
    assert (await search(filled, "allergic", filters={"user_id": "u2"}))["raw_messages"] == []


async def test_validity_and_fading(client: httpx.AsyncClient, services: Services) -> None:
    from serve.visibility import shown

    owner = Owner.user("u1")
    common = {
        "tenant_id": "default", "user_id": "u1", "group_id": owner.row_group_id, "partition": owner.partition,
        "timestamp": START, "memory_type": MemoryType.ATOMIC_FACT,
    }  # fmt: skip
    old = AtomicFact(
        id="old", atomic_fact="lives in Rome", embedding_text="lives in Rome", valid_from=START, valid_to=START + 100,
        superseded_by="new", **common,
    )  # fmt: skip
    faded = AtomicFact(id="faded", atomic_fact="likes tea", embedding_text="likes tea", strength=0.1, **common)
    here = frozenset([owner.partition])

    def visible(row: AtomicFact, **options: Any) -> bool:
        query = make_query(text="x", filters={"user_id": "u1"}, memory_types=["atomic_fact"], **options)
        return shown(row, query, partitions=here)

    assert not visible(old)
    assert visible(old, as_of=START + 50)
    assert not visible(old, as_of=START - 1)
    assert not visible(old, as_of=START + 100)
    assert not visible(faded)
    assert visible(faded, include_faded=True)


async def test_original_data(filled: httpx.AsyncClient) -> None:
    found = await search(filled, "Lisbon", memory_types=["episodic_memory"], include_original_data=True)
    episode = found["episodes"][0]
    original = found["original_data"]["episodes"][episode["id"]]
    assert [row["message_id"] for row in original["messages"]] == episode["source_message_ids"]


async def test_single_character_names_are_found(client: httpx.AsyncClient) -> None:
    await add(client, "昨天见到了岚", "她好吗")
    assert (await search(client, "岚"))["raw_messages"][0]["message_id"] == "m0"


@pytest.mark.parametrize(
    "query", ["\x00", "\ud83d", "\"unbalanced' (", "a" * 20_000, "🐕", "的", "NEAR(a b)", "col:x*"]
)
async def test_odd_queries_do_no_harm(filled: httpx.AsyncClient, query: str) -> None:
    import json

    body = {"query": query, "filters": {"user_id": "u1"}, "method": "hybrid", "top_k": 3}
    answer = await filled.post(f"{MEMORIES}/search", content=json.dumps(body))
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["degraded"] == {}
