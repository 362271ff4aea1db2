"""Which importer reads which file. Importers are found in this package; nothing has to be registered."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pipelines.importers as package
from pipelines.importers.contract import Importer, ReadOptions, Records, Titled
from pipelines.importers.files import head_of
from pipelines.incoming import Incoming, Rejected
from primitives.clock import to_iso
from primitives.errors import InvalidInputError, NotFoundError, UnreadableInputError

AUTO = "auto"


@cache
def importers() -> dict[str, Importer]:
    """All formats by name; particular ones before general ones."""
    found: list[Importer] = []
    for module in pkgutil.iter_modules(package.__path__):
        candidate = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "IMPORTER", None)
        if isinstance(candidate, Importer):
            found.append(candidate)
    return {importer.name: importer for importer in sorted(found, key=lambda i: (i.general, i.name))}


@dataclass(frozen=True)
class Source:
    """One file to read, and the format it is in."""

    path: Path
    format: str

    @property
    def importer(self) -> Importer:
        return importers()[self.format]

    @property
    def identity(self) -> str:
        """The file as it is now: a changed file is another one, so nothing of it passes for imported."""
        status = self.path.stat()
        return f"{self.path}@{status.st_size}-{status.st_mtime_ns}"

    def read(self, options: ReadOptions) -> Records:
        """All records. A file that the importer refuses midway ends with the reason, so that nothing goes missing
        in silence; one without any record says so."""
        empty = True
        try:
            for record in self.importer.read(self.path, options):
                empty = False
                yield record
        except UnreadableInputError as fault:
            yield Rejected("the rest of the file is refused", f"{self.path}", sample=str(fault))
            return
        if empty:
            yield Rejected("nothing in the file", str(self.path))


@dataclass(frozen=True)
class Sources:
    """Files to read in order, and files that were found in folders and passed over."""

    files: list[Source] = field(default_factory=list)
    passed_over: list[Rejected] = field(default_factory=list)


def find_sources(paths: Sequence[str | Path], *, format: str = AUTO) -> Sources:
    """The files under `paths`, folders walked in name order. NotFoundError, InvalidInputError, UnreadableInputError."""
    if format != AUTO and format not in importers():
        raise InvalidInputError(f"unknown format {format!r}", hint=f"Known: {AUTO}, {', '.join(importers())}.")
    found = Sources()
    for path in map(Path, paths):
        if not path.exists():
            raise NotFoundError(f"there is no {path}", hint="Check the path.")
        if path.is_dir():
            for inner in sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path))):
                _take(found, inner.resolve(), format, named=False)
        else:
            _take(found, path.resolve(), format, named=True)
    if not found.files and not found.passed_over:
        raise UnreadableInputError(f"no files in {', '.join(map(str, paths))}", hint=_known())
    if not found.files and all(r.reason == _UNKNOWN for r in found.passed_over):
        raise UnreadableInputError(f"no file of a known format in {', '.join(map(str, paths))}", hint=_known())
    return found


_UNKNOWN = "unknown format"


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _known() -> str:
    return f"Known formats: {', '.join(importers())}; choose one with --format."


def _take(found: Sources, path: Path, format: str, *, named: bool) -> None:
    try:
        size, head = path.stat().st_size, head_of(path)
    except PermissionError as fault:
        raise UnreadableInputError(f"{path} may not be read", hint="Check its owner and rights.") from fault
    if size == 0 or (not head.strip() and size < 64):
        found.passed_over.append(Rejected("empty file", str(path)))
        return
    name = format if format != AUTO else next((n for n, i in importers().items() if i.sniff(path, head)), None)
    if name is not None:
        found.files.append(Source(path, name))
    elif named:
        raise UnreadableInputError(f"{path} is of no known format", hint=_known())
    else:
        found.passed_over.append(Rejected(_UNKNOWN, str(path), skipped=True))


def check_start(source: Source, options: ReadOptions, *, records: int = 1_000) -> None:
    """Read the beginning of a file, so that what refuses it is raised before a job begins."""
    for number, _ in enumerate(source.importer.read(source.path, options)):
        if number >= records:
            break


def parse_paths(
    paths: Sequence[str | Path], *, format: str = AUTO, options: ReadOptions | None = None
) -> Iterator[dict[str, Any]]:
    """What the importers read, as rows {conversation, sender, time, text}; rejected records are left out."""
    given = options or ReadOptions()
    for source in find_sources(paths, format=format).files:
        for record in source.read(given):
            if isinstance(record, Incoming):
                title = record.title if isinstance(record, Titled) else ""
                yield {
                    "conversation": title or record.conversation, "sender": record.sender_id,
                    "time": to_iso(record.timestamp), "text": record.text, "message_id": record.message_id,
                }  # fmt: skip
