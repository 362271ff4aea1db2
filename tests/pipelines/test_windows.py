from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.settings import PipelineSettings
from pipelines.windows import plan_windows, span_of
from storage.ports import Outline

LIMITS = PipelineSettings(memcell_hard_token_limit=100, memcell_hard_message_limit=10)

outlines = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), max_size=80).map(
    lambda pairs: [
        Outline(id=f"{i:03d}", order_time=sum(gap for gap, _ in pairs[: i + 1]), dated=True, place=i, tokens=tokens)
        for i, (_, tokens) in enumerate(pairs)
    ]
)


@given(outlines)
def test_windows_cover_everything_within_limits(outline: list[Outline]) -> None:
    windows = plan_windows(outline, LIMITS)
    assert [item for window in windows for item in window] == outline
    for window in windows:
        assert len(window) <= LIMITS.memcell_hard_message_limit
        assert len(window) == 1 or sum(item.tokens for item in window) <= LIMITS.memcell_hard_token_limit


@given(outlines, st.data())
def test_planning_the_rest_gives_the_same_windows(outline: list[Outline], data: st.DataObject) -> None:
    windows = plan_windows(outline, LIMITS)
    done = data.draw(st.integers(0, len(windows)))
    rest = [item for window in windows[done:] for item in window]
    assert plan_windows(rest, LIMITS) == windows[done:]


def test_a_long_conversation_is_parted_at_its_longest_silence() -> None:
    times = [0, 1, 2, 3, 4, 5, 6, 1000, 1001, 1002, 1003, 1004]
    outline = [Outline(id=str(i), order_time=t, dated=True, place=i, tokens=1) for i, t in enumerate(times)]
    first, second = plan_windows(outline, LIMITS)
    assert (len(first), len(second)) == (7, 5)
    assert span_of(second).first == (1000, 7, "7")


def test_a_message_over_the_limit_stands_alone() -> None:
    tokens = [10, 5_000, 10]
    outline = [Outline(id=str(i), order_time=i, dated=True, place=i, tokens=t) for i, t in enumerate(tokens)]
    assert [len(window) for window in plan_windows(outline, LIMITS)] == [1, 1, 1]
