"""Phase 1 of boundary detection: stretches that are small enough to look at as a whole.

A MemCell holds at most so many tokens and messages. A conversation within both limits is one window; a longer one is
parted, from its beginning on, at the longest silence in the second half of what fits. What fits is found by binary
search on the prefix sums of token counts. Planning what is left after the first windows were cut gives the same windows
again, so a stopped flush and a resumed job go on where they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from pipelines.settings import PipelineSettings
from storage.ports import Outline, Span


def plan_windows(outline: Sequence[Outline], settings: PipelineSettings) -> list[list[Outline]]:
    """Consecutive windows of pending messages, in conversation order.

    A single message over the token limit is a window of its own: messages are never split.
    """
    sums = list(accumulate((item.tokens for item in outline), initial=0))
    windows: list[list[Outline]] = []
    start = 0
    while start < len(outline):
        fits = bisect_right(sums, sums[start] + settings.memcell_hard_token_limit) - 1
        end = min(max(fits, start + 1), start + settings.memcell_hard_message_limit, len(outline))
        if end < len(outline):
            end = _longest_silence(outline, start, end)
        windows.append(list(outline[start:end]))
        start = end
    return windows


def _longest_silence(outline: Sequence[Outline], start: int, end: int) -> int:
    """Where to end a window that may end at `end` at the latest: before the longest gap in its second half."""
    best, longest = end, 0
    for i in range(start + max(1, (end - start) // 2), end + 1):
        gap = outline[i].order_time - outline[i - 1].order_time
        if gap > longest:
            best, longest = i, gap
    return best


def span_of(window: Sequence[Outline]) -> Span:
    """The stretch of the conversation that a window covers."""
    return Span(window[0].position, window[-1].position)
