from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primitives.errors import InvalidFilterError
from storage.filters import matches, parse, scope_of, to_sql
from storage.ids import solo_group_id

NAMES = ["a", "b", "c"]


@dataclass
class Row:
    user_id: str | None
    group_id: str | None
    session_id: str | None
    timestamp: int | None
    memory_type: str
    sender_ids: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


rows = st.builds(
    Row,
    user_id=st.sampled_from([*NAMES, None]), group_id=st.sampled_from([*NAMES, None]),
    session_id=st.sampled_from([*NAMES, None]), timestamp=st.sampled_from([None, *range(10**12, 10**12 + 5)]),
    memory_type=st.sampled_from(NAMES), sender_ids=st.lists(st.sampled_from(NAMES), max_size=3),
    tags=st.lists(st.sampled_from(NAMES), max_size=2),
)  # fmt: skip
moments = st.integers(10**12, 10**12 + 5)
conditions = st.one_of(
    st.tuples(
        st.sampled_from(["user_id", "group_id", "session_id", "sender_id", "tags", "memory_type"]),
        st.one_of(
            st.sampled_from([*NAMES, None]),
            st.fixed_dictionaries({"in": st.lists(st.sampled_from(NAMES), min_size=1)}),
            st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte", "eq"]), st.sampled_from(NAMES), min_size=1),
        ),
    ),
    st.tuples(st.just("timestamp"), st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), moments, min_size=1)),
).map(lambda pair: {pair[0]: pair[1]})
filters = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"AND": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"OR": parts}),
        inner.map(lambda part: {"NOT": part}),
    ),
    max_leaves=8,
)


@given(filters, st.lists(rows, max_size=12))
def test_sql_means_what_python_means(raw: dict[str, Any], table: list[Row]) -> None:
    node = parse(raw)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE r (n, user_id, group_id, session_id, timestamp, memory_type, sender_ids, tags)")
    for number, row in enumerate(table):
        connection.execute(
            "INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, row.user_id, row.group_id, row.session_id, row.timestamp, row.memory_type,
             json.dumps(row.sender_ids), json.dumps(row.tags)),
        )  # fmt: skip
    where, values = to_sql(node)
    found = [n for (n,) in connection.execute(f"SELECT n FROM r WHERE {where} ORDER BY n", values)]
    connection.close()
    assert found == [n for n, row in enumerate(table) if matches(node, row)]


@given(filters, st.sampled_from(NAMES), rows)
def test_partitions_hold_every_row_that_matches(raw: dict[str, Any], user: str, row: Row) -> None:
    node = parse({"AND": [{"user_id": user}, raw]})
    scope = scope_of(node, ["a"])
    if row.user_id is None or not matches(node, row):
        return
    own = row.group_id == solo_group_id(row.user_id)
    partition = f"g:{row.group_id}" if own else f"u:{row.user_id}"
    assert partition in scope.partitions or row.group_id is None
    assert scope.where is None or matches(scope.where, row)


def test_whose_rows() -> None:
    solo = solo_group_id("u")
    assert scope_of(parse({"user_id": "u"}), ["x"]).partitions == (f"g:{solo}", "u:u")
    assert scope_of(parse({"group_id": "g"}), ["x"]).partitions == ("g:g",)
    both = scope_of(parse({"user_id": "u", "group_id": "g"}), ["x"])
    assert both.partitions == ("u:u",)
    assert both.where is not None
    assert scope_of(parse({"user_id": {"in": ["u", "v"]}}), ["x"]).partitions == (
        f"g:{solo}", "u:u", f"g:{solo_group_id('v')}", "u:v",
    )  # fmt: skip
    assert scope_of(parse({"AND": [{"user_id": "a"}, {"user_id": "b"}]}), ["x"]).partitions == ()


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"user": "u"}, "user"), ({"user_id": {"like": "u"}}, "like"), ({"user_id": 5}, "int"), ({"OR": []}, "OR"),
        ({"user_id": {}}, "empty"), ({"timestamp": "yesterday"}, "ISO"), ({"timestamp": {"gt": None}}, "gt"),
        ("user_id", "object"), ({"user_id": "\ud800"}, "surrogate"), ({"timestamp": 1e300}, "range"),
        ({"timestamp": float("nan")}, "range"), ({"NOT": {"NOT": "x"}}, "object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(raw: Any, named: str) -> None:
    with pytest.raises(InvalidFilterError, match=named):
        parse(raw)


@pytest.mark.parametrize(
    "raw", [{"session_id": "s"}, {"NOT": {"user_id": "u"}}, {}, {"OR": [{"user_id": "u"}, {"tags": "x"}]}]
)
def test_an_owner_is_needed(raw: Any) -> None:
    with pytest.raises(InvalidFilterError, match="no owner"):
        scope_of(parse(raw), ["x"])


def test_nesting_is_bounded() -> None:
    raw: dict[str, Any] = {"user_id": "u"}
    for _ in range(40):
        raw = {"NOT": raw}
    with pytest.raises(InvalidFilterError, match="deep"):
        parse(raw)


def test_times_in_three_forms() -> None:
    milliseconds = 1_709_629_200_000
    for value in (milliseconds, milliseconds // 1000, "2024-03-05T09:00:00Z", "2024-03-05T17:00:00+08:00"):
        assert parse({"timestamp": {"gte": value}}) == parse({"timestamp": {"gte": milliseconds}})


def test_long_lists_of_values() -> None:
    many = [f"s{i}" for i in range(5_000)]
    where, values = to_sql(parse({"sender_id": {"in": many}, "session_id": {"in": [*many, None]}}))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE r (session_id, sender_ids)")
    connection.execute("INSERT INTO r VALUES (NULL, '[\"s7\"]'), ('other', '[\"s7\"]'), ('s9', '[\"x\"]')")
    assert connection.execute(f"SELECT count(*) FROM r WHERE {where}", values).fetchone() == (1,)
    connection.close()
    with pytest.raises(InvalidFilterError, match="values"):
        parse({"user_id": {"in": ["u"] * 10_001}})
