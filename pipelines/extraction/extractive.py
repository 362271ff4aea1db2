"""Memories in the words of the conversation, without a language model.

Everything is selected, nothing is written: the sentences that say most become the summary, the statements of people the
facts, sentences about days to come the foresights, sentences about oneself the evidence of profiles. What needs
understanding (traits, other foresights, cases, skills) is reported as skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.extraction.ahead import plan_in
from pipelines.extraction.selves import self_statement
from pipelines.extraction.statements import Statement, shortened, statements
from pipelines.tools import Extraction
from primitives.text import fold, language_of
from storage.records import MemCell, Message

SUMMARY_SENTENCES = 5
NARRATIVE_SENTENCES = 30
TITLE_LENGTH = 60
FACTS = (5, 15)
"""The mission's number of facts a MemCell; one with fewer statements gives fewer."""
MOST_FORESIGHTS = 10
SKIPPED = {
    "implicit_traits": "needs a language model",
    "agent_case": "needs a language model",
    "agent_skill": "needs a language model",
}


class ExtractiveExtractor:
    """See pipelines.tools.Extractor."""

    name = "extractive"

    async def extract(self, cell: MemCell, messages: Sequence[Message], vectors: NDArray[np.float32]) -> Extraction:
        """`vectors`: one row a message, normalised. The result is JSON, in the shape that pipelines.memories reads."""
        said = statements(messages, vectors)
        kept = [s for s in said if not s.question] or said
        by_people = [s for s in kept if s.message.role == "user"]
        solo = cell.user_id is not None
        language = language_of(" ".join(message.text[:200] for message in messages))
        result: dict[str, Any] = {
            "extractor": self.name,
            "language": language,
            "episode": self._episode(said, kept, messages),
            "personal": {} if solo else {
                person: self._episode([s for s in said if s.message.sender_id == person],
                                      [s for s in kept if s.message.sender_id == person],
                                      [m for m in messages if m.sender_id == person])
                for person in cell.participants
            },
            "facts": self._facts(by_people) if solo else [],
            "foresights": self._foresights(by_people) if solo else [],
            "profile": self._selves(cell, by_people),
        }  # fmt: skip
        return Extraction(result=result, skipped=dict(SKIPPED))

    def _episode(
        self, said: Sequence[Statement], kept: Sequence[Statement], messages: Sequence[Message]
    ) -> dict[str, str]:
        """Title, summary and narrative; greetings alone give their own words."""
        if not said:
            first = shortened(" ".join(messages[0].text.split()), TITLE_LENGTH) or "…"
            line = f"{messages[0].sender_name}: {first}"
            return {"subject": first, "summary": line, "episode": line}
        best = max(kept or said, key=lambda s: (s.weight, -len(s.text)))
        return {
            "subject": shortened(best.text, TITLE_LENGTH),
            "summary": _told(_chosen(kept or said, SUMMARY_SENTENCES)),
            "episode": _told(_chosen(said, NARRATIVE_SENTENCES)),
        }

    def _facts(self, candidates: Sequence[Statement]) -> list[dict[str, Any]]:
        """Statements that say something; weak ones only up to the least number."""
        strong = sum(s.informative for s in _distinct(candidates))
        count = max(FACTS[0], min(strong, FACTS[1]))
        return [
            {"text": s.attributed, "embedding_text": s.text, "message_key": s.message.id}
            for s in _chosen(candidates, count)
        ]

    def _foresights(self, candidates: Sequence[Statement]) -> list[dict[str, Any]]:
        found = []
        for s in _distinct(candidates):
            day, ahead = plan_in(s.text, s.message.timestamp)
            if ahead:
                found.append(
                    {"content": s.text, "evidence": s.attributed, "start_time": day, "message_key": s.message.id}
                )
        return found[:MOST_FORESIGHTS]

    def _selves(self, cell: MemCell, candidates: Sequence[Statement]) -> list[dict[str, Any]]:
        return [
            {"user_id": cell.user_id or s.message.sender_id, "category": category, "description": s.text,
             "message_key": s.message.id}
            for s in _distinct(candidates) if (category := self_statement(s.text)) is not None
        ]  # fmt: skip


def _distinct(candidates: Sequence[Statement]) -> list[Statement]:
    """The first of statements of one person that are the same but for case, width and spaces."""
    return list({(s.message.sender_id, fold(s.text)): s for s in reversed(candidates)}.values())[::-1]


def _chosen(candidates: Sequence[Statement], count: int) -> list[Statement]:
    """The weightiest, in conversation order; of equal ones the earlier."""
    pool = _distinct(candidates)
    best = sorted(range(len(pool)), key=lambda i: (-pool[i].weight, i))[:count]
    return [pool[i] for i in sorted(best)]


def _told(chosen: Sequence[Statement]) -> str:
    """One line a turn: sentences of one message stand together behind its sender and day."""
    lines: list[str] = []
    before: Message | None = None
    for s in chosen:
        if before is not None and s.message.id == before.id:
            lines[-1] += " " + s.text
        else:
            lines.append(s.attributed)
        before = s.message
    return "\n".join(lines)
