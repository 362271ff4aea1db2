"""The sentences of a MemCell, with who said them and when, and how much each one says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primitives.clock import to_iso
from primitives.text import CJK, STOP_WORDS, sentences, words
from storage.records import Message

LONGEST = 300
"""Characters of a sentence that are quoted; what is longer is cut, with an ellipsis."""
INFORMATIVE_WORDS = 3
MOST_PER_MESSAGE = 40
"""Sentences of one message that are looked at."""

_NOISE = re.compile(
    r"(?:[\W_]|哈|呵|嘿|嗯|哦|噢|啊|呀|好的?|是的?|对|行|嗨|你好|您好|早上?好|晚安|再见|拜拜|谢谢|不客气|收到|"
    r"hi|hello|hey|yes|yeah|yep|no|nope|ok(?:ay)?|sure|thanks?|thank you|thx|lol|haha|bye|good (?:morning|night)|"
    r"great|cool|nice|wow|you'?re welcome|welcome|got it|hmm+)+",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\W*$|[吗呢么][。.!！~]*$")
_WEIGHTY = re.compile(r"\d|[A-Z][a-z]+|[《「“\"]")
_FIRST_PERSON = re.compile(rf"(?:^|[^{CJK}\w])(?:I|I'm|my|we|our)\b|[我咱]")


@dataclass(frozen=True)
class Statement:
    """One sentence of one message."""

    message: Message
    text: str
    weight: float
    """How much it says: informative words, and how near its message is to the middle of the topic."""
    question: bool
    informative: bool
    """Holds at least INFORMATIVE_WORDS words that are no stop words, or a number."""

    @property
    def attributed(self) -> str:
        """ "2024-01-15 张三: text", or without the date where the time is not known."""
        day = (to_iso(self.message.timestamp) or "")[:10]
        return f"{day} {self.message.sender_name}: {self.text}".lstrip()


def is_noise(text: str) -> bool:
    """A greeting, an interjection, bare punctuation: searchable, but nothing for a summary."""
    return _NOISE.fullmatch(text.strip()) is not None


def statements(messages: Sequence[Message], vectors: NDArray[np.float32]) -> list[Statement]:
    """All sentences that are not noise, in conversation order. `vectors`: one row a message, normalised."""
    middle = vectors.mean(axis=0) if len(vectors) else vectors
    nearness = np.round(vectors @ middle, 4) if len(vectors) else vectors
    out: list[Statement] = []
    for message, near in zip(messages, nearness, strict=True):
        for sentence in sentences(message.text)[:MOST_PER_MESSAGE]:
            text = re.sub(r"\s+", " ", sentence.strip("*#>-• \t"))
            if not text or is_noise(text):
                continue
            said = {word for word in words(text[: 2 * LONGEST]) if word not in STOP_WORDS}
            informative = len(said) >= INFORMATIVE_WORDS or any(map(str.isdigit, text))
            weight = round(_weight(text, len(said)) * float(near), 4)
            out.append(Statement(message, shortened(text), weight, _is_question(text), informative))
    return out


def shortened(text: str, limit: int = LONGEST) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _is_question(text: str) -> bool:
    return _QUESTION.search(text) is not None


def _weight(text: str, informative_words: int) -> float:
    """Informative words, with diminishing returns, and a bonus for numbers, names, titles and the first person."""
    weight = float(np.log1p(informative_words))
    if _WEIGHTY.search(text):
        weight += 0.5
    if _FIRST_PERSON.search(text):
        weight += 0.3
    return weight
