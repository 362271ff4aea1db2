"""What speaks for a row: each part moves the order as it should, and nothing it should not."""

from __future__ import annotations

import pytest

from serve.arms import Arm
from serve.evidence import WEIGHTS, Evidence, Weighing, chance, log_odds
from serve.moments import Stretch
from storage.ports import Hit, Standing


def arm(name: str, **scores: float) -> Arm:
    """Rows e... are episodes, f... facts, all others messages."""
    kinds = {"e": "episodic_memory", "f": "atomic_fact"}
    made = Arm(name)
    made.take([Hit(i, score, kinds.get(i[0], "raw_message")) for i, score in scores.items()], list(scores.values()))
    return made


def standings(episode: str | None = None) -> dict[str, Standing]:
    """Messages m0 to m9 one behind another in one conversation, all of one episode."""
    return {f"m{n}": Standing(n * 1_000, "c", n, episode) for n in range(10)}


def weigh(*arms: Arm, there: dict[str, Standing] | None = None, **similar: float) -> dict[str, Evidence]:
    return Weighing(arms, standings() if there is None else there, similar, ()).all()


def test_words_and_meaning_add_up() -> None:
    found = weigh(arm("keyword", m1=4.0), arm("vector", m1=0.7, m5=0.7))
    assert found["m1"].total == pytest.approx(log_odds(0.7) + 4 * WEIGHTS.words)
    assert found["m5"].total == pytest.approx(log_odds(0.7))
    assert chance(log_odds(0.7)) == pytest.approx(0.7)
    assert 0 < chance(-600.0) + chance(log_odds(0.0)) < chance(log_odds(1.0)) < 1


def test_a_row_that_only_the_words_found_gets_its_own_similarity() -> None:
    found = weigh(arm("keyword", m1=4.0, m2=4.0), arm("vector", m5=0.9), m1=0.2)
    assert found["m1"].meaning == pytest.approx(log_odds(0.2))
    assert found["m2"].meaning == pytest.approx(log_odds(0.9)), "without a vector: an average candidate"


def test_neighbours_count_by_their_distance() -> None:
    found = weigh(arm("keyword", m1=10.0), arm("vector", m0=0.5, m1=0.5, m3=0.5, m4=0.5))
    assert found["m0"].neighbours == pytest.approx(WEIGHTS.neighbours[0] * 10 * WEIGHTS.words)
    assert found["m3"].neighbours == pytest.approx(WEIGHTS.neighbours[1] * 10 * WEIGHTS.words)
    assert found["m4"].neighbours == found["m1"].neighbours == 0.0


def test_messages_of_other_conversations_are_no_neighbours() -> None:
    there = {"m1": Standing(0, "c", 1, None), "m2": Standing(0, "d", 2, None), "m3": Standing(0, None, 2, None)}
    found = weigh(arm("keyword", m1=10.0, m2=1.0, m3=1.0), there=there)
    assert found["m2"].neighbours == found["m3"].neighbours == 0.0


def test_a_message_leans_towards_its_episode() -> None:
    found = weigh(arm("vector", m1=0.5, e1=0.9), there=standings("e1"))
    assert found["m1"].total == pytest.approx(WEIGHTS.topic * log_odds(0.9) / (1 + WEIGHTS.topic))
    assert found["e1"].total == pytest.approx(log_odds(0.9)), "a worse message does not pull its episode down"


def test_an_episode_is_lifted_half_way_to_its_best_message_also_where_nothing_else_found_it() -> None:
    found = weigh(arm("vector", m1=0.9, m2=0.6), there=standings("e1"), e1=0.5)
    assert found["e1"].total == pytest.approx(log_odds(0.9) * WEIGHTS.lift)


def test_the_time_in_the_query_lifts_and_excludes_nothing() -> None:
    plain = weigh(arm("vector", m1=0.5, m9=0.5, x=0.5))
    found = Weighing([arm("vector", m1=0.5, m9=0.5, x=0.5)], standings(), {}, [Stretch(9_000, 10_000)]).all()
    assert found["m9"].total == pytest.approx(plain["m9"].total + WEIGHTS.moment)
    assert found["m1"].total > plain["m1"].total, "eight seconds away is near"
    assert found["x"].total == plain["x"].total, "no time, no lift"
