"""The time that a query names, in Chinese or English: "last spring", "two weeks ago", "上个月", "2023年5月", "in 2023".

A table of our own: dateparser gives points and no stretches, reads "we" as Wednesday, knows neither seasons nor "三天前"
and takes 12 ms a query. Days are UTC's, and what is found only lifts memories of that time, so the edges are soft.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

DAY_MS = 86_400_000
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = tuple(name.lower() for name in calendar.month_name)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "半": 0, "一": 1, "二": 2, "两": 2, "三": 3,
    "几": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "十一": 11, "十二": 12,
}  # fmt: skip
_UNITS = {"day": 1, "天": 1, "日": 1, "week": 7, "周": 7, "星期": 7, "礼拜": 7, "month": 30, "月": 30, "year": 365, "年": 365}


@dataclass(frozen=True)
class Stretch:
    """From `start` to before `end`, in milliseconds."""

    start: int
    end: int

    def nearness(self, moment: int) -> float:
        """1 inside; outside halved with every length of the stretch (at least a day) that lies between."""
        away = max(self.start - moment, moment - self.end, 0)
        return float(2.0 ** (-away / max(self.end - self.start, DAY_MS)))


def stretches_in(text: str, *, now: int) -> list[Stretch]:
    """The stretches of time that `text` names, seen from `now` (ms); most texts name none."""
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    found: list[Stretch] = []
    rest = text.casefold()
    for pattern, read in _TABLE:
        for match in pattern.finditer(rest):
            try:
                span = read(match, today)
            except (ValueError, OverflowError):  # the 30th of February, the year 0
                continue
            if span is not None:
                found.append(Stretch(_ms(span[0]), _ms(span[1])))
                # What was read is not read again by a shorter pattern: "May 2023" names no other May.
                rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    return found


Span = tuple[date, date]
"""First day, and the day behind the last."""


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def _days(first: date, count: int = 1) -> Span:
    return first, first + timedelta(days=count)


def _month(year: int, month: int, count: int = 1) -> Span:
    """`count` months from one that may lie outside 1 to 12."""
    def first(number: int) -> date:
        return date(year + (number - 1) // 12, (number - 1) % 12 + 1, 1)

    return first(month), first(month + count)


def _latest(month: int, today: date) -> int:
    """The year of the latest such month that has begun."""
    return today.year if month <= today.month else today.year - 1


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text]


def _full_date(m: re.Match[str], _: date) -> Span:
    return _days(date(int(m["y"]), int(m["m"]), int(m["d"])))


def _named_date(m: re.Match[str], today: date) -> Span:
    """Month by name, with day, year or both."""
    month = _MONTHS.index(m["m"])
    year = int(m["y"]) if m["y"] else _latest(month, today)
    return _days(date(year, month, int(m["d"]))) if m["d"] else _month(year, month)


def _year_month(m: re.Match[str], _: date) -> Span:
    return _month(int(m["y"]), int(m["m"])) if m["m"] else _month(int(m["y"]), 1, 12)


def _season(m: re.Match[str], today: date) -> Span:
    """Three months from March, June, September or December; "last" is the latest that is over, else the latest."""
    groups = m.groupdict()
    first = _SEASONS[m["s"]]
    relative = groups.get("r") or ""
    if groups.get("y"):
        year = int(m["y"])
    elif relative in _YEARS_BACK:
        year = today.year - _YEARS_BACK[relative]
    else:
        year = _latest(first, today)
        if relative in ("last", "past") and _month(year, first, 3)[1] > today:
            year -= 1
    return _month(year, first, 3)


_YEARS_BACK = {"今年": 0, "去年": 1, "前年": 2, "this year": 0, "last year": 1}


def _year_back(m: re.Match[str], today: date) -> Span:
    year = today.year - _YEARS_BACK[m["r"]]
    month = m.groupdict().get("m")
    return _month(year, int(month)) if month else _month(year, 1, 12)


def _ago(m: re.Match[str], today: date) -> Span:
    """ "Four weeks ago" means some day of that week."""
    unit = _UNITS[m["u"]]
    count = _number(m["n"])
    if not count:  # 半年前
        return _days(today - timedelta(days=unit // 2 + unit // 6), unit // 3)
    return _days(today - timedelta(days=count * unit + unit // 2), max(1, 2 * (unit // 2)))


def _relative_unit(m: re.Match[str], today: date) -> Span:
    """The week, month or year that is so many before this one."""
    back = 0 if m["r"] in ("this", "这", "本") else 2 if m["r"] == "上上" else 1
    if _UNITS[m["u"]] == 7:
        return _days(today - timedelta(days=today.weekday() + 7 * back), 7)
    if _UNITS[m["u"]] == 30:
        return _month(today.year, today.month - back)
    return _month(today.year - back, 1, 12)


def _weekend(m: re.Match[str], today: date) -> Span:
    saturday = today - timedelta(days=(today.weekday() - 5) % 7)
    return _days(saturday - timedelta(days=7 * (m["r"] == "上上")), 2)


def _weekday(m: re.Match[str], today: date) -> Span:
    """English: the latest such day before today. Chinese: that day of last week or of this."""
    if m["r"] in ("last", "on"):
        return _days(today - timedelta(days=(today.weekday() - _DAYS.index(m["d"]) - 1) % 7 + 1))
    back = 0 if m["r"] in ("这", "本") else 14 if m["r"] == "上上" else 7
    return _days(today - timedelta(days=today.weekday() + back - "一二三四五六日天".index(m["d"]) % 7))


def _back(days: int) -> Callable[[re.Match[str], date], Span]:
    return lambda _, today: _days(today - timedelta(days=days))


def _table() -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None]]]:
    months, days, seasons = "|".join(_MONTHS[1:]), "|".join(_DAYS), "spring|summer|autumn|fall|winter"
    year, number = r"(?:19|20)\d\d", r"\d{1,3}|" + "|".join(sorted((n for n in _NUMBERS if n.isascii()), key=len)[::-1])
    zh_number = r"\d{1,3}|十一|十二|[一二两三四五六七八九十几半]"
    yield re.compile(rf"\b(?P<y>{year})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})\b"), _full_date
    yield re.compile(rf"(?P<y>{year})年(?P<m>\d{{1,2}})月(?P<d>\d{{1,2}})[日号]"), _full_date
    yield re.compile(rf"(?P<y>{year})年的?(?P<s>[春夏秋冬])[天季]"), _season
    yield re.compile(rf"(?P<y>{year})年(?:(?P<m>\d{{1,2}})月)?"), _year_month
    yield re.compile(rf"\b(?P<m>{months})\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y>{year}))?\b"), _named_date
    yield re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m>{months})(?:,?\s+(?P<y>{year}))?\b"
    ), _named_date
    yield re.compile(rf"\b(?P<m>{months})(?P<d>),?\s+(?:of\s+)?(?P<y>{year})\b"), _named_date
    yield re.compile(rf"\b(?P<r>last|this|past)?\s*(?:the\s+)?(?P<s>{seasons})\s+(?:of\s+)?(?P<y>{year})\b"), _season
    yield re.compile(rf"\b(?P<s>{seasons})\s+(?:of\s+)?(?P<r>last year|this year)\b"), _season
    yield re.compile(rf"\b(?P<r>last|this|past)\s+(?P<s>{seasons})\b"), _season
    yield re.compile(r"(?P<r>今年|去年|前年)的?(?P<s>[春夏秋冬])[天季]"), _season
    yield re.compile(r"(?P<r>今年|去年|前年)的?(?:(?P<m>\d{1,2})月)?"), _year_back
    yield re.compile(rf"\b(?:in|during|last|this past)\s+(?P<m>{months})(?P<d>)(?P<y>)\b"), _named_date
    yield re.compile(rf"\b(?:in|during|of|since)\s+(?P<y>{year})(?P<m>)\b"), _year_month
    yield re.compile(rf"\b(?P<n>{number})\s+(?P<u>day|week|month|year)s?\s+ago\b"), _ago
    yield re.compile(rf"(?P<n>{zh_number})个?(?P<u>天|日|周|星期|礼拜|月|年)[之以]?前"), _ago
    yield re.compile(r"\bday before yesterday\b|前天"), _back(2)
    yield re.compile(r"\byesterday\b|\blast night\b|昨天|昨晚|昨日"), _back(1)
    yield re.compile(r"\btoday\b|\bthis morning\b|今天|今早"), _back(0)
    yield re.compile(r"(?:\b(?:last|this past)\s+weekend\b|(?P<r>上上|上)个?周末)"), _weekend
    yield re.compile(rf"\b(?P<r>last|on)\s+(?P<d>{days})\b"), _weekday
    yield re.compile(r"(?P<r>上上|上|这|本)个?(?:周|星期|礼拜)(?P<d>[一二三四五六日天])"), _weekday
    yield re.compile(r"\b(?P<r>last|previous|past|this)\s+(?P<u>week|month|year)\b"), _relative_unit
    yield re.compile(r"(?P<r>上上|上|这|本)个?(?P<u>周|星期|礼拜|月)(?!末)"), _relative_unit


_TABLE = tuple(_table())
