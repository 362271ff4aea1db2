"""What speaks for a row, added up: its words, its meaning, its neighbours, its MemCell, and the time it is of.

All is kept as log-odds, so that parts add up, a sum is one monotone step from a score in [0, 1], and scores of different
types, searches and engines compare. A calibrated similarity has log-odds of its own; BM25 counts as that many points.
benchmarks/retrieval.py measures what each part is worth: neighbours, a message's episode and time each help on LoCoMo;
the episode costs a little on MemDaily, and an episode's best message changes nothing where messages are searched too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from serve.arms import Arm
from serve.moments import Stretch
from storage.ports import Standing


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts, in log-odds; chosen on the development sets."""

    words: float = 0.22
    """Of one point of BM25."""
    neighbours: tuple[float, ...] = (0.2, 0.1)
    """Share of the words of the messages next to a message, and next but one, that count for it."""
    topic: float = 0.3
    """Of its episode beside a message's or fact's own evidence."""
    lift: float = 0.5
    """How far an episode rises to its best message or fact."""
    moment: float = 1.5
    """Of a row of the time that the query names."""


WEIGHTS = Weights()
SURE = 1e-4
"""Calibrated similarities are kept this far from 0 and 1, where log-odds have no end."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log-odds by where they come from; `total` is what a row is ranked by."""

    meaning: float = 0.0
    words: float = 0.0
    neighbours: float = 0.0
    moment: float = 0.0
    around: float = 0.0
    """What the total gains or loses by the MemCell: a message's episode, an episode's best message or fact."""

    @property
    def own(self) -> float:
        return self.meaning + self.words + self.neighbours

    @property
    def total(self) -> float:
        return self.own + self.around + self.moment


def log_odds(score: float) -> float:
    kept = min(max(score, SURE), 1 - SURE)
    return math.log(kept / (1 - kept))


def chance(odds: float) -> float:
    """Log-odds as a score in [0, 1]."""
    return 1 / (1 + math.exp(-odds)) if odds > -500 else 0.0


class Weighing:
    """Weighs the rows that the arms of one search found. `similar` has calibrated similarities beside the arms' own."""

    def __init__(
        self, arms: Iterable[Arm], standings: Mapping[str, Standing], similar: Mapping[str, float],
        stretches: Sequence[Stretch], weights: Weights = WEIGHTS,
    ) -> None:  # fmt: skip
        self.weights = weights
        by_name = {arm.name: arm for arm in arms}
        words, meaning = by_name.get("keyword"), by_name.get("vector")
        self.types = {row_id: kind for arm in by_name.values() for row_id, kind in arm.types.items()}
        self._words = words.raw if words else {}
        self._meaning = {i: log_odds(score) for i, score in {**similar, **(meaning.scores if meaning else {})}.items()}
        # Rows without a vector, such as messages before their flush, count as an average candidate.
        known = [self._meaning[i] for i in meaning.scores] if meaning else []
        self._unknown = statistics.median(known) if known else 0.0
        self._standings = standings
        self._stretches = stretches
        self._at = {
            (there.conversation_id, there.place): self._words[row_id]
            for row_id in self._words
            if (there := standings.get(row_id)) is not None and there.conversation_id is not None
        }

    def all(self) -> dict[str, Evidence]:
        """The evidence of each row, and of the episodes of messages and facts."""
        own = {row_id: self._own(row_id) for row_id in self.types}
        best: dict[str, Evidence] = {}
        for row_id, evidence in own.items():
            episode_id = self.episode_of(row_id)
            if episode_id is not None and (episode_id not in best or evidence.own > best[episode_id].own):
                best[episode_id] = evidence
        episodes = {i: own[i] if i in own else self._own(i) for i in best}
        lean = self.weights.topic / (1 + self.weights.topic)
        out = {}
        for row_id, evidence in {**own, **episodes}.items():
            episode_id = self.episode_of(row_id)
            if episode_id is not None:
                around = lean * (episodes[episode_id].own - evidence.own)
            else:
                around = self.weights.lift * max(0.0, best[row_id].own - evidence.own) if row_id in best else 0.0
            out[row_id] = Evidence(evidence.meaning, evidence.words, evidence.neighbours, evidence.moment, around)
        return out

    def episode_of(self, row_id: str) -> str | None:
        there = self._standings.get(row_id)
        return there.episode_id if there else None

    def _own(self, row_id: str) -> Evidence:
        there = self._standings.get(row_id)
        neighbours = moment = 0.0
        if there is not None and there.conversation_id is not None:
            for distance, share in enumerate(self.weights.neighbours, start=1):
                for place in (there.place - distance, there.place + distance):
                    neighbours += share * self._at.get((there.conversation_id, place), 0.0)
        if there is not None and there.timestamp is not None and self._stretches:
            moment = self.weights.moment * max(stretch.nearness(there.timestamp) for stretch in self._stretches)
        return Evidence(
            meaning=self._meaning.get(row_id, self._unknown), words=self.weights.words * self._words.get(row_id, 0.0),
            neighbours=self.weights.words * neighbours, moment=moment,
        )  # fmt: skip
