"""Large JSON files as streams: the values at one place of a file, one by one, up to where it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import ijson

from pipelines.importers.files import DAMAGED, Meter, Readable, open_bytes
from pipelines.importers.repair import RepairedBytes
from pipelines.incoming import Rejected

MARK = b"\xef\xbb\xbf"


class Item(NamedTuple):
    """One value, and where it stands."""

    where: str
    value: Any


def items(path: Readable, prefix: str, *, noun: str, meter: Meter | None = None) -> Iterator[Item | Rejected]:
    """The values under ijson's `prefix` (`item`: the elements of an array), counted as `noun` 1, 2, 3 in `where`.

    Where the file is cut or damaged it ends with a Rejected, which says after which value.
    """
    with open_bytes(path, meter) as stream:
        source = RepairedBytes(without_mark(stream))
        number = 0

        def ends(reason: str, fault: Exception) -> Rejected:
            where = f"{path}: ends at byte {source.position}, after {noun} {number}"
            return Rejected(reason, where, sample=str(fault)[:80])

        try:
            for number, value in enumerate(ijson.items(source, prefix, use_float=True), 1):
                yield Item(f"{path}: {noun} {number}", value)
        except ijson.IncompleteJSONError as fault:
            yield ends("the file is cut or damaged", fault)
        except ijson.JSONError as fault:
            yield ends("bad JSON", fault)
        except DAMAGED as fault:
            yield ends("the compressed file is cut or damaged", fault)


def without_mark(stream: IO[bytes]) -> IO[bytes]:
    """The stream behind a byte order mark."""
    peek = getattr(stream, "peek", None)
    if peek is not None and peek(3)[:3] == MARK:
        stream.read(3)
    return stream
