"""The time a query names: what is read, what is left alone, and how softly it counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from serve.moments import DAY_MS, Stretch, stretches_in

NOW = int(datetime(2024, 3, 13, 12, tzinfo=UTC).timestamp() * 1000)  # a Wednesday


def named(text: str) -> list[tuple[str, str]]:
    def day(ms: int) -> str:
        return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()

    return [(day(found.start), day(found.end)) for found in stretches_in(text, now=NOW)]


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("What did she paint last spring?", "2023-03-01", "2023-06-01"), ("the summer of 2022", "2022-06-01", "2022-09-01"),
        ("去年夏天我们住在哪家酒店？", "2023-06-01", "2023-09-01"), ("2023年夏天", "2023-06-01", "2023-09-01"),
        ("我上个月去了哪里？", "2024-02-01", "2024-03-01"), ("last month", "2024-02-01", "2024-03-01"),
        ("上周说了什么", "2024-03-04", "2024-03-11"), ("上周三", "2024-03-06", "2024-03-07"), ("this week", "2024-03-11", "2024-03-18"),
        ("last weekend", "2024-03-09", "2024-03-11"), ("上周末去哪了", "2024-03-09", "2024-03-11"), ("on Monday", "2024-03-11", "2024-03-12"),
        ("last Wednesday", "2024-03-06", "2024-03-07"), ("yesterday", "2024-03-12", "2024-03-13"), ("前天", "2024-03-11", "2024-03-12"),
        ("three days ago", "2024-03-10", "2024-03-11"), ("三天前谁打的电话", "2024-03-10", "2024-03-11"), ("four weeks ago", "2024-02-11", "2024-02-17"),
        ("What did we say in 2023 about taxes", "2023-01-01", "2024-01-01"), ("去年", "2023-01-01", "2024-01-01"), ("2023年", "2023-01-01", "2024-01-01"),
        ("in October 2023", "2023-10-01", "2023-11-01"), ("camping in June", "2023-06-01", "2023-07-01"), ("今年2月", "2024-02-01", "2024-03-01"),
        ("on May 3, 2023", "2023-05-03", "2023-05-04"), ("on 1 February, 2023?", "2023-02-01", "2023-02-02"), ("2024年3月5日的会议", "2024-03-05", "2024-03-06"),
        ("2024-03-05", "2024-03-05", "2024-03-06"), ("半年前", "2023-07-15", "2023-11-13"), ("last year", "2023-01-01", "2024-01-01"),
    ],
)  # fmt: skip
def test_what_is_read(text: str, first: str, end: str) -> None:
    assert named(text) == [(first, end)]


@pytest.mark.parametrize(
    "text",
    ["May I ask who she is?", "What did I have for lunch?", "生日是10月23日的人", "2023-02-30", "we fall for it", "第三周", "", "年前"],
)
def test_what_is_left_alone(text: str) -> None:
    assert named(text) == []


def test_the_edges_are_soft() -> None:
    week = Stretch(NOW, NOW + 7 * DAY_MS)
    assert week.nearness(NOW) == week.nearness(NOW + 7 * DAY_MS) == 1.0
    assert week.nearness(NOW - 7 * DAY_MS) == pytest.approx(0.5)
    assert week.nearness(NOW + 14 * DAY_MS) == pytest.approx(0.5)
    assert Stretch(0, 0).nearness(DAY_MS) == pytest.approx(0.5), "nothing is shorter than a day"
