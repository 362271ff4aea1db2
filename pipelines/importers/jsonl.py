"""JSON lines: one message a line, under any of the usual field names.

A line with a role and a `user_id` belongs to that person's talk with an assistant; the role tells it from a chat of
several people, in which a `user_id` is nothing but the sender.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pipelines.importers.contract import Importer, ReadOptions, Records
from pipelines.importers.files import DAMAGED, Readable, lines, open_bytes
from pipelines.importers.times import BadTimeError, moment, zone_of
from pipelines.incoming import Incoming, Rejected
from primitives.errors import InvalidInputError
from primitives.text import storable

ALIASES: dict[str, tuple[str, ...]] = {
    "conversation": ("conversation", "conv", "chat", "channel", "group_id", "session_id"),
    "sender": ("sender", "speaker", "sender_id", "from", "author", "user"),
    "sender_name": ("sender_name", "name"),
    "text": ("text", "content", "message", "body"),
    "time": ("time", "timestamp", "ts", "date", "created_at"),
    "message_id": ("message_id", "id"),
    "role": ("role",),
    "user": ("user_id",),
}
ROLES = ("user", "assistant", "system", "tool")
SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
SAMPLE = 80


def sniff(path: Readable, head: bytes) -> bool:
    """By its name, or by a first line that is a whole JSON object with a text in it."""
    if path.name.lower().endswith(SUFFIXES):
        return True
    first, newline, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not first.startswith(b"{") or not (newline or first.rstrip().endswith(b"}")):
        return False
    try:
        row = _parse(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and _find(row, "text", {}) is not None


def read(path: Readable, options: ReadOptions) -> Records:
    """The messages of a file, line by line."""
    unknown = sorted(set(options.fields) - set(ALIASES))
    if unknown:
        raise InvalidInputError(f"unknown field(s) {', '.join(unknown)}", hint=f"Known: {', '.join(ALIASES)}.")
    return _Reader(path, options).records()


class _Reader:
    def __init__(self, path: Readable, options: ReadOptions) -> None:
        self._path = path
        self._options = options
        self._zone = zone_of(options.timezone)
        self._nameless: bool | None = None
        """Whether the whole file is one conversation: decided by its first object, so that a single broken line
        never opens a conversation of its own."""

    def records(self) -> Iterator[Incoming | Rejected]:
        number = 0
        with open_bytes(self._path, self._options.meter) as stream:
            try:
                for number, line in lines(stream):
                    where = f"{self._path}:{number}"
                    if line is None:
                        yield Rejected("line too long", where)
                    elif line.strip():
                        yield self._record(line, where, first=number == 1)
            except DAMAGED as fault:
                where = f"{self._path}:{number + 1}"
                yield Rejected("the compressed file is cut or damaged", where, sample=str(fault))

    def _record(self, line: bytes, where: str, *, first: bool) -> Incoming | Rejected:
        if first:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            row = _parse(line)
        except UnicodeDecodeError:
            return Rejected("not UTF-8", where, sample=_sample(line))
        except (ValueError, RecursionError):
            return Rejected("bad JSON", where, sample=_sample(line))
        if not isinstance(row, dict):
            return Rejected("not an object", where, sample=_sample(line))
        try:
            return self._message(row, where)
        except BadTimeError as fault:
            return Rejected("bad time", where, sample=str(fault))
        except RecursionError:
            return Rejected("nested too deep", where, sample=_sample(line))

    def _message(self, row: dict[str, Any], where: str) -> Incoming | Rejected:
        fields = self._options.fields
        conversation = _name(_find(row, "conversation", fields))
        if self._nameless is None:
            self._nameless = not conversation
        if not conversation:
            if not self._nameless:
                return Rejected("no conversation", where, sample=_sample(row))
            conversation = _stem(self._path)
        raw = _find(row, "text", fields)
        if raw is None and "text" in fields and fields["text"] not in row and "." not in fields["text"]:
            return Rejected("no text field", where, sample=_sample(row))
        text, parts = _text(raw)
        if not text.strip():
            return Rejected("blank text", where, skipped=True)
        role, sender = str(_find(row, "role", fields) or "").lower(), _find(row, "sender", fields)
        person = _name(_find(row, "user", fields))
        owner = person if person and role in ("user", "assistant") else None
        sender_id = _name(sender) or role or person
        if not sender_id:
            return Rejected("no sender", where, sample=_sample(row))
        if role not in ROLES:
            role = "assistant" if sender_id == "assistant" else "user"
        label = _find(row, "sender_name", fields) or (sender.get("name") if isinstance(sender, dict) else "")
        return Incoming(
            conversation=conversation, sender_id=sender_id, sender_name=storable(str(label or "")), text=text, role=role,
            timestamp=moment(_find(row, "time", fields), self._zone, where=where),
            message_id=_name(_find(row, "message_id", fields)) or None, content_items=parts, owner_user_id=owner,
        )  # fmt: skip


def _parse(line: bytes) -> Any:
    """One JSON value. Surrogates, alone or as two halves in UTF-8, are accepted; orjson refuses them."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line.decode("utf-8", "surrogatepass"))


def _find(row: Mapping[str, Any], name: str, fields: Mapping[str, str]) -> Any:
    """The value of one of our fields; a name with dots looks into inner objects."""
    if name not in fields:
        return next((row[alias] for alias in ALIASES[name] if row.get(alias) is not None), None)
    key = fields[name]
    if key in row or "." not in key:
        return row.get(key)
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _name(value: Any) -> str:
    """An id: a string or a number as it is; of an object, its id or name."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("id", "name", "username") if value.get(key)), None)
    if value is None or isinstance(value, bool | list):
        return ""
    return storable(str(value)).strip()


def _text(value: Any) -> tuple[str, tuple[dict[str, Any], ...]]:
    """The text of a message, and its parts that are none; content may be a list of parts."""
    if not isinstance(value, list):
        return ("", ()) if value is None or isinstance(value, dict | bool) else (storable(str(value)), ())
    texts: list[str] = []
    parts: list[dict[str, Any]] = []
    for part in value:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, dict):
            parts.append(part)
    return storable("\n".join(texts)), tuple(parts)


def _stem(path: Readable) -> str:
    name = path.name
    return next((name[: -len(s)] for s in reversed(SUFFIXES) if name.lower().endswith(s)), path.stem) or name


def _sample(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return storable(text.strip()[:SAMPLE])


IMPORTER = Importer(name="jsonl", owner_rule="group", sniff=sniff, read=read, general=True)
