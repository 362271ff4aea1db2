from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primitives import errors
from primitives.clock import to_iso, to_ms
from primitives.hashing import stable_id
from storage.ids import assistant_id, derived_message_key, message_key, solo_group_id

parts = st.lists(st.one_of(st.none(), st.text(), st.integers()), max_size=4)


@given(parts, parts)
def test_ids_are_equal_only_for_equal_parts(left: list[object], right: list[object]) -> None:
    same = [None if p is None else str(p) for p in left] == [None if p is None else str(p) for p in right]
    assert (stable_id(*left) == stable_id(*right)) is same


def test_ids_are_the_same_for_ever() -> None:
    assert stable_id("a", None, 1) == "40cbc4ccc3e433f49251fd971d63e46e"
    assert solo_group_id("user-001") == "gen_solo_0e367b37f17f"  # the first half of EverCore's MD5 of the id
    assert assistant_id("user-001") == "gen_sdr_0e367b37f17f"


def test_keys_tell_times_places_and_occurrences_apart() -> None:
    base = {"sender_id": "s", "timestamp": 5, "place": 1, "text": "t", "occurrence": 0}
    keys = {
        derived_message_key("c", **base | change)  # type: ignore[arg-type]
        for change in ({}, {"timestamp": 6}, {"text": "u"}, {"occurrence": 1}, {"timestamp": None}, {"timestamp": None, "place": 2})
    }
    assert len(keys) == 6
    assert derived_message_key("c", **base | {"place": 9}) == derived_message_key("c", **base)  # type: ignore[arg-type]
    assert derived_message_key("c", **base, source="a") == derived_message_key("c", **base)  # type: ignore[arg-type]
    undated = base | {"timestamp": None}
    sources = {derived_message_key("c", **undated, source=name) for name in ("", "a", "b")}  # type: ignore[arg-type]
    assert len(sources) == 3
    assert message_key("c", "x") != message_key("d", "x")


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 1, 1), timezones=st.just(UTC)))
def test_times_round_trip(moment: datetime) -> None:
    milliseconds = to_ms(moment)
    assert datetime.fromisoformat(to_iso(milliseconds) or "") == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        to_ms(datetime(2024, 1, 1))
    assert to_iso(None) is None


def test_errors_travel_between_processes() -> None:
    fault = errors.ConflictError("here", hint="Try again.", details={"ids": [1]})
    copy = pickle.loads(pickle.dumps(fault))
    assert (type(copy), copy.message, copy.hint, copy.details) == (errors.ConflictError, "here", "Try again.", {"ids": [1]})
    assert str(copy) == "here Try again."


def test_one_tree_with_codes_of_its_own() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.EverCoreError)]
    assert len({k.code for k in kinds}) == len(kinds)
    assert all(400 <= k.status < 600 for k in kinds)
