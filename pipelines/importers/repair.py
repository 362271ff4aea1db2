"""A byte stream of JSON made readable for a strict parser.

Some exports hold what UTF-8 forbids: characters outside the first plane as two 3-byte surrogates (CESU-8), single
surrogates, and escapes of single surrogates. Pairs are joined, single ones and other wrong bytes become U+FFFD.
"""

from __future__ import annotations

import re
from typing import IO

_PAIR = re.compile(rb"\xed([\xa0-\xaf])([\x80-\xbf])\xed([\xb0-\xbf])([\x80-\xbf])")
_FIRST_HALF = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]")
_ESCAPES = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_HIGH = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_TAIL = 12
"""The longest thing that must not be parted: two escapes."""


class RepairedBytes:
    """`read` for ijson. `position` is how many bytes of the original were taken in."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._carry = b""
        self.position = 0

    def read(self, size: int = 65_536) -> bytes:
        if size == 0:  # ijson asks whether this is bytes or text
            return b""
        while True:
            piece = self._stream.read(max(size, 65_536))
            self.position += len(piece)
            data = self._carry + piece
            cut = _safe_cut(data) if piece else len(data)
            self._carry = data[cut:]
            if cut or not piece:
                return _repaired(data[:cut])


def _safe_cut(data: bytes) -> int:
    """Where `data` may be parted so that neither a character nor an escape (with its other half) is."""
    cut = len(data)
    while cut > 0 and len(data) - cut < 4 and data[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    if cut > 0 and data[cut - 1] >= 0xC0:
        cut -= 1  # a first byte without all of its others, or a whole character that may as well wait
    if _FIRST_HALF.fullmatch(data, max(0, cut - 3), cut):
        cut -= 3
    escape = data.find(b"\\", max(0, cut - _TAIL), cut)
    if escape < 0:
        return cut
    cut = escape
    while True:
        while cut > 0 and data[cut - 1 : cut] == b"\\":
            cut -= 1
        if cut < 6 or not _HIGH.fullmatch(data, cut - 6, cut):
            return cut
        cut -= 6


def _repaired(data: bytes) -> bytes:
    if b"\\ud" in data or b"\\uD" in data:
        data = _ESCAPES.sub(lambda m: m[0] if len(m[2]) == 12 else m[1] + b"\\ufffd", data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = _PAIR.sub(_joined, data)
        data = re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]", "\ufffd".encode(), data)
        return data.decode("utf-8", "replace").encode("utf-8")
    return data


def _joined(pair: re.Match[bytes]) -> bytes:
    return pair[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode("utf-8")
