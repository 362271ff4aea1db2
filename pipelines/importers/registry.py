"""Which importer reads which file. Importers are found in this package; nothing has to be registered."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pipelines.importers as package
from pipelines.importers.contract import Importer, ReadOptions, Records
from pipelines.importers.files import ZIP_MARKS, Inside, Readable, head_of, listing, stamp_of
from pipelines.incoming import Rejected
from primitives.errors import InvalidInputError, NotFoundError, UnreadableInputError
from primitives.hashing import stable_id

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
    """One thing to read, and the format it is in: a file, or a folder that is one export as a whole. Either may lie in
    a zip."""

    path: Readable
    format: str

    @property
    def importer(self) -> Importer:
        return importers()[self.format]

    @property
    def size(self) -> int:
        """Bytes that a reader's meter will show in the end."""
        return stamp_of(self.path).size

    @property
    def identity(self) -> str:
        """The source as it is now: a changed file is another one, so nothing of it passes for imported."""
        if isinstance(self.path, Path) and self.path.is_dir():
            return f"{self.path}@{stable_id(sorted(listing(self.path).items()))[:24]}"
        stamp = stamp_of(self.path)
        return f"{self.path}@{stamp.size}-{stamp.changed_ns}"

    def read(self, options: ReadOptions) -> Records:
        """All records. A source that the importer refuses midway ends with the reason, so that nothing goes missing
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
    """What to read, in order, and files that were found in folders and zips and passed over."""

    files: list[Source] = field(default_factory=list)
    passed_over: list[Rejected] = field(default_factory=list)


def find_sources(paths: Sequence[str | Path], *, format: str = AUTO) -> Sources:
    """What is under `paths`, folders and zips walked in name order.

    NotFoundError, InvalidInputError, UnreadableInputError.
    """
    if format != AUTO and format not in importers():
        raise InvalidInputError(f"unknown format {format!r}", hint=f"Known: {AUTO}, {', '.join(importers())}.")
    found = Sources()
    for path in map(Path, paths):
        if not path.exists():
            raise NotFoundError(f"there is no {path}", hint="Check the path.")
        if path.is_dir():
            _walk(found, path.resolve(), format)
        else:
            _take(found, path.resolve(), format, named=True)
    if not found.files and not found.passed_over:
        raise UnreadableInputError(f"no files in {', '.join(map(str, paths))}", hint=_known())
    if not found.files and all(r.reason == _UNKNOWN for r in found.passed_over):
        raise UnreadableInputError(f"no file of a known format in {', '.join(map(str, paths))}", hint=_known())
    return found


_UNKNOWN = "unknown format"
_EMPTY_BYTES = 64
"""A file of fewer bytes, all of them blank, is as good as empty."""


def _known() -> str:
    return f"Known formats: {', '.join(importers())}; choose one with --format."


def _walk(found: Sources, folder: Readable, format: str) -> None:
    """Take what is in a folder or zip: exports that are a folder as a whole, and all other files one by one."""
    names = listing(folder)
    whole = _whole(names, format)
    covered = tuple(f"{name}/" if name else "" for name in whole)
    alone = [name for name in names if not name.startswith(covered)] if covered else list(names)
    for name in sorted([*whole, *alone], key=lambda name: name.split("/")):
        inner = folder / name if name else folder
        if name in whole:
            found.files.append(Source(inner, whole[name]))
        else:
            _take(found, inner if isinstance(inner, Inside) else inner.resolve(), format, named=False)


def _whole(names: Iterable[str], format: str) -> dict[str, str]:
    """Folders (relative, empty for the folder itself) that are one export as a whole, with their formats."""
    asked = [i for i in importers().values() if i.tree is not None and format in (AUTO, i.name)]
    inside: dict[str, list[str]] = {}
    for name in names:
        above, _, last = name.rpartition("/")
        inside.setdefault(above, []).append(last)
    found = {folder: i.name for folder, there in inside.items() for i in asked if i.tree is not None and i.tree(there)}
    if format != AUTO and asked and not found:
        found[""] = format  # a person said so
    return found


def _take(found: Sources, path: Readable, format: str, *, named: bool) -> None:
    try:
        size, head = stamp_of(path).size, head_of(path)
    except PermissionError as fault:
        raise UnreadableInputError(f"{path} may not be read", hint="Check its owner and rights.") from fault
    if size == 0 or (not head.strip() and size < _EMPTY_BYTES):
        found.passed_over.append(Rejected("empty file", str(path)))
    elif isinstance(path, Path) and head.startswith(ZIP_MARKS):
        _take_zip(found, path, format, named=named)
    elif format != AUTO and importers()[format].tree is None:
        found.files.append(Source(path, format))
    elif (name := next((n for n, i in importers().items() if format == AUTO and i.sniff(path, head)), None)) is not None:
        found.files.append(Source(path, name))
    else:
        _pass_over(found, path, named=named)


def _take_zip(found: Sources, path: Path, format: str, *, named: bool) -> None:
    inner = Sources()
    try:
        _walk(inner, Inside(path), format)
    except UnreadableInputError as fault:
        if named:
            raise
        found.passed_over.append(Rejected(fault.message, str(path)))
        return
    if inner.files:
        found.files.extend(inner.files)
        found.passed_over.extend(inner.passed_over)
    else:
        _pass_over(found, path, named=named)


def _pass_over(found: Sources, path: Readable, *, named: bool) -> None:
    if named:
        raise UnreadableInputError(f"{path} is of no known format", hint=_known())
    found.passed_over.append(Rejected(_UNKNOWN, str(path), skipped=True))


def check_start(source: Source, options: ReadOptions, *, records: int = 1_000) -> None:
    """Read the beginning of a file, so that what refuses it is raised before a job begins."""
    for number, _ in enumerate(source.importer.read(source.path, options)):
        if number >= records:
            break
