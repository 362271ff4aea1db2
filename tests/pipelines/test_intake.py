"""From what was read to messages: owners, keys, places and order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.incoming import Incoming
from pipelines.intake import Ownership, SourceOrder, messages_of_request, refusal, to_messages
from primitives.errors import InvalidInputError, TooLargeError
from storage.ids import Owner, assistant_id, solo_group_id
from storage.records import Message

T0 = 1_709_620_800_000
GROUPS = Ownership(rule="group")


def imported(records: Sequence[Incoming], ownership: Ownership = GROUPS, **file: Any) -> list[Message]:
    order = SourceOrder()
    return to_messages([order.place(r) for r in records], tenant_id="t", ownership=ownership, imported_at=1, **file)


def said(text: str, *, conversation: str = "c", sender: str = "Ann", **fields: object) -> Incoming:
    return Incoming(conversation=conversation, sender_id=sender, text=text, **fields)  # type: ignore[arg-type]


records = st.lists(
    st.builds(
        Incoming, conversation=st.sampled_from("ab"), sender_id=st.sampled_from(["Ann", "Ben"]),
        text=st.sampled_from(["yes", "no", "😂", "half \ud83d"]), timestamp=st.one_of(st.none(), st.integers(T0, T0 + 2)),
        message_id=st.none(),
    ), max_size=30,
)  # fmt: skip


@given(records)
@settings(deadline=None)
def test_reading_again_gives_the_same_keys_and_each_message_one_of_its_own(rows: list[Incoming]) -> None:
    first, again = imported(rows), imported(rows)
    assert [m.id for m in first] == [m.id for m in again]
    assert len({m.id for m in first}) == len(rows)


@given(records, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_messages_with_ids_keep_their_keys_in_any_order(rows: list[Incoming], chance: random.Random) -> None:
    named = [replace(row, message_id=f"m{n}") for n, row in enumerate(rows)]
    shuffled = named[:]
    chance.shuffle(shuffled)
    assert {m.id for m in imported(named)} == {m.id for m in imported(shuffled)}
    assert {m.message_id for m in imported(shuffled)} == {row.message_id for row in named}


@given(records, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_dated_messages_without_ids_have_the_same_keys_in_any_order(rows: list[Incoming], chance: random.Random) -> None:
    dated = [row for row in rows if row.timestamp is not None]
    shuffled = dated[:]
    chance.shuffle(shuffled)
    assert {m.id for m in imported(dated)} == {m.id for m in imported(shuffled)}


@given(records, st.integers(0, 30))
@settings(deadline=None)
def test_a_grown_file_has_the_keys_of_the_shorter_one(rows: list[Incoming], length: int) -> None:
    assert [m.id for m in imported(rows)][:length] == [m.id for m in imported(rows[:length])]


def test_said_twice_in_one_second_stays_twice() -> None:
    first, second = imported([said("yes", timestamp=T0), said("yes", timestamp=T0)])
    assert first.id != second.id
    assert first.message_id.startswith("gen_msg_")


def test_undated_files_of_one_conversation_follow_each_other_and_share_no_key() -> None:
    rows = [said("hi"), said("hi"), said("bye")]
    first, second = imported(rows, source="p1", file_number=0), imported(rows, source="p2", file_number=1)
    assert len({m.id for m in first + second}) == 6
    assert sorted(first + second, key=lambda m: (m.order_time, m.place, m.id)) == first + second
    alone = imported(rows, source="p2")
    assert [m.id for m in alone] == [m.id for m in second]


def test_dated_and_named_messages_are_the_same_in_any_file() -> None:
    rows = [said("hi", timestamp=T0), said("hi", message_id="1")]
    assert [m.id for m in imported(rows)] == [m.id for m in imported(rows, source="p2", file_number=1)]


def test_places_and_order_times() -> None:
    found = imported([
        said("1"), said("2", timestamp=T0), said("x", conversation="d"), said("3"), said("4", timestamp=T0 - 5), said("5"),
    ])  # fmt: skip
    assert [(m.place, m.order_time) for m in found] == [(0, 0), (1, T0), (0, 0), (2, T0), (3, T0 - 5), (4, T0 - 5)]
    assert [m.time_known for m in found] == [False, True, False, False, True, False]
    assert [m.timestamp for m in found] == [None, T0, None, None, T0 - 5, None]


def test_owners() -> None:
    (group,) = imported([said("hi")])
    assert (group.group_id, group.user_id, group.session_id, group.partition) == ("c", None, None, "g:c")
    (solo,) = imported([said("hi", sender="user")], Ownership(user="u1"))
    assert (solo.user_id, solo.group_id, solo.session_id) == ("u1", solo_group_id("u1"), "c")
    assert (solo.sender_id, solo.sender_name) == ("u1", "u1")
    (reply,) = imported([said("hi", sender="assistant", role="assistant")], Ownership(rule="user", user="u1"))
    assert reply.sender_id == assistant_id("u1")
    (named,) = imported([said("hi", sender="Ben")], Ownership(user="u1"))
    assert named.sender_id == "Ben"
    (team,) = imported([said("hi")], Ownership(rule="user", group="g"))
    assert (team.group_id, team.session_id) == ("g", "c")
    with pytest.raises(InvalidInputError, match="--user"):
        imported([said("hi")], Ownership(rule="user"))


def test_client_ids_repeat_under_other_conversations() -> None:
    one, other = imported([said("hi", message_id="1"), said("hi", message_id="1", conversation="d")])
    assert one.id != other.id
    assert one.message_id == other.message_id == "1"


def test_what_cannot_be_stored() -> None:
    assert refusal(said("x" * 50), max_bytes=100) is None
    assert refusal(said("完" * 50), max_bytes=149) == "text over 149 bytes"
    assert "sender" in str(refusal(said("x", sender="a\x00"), max_bytes=100))
    assert "message id" in str(refusal(said("x", message_id=" "), max_bytes=100))


def nested(levels: int) -> dict[str, Any]:
    part: dict[str, Any] = {}
    for _ in range(levels):
        part = {"a": part}
    return part


@pytest.mark.parametrize("part", [nested(300), nested(5_000), {"n": 10**26}, {"n": object()}])
def test_content_that_no_store_keeps_is_refused(part: dict[str, Any]) -> None:
    bad = said("x", timestamp=T0, content_items=(part,))
    assert refusal(bad, max_bytes=100) == "content that cannot be stored"
    with pytest.raises(InvalidInputError, match=r"messages\[1\].*cannot be stored"):
        messages_of_request([said("x", timestamp=T0), bad], tenant_id="t", owner=Owner.group("g"), session_id=None,
                            imported_at=1, max_bytes=1_000)  # fmt: skip
    assert refusal(said("x", content_items=({"a\ud83d": "\ud83d"}, nested(50))), max_bytes=100) is None


def test_surrogates_and_parts_become_storable() -> None:
    (found,) = imported([said("half \ud83d", content_items=({"a\ud83d": ["\ud83d\ude02"]},))])
    assert found.text == "half \ufffd"
    assert found.content_items == [{"a\ufffd": ["😂"]}]


def test_online_and_bulk_give_the_same_keys() -> None:
    rows = [said("hi", sender="user", timestamp=T0), said("hello", sender="assistant", role="assistant", timestamp=T0)]
    online = messages_of_request(
        [replace(row, sender_id="") for row in rows], tenant_id="t", owner=Owner.user("u1"), session_id="c",
        imported_at=2, max_bytes=1_000,
    )  # fmt: skip
    bulk = imported(rows, Ownership(user="u1"))
    different = {"place", "imported_at"}
    assert [m.model_dump(exclude=different) for m in online] == [m.model_dump(exclude=different) for m in bulk]
    assert [m.place for m in online] == [-1, -1]


@pytest.mark.parametrize(
    ("row", "owner", "message"),
    [
        (said("hi"), Owner.user("u"), "neither message_id nor timestamp"),
        (said(" ", timestamp=T0), Owner.user("u"), "no content"),
        (said("hi", sender="", timestamp=T0), Owner.group("g"), "no sender_id"),
        (said("x" * 2_000, timestamp=T0), Owner.user("u"), "text over"),
        (said("x", sender="a" * 600, timestamp=T0), Owner.user("u"), "sender is longer"),
    ],
)
def test_requests_that_are_refused(row: Incoming, owner: Owner, message: str) -> None:
    with pytest.raises((InvalidInputError, TooLargeError), match=message):
        messages_of_request([row], tenant_id="t", owner=owner, session_id=None, imported_at=1, max_bytes=1_000)


def test_memory_of_order_is_small() -> None:
    order = SourceOrder()
    for number in range(1_000):
        order.place(said(f"text {number}" * 50, timestamp=T0 + number))
    assert all(isinstance(key, int) and key < 2**64 for key in order._once)
    assert not order._again


def test_a_role_and_a_user_id_make_it_that_persons_talk() -> None:
    talk = Incoming("c", "anna", "hi", role="user", timestamp=1, message_id="m", owner_user_id="anna")
    assert Ownership().of(talk) == (Owner.user("anna"), "c")
    assert Ownership(group="g").of(talk) == (Owner.group("g"), "c")
    assert Ownership(user="ben").of(talk) == (Owner.user("ben"), "c")
    assert Ownership().of(replace(talk, owner_user_id=None)) == (Owner.group("c"), None)
    assert refusal(replace(talk, owner_user_id=" "), max_bytes=100) is not None
