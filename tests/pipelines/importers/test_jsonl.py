"""JSON lines: field names, times, and lines that are no messages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.importers import jsonl
from pipelines.importers.contract import ReadOptions
from pipelines.incoming import Incoming, Rejected
from primitives.errors import InvalidInputError, UnreadableInputError

ROW = {"conversation": "c", "sender": "Ann", "text": "hello", "time": "2024-03-05T06:40:00Z"}
MOMENT = 1_709_620_800_000


def read(path: Path, rows: list[Any] | bytes, **options: Any) -> list[Incoming | Rejected]:
    data = rows if isinstance(rows, bytes) else "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(data)
    return list(jsonl.read(path, ReadOptions(**options)))


def one(tmp_path: Path, row: dict[str, Any], **options: Any) -> Incoming:
    (found,) = read(tmp_path / "a.jsonl", [row], **options)
    assert isinstance(found, Incoming), found
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_709_620_800, MOMENT), (1_709_620_800.5, MOMENT + 500), ("1709620800", MOMENT), (MOMENT, MOMENT),
        (MOMENT * 1_000, MOMENT), (MOMENT * 1_000_000, MOMENT), ("2024-03-05T14:40:00+08:00", MOMENT),
        ("2024-03-05 06:40:00.250Z", MOMENT + 250), (None, None), ("", None), (-86_400, -86_400_000),
    ],
)  # fmt: skip
def test_times(tmp_path: Path, value: object, expected: int | None) -> None:
    assert one(tmp_path, ROW | {"time": value}).timestamp == expected


@pytest.mark.parametrize("value", ["yesterday", True, {"a": 1}, float("nan"), 10**40, "9999-12-31T23:59:59-12:00"])
def test_a_bad_time_is_no_undated_message(tmp_path: Path, value: object) -> None:
    (found,) = read(tmp_path / "a.jsonl", [ROW | {"time": value}])
    assert isinstance(found, Rejected)
    assert (found.reason, found.skipped) == ("bad time", False)


def test_a_time_without_a_zone_is_refused_or_read_in_the_zone_given(tmp_path: Path) -> None:
    naive = ROW | {"time": "2024-03-05T14:40:00"}
    with pytest.raises(UnreadableInputError, match="--timezone"):
        read(tmp_path / "a.jsonl", [naive])
    assert one(tmp_path, naive, timezone="Asia/Shanghai").timestamp == MOMENT
    with pytest.raises(InvalidInputError, match="unknown time zone"):
        read(tmp_path / "a.jsonl", [naive], timezone="Nowhere/Land")


@pytest.mark.parametrize(
    "row",
    [
        {"conv": "c", "speaker": "Ann", "text": "hello", "ts": MOMENT},
        {"chat": "c", "from": {"id": "Ann", "name": "Ann Lee"}, "message": "hello", "date": MOMENT},
        {"session_id": "c", "author": "Ann", "body": "hello", "created_at": MOMENT},
        {"group_id": "c", "user": "Ann", "content": [{"type": "text", "text": "hello"}], "timestamp": MOMENT},
    ],
)
def test_usual_field_names(tmp_path: Path, row: dict[str, Any]) -> None:
    found = one(tmp_path, row)
    assert (found.conversation, found.sender_id, found.text, found.timestamp) == ("c", "Ann", "hello", MOMENT)


def test_named_fields_look_into_objects(tmp_path: Path) -> None:
    row = {"room": {"name": "c"}, "who": "Ann", "payload": {"say": "hello"}, "text": "not this"}
    fields = {"conversation": "room.name", "sender": "who", "text": "payload.say"}
    found = one(tmp_path, row, fields=fields)
    assert (found.conversation, found.sender_id, found.text) == ("c", "Ann", "hello")
    with pytest.raises(InvalidInputError, match="unknown field"):
        one(tmp_path, row, fields={"sendr": "who"})


def test_lines_that_are_no_messages_are_told_apart(tmp_path: Path) -> None:
    good = json.dumps(ROW).encode()
    lines = [good, b'{"conversation": "x", "te', b"", b'["a list"]', b'{"conversation":"c","sender":"A","text":"  "}',
             b'{"sender":"A","text":"of no conversation"}', b'{"conversation":"c","text":"of nobody"}',
             b'{"conversation":"c","sender":"A","text":"\xff"}', good]  # fmt: skip
    path = tmp_path / "a.jsonl"
    found = read(path, b"\n".join(lines))
    assert [type(item) for item in found] == [Incoming, *[Rejected] * 6, Incoming]
    rejected = [item for item in found if isinstance(item, Rejected)]
    assert [(item.reason, item.where, item.skipped) for item in rejected] == [
        ("bad JSON", f"{path}:2", False), ("not an object", f"{path}:4", False), ("blank text", f"{path}:5", True),
        ("no conversation", f"{path}:6", False), ("no sender", f"{path}:7", False), ("not UTF-8", f"{path}:8", False),
    ]  # fmt: skip


def test_what_is_nested_too_deep_is_one_unreadable_line(tmp_path: Path) -> None:
    path, deep = tmp_path / "a.jsonl", b'{"sender":"A","text":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}\n"
    assert not jsonl.sniff(tmp_path / "a.log", deep)
    found = read(path, deep + b'{"sender":' + b'{"id":' * 1_010 + b"1" + b"}" * 1_010 + b',"text":"x"}\n' + json.dumps(ROW).encode())
    assert [getattr(item, "reason", "read") for item in found] == ["bad JSON", "nested too deep", "read"]


def test_an_integer_beyond_floats_is_no_time(tmp_path: Path) -> None:
    line = b'{"sender":"A","text":"\\ud800","time":1' + b"0" * 400 + b"}\n"
    (found,) = read(tmp_path / "a.jsonl", line)
    assert isinstance(found, Rejected)
    assert found.reason == "bad time"


def test_a_file_without_conversations_is_one(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    found = read(tmp_path / "diary.jsonl", rows)
    assert [(m.conversation, m.sender_id, m.role) for m in found if isinstance(m, Incoming)] == [
        ("diary", "user", "user"), ("diary", "assistant", "assistant")
    ]  # fmt: skip


def test_surrogates_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"conversation":"c","sender":"A","text":"see \xed\xa0\xbd\xed\xb8\x82"}\r\n' + (
        b'{"conversation":"c","sender":"A","text":"half \\ud83d"}\r\n'
    )
    found = read(tmp_path / "a.jsonl", data)
    assert [m.text for m in found if isinstance(m, Incoming)] == ["see 😂", "half \ufffd"]


def test_compressed_whole_and_cut(tmp_path: Path) -> None:
    rows = [ROW | {"message_id": str(n), "text": f"number {n}"} for n in range(2_000)]
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    path = tmp_path / "a.jsonl.gz"
    assert len(read(path, whole)) == 2_000
    found = read(path, whole[: len(whole) // 2])
    assert all(isinstance(item, Incoming) for item in found[:-1])
    assert isinstance(found[-1], Rejected)
    assert "cut or damaged" in found[-1].reason


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.importers.files.LINE_LIMIT", 1_000)
    long = json.dumps(ROW | {"text": "x" * 5_000}).encode()
    found = read(tmp_path / "a.jsonl", long + b"\n" + json.dumps(ROW).encode())
    assert [getattr(item, "reason", "read") for item in found] == ["line too long", "read"]


def test_whose_talk_it_is(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    lines = [
        {"user_id": "anna", "session_id": "s", "role": "user", "content": "hi", "timestamp": 1},
        {"user_id": "anna", "session_id": "s", "role": "assistant", "content": "hello", "timestamp": 2},
        {"user_id": "ben", "channel": "general", "text": "no role: a group chat, ben is the sender", "ts": 3},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    found = [record for record in jsonl.read(path, ReadOptions()) if isinstance(record, Incoming)]
    assert [(m.owner_user_id, m.sender_id, m.role) for m in found] == [
        ("anna", "user", "user"), ("anna", "assistant", "assistant"), (None, "ben", "user"),
    ]  # fmt: skip
