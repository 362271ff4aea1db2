from __future__ import annotations

import numpy as np

from pipelines.boundaries.cohesion import CohesionDetector, dips
from tests.support.messages import message

HOUR = 3_600_000


def topics(*lengths: int) -> np.ndarray:  # type: ignore[type-arg]
    """Unit vectors near one axis a topic."""
    rng = np.random.default_rng(1)
    rows = []
    for topic, length in enumerate(lengths):
        for _ in range(length):
            row = np.zeros(8) + 0.05 * rng.normal(size=8)
            row[topic] += 1
            rows.append(row / np.linalg.norm(row))
    return np.array(rows, np.float32)


async def test_topics_are_told_apart() -> None:
    vectors = topics(6, 7, 5)
    rows = [message(i, "x") for i in range(18)]
    assert await CohesionDetector(gap_minutes=240).boundaries(rows, vectors) == [6, 13]


async def test_one_topic_stays_whole() -> None:
    vectors = np.tile(topics(1), (12, 1))
    assert await CohesionDetector(gap_minutes=240).boundaries([message(i, "x") for i in range(12)], vectors) == []


async def test_a_long_silence_is_a_boundary() -> None:
    rows = [message(i, "x", timestamp=i * 1000 + (9 * HOUR if i >= 3 else 0)) for i in range(6)]
    vectors = np.tile(topics(1), (6, 1))
    assert await CohesionDetector(gap_minutes=240).boundaries(rows, vectors) == [3]


async def test_silence_is_judged_by_the_conversation() -> None:
    daily = [message(i, "x", timestamp=i * 24 * HOUR) for i in range(8)]
    vectors = np.tile(topics(1), (8, 1))
    assert await CohesionDetector(gap_minutes=240).boundaries(daily, vectors) == []


async def test_undated_messages_have_no_silences() -> None:
    rows = [message(i, "x", timestamp=None) for i in range(8)]
    assert await CohesionDetector(gap_minutes=240).boundaries(rows, topics(4, 4)) == [4]


def test_last_bits_decide_nothing() -> None:
    vectors = topics(5, 6, 4, 5)
    noise = np.random.default_rng(2).normal(scale=1e-7, size=vectors.shape).astype(np.float32)
    assert dips(vectors) == dips(vectors + noise)


def test_short_stretches() -> None:
    assert dips(topics(1)) == dips(topics(1, 1, 1)) == []
