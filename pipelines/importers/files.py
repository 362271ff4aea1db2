"""Opening export files as streams, compressed or not, whatever state they are in."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from pipelines.importers.contract import Meter

HEAD_BYTES = 65_536
LINE_LIMIT = 64 * 2**20
"""A longer line is no message; it is passed over without being held in memory."""
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
"""What a cut or damaged gzip stream raises."""


class _Metered(io.RawIOBase):
    """A raw file that tells a meter how far it was read."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._file = path.open("rb", buffering=0)
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int | None:
        count = cast("int | None", self._file.readinto(buffer))  # type: ignore[arg-type]
        self._meter.position += count or 0
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path, meter: Meter | None = None) -> IO[bytes]:
    """The content of a file, decompressed where its first bytes say gzip."""
    raw = io.BufferedReader(_Metered(path, meter or Meter()), buffer_size=2**18)
    if raw.peek(2)[:2] == b"\x1f\x8b":
        unpacked = gzip.GzipFile(fileobj=raw, mode="rb")
        unpacked.myfileobj = raw  # type: ignore[assignment]  # closed together
        return cast("IO[bytes]", unpacked)
    return raw


def head_of(path: Path) -> bytes:
    """The first bytes of a file's content, as far as they can be read."""
    with open_bytes(path) as stream:
        found = b""
        try:
            while len(found) < HEAD_BYTES and (piece := stream.read(HEAD_BYTES - len(found))):
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
