"""Slack's export, a folder or a zip: users.json, lists of channels, and a folder a channel with a JSON file a day.

A channel's conversation is its id, since channels are renamed; its name is the title. A message is known by its `ts`,
which is unique in a channel, so an export that was retried or that repeats a broadcast reply doubles nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from pipelines.importers.arrays import MARK, items
from pipelines.importers.contract import Importer, ReadOptions, Records, Titled
from pipelines.importers.files import Readable, head_of, listing
from pipelines.importers.slack_text import readable
from pipelines.importers.times import BadTimeError, NaiveTimeError, moment
from pipelines.incoming import Incoming, Rejected
from primitives.text import storable

PEOPLE = "users.json"
CHANNELS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}.*\.json")
_SYSTEM = re.compile(
    r"(channel|group|mpim|im)_\w+|(un)?pinned_item|bot_(add|remove|enable|disable)|tombstone|sh_room_\w+"
    r"|huddle_thread|reminder_\w+|joiner_\w+|message_(changed|deleted|replied)"
)
"""Subtypes of what Slack itself writes; all others are somebody's words, also those that come later."""
UNKNOWN = "unknown"
"""Sender of a message that names nobody."""
SAMPLE = 80


class _Channel(NamedTuple):
    id: str
    title: str


def tree(names: Collection[str]) -> bool:
    """Whether files of these names make a folder an export."""
    return PEOPLE in names and any(name in names for name in CHANNELS)


def read(path: Readable, options: ReadOptions) -> Records:
    """The messages of all channels, channel by channel and day by day."""
    export = _Export(path, options)
    yield from export.known()
    for folder in export.folders():
        yield from export.channel(folder)


class _Export:
    def __init__(self, path: Readable, options: ReadOptions) -> None:
        self._path = path
        self._options = options
        self._days: dict[str, list[str]] = {}
        self._others: list[str] = []
        self._top = set()
        for name in listing(path):
            folder, _, last = name.partition("/")
            if not last:
                self._top.add(name)
            elif _DAY.fullmatch(last):
                self._days.setdefault(folder, []).append(last)
            elif last.endswith(".json"):
                self._others.append(name)
        self._people: dict[str, str] = {}
        self._channels: dict[str, _Channel] = {}
        """By the name of the folder."""
        self._names: dict[str, str] = {}
        """Channel id -> name, for mentions."""

    def known(self) -> Iterator[Rejected]:
        """Take in who and which channels there are; yields what could not be read of it."""
        for where, person in self._list(PEOPLE):
            if isinstance(person, Rejected):
                yield person
            elif isinstance(person, dict) and isinstance(person.get("id"), str):
                self._people[person["id"]] = _name_of(person)
            else:
                yield Rejected("a person without an id", where, sample=str(person)[:SAMPLE])
        if PEOPLE not in self._top:
            yield Rejected("no users.json: ids stand for names", str(self._path / PEOPLE), skipped=True)
        for name in CHANNELS:
            for where, channel in self._list(name):
                if isinstance(channel, Rejected):
                    yield channel
                elif isinstance(channel, dict) and isinstance(channel.get("id"), str):
                    self._know(channel)
                else:
                    yield Rejected("a channel without an id", where, sample=str(channel)[:SAMPLE])
        for name in self._others:
            yield Rejected("not a day of messages", str(self._path / name), skipped=True)

    def _list(self, name: str) -> Iterator[tuple[str, Any]]:
        if name in self._top:
            for found in items(self._path / name, "item", noun="entry", meter=self._options.meter):
                yield (found.where, found if isinstance(found, Rejected) else found.value)

    def _know(self, channel: dict[str, Any]) -> None:
        key, name = storable(channel["id"]), channel.get("name")
        if isinstance(name, str) and name:
            self._channels[_folder(name)] = _Channel(key, storable(name))
            self._names[key] = storable(name)
        else:  # a talk of two, in a folder named after its id
            members = channel.get("members")
            people = [self._people.get(m, m) for m in members if isinstance(m, str)] if isinstance(members, list) else []
            self._channels[_folder(key)] = _Channel(key, ", ".join(people) or key)

    def folders(self) -> list[str]:
        """The channels' folders in name order, also those that are listed and not there."""
        there = {_folder(name) for name in self._days}
        return sorted([*self._days, *(name for name in self._channels if name not in there)])

    def channel(self, folder: str) -> Records:
        """The messages of one channel."""
        channel = self._channels.get(_folder(folder), _Channel(storable(folder), storable(folder)))
        messages = 0
        for day in sorted(self._days.get(folder, [])):
            for record in self._day(self._path / folder / day, channel):
                messages += isinstance(record, Incoming)
                yield record
        if not messages:
            yield Rejected("channel without messages", str(self._path / folder), skipped=True, sample=channel.title)

    def _day(self, path: Readable, channel: _Channel) -> Records:
        head = head_of(path, size=SAMPLE).removeprefix(MARK).lstrip()
        if not head.startswith(b"["):
            reason = "not an array of messages" if head else "empty file"
            yield Rejected(reason, str(path), sample=storable(head.decode("utf-8", "replace")))
            return
        for found in items(path, "item", noun="message", meter=self._options.meter):
            if isinstance(found, Rejected):
                yield found
                continue
            try:
                yield self._message(found.value, channel, found.where)
            except RecursionError:
                yield Rejected("nested too deep", found.where)

    def _message(self, entry: Any, channel: _Channel, where: str) -> Incoming | Rejected:
        if not isinstance(entry, dict):
            return Rejected("not a message", where, sample=str(entry)[:SAMPLE])
        text = self._text(entry)
        if _SYSTEM.fullmatch(str(entry.get("subtype") or "")) or entry.get("type", "message") != "message":
            return Rejected("system line", where, skipped=True, sample=text[:SAMPLE])
        stamp = entry.get("ts")
        if stamp in (None, ""):
            return Rejected("message without ts", where, sample=text[:SAMPLE])
        files = _files(entry)
        if not text.strip():
            names = ", ".join(str(file["name"]) for file in files)
            return Rejected("message without text", where, skipped=True, sample=names[:SAMPLE])
        try:
            time = moment(stamp, None, where=where)
        except (BadTimeError, NaiveTimeError) as fault:
            return Rejected("bad time", where, sample=str(fault))
        sender, name = self._sender(entry)
        return Titled(
            conversation=channel.id, sender_id=sender, sender_name=name, text=text, timestamp=time,
            message_id=storable(str(stamp)), content_items=files, title=channel.title,
        )  # fmt: skip

    def _sender(self, entry: dict[str, Any]) -> tuple[str, str]:
        """Id and name. People who left and bots are in no list; entries of other workspaces carry a profile."""
        user, bot, called = (entry.get(key) for key in ("user", "bot_id", "username"))
        sender = storable(str(user or bot or called or UNKNOWN))
        profiles = [entry.get(key) for key in ("user_profile", "bot_profile")]
        given = next((name for p in profiles if isinstance(p, dict) and (name := _profile_name(p))), None)
        return sender, storable(self._people.get(sender) or str(called or given or sender))

    def _text(self, entry: dict[str, Any]) -> str:
        """The text; where there is none, that of the attachments (which bots write into) or of the blocks."""
        text = entry.get("text")
        if not isinstance(text, str) or not text.strip():
            text = "\n".join([*_attached(entry.get("attachments")), *([] if entry.get("attachments") else _said(entry))])
        return readable(storable(text), people=self._people, channels=self._names)


def _folder(name: str) -> str:
    """A folder's name as it is compared: macOS unpacks accents in another form than Slack writes."""
    return unicodedata.normalize("NFC", name)


def _name_of(person: dict[str, Any]) -> str:
    profile = person.get("profile")
    shown = _profile_name(profile) if isinstance(profile, dict) else ""
    return storable(shown or str(person.get("real_name") or person.get("name") or person["id"]))


def _profile_name(profile: dict[str, Any]) -> str:
    """The name that Slack shows."""
    return next((str(profile[key]) for key in ("display_name", "real_name", "name") if profile.get(key)), "")


def _files(entry: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    files = entry.get("files")
    return tuple(
        {"type": "file", "name": str(file.get("name") or file.get("title") or file.get("id") or "")}
        for file in (files if isinstance(files, list) else [])
        if isinstance(file, dict)
    )


def _attached(attachments: Any) -> Iterator[str]:
    for part in attachments if isinstance(attachments, list) else []:
        if isinstance(part, dict):
            texts = [part[key] for key in ("pretext", "title", "text") if isinstance(part.get(key), str) and part[key]]
            fallback = part.get("fallback")
            yield from texts or ([fallback] if isinstance(fallback, str) else [])


def _said(entry: dict[str, Any]) -> Iterator[str]:
    """The texts of the layout blocks, outermost first."""
    waiting: list[Any] = [entry.get("blocks")]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        elif isinstance(part, dict):
            waiting.extend(part[key] for key in ("elements", "fields") if key in part)
            text = part.get("text")
            if isinstance(text, str):
                yield text
            else:
                waiting.append(text)


IMPORTER = Importer(name="slack", owner_rule="group", sniff=lambda path, head: False, read=read, tree=tree)
