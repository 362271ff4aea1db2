"""WhatsApp's chat export (items 24 to 27 of the import quirks): locales, marks, system lines and long bodies."""

from __future__ import annotations

import gzip
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipelines.importers import whatsapp
from pipelines.importers.contract import ReadOptions, Titled
from pipelines.importers.registry import check_start, find_sources
from pipelines.importers.whatsapp import title_of
from pipelines.importers.whatsapp_bodies import parted, read_body
from pipelines.importers.whatsapp_heads import hour_of, parse_head
from pipelines.incoming import Incoming, Rejected
from primitives.clock import to_ms
from primitives.errors import UnreadableInputError

MARCH_5 = datetime(2024, 3, 5, 14, 40, tzinfo=UTC)


def read(path: Path, text: str | bytes, **options: Any) -> list[Incoming | Rejected]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return list(whatsapp.read(path, ReadOptions(**({"timezone": "UTC"} | options))))


def chat(tmp_path: Path, *lines: str, end: str = "\n", **options: Any) -> list[Incoming | Rejected]:
    """Lines with heads such as `25/03/2024, 14:40 - `; the first shows that the day comes first."""
    return read(tmp_path / "WhatsApp Chat with Ann.txt", end.join(("25/03/2024, 09:00 - Ann: start", *lines)) + end, **options)[1:]


def texts(found: list[Incoming | Rejected]) -> list[str]:
    return [item.text for item in found if isinstance(item, Incoming)]


LOCALES = {
    "ios_en_us": "[3/5/24, 2:40:00\u202fPM] Ann: hi", "android_en_us": "3/5/24, 2:40\u202fPM - Ann: hi",
    "android_en_gb": "05/03/2024, 14:40 - Ann: hi", "android_en_in": "05/03/24, 2:40 pm - Ann: hi",
    "android_en_in_nbsp": "05/03/24, 2:40\u00a0pm - Ann: hi", "ios_de": "[05.03.24, 14:40:00] Ann: hi", "android_de": "05.03.24, 14:40 - Ann: hi",
    "android_nl": "05-03-2024 14:40 - Ann: hi", "ios_nl": "[05-03-2024 14:40:00] Ann: hi", "android_sv": "2024-03-05 14:40 - Ann: hi",
    "android_es": "5/3/24, 2:40\u00a0p.\u00a0m. - Ann: hi", "android_es_thin": "5/3/24 2:40\u2009p.m. - Ann: hi", "android_da": "05.03.2024 14.40 - Ann: hi",
    "android_zh": "2024/3/5 14:40 - Ann: hi", "android_zh_12": "2024年3月5日 下午2:40 - Ann: hi", "ios_zh": "[2024/3/5 下午2:40:00] Ann: hi",
    "ios_zh_short": "[24/3/5 下午2:40:00] Ann: hi", "android_ja": "2024/03/05 14:40 - Ann: hi",
    "android_ko": "2024. 3. 5. 오후 2:40, Ann : hi", "ios_ko": "[2024. 3. 5. 오후 2:40:00] Ann: hi",
    "android_el": "5/3/24, 2:40 μ.μ. - Ann: hi", "android_tr": "5.03.2024 14:40 - Ann: hi", "android_hu": "2024. 03. 05. 14:40 - Ann: hi",
    "ios_ar": "[\u200f٥\u200f/٣\u200f/٢٠٢٤، ٢:٤٠:٠٠ م] Ann: hi", "ios_mark": "\u200e[05/03/2024, 14:40:00] Ann: hi",
}  # fmt: skip


@pytest.mark.parametrize("name", LOCALES)
def test_24_and_25_heads_of_many_locales(tmp_path: Path, name: str) -> None:
    line = LOCALES[name]
    day = {"ios_en_us": ("/5", "/25"), "android_en_us": ("/5", "/25"), "ios_ar": ("٥", "٢٥")}.get(name, ("05" if "05" in line else "5", "25"))
    second = line if line.startswith(("2", "[2")) else line.replace(*day, 1)
    found = read(tmp_path / "_chat.txt", f"{line}\n{second}\n")
    first = found[0]
    assert isinstance(first, Incoming), found
    assert (first.sender_id, first.text, first.timestamp) == ("Ann", "hi", to_ms(MARCH_5))
    assert len(texts(found)) == 2


def test_24_the_whole_file_shows_the_order_and_else_it_is_asked_for(tmp_path: Path) -> None:
    early = "03/04/2024, 08:00 - Ann: one\n04/04/2024, 08:00 - Ben: two\n"
    path = tmp_path / "WhatsApp Chat with Ann.txt"
    with pytest.raises(UnreadableInputError, match=r"03/04/2024, 08:00.*--date-order \(day-first or month-first\)") as caught:
        read(path, early)
    assert caught.value.details == {"date_orders": ["day-first", "month-first"]}
    (source,) = find_sources([path]).files
    with pytest.raises(UnreadableInputError, match="--date-order"):  # before a job begins
        check_start(source, ReadOptions(timezone="UTC"))

    def first(text: str, **options: Any) -> datetime:
        (item, *_) = read(path, text, **options)
        assert isinstance(item, Incoming)
        assert item.timestamp is not None
        return datetime.fromtimestamp(item.timestamp / 1_000, UTC)

    april, march = datetime(2024, 4, 3, 8, tzinfo=UTC), datetime(2024, 3, 4, 8, tzinfo=UTC)
    assert first(early, date_order="day-first") == april
    assert first(early, date_order="month-first") == march
    assert first(early + "25/04/2024, 08:00 - Ann: late\n") == april
    assert first(early + "04/25/2024, 08:00 - Ann: late\n") == march
    assert first(early + "25/04/2024, 08:00 - Ann: late\n", date_order="month-first") == april  # what the file shows stands
    assert first(early + "02/05/2024, 08:00 - Ann: May\n") == april  # else it would go back from March to February
    assert first(early.replace("/", ".")) == april  # no locale writes the month first with dots
    with pytest.raises(UnreadableInputError, match="none fits all"):
        read(path, early + "25/04/2024, 08:00 - Ann: x\n04/25/2024, 08:00 - Ann: y\n")
    with pytest.raises(UnreadableInputError, match="day-first or year-first"):
        read(path, "[24/3/25 下午2:40:00] Ann: hi\n")


def test_times_need_a_zone(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="--timezone"):
        read(tmp_path / "_chat.txt", LOCALES["android_sv"], timezone=None)
    (found,) = read(tmp_path / "_chat.txt", LOCALES["android_sv"], timezone="Asia/Shanghai")
    assert isinstance(found, Incoming)
    assert found.timestamp == to_ms(MARCH_5) - 8 * 3_600_000


def test_halves_of_the_day() -> None:
    hours = {"12:05 AM": 0, "1:05 am": 1, "12:05 PM": 12, "11:05 p. m.": 23, "凌晨2:05": 2, "上午12:05": 0, "中午12:05": 12,
             "中午1:05": 13, "晚上11:05": 23, "오전 12:05": 0, "14:05": 14, "14:05 PM": 14, "2:05 पूर्वाह्न": 2, "2:05 xx": None}  # fmt: skip
    for written, hour in hours.items():
        head = parse_head(f"[3/25/24, {written}] Ann: hi")
        assert head is not None, written
        assert hour_of(head) == hour, written


def test_an_unknown_half_of_the_day_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="half of the day"):
        read(tmp_path / "_chat.txt", "[3/25/24, 2:05 xx] Ann: hi\n")


def test_26_marks_and_system_lines(tmp_path: Path) -> None:
    lines = [
        "[25/03/2024, 14:40:00] Hiking club: \u200eMessages and calls are end-to-end encrypted.",
        "[25/03/2024, 14:41:00] \u200eYou created this group", "\u200e[25/03/2024, 14:42:00] Ann: hi",
        "[25/03/2024, 14:43:00] \u202a+49 151 123\u202c: hello @\u2068Ann\u2069", "[25/03/2024, 14:44:00] ~\u202fBen: who is this",
        "[25/03/2024, 14:45:00] Ann: \u200eimage omitted", "[25/03/2024, 14:46:00] Ann: look \u200e<attached: 0001-PHOTO.jpg>",
        "[25/03/2024, 14:47:00] Ann: \u200e<attached: 0002-AUDIO.opus>", "[25/03/2024, 14:48:00] Ann: fixed \u200e<This message was edited>",
        "[25/03/2024, 14:49:00] Ann: \u200ePOLL:\nWhere to?\n\u200eOPTION: Lake (2 votes)",
    ]  # fmt: skip
    found = read(tmp_path / "_chat.txt", "\r\n".join(lines) + "\r\n", conversation="Hiking club")
    assert [(m.sender_id, m.text) for m in found if isinstance(m, Incoming)] == [
        ("Ann", "hi"), ("+49 151 123", "hello @Ann"), ("~Ben", "who is this"), ("Ann", "look "), ("Ann", "fixed"),
        ("Ann", "POLL:\nWhere to?\nOPTION: Lake (2 votes)"),
    ]  # fmt: skip
    assert [m.content_items for m in found if isinstance(m, Incoming) and m.content_items] == [({"type": "file", "name": "0001-PHOTO.jpg"},)]
    assert [(item.reason, item.skipped) for item in found if isinstance(item, Rejected)] == [
        ("system line", True), ("system line", True), ("system line", True), ("file without text", True)
    ]  # fmt: skip


def test_26_system_lines_of_android(tmp_path: Path) -> None:
    found = chat(
        tmp_path, "25/03/2024, 09:01 - Messages and calls are end-to-end encrypted. Tap to learn more.",
        '25/03/2024, 09:02 - Ann changed the group name from "Rome: may" to "Rome: june"', "25/03/2024, 09:03 - Ben: <Media omitted>",
        "25/03/2024, 09:04 - Ben: This message was deleted", "25/03/2024, 09:05 - Ben: \u200eIMG-2024.jpg (file attached)\nthe lake",
        "25/03/2024, 09:06 - Ben: plan.pdf (Datei angehängt)", "25/03/2024, 09:07 - Ben: see plan.pdf (the new one)", "25/03/2024, 09:08 - Ben: ",
        "25/03/2024, 09:09 - Ben:\nbelow",
    )  # fmt: skip
    assert texts(found) == ["the lake", "see plan.pdf (the new one)", "below"]
    assert [item.reason for item in found if isinstance(item, Rejected)] == [
        "system line", "system line", "media left out of the export", "deleted message", "file without text", "blank text"
    ]  # fmt: skip
    assert all(item.skipped for item in found if isinstance(item, Rejected))


def test_27_long_bodies_with_colons_times_and_a_copied_head(tmp_path: Path) -> None:
    body = "list:\nmeet at 14:05: bring water\n\nBen: I said that\n26/03/2024, 10:00 - Ben: copied from another chat\n12.30 - lunch"
    found = chat(tmp_path, f"25/03/2024, 09:01 - Ann: {body}", "25/03/2024, 09:02 - Ben: ok", end="\r\n")
    assert texts(found) == [body, "ok"]
    bare = chat(tmp_path, "25/03/2024, 09:01 - Ann: list\n[26/03/2024, 10:00:00] Ben: from a phone of another kind\n99/99/2024, 10:00 - no date")
    assert texts(bare) == ["list\n[26/03/2024, 10:00:00] Ben: from a phone of another kind\n99/99/2024, 10:00 - no date"]


def test_two_exports_in_one_file_are_refused(tmp_path: Path) -> None:
    lines = [f"25/03/2024, 09:0{n} - Ann: a\n[26/03/2024, 10:0{n}:00] Ben: b" for n in range(5)]
    with pytest.raises(UnreadableInputError, match="several forms"):
        chat(tmp_path, *lines)


def test_names_of_chats(tmp_path: Path) -> None:
    names = {
        "WhatsApp Chat with Anna & Ben.txt": "Anna & Ben", "WhatsApp Chat mit Hütte 2024.txt": "Hütte 2024",
        "Chat de WhatsApp con Los Lunes.txt": "Los Lunes", "Conversa do WhatsApp com Praia.txt": "Praia", "与周末爬山的 WhatsApp 聊天.txt": "周末爬山",
        "WhatsApp Chat - Rome/_chat.txt": "Rome", "family/_chat.txt": "family", "export.txt": "export",
    }  # fmt: skip
    assert {name: title_of(tmp_path / name) for name in names} == names
    for name, text in (("WhatsApp Chat - Rome.zip", "_chat.txt"), ("anything.zip", "WhatsApp Chat with Rome.txt")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(text, LOCALES["android_sv"])
            archive.writestr("IMG-1.jpg", b"\xff\xd8\xff")
        found = find_sources([tmp_path / name])
        (message,) = found.files[0].read(ReadOptions(timezone="UTC"))
        assert isinstance(message, Titled)
        assert (message.conversation, message.title, found.files[0].format) == ("Rome", "Rome", "whatsapp")
        assert [record.reason for record in found.passed_over] == ["unknown format"]
    (named,) = find_sources([tmp_path / "anything.zip"]).files[0].read(ReadOptions(timezone="UTC", conversation="mine"))
    assert isinstance(named, Incoming)
    assert named.conversation == "mine"


def test_what_is_told_apart_from_other_texts(tmp_path: Path) -> None:
    for name, text in (("notes.txt", "buy milk\n25/03/2024, 09:00 - Ann: hi\n"), ("server.log", LOCALES["android_sv"]), ("empty.txt", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "mark.txt").write_bytes(b"\xef\xbb\xbf\r\n" + LOCALES["android_sv"].encode())
    assert [s.path.name for s in find_sources([tmp_path]).files] == ["mark.txt"]
    (found,) = read(tmp_path / "notes.txt", "buy milk\n")
    assert isinstance(found, Rejected)
    assert found.reason == "no WhatsApp message in the file"
    found = read(tmp_path / "notes.txt", "milk\nbread\n25/03/2024, 09:00 - Ann: hi\n")[0]
    assert isinstance(found, Rejected)
    assert (found.reason, found.where, found.sample) == ("text that belongs to no message", f"{tmp_path}/notes.txt:1", "milk\n")


def test_damage_odd_bytes_and_a_text_of_5_mb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"25/03/2024, 09:0%d - Ann: "
    data = b"\n".join([head % 1 + b"see \xed\xa0\xbd\xed\xb8\x82", head % 2 + b"bad \xff byte", b"more", head % 3 + b"half \xed\xa0\xbd",
                       head % 4 + b"x" * 5_000_000, b"25/03/2024, 29:99 - Ann: no such time", head % 5 + b"end"])  # fmt: skip
    found = read(tmp_path / "_chat.txt", data)
    assert [(text[:8], len(text)) for text in texts(found)] == [("see 😂", 5), ("half \ufffd", 6), ("xxxxxxxx", 5_000_000), ("end", 3)]
    assert [(item.reason, item.where.rpartition(":")[2]) for item in found if isinstance(item, Rejected)] == [("not UTF-8", "2"), ("bad time", "6")]
    monkeypatch.setattr("pipelines.importers.files.LINE_LIMIT", 1_000)
    monkeypatch.setattr("pipelines.importers.whatsapp.LINE_LIMIT", 1_000)
    found = chat(tmp_path, "25/03/2024, 09:01 - Ann: " + "x" * 2_000, "25/03/2024, 09:02 - Ann: " + "many lines\n" * 200, "25/03/2024, 09:03 - Ben: ok")
    assert [getattr(item, "reason", "read") for item in found] == ["line too long", "message too long", "read"]
    whole = gzip.compress("".join(f"25/03/2024, 09:00 - Ann: number {n} {hash(n * 7919)}\n" for n in range(5_000)).encode())
    found = read(tmp_path / "cut.txt.gz", whole[: len(whole) // 2])
    assert len(texts(found)) > 1_000
    assert [item.reason for item in found if isinstance(item, Rejected)] == ["the compressed file is cut or damaged"]


def test_equal_times_and_messages_out_of_order_are_kept(tmp_path: Path) -> None:
    found = chat(tmp_path, *["25/03/2024, 09:01 - Ann: ok"] * 3, "25/03/2024, 08:00 - Ben: earlier", "25/03/2094, 09:02 - Ann: later")
    assert texts(found) == ["ok", "ok", "ok", "earlier", "later"]
    moments = [m.timestamp for m in found if isinstance(m, Incoming)]
    assert moments[0] == moments[2]
    assert moments[3] < moments[0] < moments[4]  # type: ignore[operator]


def test_senders_and_bodies() -> None:
    assert parted("Ann: a: b") == ("Ann", "a: b")
    assert parted("민수 : 안녕") == ("민수", "안녕")
    assert parted("nobody says this")[0] is None
    assert parted("Ann changed the subject to “Rome: june”")[0] is None
    assert read_body("\u200eLocation: https://maps.example.org/?q=1,2").text == "Location: https://maps.example.org/?q=1,2"
    assert read_body("<3").text == "<3"
    assert read_body("\u200eMissed voice call").reason == "system line"
