"""WhatsApp's chat export: `_chat.txt` or `WhatsApp Chat with NAME.txt`, alone or in the zip that phones send.

Heads follow the locale of the phone, so a file is read twice: first for the form of its heads and the order of day and
month (see whatsapp_dates), then for the messages. Names are all that an export has of people; times have no zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time
from zoneinfo import ZoneInfo

from pipelines.importers.contract import DateOrder, Importer, ReadOptions, Records, Titled
from pipelines.importers.files import DAMAGED, LINE_LIMIT, Readable, lines, open_bytes
from pipelines.importers.times import NaiveTimeError, zone_of
from pipelines.importers.whatsapp_bodies import parted, read_body
from pipelines.importers.whatsapp_dates import DateSurvey, date_of, main_shape
from pipelines.importers.whatsapp_heads import Head, hour_of, parse_head
from pipelines.incoming import Incoming, Rejected
from primitives.clock import to_ms
from primitives.errors import UnreadableInputError
from primitives.text import storable

PLAIN_NAME = "_chat.txt"
OTHER_SHAPES = 0.2
"""Share of the heads that may have another form (copied messages); with more, two exports are in one file."""
_TITLES = (
    re.compile(r"WhatsApp Chat (?:with|mit|con|avec|met|com|-) (?P<name>.+)", re.IGNORECASE),
    re.compile(r"(?:Chat|Conversa|Discussion) (?:de |do |di )?WhatsApp (?:con|com|avec|-) (?P<name>.+)", re.IGNORECASE),
    re.compile(r"(?:WhatsApp\s*)?[与與]\s*(?P<name>.+?)\s*的\s*(?:WhatsApp\s*)?(?:聊天|对话|對話|聊天记录|聊天記錄)"),
    re.compile(r"(?P<name>.+?)님과 WhatsApp 대화"),
)  # fmt: skip
BLANK = "\ufeff \r\n"
SAMPLE = 80


def sniff(path: Readable, head: bytes) -> bool:
    """A text file whose first line that is not blank has the head of a message."""
    if not path.name.lower().endswith((".txt", ".txt.gz")):
        return False
    return parse_head(head.decode("utf-8", "replace").lstrip(BLANK)) is not None


def title_of(path: Readable) -> str:
    """Whose chat it is: from the file's name, or for `_chat.txt` from that of its zip or folder."""
    place: Readable = path.parent if path.name.lower() == PLAIN_NAME else path
    name = place.name
    for suffix in (".gz", ".txt", ".zip"):
        name = name[: -len(suffix)] if name.lower().endswith(suffix) else name
    name = storable(name)
    return next((match["name"] for shape in _TITLES if (match := shape.fullmatch(name))), name) or "WhatsApp"


@dataclass(frozen=True)
class _Layout:
    """How the heads of a file look."""

    shape: tuple[str, ...]
    order: DateOrder
    crlf: bool
    """Whether only a line after a carriage return begins a message: line ends inside of messages are bare then."""


def read(path: Readable, options: ReadOptions) -> Records:
    """The messages of one chat.

    UnreadableInputError where the file leaves open which number of its dates is the day; NaiveTimeError without a zone.
    """
    layout = _survey(path, options.date_order)
    if layout is None:
        yield Rejected("no WhatsApp message in the file", str(path))
        return
    zone = zone_of(options.timezone)
    if zone is None:
        raise NaiveTimeError(
            f"{path}: WhatsApp's times name no zone",
            hint="Say which zone the phone was in: --timezone Asia/Shanghai (or UTC).",
        )
    yield from _Reader(path, options, layout, zone).records()


def _survey(path: Readable, asked: DateOrder | None) -> _Layout | None:
    """Read the whole file for its layout; damage is left to the second reading to report."""
    surveys: dict[tuple[str, ...], DateSurvey] = {}
    after_crlf = True
    with open_bytes(path) as stream:
        try:
            for _, line in lines(stream):
                if line is not None and (head := parse_head(_decoded(line[:400])[0])) is not None:
                    surveys.setdefault(head.shape, DateSurvey()).add(head, after_crlf=after_crlf)
                after_crlf = line is not None and line.endswith(b"\r\n")
        except DAMAGED:
            pass
    shape = main_shape(surveys)
    if shape is None:
        return None
    survey = surveys[shape]
    others = sum(other.heads for other in surveys.values()) - survey.heads
    if others > OTHER_SHAPES * survey.heads and others > 2:
        raise UnreadableInputError(
            f"{path}: the heads of its messages have several forms", hint="Import each export as a file of its own."
        )
    order = survey.order(asked)
    if order is None:
        possible = survey.possible()
        choices = " or ".join(possible) if possible else "none fits all of its dates"
        raise UnreadableInputError(
            f"{path}: it stays open which number of its dates is the day, as in {survey.first!r}",
            hint=f"Say which comes first: --date-order ({choices}).", details={"date_orders": possible},
        )  # fmt: skip
    return _Layout(shape, order, crlf=survey.after_crlf * 2 > survey.heads and survey.heads > 1)


def _decoded(line: bytes) -> tuple[str, bool]:
    """The text of a line, and whether it is UTF-8; of one that is not, with marks where the damage is."""
    try:
        return storable(line.decode("utf-8", "surrogatepass")), True
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), False


@dataclass
class _Open:
    """A message whose further lines may still come."""

    number: int
    head: Head
    lines: list[str]
    size: int = 0
    fault: str = ""
    """Why it cannot be read."""


@dataclass
class _Reader:
    path: Readable
    options: ReadOptions
    layout: _Layout
    zone: ZoneInfo
    title: str = field(init=False)

    def __post_init__(self) -> None:
        self.title = self.options.conversation or title_of(self.path)

    def records(self) -> Records:
        current: _Open | None = None
        starts, stray, number = True, False, 0
        with open_bytes(self.path, self.options.meter) as stream:
            try:
                for number, line in lines(stream):
                    if line is None:  # nobody knows whether a message begins in it
                        if current is not None:
                            yield self._message(current)
                        yield Rejected("line too long", self._where(number))
                        current, starts, stray = None, True, False
                        continue
                    text, is_utf8 = _decoded(line)
                    head = self._head(text) if starts or not self.layout.crlf else None
                    starts = line.endswith(b"\r\n")
                    if head is not None:
                        if current is not None:
                            yield self._message(current)
                        current = _Open(number, head, [])
                        text = text[head.length :]
                    if current is not None:
                        self._add(current, text, is_utf8=is_utf8)
                    elif text.strip(BLANK) and not stray:
                        stray = True  # told once for all lines up to the next message
                        yield Rejected("text that belongs to no message", self._where(number), sample=text[:SAMPLE])
            except DAMAGED as fault:
                yield Rejected("the compressed file is cut or damaged", self._where(number + 1), sample=str(fault))
        if current is not None:
            yield self._message(current)

    def _head(self, line: str) -> Head | None:
        """The head of a message; a line of another form, or one with an impossible date, is text."""
        head = parse_head(line)
        if head is None or head.shape != self.layout.shape or date_of(head, self.layout.order) is None:
            return None
        return head

    def _add(self, current: _Open, text: str, *, is_utf8: bool) -> None:
        current.size += len(text)
        if current.size > LINE_LIMIT:
            current.fault, current.lines = "message too long", current.lines[:1]
        elif not is_utf8:
            current.fault = current.fault or "not UTF-8"
        if current.size <= LINE_LIMIT:
            current.lines.append(text)

    def _where(self, number: int) -> str:
        return f"{self.path}:{number}"

    def _message(self, found: _Open) -> Incoming | Rejected:
        where, whole = self._where(found.number), "".join(found.lines).replace("\r\n", "\n")
        if found.fault:
            return Rejected(found.fault, where, sample=whole[:SAMPLE])
        sender, said = parted(whole)
        if sender is None:
            return Rejected("system line", where, skipped=True, sample=whole.strip()[:SAMPLE])
        body = read_body(said)
        if body.reason:
            return Rejected(body.reason, where, skipped=True, sample=said.strip()[:SAMPLE])
        moment = self._moment(found.head, where)
        if moment is None:
            return Rejected("bad time", where, sample=found.head.text)
        return Titled(
            conversation=self.title, sender_id=sender, text=body.text, timestamp=moment, title=self.title,
            content_items=tuple({"type": "file", "name": name} for name in body.files),
        )  # fmt: skip

    def _moment(self, head: Head, where: str) -> int | None:
        day, hour = date_of(head, self.layout.order), hour_of(head)
        if hour is None:
            raise UnreadableInputError(
                f"{where}: the half of the day in {head.text!r} is written in a way that is not known",
                hint="Export the chat from a phone that shows 24 hours.",
            )
        if day is None or hour > 23 or head.minute > 59 or head.second > 59:
            return None
        # An hour that a clock change doubles is taken as the first of the two.
        return to_ms(datetime.combine(day, time(hour, head.minute, head.second), tzinfo=self.zone))


IMPORTER = Importer(name="whatsapp", owner_rule="group", sniff=sniff, read=read)
