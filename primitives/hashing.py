"""Deterministic ids: the same parts give the same id on every machine, in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

ID_LENGTH = 32
"""Hexadecimal characters of an id: 128 bits, so that 10^9 ids collide with a probability below 10^-20."""


def stable_id(*parts: object) -> str:
    """A hexadecimal id of `parts`, in order.

    Each part is length-prefixed, so that ("ab", "c") and ("a", "bc") differ; None differs from the empty string.
    Lone surrogates, which real exports contain, are encoded as they are.
    """
    digest = hashlib.blake2b(digest_size=ID_LENGTH // 2)
    for part in parts:
        raw = b"\x00" if part is None else b"\x01" + str(part).encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


def content_hash(rows: Iterable[bytes]) -> str:
    """SHA-256 over already serialised rows, in the order given."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(len(row).to_bytes(8, "big"))
        digest.update(row)
    return digest.hexdigest()
