"""What an importer is. A new format is one module in this package with an `IMPORTER` in it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipelines.importers.files import Meter, Readable
from pipelines.incoming import Incoming, Rejected

OwnerRule = Literal["group", "user"]
DateOrder = Literal["day-first", "month-first", "year-first"]


@dataclass(frozen=True)
class ReadOptions:
    """What the person who imports may say about a file."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Field of ours -> name in the file (JSONL)."""
    timezone: str | None = None
    """Zone of times that name none, such as `Asia/Shanghai`."""
    date_order: DateOrder | None = None
    """Which number of a date comes first, for files that leave it open (WhatsApp)."""
    conversation: str | None = None
    """Name of the conversation, for files that hold one and do not name it (WhatsApp)."""
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True)
class Titled(Incoming):
    """A message of a conversation that has a title beside its id."""

    title: str = ""


Records = Iterator[Incoming | Rejected]


@dataclass(frozen=True)
class Importer:
    """One format."""

    name: str
    owner_rule: OwnerRule
    """Whose memory a conversation becomes: `group` (the conversation itself) or `user` (the person named at import)."""
    sniff: Callable[[Readable, bytes], bool]
    """Whether the file is of this format, from its name and its first (decompressed) bytes."""
    read: Callable[[Readable, ReadOptions], Records]
    """The records, streamed in source order. What cannot be read is a Rejected; UnreadableInputError refuses the
    rest of the file, because going on would store something wrong."""
    general: bool = False
    """Asked only after all the particular formats said no."""
    tree: Callable[[Collection[str]], bool] | None = None
    """Whether a folder (or a zip, or a folder in one) with files of these names in it is one export as a whole; `read`
    is then given the folder. None for formats whose exports are single files."""
