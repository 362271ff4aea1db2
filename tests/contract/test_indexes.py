"""What every keyword and vector index does; run on each backend."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from primitives.errors import ModelError
from primitives.text import query_words
from storage.filters import matches, parse, scope_of
from storage.ids import Owner
from storage.ports import IndexEntry
from storage.sqlite.backend import SqliteBackend
from tests.support.messages import TENANT

KINDS = ["raw_message", "atomic_fact"]
EXAMPLES = itertools.count()
OWNERS = [Owner.user("u1"), Owner.user("u2"), Owner.group("g1")]


def entry(
    row_id: str, text: str = "", *, vector: Sequence[float] = (1, 0, 0, 0), revision: int = 1, owner: Owner = OWNERS[0],
    kind: str = "raw_message", **fields: Any,
) -> IndexEntry:  # fmt: skip
    raw = np.array(vector, np.float32)
    values: dict[str, Any] = {
        "session_id": None, "timestamp": None, "sender_ids": ["u1"], "tags": [],
    }  # fmt: skip
    return IndexEntry(
        id=row_id, revision=revision, memory_type=kind, partition=owner.partition, user_id=owner.user_id,
        group_id=owner.row_group_id, text=text, vector=raw / np.linalg.norm(raw), **(values | fields),
    )  # fmt: skip


def owned_by(raw: dict[str, Any], kinds: Sequence[str] = KINDS) -> Any:
    return scope_of(parse(raw), kinds)


async def indexes(backend: SqliteBackend, tenant: str = TENANT) -> tuple[Any, Any]:
    stores = backend.tenant(tenant)
    await stores.documents.add_generation("vector", model_id="m", dimension=4, first=True)
    return await stores.indexes.keyword(), await stores.indexes.vector()


async def test_keyword_finds_zh_and_en(backend: SqliteBackend) -> None:
    keyword, _ = await indexes(backend)
    await keyword.upsert(
        [
            entry("a", "我今天去了上海博物馆"),
            entry("b", "我喜欢路小雨"),
            entry("c", "The Café O'Neil opens at 5"),
            entry("d", "明"),
        ]
    )
    scope = owned_by({"user_id": "u1"})

    async def found(query: str) -> list[str]:
        return [hit.id for hit in await keyword.search(query_words(query), scope, limit=10)]

    assert await found("博物馆") == ["a"]
    assert (await found("我喜欢谁"))[0] == "b"
    assert await found("cafe oneil") == ["c"]
    assert await found("5") == ["c"]
    assert await found("明") == ["d"]
    assert await found('a AND b OR NEAR(x) "quoted* -') is not None  # nothing in a query is syntax
    assert await keyword.search([], scope, limit=5) == []


async def test_few_rows_are_ranked_sensibly_and_word_forms_meet(backend: SqliteBackend) -> None:
    """Every word stands in most rows here, where a weight that is cut off at 0 would rank by chance."""
    keyword, _ = await indexes(backend)
    texts = {"a": "we were camping by the lake", "b": "the lake was cold", "c": "lake and camp", "d": "a lake of camps"}
    await keyword.upsert([entry(row_id, text) for row_id, text in texts.items()])
    found = await keyword.search(["camped", "lake"], owned_by({"user_id": "u1"}), limit=9)
    assert [hit.id for hit in found][-1] == "b"
    assert {hit.id for hit in found} == set(texts)
    assert found[-1].score > 0.05
    only = await keyword.search(["lake"], owned_by({"user_id": "u1"}), limit=9)
    assert only[0].id == "c", "the shortest first"
    assert only[0].score < found[0].score, "a second word adds to the first"


async def test_similarities_of_rows_by_name(backend: SqliteBackend) -> None:
    _, vector = await indexes(backend)
    await vector.upsert([entry("a"), entry("b", vector=(1, 1, 0, 0)), entry("c"), entry("other", owner=OWNERS[1])])
    await vector.delete(["c"])
    query = np.array([1, 0, 0, 0], np.float32)
    found = await vector.similarities(query, ["a", "b", "c", "other", "nowhere"], [OWNERS[0].partition])
    assert found == {"a": pytest.approx(1.0), "b": pytest.approx(0.5**0.5)}
    assert await vector.similarities(query, [], [OWNERS[0].partition]) == {}
    with pytest.raises(ModelError, match="rebuild-index"):
        await vector.similarities(np.ones(3, np.float32), ["a"], [OWNERS[0].partition])


async def test_a_later_revision_wins_whatever_comes_last(backend: SqliteBackend) -> None:
    keyword, vector = await indexes(backend)
    for index in (keyword, vector):
        await index.upsert([entry("a", "new text", revision=3, vector=(0, 1, 0, 0))])
        await index.upsert([entry("a", "old text", revision=2)])
        assert await index.scan() == [("a", 3)]
    scope = owned_by({"user_id": "u1"})
    assert await keyword.search(["old"], scope, limit=5) == []
    (hit,) = await vector.search(np.array([0, 1, 0, 0], np.float32), scope, limit=5)
    assert hit.score == pytest.approx(1.0)
    await keyword.upsert([entry("a", "newest", revision=4)])
    assert [h.id for h in await keyword.search(["newest"], scope, limit=5)] == ["a"]
    assert await keyword.search(["new"], scope, limit=5) == []


async def test_deleted_rows_are_gone_for_searchers_that_knew_them(backend: SqliteBackend) -> None:
    keyword, vector = await indexes(backend)
    await keyword.upsert([entry("a", "one")])
    await vector.upsert([entry("a"), entry("b", vector=(1, 1, 0, 0))])
    scope, query = owned_by({"user_id": "u1"}), np.array([1, 0, 0, 0], np.float32)
    assert [h.id for h in await vector.search(query, scope, limit=5)] == ["a", "b"]
    for index in (keyword, vector):
        await index.delete(["a", "not there"])
    assert [h.id for h in await vector.search(query, scope, limit=5)] == ["b"]
    assert await keyword.search(["one"], scope, limit=5) == []
    await vector.upsert([entry("a", revision=1)])
    assert [h.id for h in await vector.search(query, scope, limit=5)] == ["a", "b"]


async def test_tenants_and_owners_do_not_meet(backend: SqliteBackend) -> None:
    keyword, vector = await indexes(backend)
    other_keyword, other_vector = await indexes(backend, "t2")
    rows = [entry(f"{i}", "same words", owner=owner) for i, owner in enumerate(OWNERS)]
    await keyword.upsert(rows)
    await vector.upsert(rows)
    query = np.array([1, 0, 0, 0], np.float32)
    for owner, wanted in (({"user_id": "u1"}, ["0"]), ({"user_id": "u2"}, ["1"]), ({"group_id": "g1"}, ["2"])):
        scope = owned_by(owner)
        assert [h.id for h in await keyword.search(["same"], scope, limit=9)] == wanted
        assert [h.id for h in await vector.search(query, scope, limit=9)] == wanted
        assert await other_keyword.search(["same"], scope, limit=9) == []
        assert await other_vector.search(query, scope, limit=9) == []
    await other_keyword.delete(["0"])
    assert await keyword.scan() == [("0", 1), ("1", 1), ("2", 1)]


async def test_wrong_dimensions_are_refused(backend: SqliteBackend) -> None:
    _, vector = await indexes(backend)
    with pytest.raises(ModelError, match="rebuild-index"):
        await vector.upsert([entry("a", vector=(1, 0))])
    with pytest.raises(ModelError, match="rebuild-index"):
        await vector.search(np.ones(3, np.float32), owned_by({"user_id": "u1"}), limit=1)


async def test_a_narrow_filter_finds_what_lies_deep(backend: SqliteBackend) -> None:
    keyword, vector = await indexes(backend)
    rows = [entry(f"{i:05d}", "word " * (1 + i % 7), vector=(1, i / 9000, 0, 0), session_id="s") for i in range(9_000)]
    rows += [
        entry(f"x{i}", "word and many other words that make it rank last", vector=(0, 1, 0, 0), session_id="rare")
        for i in range(3)
    ]
    await keyword.upsert(rows)
    await vector.upsert(rows)
    scope = owned_by({"user_id": "u1", "session_id": "rare"})
    assert [h.id for h in await keyword.search(["word"], scope, limit=5)] == ["x0", "x1", "x2"]
    assert [h.id for h in await vector.search(np.array([1, 0, 0, 0], np.float32), scope, limit=5)] == ["x0", "x1", "x2"]
    none = owned_by({"user_id": "u1", "session_id": "no such"})
    assert await keyword.search(["word"], none, limit=5) == []
    assert await vector.search(np.array([1, 0, 0, 0], np.float32), none, limit=5) == []


raw_filters = st.fixed_dictionaries(
    {"user_id": st.just("u1")},
    optional={
        "session_id": st.sampled_from(["s1", "s2", {"in": ["s1", "s3"]}]),
        "timestamp": st.dictionaries(st.sampled_from(["gt", "lte"]), st.integers(10**12, 10**12 + 9), min_size=1),
        "NOT": st.sampled_from([{"sender_id": "p"}, {"session_id": "s1"}]),
        "OR": st.just([{"sender_id": "q"}, {"timestamp": {"gte": 10**12 + 5}}]),
    },
)
some_entries = st.lists(
    st.tuples(
        st.sampled_from(["s1", "s2", "s3", None]), st.one_of(st.none(), st.integers(10**12, 10**12 + 9)),
        st.sampled_from(["p", "q"]), st.integers(0, 5), st.sampled_from(KINDS), st.sampled_from(OWNERS),
    ),
    max_size=25,
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw_filters, some_entries, st.integers(1, 8), st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
async def test_filters_agree_with_brute_force(
    backend: SqliteBackend, raw: dict[str, Any], spec: Any, limit: int, kinds: list[str]
) -> None:
    tenant = f"example {next(EXAMPLES)}"
    keyword, vector = await indexes(backend, tenant)
    rows = [
        entry(f"{i:02d}", "word " * (1 + weight), vector=(1, weight, i / 100, 0), session_id=session, timestamp=moment,
              sender_ids=[sender], kind=kind, owner=owner)
        for i, (session, moment, sender, weight, kind, owner) in enumerate(spec)
    ]  # fmt: skip
    await keyword.upsert(rows)
    await vector.upsert(rows)
    scope, query = scope_of(parse(raw), kinds), np.array([0.6, 0.8, 0, 0], np.float32)
    allowed = [row for row in rows if row.memory_type in kinds and matches(parse(raw), row)]
    found = await vector.search(query, scope, limit=limit)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    for kind in kinds:
        of_kind = sorted((float(row.vector @ query) for row in allowed if row.memory_type == kind), reverse=True)  # type: ignore[operator]
        found_of_kind = [round(hit.score, 5) for hit in found if hit.memory_type == kind]
        assert found_of_kind == [round(cosine, 5) for cosine in of_kind[:limit]]
    by_word = {hit.id for hit in await keyword.search(["word"], scope, limit=100)}
    assert by_word == {row.id for row in allowed}
