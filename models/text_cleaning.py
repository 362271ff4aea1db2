"""Makes any Python string safe and cheap to embed."""

from __future__ import annotations

import re

# Twice the longest piece (16 characters) of a full window of 512 tokens is never needed.
CHARACTERS_READ = 8192
_UNSAFE = re.compile("[\ud800-\udfff\x00]")
_BYTES_PER_TOKEN = 4
_TOKENS_AROUND = 5


def clean(text: str, *, characters: int = CHARACTERS_READ) -> str:
    """The first ``characters`` of ``text``, with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text[:characters])


def estimate_tokens(text: str, *, limit: int = 512) -> int:
    """About how many tokens an embedding model sees: 4 UTF-8 bytes a token, at most ``limit``. Costs microseconds."""
    head = text[: limit * _BYTES_PER_TOKEN]
    return min(limit, len(head.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + _TOKENS_AROUND)
