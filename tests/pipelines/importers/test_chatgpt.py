"""ChatGPT's export: trees, wrappers, sparse messages and damaged bytes (items 1 to 8 of the import quirks)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.importers import chatgpt
from pipelines.importers.contract import ReadOptions, Titled
from pipelines.importers.registry import find_sources
from pipelines.importers.repair import RepairedBytes
from pipelines.incoming import Incoming, Rejected

T0 = 1_709_620_800.0


def node(key: str, parent: str | None, role: str | None, text: str = "", **message: Any) -> dict[str, Any]:
    body = None if role is None else {
        "id": key, "author": {"role": role}, "create_time": T0, "content": {"content_type": "text", "parts": [text]},
    } | message  # fmt: skip
    return {"id": key, "message": body, "parent": parent}


def tree(*nodes: dict[str, Any], current: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "title": "a talk", "conversation_id": "talk-1", "current_node": current or nodes[-1]["id"],
        "mapping": {n["id"]: n for n in nodes},
    } | fields  # fmt: skip


def read(path: Path, value: object) -> list[Incoming | Rejected]:
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return list(chatgpt.read(path, ReadOptions()))


def texts(found: list[Incoming | Rejected]) -> list[str]:
    return [item.text for item in found if isinstance(item, Incoming)]


PLAIN = tree(node("r", None, None), node("a", "r", "user", "hi"), node("b", "a", "assistant", "hello"))


def test_the_live_thread_only(tmp_path: Path) -> None:
    branched = tree(
        node("r", None, None), node("a", "r", "user", "hi"), node("old", "a", "assistant", "replaced"),
        node("new", "a", "assistant", "kept"), node("first", None, "user", "another root"), current="new",
    )  # fmt: skip
    (first, second) = read(tmp_path / "conversations.json", [branched])
    assert isinstance(first, Titled)
    assert isinstance(second, Titled)
    assert [first.text, second.text] == ["hi", "kept"]
    assert (first.conversation, first.title, first.message_id, first.timestamp) == ("talk-1", "a talk", "a", int(T0 * 1000))


@pytest.mark.parametrize("wrap", [lambda t: [t], lambda t: {"conversations": [t]}, lambda t: {"v": 1, "data": {"all": [t]}},
                                  lambda t: t])  # fmt: skip
def test_wrapped_in_objects(tmp_path: Path, wrap: Any) -> None:
    assert texts(read(tmp_path / "conversations.json", wrap(PLAIN))) == ["hi", "hello"]


def test_numbered_files_with_null_titles(tmp_path: Path) -> None:
    for number in range(2):
        untitled = PLAIN | {"title": None, "conversation_id": f"talk-{number}"}
        (tmp_path / f"conversations-00{number}.json").write_text(json.dumps([untitled]))
    (tmp_path / "conversations-002.json").write_text("[]")
    found = find_sources([tmp_path])
    assert [source.format for source in found.files] == ["chatgpt"] * 3
    read = [record for source in found.files for record in source.read(ReadOptions())]
    assert [(m.conversation, m.title, m.text) for m in read if isinstance(m, Titled)] == [
        ("talk-0", "", "hi"), ("talk-0", "", "hello"), ("talk-1", "", "hi"), ("talk-1", "", "hello")
    ]  # fmt: skip


def test_children_are_not_needed_and_do_not_count(tmp_path: Path) -> None:
    nodes = [n | {"children": ["elsewhere"]} for n in PLAIN["mapping"].values()]
    assert texts(read(tmp_path / "c.json", [tree(*nodes)])) == texts(read(tmp_path / "d.json", [PLAIN])) == ["hi", "hello"]


def test_without_a_usable_current_node_the_latest_leaf_ends_the_thread(tmp_path: Path) -> None:
    later = node("later", "a", "assistant", "later", create_time=T0 + 60)
    found = read(tmp_path / "c.json", [tree(*PLAIN["mapping"].values(), later, current="gone")])
    assert texts(found) == ["hi", "later"]


def test_a_loop_among_parents_ends(tmp_path: Path) -> None:
    assert texts(read(tmp_path / "c.json", [tree(node("a", "b", "user", "x"), node("b", "a", "assistant", "y"))])) == [
        "x", "y"
    ]  # fmt: skip


def test_what_is_no_message_is_counted(tmp_path: Path) -> None:
    found = read(tmp_path / "c.json", [tree(
        node("s", None, "system", "rules"), node("h", "s", "user", "about me", metadata={"is_visually_hidden_from_conversation": True}),
        node("q", "h", "user", "draw"), node("t", "q", "assistant", "{}", recipient="dalle"), node("o", "t", "tool", "done"),
        node("k", "o", "assistant", content={"content_type": "thoughts", "thoughts": []}),
        node("e", "k", "assistant", ""), node("z", "e", "assistant", "here", create_time="soon"),
        node("y", "z", "assistant", "here", create_time=None),
    )])  # fmt: skip
    assert [item.reason if isinstance(item, Rejected) else item.text for item in found] == [
        "system message", "hidden message", "draw", "tool message", "tool message", "hidden message", "blank text",
        "bad time", "here",
    ]  # fmt: skip
    assert [item.skipped for item in found if isinstance(item, Rejected)] == [True] * 6 + [False]
    assert isinstance(found[-1], Incoming)
    assert found[-1].timestamp is None


def test_parts_that_are_objects_and_citation_marks(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    spoken = {"content_type": "audio_transcription", "text": "spoken"}
    found = read(tmp_path / "c.json", [tree(
        node("a", None, "user", content={"content_type": "multimodal_text", "parts": [picture, spoken, "look"]}),
        node("b", "a", "assistant", "known\ue200cite\ue202turn0search0\ue201 since"),
    )])  # fmt: skip
    assert texts(found) == ["spoken\nlook", "known since"]
    assert isinstance(found[0], Incoming)
    assert found[0].content_items == (picture,)


def test_a_cut_array_keeps_what_was_read_and_says_where_it_ends(tmp_path: Path) -> None:
    whole = json.dumps([PLAIN, PLAIN | {"conversation_id": "talk-2"}]).encode()
    cut = whole[: len(whole) * 3 // 4]
    found = read(tmp_path / "c.json", cut)
    assert texts(found) == ["hi", "hello"]
    last = found[-1]
    assert isinstance(last, Rejected)
    assert not last.skipped
    assert f"byte {len(cut)}" in last.where


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"mapping', b"[1, 2]", b"not json at all"])
def test_nothing_to_read_is_said(tmp_path: Path, data: bytes) -> None:
    (found,) = read(tmp_path / "conversations.json", data)
    assert isinstance(found, Rejected)


def test_odd_values_do_not_raise(tmp_path: Path) -> None:
    odd = [{"mapping": None}, {"mapping": {"a": 3}}, {"mapping": {"a": {"message": "text", "parent": None}}}, 7,
           {"mapping": {"a": {"message": {"author": None, "content": 5}, "parent": {}}}, "current_node": ["a"]}]  # fmt: skip
    found = read(tmp_path / "c.json", [PLAIN, *odd])
    assert texts(found) == ["hi", "hello"]
    assert all(isinstance(item, Rejected) for item in found[2:])


PIECES = st.sampled_from(
    [b"\xed\xa0\xbd\xed\xb8\x82", b"\xed\xa0\xbd", b"\xed\xb8\x82", "한".encode(), "完".encode(), "😂".encode(), b"\xff",
     b"\\ud83d\\ude02", b"\\ud83d", b"\\ude02", b"\\\\ud83d", b"\\\\", b"\\n", b"x"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_repair_does_not_depend_on_how_the_stream_is_cut(pieces: list[bytes], size: int) -> None:
    data = b'["' + b"".join(pieces) + b'"]'
    once = repaired(data, len(data))
    assert repaired(data, size) == once
    json.loads(once)  # valid UTF-8, valid JSON
    once.decode("utf-8")


class Trickle:
    """A stream that gives few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def read(self, _: int) -> bytes:
        piece, self._data = self._data[: self._size], self._data[self._size :]
        return piece


def repaired(data: bytes, size: int) -> bytes:
    source = RepairedBytes(Trickle(data, size))  # type: ignore[arg-type]
    out = b""
    while piece := source.read():
        out += piece
    assert source.position == len(data)
    return out


def test_what_is_repaired() -> None:
    data = b"\xed\xa0\xbd\xed\xb8\x82 \xed\xa0\xbd \\ud83d\\ude02 \\ud83d \\\\ud83d \xff"
    assert repaired(data, 3).decode() == "😂 \ufffd \\ud83d\\ude02 \\ufffd \\\\ud83d \ufffd"


def test_a_conversation_nested_too_deep_stops_no_other(tmp_path: Path) -> None:
    deep = '{"a":' * 1_010 + "1" + "}" * 1_010
    tree = '"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}}}}'
    path = tmp_path / "conversations.json"
    path.write_text(f'[{{"title": {deep}, {tree}}}, {{"title": "t", {tree}}}]')
    found = list(chatgpt.read(path, ReadOptions()))
    assert [getattr(item, "reason", "read") for item in found] == ["nested too deep", "read"]
