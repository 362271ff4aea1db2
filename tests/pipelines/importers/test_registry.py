"""Finding files and their formats, and the manifest checker over generated exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.importers.contract import Importer, ReadOptions
from pipelines.importers.registry import check_start, find_sources, importers, parse_paths
from pipelines.incoming import Rejected
from primitives.errors import InvalidInputError, NotFoundError, UnreadableInputError

LINE = '{"conversation": "c", "sender": "Ann", "text": "hello"}\n'


def test_importers_are_found_and_general_ones_come_last() -> None:
    found = list(importers().values())
    assert {"jsonl", "chatgpt"} <= set(importers())
    assert [i.general for i in found] == sorted(i.general for i in found)
    assert all(isinstance(i, Importer) and i.owner_rule in ("group", "user") for i in found)


def test_formats_are_told_by_content(tmp_path: Path) -> None:
    (tmp_path / "chat.log").write_text(LINE)
    (tmp_path / "export.json").write_text(json.dumps([{"title": None, "mapping": {"a": {}}}], indent=1))
    (tmp_path / "one-line.json").write_text(json.dumps({"conversations": [{"mapping": {}}]}))
    found = find_sources([tmp_path])
    assert [(s.path.name, s.format) for s in found.files] == [
        ("chat.log", "jsonl"), ("export.json", "chatgpt"), ("one-line.json", "chatgpt")
    ]  # fmt: skip


def test_folders_are_walked_in_order_and_what_is_passed_over_is_said(tmp_path: Path) -> None:
    for name, text in (("b/2.jsonl", LINE), ("a/1.jsonl", LINE), ("a/empty.jsonl", ""), (".git/x.jsonl", LINE), ("z.png", "\x89PNG")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = find_sources([tmp_path])
    assert [s.path.name for s in found.files] == ["1.jsonl", "2.jsonl"]
    assert [(Path(r.where).name, r.reason) for r in found.passed_over] == [("empty.jsonl", "empty file"), ("z.png", "unknown format")]


def test_what_cannot_be_read_at_all_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x00\x01")
    (tmp_path / "none").mkdir()
    with pytest.raises(NotFoundError, match=r"no-such"):
        find_sources([tmp_path / "no-such"])
    with pytest.raises(UnreadableInputError, match=r"x\.bin.*chatgpt, jsonl"):
        find_sources([tmp_path / "x.bin"])
    with pytest.raises(UnreadableInputError, match="no files"):
        find_sources([tmp_path / "none"])
    with pytest.raises(UnreadableInputError, match="no file of a known format"):
        find_sources([tmp_path])
    with pytest.raises(InvalidInputError, match="unknown format"):
        find_sources([tmp_path], format="fax")


def test_a_file_refused_midway_says_so_and_one_refused_at_once_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    naive = LINE.replace("}", ', "time": "2024-03-05T06:40:00"}')
    path.write_text(LINE + naive + LINE)
    (source,) = find_sources([path]).files
    with pytest.raises(UnreadableInputError, match="--timezone"):
        check_start(source, ReadOptions())
    records = list(source.read(ReadOptions()))
    assert isinstance(records[-1], Rejected)
    assert (len(records), records[-1].reason, records[-1].skipped) == (2, "the rest of the file is refused", False)


def test_a_changed_file_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINE)
    (source,) = find_sources([path]).files
    before = source.identity
    path.write_text(LINE * 2)
    assert source.identity != before


def test_rows_of_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINE + "broken\n" + LINE)
    assert [row["text"] for row in parse_paths([path])] == ["hello", "hello"]
