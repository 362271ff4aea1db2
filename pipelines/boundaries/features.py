"""What speaks for and against a topic boundary at each gap between two messages of a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.boundaries.chains import chain_features
from pipelines.boundaries.cues import cues_of
from pipelines.boundaries.similarity import Floats, cohesion_features, standard
from storage.records import Message

CAUTION = 5.0
"""Weight, in messages, of the belief that who speaks says nothing about where topics begin."""


def gap_features(messages: Sequence[Message], vectors: NDArray[np.float32]) -> dict[str, Floats] | None:
    """Arrays of len(messages) - 1 by name, for 4 messages and more; None where the vectors show no topics at all."""
    cohesion = cohesion_features(vectors)
    if cohesion is None:
        return None
    cues = [cues_of(message.text) for message in messages]
    question = np.array([cue.question for cue in cues], np.float64)
    people = np.array([message.role == "user" for message in messages])
    lead = np.zeros(len(messages) - 1) if people.all() else np.where(people[1:], 1.0, -1.0)
    changes = np.array([a.sender_id != b.sender_id for a, b in zip(messages, messages[1:], strict=False)], np.float64)
    return {
        **cohesion,
        **chain_features([message.text for message in messages]),
        "next_asks": question[1:],
        "question_is_answered": question[:-1] * changes,
        "next_is_a_person": lead,
        "next_leads_topics": _leading(cohesion, lead),
        "next_greets": np.array([cue.greeting for cue in cues[1:]], np.float64),
        "last_closes": np.array([cue.closing for cue in cues[:-1]], np.float64),
        "next_points_back": np.array([cue.pointing_back for cue in cues[1:]], np.float64),
    }


def _leading(cohesion: dict[str, Floats], lead: Floats) -> Floats:
    """Whether cohesion falls where people, or where assistants begin to speak, in this conversation."""
    fall = (
        standard(-cohesion["similarity_1"])
        + standard(cohesion["fits_what_follows"])
        + 0.5 * standard(cohesion["contrast"])
    ) / 2.5
    centred = lead - lead.mean()
    strength = float(centred @ fall) / (float(centred @ centred) + CAUTION)
    leading: Floats = centred * strength
    return leading
