"""Slack's export (items 12 to 17 of the import quirks), as a folder and as a zip."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipelines.importers.contract import Meter, ReadOptions, Titled
from pipelines.importers.registry import find_sources
from pipelines.importers.slack_text import readable
from pipelines.incoming import Incoming, Rejected
from primitives.errors import UnreadableInputError

PEOPLE = [
    {"id": "U1", "name": "nora.b", "real_name": "Nora Bell", "profile": {"display_name": "Nora", "real_name": "Nora Bell"}},
    {"id": "U2", "name": "tom", "profile": {"display_name": "", "real_name": "Tom Reed"}},
]
GENERAL = [{"id": "C1", "name": "general", "members": ["U1", "U2"]}]
T0 = 1_709_620_800


def said(second: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "text": text, "ts": f"{T0 + second}.{second:06d}"} | fields


def export(folder: Path, days: dict[str, Any], **lists: Any) -> Path:
    """A folder export; `days` are paths to what stands there."""
    files: dict[str, Any] = {"users.json": PEOPLE, "channels.json": GENERAL}
    files |= {f"{name}.json": value for name, value in lists.items()} | days
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return folder


def zipped(folder: Path, target: Path, *, under: str = "") -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, under + path.relative_to(folder).as_posix())
    return target


def read(path: Path, **options: Any) -> list[Incoming | Rejected]:
    (source,) = find_sources([path]).files
    assert source.format == "slack"
    return list(source.read(ReadOptions(**options)))


def day(tmp_path: Path, *rows: Any) -> list[Incoming | Rejected]:
    """What is read of one day in #general."""
    return read(export(tmp_path / "export", {"general/2024-03-05.json": list(rows)}))


def messages(found: list[Incoming | Rejected]) -> list[Incoming]:
    return [item for item in found if isinstance(item, Incoming)]


def reasons(found: list[Incoming | Rejected]) -> list[tuple[str, bool]]:
    return [(item.reason, item.skipped) for item in found if isinstance(item, Rejected)]


def test_a_folder_and_its_zip_are_the_same_export(tmp_path: Path) -> None:
    folder = export(tmp_path / "export", {
        "general/2024-03-06.json": [said(90_000, "next day", user="U2")], "general/2024-03-05.json": [said(1, "first")],
        "integration_logs.json": [],
    })  # fmt: skip
    found = read(folder)
    assert reasons(found) == []
    first, second = found
    assert isinstance(first, Titled)
    assert (first.conversation, first.title, first.sender_id, first.sender_name, first.text, first.message_id, first.timestamp) == (
        "C1", "general", "U1", "Nora", "first", f"{T0 + 1}.000001", (T0 + 1) * 1_000
    )  # fmt: skip
    assert isinstance(second, Titled)
    assert (second.sender_name, second.text) == ("Tom Reed", "next day")
    assert read(zipped(folder, tmp_path / "flat.zip")) == found
    assert read(zipped(folder, tmp_path / "deep.zip", under="acme export/")) == found


def test_a_meter_ends_at_the_size(tmp_path: Path) -> None:
    folder = export(tmp_path / "export", {"general/2024-03-05.json": [said(n, "x" * 500) for n in range(2_000)]})
    for path in (folder, zipped(folder, tmp_path / "a.zip")):
        (source,) = find_sources([path]).files
        meter = Meter()
        assert len(list(source.read(ReadOptions(meter=meter)))) == 2_000
        assert source.size == sum(p.stat().st_size for p in folder.rglob("*.json"))
        assert meter.position == pytest.approx(source.size, rel=0.001)


def test_an_export_that_changed_is_another_one(tmp_path: Path) -> None:
    folder = export(tmp_path / "export", {"general/2024-03-05.json": [said(1, "first")]})
    (source,) = find_sources([folder]).files
    before = source.identity
    assert source.identity == before
    export(folder, {"general/2024-03-06.json": [said(2, "more")]})
    assert source.identity != before


def test_other_files_beside_an_export_are_read_too(tmp_path: Path) -> None:
    export(tmp_path / "all" / "acme", {"general/2024-03-05.json": [said(1, "first")]})
    (tmp_path / "all" / "z.jsonl").write_text('{"conversation": "c", "sender": "A", "text": "hi"}\n')
    found = find_sources([tmp_path / "all"])
    assert [(s.path.name, s.format) for s in found.files] == [("acme", "slack"), ("z.jsonl", "jsonl")]
    with pytest.raises(UnreadableInputError, match="no known format"):
        find_sources([tmp_path / "all" / "z.jsonl"], format="slack")


def test_12_people_who_left_slackbot_and_other_workspaces(tmp_path: Path) -> None:
    found = messages(day(
        tmp_path, said(1, "bye", user="U0GONE"), said(2, "Reminder: <@U0GONE> stand-up.", user="USLACKBOT"),
        said(3, "hello from next door", user="W9", user_profile={"display_name": "", "real_name": "Ines"}),
    ))  # fmt: skip
    assert [(m.sender_id, m.sender_name, m.text) for m in found] == [
        ("U0GONE", "U0GONE", "bye"), ("USLACKBOT", "USLACKBOT", "Reminder: @U0GONE stand-up."),
        ("W9", "Ines", "hello from next door"),
    ]  # fmt: skip


def test_13_bots_with_and_without_an_id(tmp_path: Path) -> None:
    bot = {"type": "message", "subtype": "bot_message"}
    found = messages(day(
        tmp_path, bot | {"bot_id": "B1", "username": "builder", "text": "Build 7 passed", "ts": f"{T0}.1"},
        bot | {"bot_id": "B2", "bot_profile": {"name": "Deploys"}, "text": "live", "ts": f"{T0}.2"},
        bot | {"username": "cron", "text": "nightly", "ts": f"{T0}.3"}, bot | {"text": "Build 8 failed", "ts": f"{T0}.4"},
        bot | {"bot_id": "B1", "text": "", "ts": f"{T0}.5", "attachments": [
            {"pretext": "Alert", "title": "disk", "text": "90% full", "fallback": "no"}, {"fallback": "see wiki"}]},
        bot | {"bot_id": "B1", "ts": f"{T0}.6", "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "Menu"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "soup"}, "fields": [{"text": "bread"}]}]},
    ))  # fmt: skip
    assert [(m.sender_id, m.sender_name, m.text) for m in found] == [
        ("B1", "builder", "Build 7 passed"), ("B2", "Deploys", "live"), ("cron", "cron", "nightly"),
        ("unknown", "unknown", "Build 8 failed"), ("B1", "B1", "Alert\ndisk\n90% full\nsee wiki"), ("B1", "B1", "Menu\nsoup\nbread"),
    ]  # fmt: skip


def test_14_entries_without_ts_or_text_are_said(tmp_path: Path) -> None:
    no_text = {"type": "message", "user": "U1", "ts": f"{T0}.7", "files": [{"id": "F1", "name": "plan.pdf"}]}
    found = day(
        tmp_path, said(1, "kept", files=[{"name": "map.png"}, None]), {"type": "message", "user": "U1", "text": "no ts"},
        no_text, said(2, "bad", ts="yesterday"), said(3, "worse", ts="2024-03-05T06:40"), ["a list"], said(4, "joined", subtype="channel_join"),
    )  # fmt: skip
    assert [(m.text, m.content_items) for m in messages(found)] == [("kept", ({"type": "file", "name": "map.png"},))]
    assert reasons(found) == [
        ("message without ts", False), ("message without text", True), ("bad time", False), ("bad time", False),
        ("not a message", False), ("system line", True),
    ]  # fmt: skip
    samples = [item.sample for item in found if isinstance(item, Rejected)]
    assert samples[:2] == ["no ts", "plan.pdf"]
    assert all("2024-03-05.json: message " in item.where for item in found if isinstance(item, Rejected))


def test_15_replies_in_other_days_and_a_broadcast_twice_have_one_key(tmp_path: Path) -> None:
    reply = said(200_000, "late answer", thread_ts=f"{T0 + 1}.000001")
    found = messages(read(export(tmp_path / "export", {
        "general/2024-03-05.json": [said(1, "question", reply_count=1), said(2, "orphan", thread_ts="1000000000.000001")],
        "general/2024-03-07.json": [reply, reply | {"subtype": "thread_broadcast", "root": {"ts": f"{T0 + 1}.000001"}}],
    })))  # fmt: skip
    assert [m.text for m in found] == ["question", "orphan", "late answer", "late answer"]
    assert found[2] == found[3]


def test_16_a_message_that_stands_there_nine_times_has_one_key(tmp_path: Path) -> None:
    found = messages(day(tmp_path, *[said(1, "again")] * 9, said(2, "again")))
    assert [len({m.message_id for m in found[:9]}), len({m.message_id for m in found})] == [1, 2]


def test_17_a_channel_without_messages_is_said(tmp_path: Path) -> None:
    found = read(export(
        tmp_path / "export", {"general/2024-03-05.json": [said(1, "hi")], "files-only/2024-03-05.json": [said(2, "", files=[{"name": "a.png"}])]},
        channels=[*GENERAL, {"id": "C2", "name": "nothing-said"}, {"id": "C3", "name": "files-only"}],
    ))  # fmt: skip
    silent = [item for item in found if isinstance(item, Rejected) and item.reason == "channel without messages"]
    assert [(item.sample, item.skipped) for item in silent] == [("files-only", True), ("nothing-said", True)]


def test_private_channels_and_talks_of_two_and_of_several(tmp_path: Path) -> None:
    found = messages(read(export(
        tmp_path / "export",
        {f"{name}/2024-03-05.json": [said(n, name)] for n, name in enumerate(("secret", "D7", "mpdm-nora--tom-1", "not-listed"))},
        groups=[{"id": "G1", "name": "secret"}], dms=[{"id": "D7", "members": ["U1", "U0GONE"]}],
        mpims=[{"id": "G2", "name": "mpdm-nora--tom-1", "members": ["U1", "U2"]}],
    )))  # fmt: skip
    titles = {m.conversation: m.title for m in found if isinstance(m, Titled)}
    assert titles == {"G1": "secret", "D7": "Nora, U0GONE", "G2": "mpdm-nora--tom-1", "not-listed": "not-listed"}


def test_damaged_files_lose_nothing_else(tmp_path: Path) -> None:
    whole = json.dumps([said(1, "one"), said(2, "two")]).encode()
    found = read(export(tmp_path / "export", {
        "general/2024-03-01.json": whole[:-30], "general/2024-03-02.json": b"", "general/2024-03-03.json": {"ok": False},
        "general/2024-03-04.json": b"[]", "general/2024-03-05.json": [said(3, "half \ud83d of a pair"), said(4, "x" * 5_000_000)],
        "general/canvas.json": [], "general/2024-03-06.json": b'[{"type": "message", "ts": "1.0", "text": "see \xed\xa0\xbd\xed\xb8\x82"}]',
    }, users=b'[{"id": "U1", "name": "nora"}, {"name": "nobody"}, {"id": "U2"'))  # fmt: skip
    assert [m.text[:20] for m in messages(found)] == ["one", "half \ufffd of a pair", "x" * 20, "see 😂"]
    assert len(messages(found)[2].text) == 5_000_000
    assert sorted(reasons(found)) == [
        ("a person without an id", False), ("empty file", False), ("not a day of messages", True),
        ("not an array of messages", False), ("the file is cut or damaged", False), ("the file is cut or damaged", False),
    ]  # fmt: skip


def test_the_text_is_what_people_saw() -> None:
    shown = {
        "a &lt; b &amp;&amp; c &gt; d": "a < b && c > d", "&amp;lt; stays": "&lt; stays",
        "<@U1> and <@U9|gone> and <@U8>": "@Nora and @gone and @U8", "in <#C1|old-name>, <#C9>": "in #general, #C9",
        "<!here> <!subteam^S1|@cooks> <!subteam^S2>": "@here @cooks @subteam",
        "<!date^1700000000^{date}|14 November>": "14 November",
        "<https://example.org/a?b=1&amp;c=2>": "https://example.org/a?b=1&c=2",
        "<https://example.org|example.org> <https://example.org/plan|the plan>": "example.org the plan (https://example.org/plan)",
        "<mailto:a@example.org|a@example.org> <tel:123|call>": "a@example.org call (123)", "<3 and :smile:": "<3 and :smile:",
    }  # fmt: skip
    for written, seen in shown.items():
        assert readable(written, people={"U1": "Nora"}, channels={"C1": "general"}) == seen
