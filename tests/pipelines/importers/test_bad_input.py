"""What can be wrong with any export, for each format: a clear outcome, and nothing else is lost."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from pipelines.importers.contract import Meter, ReadOptions
from pipelines.importers.registry import find_sources
from pipelines.incoming import Incoming, Rejected
from primitives.errors import UnreadableInputError
from tests.pipelines.importers.exports import FORMATS, T0, Said, content_of, rows, write

every_format = pytest.mark.parametrize("format", FORMATS)


def read(path: Path) -> list[Incoming | Rejected]:
    found = find_sources([path])
    records: list[Incoming | Rejected] = [*found.passed_over]
    for source in found.files:
        records += source.read(ReadOptions(timezone="UTC"))
    return records


def texts(found: list[Incoming | Rejected]) -> list[str]:
    return [item.text for item in found if isinstance(item, Incoming)]


def reasons(found: list[Incoming | Rejected]) -> set[str]:
    return {item.reason for item in found if isinstance(item, Rejected) and not item.skipped}


@every_format
@pytest.mark.parametrize("zipped", [False, True])
def test_an_export_is_found_and_read(tmp_path: Path, format: str, zipped: bool) -> None:
    path = write(format, tmp_path / "in", rows(60), zipped=zipped)
    (source,) = find_sources([path]).files
    assert source.format == format
    found = read(path)
    assert texts(found) == [f"number {n}" for n in range(60)]
    assert [item.timestamp for item in found if isinstance(item, Incoming)] == [(T0 + 60 * n) * 1_000 for n in range(60)]
    assert reasons(found) == set()


@every_format
@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_that_is_cut(tmp_path: Path, format: str, zipped: bool) -> None:
    """JSON says where it ends. A text that is cut between two characters of a message cannot tell, and keeps it."""
    whole = content_of(format, rows(120))
    found = read(write(format, tmp_path / "in", whole[: len(whole) * 3 // 4], zipped=zipped))
    assert 40 < len(texts(found)) < 120
    expected = {"jsonl": {"bad JSON"}, "chatgpt": {"the file is cut or damaged"}, "slack": {"the file is cut or damaged"}, "whatsapp": set()}
    assert reasons(found) == expected[format]


@every_format
def test_an_empty_file(tmp_path: Path, format: str) -> None:
    found = read(write(format, tmp_path / "in", b""))
    assert texts(found) == []
    assert reasons(found) == {"empty file"}


@every_format
@pytest.mark.parametrize("other", FORMATS)
def test_another_format_than_said(tmp_path: Path, format: str, other: str) -> None:
    if format == other:
        return
    path = write(other, tmp_path / "in", rows(60))
    try:
        (source, *_) = find_sources([path], format=format).files
        found = list(source.read(ReadOptions(timezone="UTC")))
    except UnreadableInputError as fault:
        assert "known format" in str(fault)  # noqa: PT017 - either outcome is clear
        return
    assert texts(found) == []
    assert reasons(found) | {item.reason for item in found if isinstance(item, Rejected)}


@every_format
def test_lone_surrogates(tmp_path: Path, format: str) -> None:
    found = read(write(format, tmp_path / "in", [Said("half \ud83d of a pair", 0), Said("whole 😂", 60)]))
    assert texts(found) == ["half \ufffd of a pair", "whole 😂"]


@every_format
def test_a_message_of_5_mb(tmp_path: Path, format: str) -> None:
    found = read(write(format, tmp_path / "in", [Said("before", 0), Said("x" * 5_000_000, 60), Said("after", 120)]))
    assert [len(text) for text in texts(found)] == [6, 5_000_000, 5]
    assert reasons(found) == set()


@every_format
def test_equal_times_and_times_out_of_order(tmp_path: Path, format: str) -> None:
    said = [Said("b", 600), Said("b", 600), Said("a", 0), Said("z", 1_200)]
    found = read(write(format, tmp_path / "in", said))
    assert [(item.text, item.timestamp) for item in found if isinstance(item, Incoming)] == [
        (row.text, (T0 + row.second) * 1_000) for row in said
    ]  # fmt: skip


def test_no_times(tmp_path: Path) -> None:
    """JSONL and ChatGPT keep the order of the file; Slack's key is the time, so such a message is reported. A WhatsApp
    line without a time is part of the message before it."""
    no_jsonl = b'{"conversation": "c", "sender": "A", "text": "hi"}\n'
    tree = json.loads(content_of("chatgpt", rows(2)))
    for node in tree[0]["mapping"].values():
        del node["message"]["create_time"]
    for format, data in (("jsonl", no_jsonl), ("chatgpt", json.dumps(tree).encode())):
        found = read(write(format, tmp_path / format, data))
        assert found
        assert all(isinstance(item, Incoming) and item.timestamp is None for item in found)
    found = read(write("slack", tmp_path / "slack", b'[{"type": "message", "user": "U1", "text": "hi"}]'))
    assert reasons(found) == {"message without ts"}
    found = read(write("whatsapp", tmp_path / "whatsapp", content_of("whatsapp", rows(1)) + b"Ann: hi\n"))
    assert texts(found) == ["number 0\nAnn: hi"]


@every_format
def test_large_exports_are_streams(tmp_path: Path, format: str) -> None:
    """A file of 4 MB in a zip takes less memory than its half, and its first message comes early."""
    path = write(format, tmp_path / "in", rows(4_000, text="{n} " + "filling 填充 " * 70), zipped=True)
    (source,) = find_sources([path]).files
    meter, count = Meter(), 0
    tracemalloc.start()
    try:
        for record in source.read(ReadOptions(timezone="UTC", meter=meter)):
            if not count:
                assert meter.position < source.size / 4
            count += isinstance(record, Incoming)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 4_000
    assert source.size > 3_000_000
    assert peak < source.size / 2
