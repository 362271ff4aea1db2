"""What an importer is. A new format is one module in this package with an `IMPORTER` in it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipelines.incoming import Incoming, Rejected

OwnerRule = Literal["group", "user"]


@dataclass
class Meter:
    """How many bytes of a file were read so far (of a compressed one, compressed bytes), for progress."""

    position: int = 0


@dataclass(frozen=True)
class ReadOptions:
    """What the person who imports may say about a file."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Field of ours -> name in the file (JSONL)."""
    timezone: str | None = None
    """Zone of times that name none, such as `Asia/Shanghai`."""
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
    sniff: Callable[[Path, bytes], bool]
    """Whether the file is of this format, from its name and its first (decompressed) bytes."""
    read: Callable[[Path, ReadOptions], Records]
    """The records, streamed in source order. What cannot be read is a Rejected; UnreadableInputError refuses the
    rest of the file, because going on would store something wrong."""
    general: bool = False
    """Asked only after all the particular formats said no."""
