"""The head of a WhatsApp message: `[3/5/24, 2:40:00 PM] `, `05.03.24, 14:40 - ` and what else phones write.

A phone writes all heads of an export in the form of its locale. `Head.shape` is that form without its numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
"""Invisible marks of the direction of writing, and a byte order mark."""
_M = f"[{MARKS}]*"
_S = "[ \u00a0\u2009\u202f]"
_HEAD = re.compile(
    rf"{_M}(?P<open>\[)?{_M}"
    rf"(?P<a>\d{{1,4}})(?P<s1>{_M}[./\-年년]{_S}?{_M})(?P<b>\d{{1,2}})(?P<s2>{_M}[./\-月월]{_S}?{_M})(?P<c>\d{{1,4}})"
    rf"(?P<end>[.日일]?)(?P<joint>{_M}(?:[,،]{_S}*|{_S}+|(?<=[日일])){_M})"
    rf"(?P<before>[^\W\d_][^\d\[\]:]{{0,14}}?{_S}?)?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    rf"(?P<after>{_S}?{_M}[^\W\d_][^\d\[\]:,\-]{{0,14}}?)?{_M}"
    rf"(?(open)\]{_S}?|(?P<tail>{_S}{_M}[-–—]{_S}|,{_S}))"
)
_SPACES = re.compile(f"{_S}+")
_INVISIBLE = re.compile(f"[{MARKS}]")
_NO_LETTERS = re.compile(r"[\W_]+")

@lru_cache(maxsize=1_000)  # the same few separators again and again
def _plain(text: str) -> str:
    """Without invisible marks, with ordinary spaces."""
    return _SPACES.sub(" ", _INVISIBLE.sub("", text))


@lru_cache(maxsize=1_000)
def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", _plain(text)).casefold()


_MORNING = {_letters(word) for word in ("am", "a", "上午", "凌晨", "早上", "早晨", "清晨", "오전", "午前", "öö", "sa",
                                        "π.μ.", "fm", "dop", "de", "ص", "पूर्वाह्न")}  # fmt: skip
_AFTERNOON = {_letters(word) for word in ("pm", "p", "下午", "晚上", "傍晚", "오후", "午後", "ös", "ch", "μ.μ.", "em",
                                          "odp", "du", "م", "अपराह्न")}  # fmt: skip
_NOON = "中午"


@dataclass(frozen=True, slots=True)
class Head:
    """A head, with the numbers of its date in the order in which they stand there."""

    numbers: tuple[int, int, int]
    four_digits: tuple[bool, bool, bool]
    separator: str
    hour: int
    minute: int
    second: int
    half: str
    """The half of the day, in lower-case letters only; empty on a clock of 24 hours."""
    shape: tuple[str, ...]
    length: int
    """Characters up to the sender."""
    raw: str
    """As it stands there."""

    @property
    def text(self) -> str:
        """For people."""
        return _plain(self.raw).strip(" -[],")


def parse_head(line: str) -> Head | None:
    """The head that a line begins with; None where it begins otherwise."""
    match = _HEAD.match(line)
    if match is None:
        return None
    before, after = (match[name] or "" for name in ("before", "after"))
    digits = (match["a"], match["b"], match["c"])
    separators = [_plain(match[name] or "") for name in ("open", "s1", "s2", "end", "joint", "tail")]
    return Head(
        numbers=(int(digits[0]), int(digits[1]), int(digits[2])),
        four_digits=(len(digits[0]) == 4, len(digits[1]) == 4, len(digits[2]) == 4),
        separator=separators[1].strip(),
        hour=int(match["hour"]), minute=int(match["minute"]), second=int(match["second"] or 0),
        half=_letters(before + after),
        shape=(
            *separators, f"{len(digits[0]) == 4}{len(digits[2]) == 4}", "seconds" if match["second"] else "",
            "before" if before else "after" if after else "24",
        ),
        length=match.end(), raw=match[0],
    )  # fmt: skip


def hour_of(head: Head) -> int | None:
    """The hour from 0 to 23; None where the half of the day is written in a word that is not known."""
    hour, half = head.hour, head.half
    if not half or hour > 12:
        return hour
    if half in _MORNING:
        return hour % 12
    if half in _AFTERNOON:
        return hour % 12 + 12
    if half == _NOON:
        return hour if hour >= 10 else hour + 12
    return None
