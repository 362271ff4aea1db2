from __future__ import annotations

import numpy as np
import pytest

from pipelines.boundaries.cohesion import CohesionDetector
from pipelines.boundaries.cues import cues_of
from primitives.errors import ModelError
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


async def found(vectors: np.ndarray, texts: list[str] | None = None, roles: str = "") -> list[int]:  # type: ignore[type-arg]
    """Boundaries of messages 30 s apart; `roles` has a letter a message: u(ser), a(ssistant), t(ool)."""
    names = {"u": "user", "a": "assistant", "t": "tool"}
    rows = [
        message(i, texts[i] if texts else "x", role=names[roles[i]] if roles else "user") for i in range(len(vectors))
    ]
    return await CohesionDetector(gap_minutes=240).boundaries(rows, vectors)


async def test_last_bits_decide_nothing() -> None:
    vectors = topics(5, 6, 4, 5)
    noise = np.random.default_rng(2).normal(scale=1e-7, size=vectors.shape).astype(np.float32)
    assert await found(vectors)
    assert await found(vectors) == await found(vectors + noise)


async def test_short_stretches() -> None:
    assert await found(topics(1)) == await found(topics(1, 1, 1)) == []


async def test_no_engine_is_special() -> None:
    """All cosines squeezed into .75 to .89, as e5 has them: the same boundaries."""
    plain = topics(5, 6, 4, 5)
    squeezed = np.concatenate([np.sqrt(0.15) * plain, np.full((20, 1), np.sqrt(0.85))], axis=1).astype(np.float32)
    assert await found(squeezed) == await found(plain)


async def test_words_that_chain_messages_hold_them_together() -> None:
    vague = np.random.default_rng(5).normal(size=(12, 16))
    vague = (vague / np.linalg.norm(vague, axis=1, keepdims=True)).astype(np.float32)
    first, second = "the violin concert in Vienna", "a recipe for mushroom risotto"
    for place in (4, 6, 8):
        texts = [first] * place + [second] * (12 - place)
        assert place in await found(vague, texts)


async def test_a_question_stays_with_its_answer() -> None:
    """Same vectors, same words; only the question marks differ."""
    vectors = topics(4, 4)
    mixed = vectors.copy()
    mixed[4] = (vectors[3] + vectors[5]) / np.linalg.norm(vectors[3] + vectors[5])
    asks_last = ["yes.", "fine.", "yes.", "fine.", "when is it?", "tomorrow.", "fine.", "yes."]
    assert 5 not in await found(mixed, asks_last, roles="uauauaua")
    assert await found(mixed, asks_last, roles="uauauaua") == [4]


async def test_a_tool_result_stays_with_its_call() -> None:
    assert 4 not in await found(topics(4, 8), roles="uuuatauauaua")


async def test_shorter_pauses_add_to_the_evidence() -> None:
    """Two equal topic changes in a window that has room for one: the pause decides, though it is under the limit."""
    vectors = np.concatenate([topics(4), topics(1, 4)[1:]])
    for place in (4, 2, 6):
        rows = [message(i, "x", timestamp=i * 30_000 + (2 * HOUR if i >= place else 0)) for i in range(8)]
        assert place in await CohesionDetector(gap_minutes=240).boundaries(rows, vectors)


async def test_vectors_must_be_one_a_message() -> None:
    with pytest.raises(ModelError, match="3 messages came with 2 vectors"):
        await CohesionDetector(gap_minutes=240).boundaries([message(i, "x") for i in range(3)], topics(2))


async def test_the_longest_window() -> None:
    """500 messages in one window, the most there are."""
    vectors = topics(*[7] * 8)
    many = np.tile(vectors, (9, 1))[:500]
    assert len(await found(many, ["我们明天去哪里吃火锅？ Let us ask Anna about it"] * 500)) < 200


@pytest.mark.parametrize("text", ["你喜欢哪一家", "Do you ski", "and what about Rome?", "几点出发", "真的吗？"])
def test_questions_are_seen(text: str) -> None:
    assert cues_of(text).question


@pytest.mark.parametrize("text", ["", "我们走吧。", "It was fine.", "我喜欢这本书"])
def test_statements_are_none(text: str) -> None:
    assert not cues_of(text).question
