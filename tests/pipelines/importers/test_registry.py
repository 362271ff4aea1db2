"""Finding files and their formats, and the manifest checker over generated exports."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import pytest

from pipelines.importers.contract import Importer, ReadOptions
from pipelines.importers.files import Meter
from pipelines.importers.registry import check_start, find_sources, importers
from pipelines.incoming import Incoming, Rejected
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
    with pytest.raises(UnreadableInputError, match=r"x\.bin.*chatgpt, slack, whatsapp, jsonl"):
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


def test_a_zip_is_walked_like_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("talks/conversations.json", json.dumps([{"title": "t", "mapping": {"a": {}}}]))
        archive.writestr("a.jsonl", LINE)
        archive.writestr("image.png", b"\x89PNG")
        archive.writestr("__MACOSX/._a.jsonl", b"\x00\x05")
        archive.writestr("empty.jsonl", b"")
    found = find_sources([path])
    assert [(str(s.path), s.format) for s in found.files] == [
        (f"{path}/a.jsonl", "jsonl"), (f"{path}/talks/conversations.json", "chatgpt")
    ]  # fmt: skip
    assert [(r.where.removeprefix(f"{path}/"), r.reason) for r in found.passed_over] == [
        ("empty.jsonl", "empty file"), ("image.png", "unknown format")
    ]  # fmt: skip
    (source, _) = pickle.loads(pickle.dumps(found.files))
    meter = Meter()
    assert [r.text for r in source.read(ReadOptions(meter=meter)) if isinstance(r, Incoming)] == ["hello"]
    assert meter.position == source.size == len(LINE)


def test_zips_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.jsonl", LINE * 99)
    data = whole.read_bytes()
    cut, wrong, nothing = tmp_path / "cut.zip", tmp_path / "wrong.zip", tmp_path / "nothing.zip"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(UnreadableInputError, match=r"cut\.zip is a cut or damaged zip"):
        find_sources([cut])
    folder = find_sources([tmp_path])
    assert [(Path(r.where).name, r.reason, r.skipped) for r in folder.passed_over] == [
        ("cut.zip", f"{cut} is a cut or damaged zip", False)
    ]  # fmt: skip
    wrong.write_bytes(data.replace(b"hello", b"jello", 1))
    (source,) = find_sources([wrong]).files
    last = list(source.read(ReadOptions()))[-1]
    assert isinstance(last, Rejected)
    assert last.reason == "the compressed file is cut or damaged"
    with zipfile.ZipFile(nothing, "w") as archive:
        archive.writestr("image.png", b"\x89PNG")
    with pytest.raises(UnreadableInputError, match=r"nothing\.zip is of no known format"):
        find_sources([nothing])


def test_names_in_a_zip_are_utf8_whatever_the_zip_says(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("周末.jsonl", LINE)
    path.write_bytes(path.read_bytes().replace(b"\x00\x08", b"\x00\x00"))  # the flag that says so, as macOS leaves it out
    (source,) = find_sources([path]).files
    assert source.path.name == "周末.jsonl"
