"""Plans: sentences that say what is going to be done and when, with the day they mean where it can be told."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_INTENT = re.compile(
    r"打算|计划|准备|想要?去|要去|要|会|约了?|预约|订了|报名|将|"
    r"\b(?:going to|plan(?:ning)? (?:to|on)|will|'ll|want to|have to|need to|scheduled|booked|signed up|deadline|due)\b",
    re.IGNORECASE,
)
_UNITS = {"day": 1, "week": 7, "天": 1, "周": 7, "星期": 7, "个星期": 7}
_NUMBERS = {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_MONTHS = {
    name: number
    for number, name in enumerate(
        [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ],
        start=1,
    )
}
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_CJK_DAYS = "一二三四五六日"

_ISO = re.compile(r"\b(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?")
_CJK_DATE = re.compile(r"(\d{1,2})月(\d{1,2})[日号]")
_ENGLISH_DATE = re.compile(
    rf"\b({'|'.join(_MONTHS)})\s+(\d{{1,2}})(?:st|nd|rd|th)?\b|\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({'|'.join(_MONTHS)})\b",
    re.IGNORECASE,
)
_RELATIVE = (
    (re.compile(r"大后天"), 3), (re.compile(r"后天|\bday after tomorrow\b", re.IGNORECASE), 2),
    (re.compile(r"明天|明早|明晚|\btomorrow\b", re.IGNORECASE), 1),
)  # fmt: skip
_IN_SOME = re.compile(
    r"\bin (\d{1,2}) (day|week)s?\b|(\d{1,2}|[一两二三四五六七八九十])(天|周|个?星期)[之以]?后", re.IGNORECASE
)
_WEEKDAY = re.compile(
    rf"\b(next|this|on|by)\s+({'|'.join(_DAYS)})\b|(下下?|这|本)?(?:周|星期|礼拜)([{_CJK_DAYS}天])", re.IGNORECASE
)
_VAGUE = re.compile(
    r"下周|下个?星期|\bnext week\b|下个?月|\bnext month\b|明年|\bnext year\b|(?:这|本|下)周末|\bweekend\b",
    re.IGNORECASE,
)


def plan_in(text: str, said_at: int | None) -> tuple[str | None, bool]:
    """(ISO date or None, whether this is a plan for a time after it was said).

    `said_at` is event time in milliseconds. Without it a relative day ("tomorrow") cannot be resolved: the plan is
    kept without a date.
    """
    if not _INTENT.search(text):
        return None, False
    said = datetime.fromtimestamp(said_at / 1000, UTC).date() if said_at is not None else None
    day = _day_of(text, said)
    if day is not None:
        return day.isoformat(), said is None or day > said
    return None, _VAGUE.search(text) is not None or (said is None and any(p.search(text) for p, _ in _RELATIVE))


def _day_of(text: str, said: date | None) -> date | None:
    if match := _ISO.search(text):
        return _date(int(match[1]), int(match[2]), int(match[3]))
    if said is None:
        return None
    if match := _CJK_DATE.search(text):
        return _coming(said, int(match[1]), int(match[2]))
    if match := _ENGLISH_DATE.search(text):
        month, day = (match[1], match[2]) if match[1] else (match[4], match[3])
        return _coming(said, _MONTHS[month.lower()], int(day))
    for pattern, days in _RELATIVE:
        if pattern.search(text):
            return said + timedelta(days=days)
    if match := _IN_SOME.search(text):
        number, unit = (match[1], match[2].lower()) if match[1] else (match[3], match[4])
        return said + timedelta(days=int(_NUMBERS.get(number, number)) * _UNITS[unit])
    if match := _WEEKDAY.search(text):
        return _weekday(said, match)
    return None


def _weekday(said: date, match: re.Match[str]) -> date | None:
    """Chinese weeks begin on Monday; `next friday` is the Friday of the week after, `on friday` the coming one."""
    name, ahead = (match[2], match[1].lower()) if match[2] else (match[4], match[3] or "")
    number = (
        _DAYS.index(name.lower()) if match[2] else _CJK_DAYS.replace("日", "日").find(name if name != "天" else "日")
    )
    monday = said - timedelta(days=said.weekday())
    if ahead in ("next", "下"):
        return monday + timedelta(days=7 + number)
    if ahead == "下下":
        return monday + timedelta(days=14 + number)
    day = monday + timedelta(days=number)
    return day if day > said or ahead in ("这", "本", "") else day + timedelta(days=7)


def _coming(said: date, month: int, day: int) -> date | None:
    """The date in the year it was said in, or the next one where that is over half a year ago."""
    found = _date(said.year, month, day)
    if found is not None and (said - found).days > 183:
        return _date(said.year + 1, month, day)
    return found


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
