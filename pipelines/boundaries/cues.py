"""What the wording of a message says about its place in a topic, in Chinese and English.

Lists of discourse markers, not models: each is a hint that the detector weighs. Only the beginning and the end of a long
message are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from primitives.text import fold

HEAD = 300
"""Characters read at the beginning of a message."""
TAIL = 100
"""Characters read at its end."""

_MARKED_QUESTION = re.compile(r"[?？][\s\"”'’)）.!！~]*$")
_ENGLISH_QUESTION = re.compile(
    r"^(?:(?:and|so|but|ok|okay|well|also|then|oh|yes|no|hi|hello)[\s,]+)*"
    r"(?:what|who|where|when|why|how|which|whose|do|does|did|is|are|was|were|can|could|will|would|should|shall|have|has"
    r"|had|may|am|any)\b"
)
_CHINESE_QUESTION = re.compile(
    r"吗|呢|么|什么|怎么|怎样|如何|多少|哪|谁|几[点个家时天]|为什么|是否|能不能|可不可以|有没有|是不是"
)
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|你好|您好|早上好|早安|晚上好|下午好|大家好|嗨|在吗)"
)
_CLOSING = re.compile(
    r"\b(?:thanks?|thank you|bye|goodbye|good night|you(?:'|’)?re welcome|no problem|take care|see you"
    r"|have a (?:good|nice|great)|got it|sounds good)\b"
    r"|谢谢|多谢|感谢|谢了|再见|拜拜|不客气|晚安|不用谢|应该的|祝您|祝你"
)
_POINTING_BACK = re.compile(
    r"\b(?:it|its|that|this|they|them|their|those|these|he|she|him|her|his|there|one|ones|same|such|both|else|too)\b"
    r"|[它他她]|这[个家里些样边儿]?|那[个家里些样边儿]?|该|其中|此"
)


@dataclass(frozen=True)
class Cues:
    """What one message shows by its wording."""

    question: bool
    greeting: bool
    closing: bool
    pointing_back: bool
    """A pronoun or a demonstrative near the beginning, which leans on what was said before."""


def cues_of(text: str) -> Cues:
    """The cues of one message; an empty text has none."""
    excerpt = text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n" + text[-TAIL:]
    said = fold(excerpt).strip()
    return Cues(
        question=bool(
            _MARKED_QUESTION.search(said) or _ENGLISH_QUESTION.search(said) or _CHINESE_QUESTION.search(said[-12:])
        ),
        greeting=bool(_GREETING.search(said)),
        closing=bool(_CLOSING.search(said)),
        pointing_back=bool(_POINTING_BACK.search(said[:40])),
    )
