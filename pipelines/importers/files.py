"""Opening export files as streams: plain, gzipped or inside a zip, whatever state they are in."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from primitives.errors import UnreadableInputError

HEAD_BYTES = 65_536
LINE_LIMIT = 64 * 2**20
"""A longer line is no message; it is passed over without being held in memory."""
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)
"""What a cut or damaged gzip or zip stream raises."""
ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")


@dataclass
class Meter:
    """How many bytes of a file were read so far (of a gzipped one, compressed bytes), for progress."""

    position: int = 0


@dataclass(frozen=True)
class Inside:
    """A file or folder inside a zip, with as much of Path's interface as importers use. Nothing is ever unpacked."""

    archive: Path
    inner: str = ""
    """Its name in the zip, without a slash at the end; empty for the zip as a whole."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.inner).name if self.inner else self.archive.name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> Path | Inside:
        if not self.inner:
            return self.archive.parent
        above = str(PurePosixPath(self.inner).parent)
        return Inside(self.archive, "" if above == "." else above)

    def __truediv__(self, name: str) -> Inside:
        return Inside(self.archive, f"{self.inner}/{name}" if self.inner else name)

    def __str__(self) -> str:
        return f"{self.archive}/{self.inner}" if self.inner else str(self.archive)

    def open(self) -> IO[bytes]:
        """The content as a stream; UnreadableInputError where it is encrypted or packed in a way that Python lacks."""
        try:
            return _archive(self.archive).open(self.inner)
        except RuntimeError as fault:  # NotImplementedError is one
            raise UnreadableInputError(f"{self} cannot be unpacked: {fault}", hint="Unpack the zip first.") from fault


Readable = Path | Inside
"""A file on disk or in a zip, or a folder on disk or in a zip."""


class Stamp(NamedTuple):
    """Size and time of change of a file; a member of a zip has its zip's time."""

    size: int
    changed_ns: int


def _archive(path: Path) -> zipfile.ZipFile:
    """The open zip; UnreadableInputError where it is cut or damaged."""
    status = path.stat()
    return _opened(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)
def _opened(path: Path, size: int, changed_ns: int) -> zipfile.ZipFile:
    """Kept open, since the directory of a large zip takes seconds to read. Its members may be read at the same time."""
    try:
        try:
            return zipfile.ZipFile(path, metadata_encoding="utf-8")  # what most programs write without saying so
        except UnicodeDecodeError:
            return zipfile.ZipFile(path)
    except zipfile.BadZipFile as fault:
        raise UnreadableInputError(f"{path} is a cut or damaged zip", hint="Export or download it again.") from fault


def listing(folder: Readable) -> dict[str, Stamp]:
    """All files under a folder or zip, by their names relative to it; hidden ones and what macOS adds are left out."""
    if isinstance(folder, Inside):
        prefix = f"{folder.inner}/" if folder.inner else ""
        changed = folder.archive.stat().st_mtime_ns
        found = {
            info.filename.removeprefix(prefix): Stamp(info.file_size, changed)
            for info in _archive(folder.archive).infolist()
            if info.filename.startswith(prefix) and not info.is_dir()
        }
    else:
        found = {}
        for above, _, names in os.walk(folder):
            for path in (Path(above, name) for name in names):
                if path.is_file():
                    status = path.stat()
                    found[path.relative_to(folder).as_posix()] = Stamp(status.st_size, status.st_mtime_ns)
    return {name: stamp for name, stamp in found.items() if not _hidden(name)}


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def stamp_of(path: Readable) -> Stamp:
    """Of a folder, the sum of its files and their latest change."""
    if isinstance(path, Inside):
        members = _archive(path.archive).NameToInfo
        if path.inner in members:
            return Stamp(members[path.inner].file_size, path.archive.stat().st_mtime_ns)
    elif not path.is_dir():
        status = path.stat()
        return Stamp(status.st_size, status.st_mtime_ns)
    stamps = listing(path).values()
    return Stamp(sum(stamp.size for stamp in stamps), max((stamp.changed_ns for stamp in stamps), default=0))


class _Metered(io.RawIOBase):
    """A raw file that tells a meter how far it was read."""

    def __init__(self, path: Readable, meter: Meter) -> None:
        self._file = path.open() if isinstance(path, Inside) else path.open("rb", buffering=0)
        self._meter = meter
        self._fault: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int | None:
        if self._fault is not None:  # a zip's member says it once, and ends without a word after that
            raise self._fault
        try:
            count = cast("int | None", self._file.readinto(buffer))  # type: ignore[attr-defined]
        except DAMAGED as fault:
            self._fault = fault
            raise
        self._meter.position += count or 0
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Readable, meter: Meter | None = None) -> IO[bytes]:
    """The content of a file, decompressed where its first bytes say gzip."""
    raw = io.BufferedReader(_Metered(path, meter or Meter()), buffer_size=2**18)
    try:
        gzipped = raw.peek(2)[:2] == b"\x1f\x8b"
    except DAMAGED:
        gzipped = False  # reading meets the damage again, and reports it
    if gzipped:
        unpacked = gzip.GzipFile(fileobj=raw, mode="rb")
        unpacked.myfileobj = raw  # type: ignore[assignment]  # closed together
        return cast("IO[bytes]", unpacked)
    return raw


def head_of(path: Readable, *, size: int = HEAD_BYTES) -> bytes:
    """The first bytes of a file's content, as far as they can be read."""
    with open_bytes(path) as stream:
        found = b""
        try:
            while len(found) < size and (piece := stream.read(size - len(found))):
                found += piece
        except DAMAGED:
            pass  # what was read before the damage is enough to tell the format; reading reports the damage itself
        return found


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line), the line being None where it is longer than LINE_LIMIT."""
    number = 0
    while line := stream.readline(LINE_LIMIT):
        number += 1
        if len(line) < LINE_LIMIT or line.endswith(b"\n"):
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LINE_LIMIT)
        yield number, None
