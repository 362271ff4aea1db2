"""Which number of WhatsApp's dates is the day, read off a whole file: phones write them in the order of their locale."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from pipelines.importers.contract import DateOrder
from pipelines.importers.whatsapp_heads import Head

FIRST_YEAR = 2009
"""WhatsApp's first year; two digits that make an earlier one are no year."""
_PLACES: dict[DateOrder, tuple[int, int, int]] = {
    "day-first": (2, 1, 0), "month-first": (2, 0, 1), "year-first": (0, 1, 2),
}  # fmt: skip
"""Where year, month and day stand."""


def date_of(head: Head, order: DateOrder) -> date | None:
    """The date of a head, read in that order; None where it is none."""
    year_place, month_place, day_place = _PLACES[order]
    year, month, day = (head.numbers[place] for place in (year_place, month_place, day_place))
    if any(head.four_digits[place] for place in (month_place, day_place)):
        return None
    if order == "month-first" and head.separator == ".":
        return None  # no locale writes it so
    if not head.four_digits[year_place]:
        year += 2000
        if year < FIRST_YEAR or year > 2099:
            return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


@dataclass
class _Reading:
    """What a file would be in one order."""

    fails: int = 0
    back: int = 0
    """How often it goes back by days, which an export does not do, since it is written in the order of time."""
    last: int = 0


@dataclass
class DateSurvey:
    """The dates of the heads of one shape, in the order of the file."""

    heads: int = 0
    after_crlf: int = 0
    """Heads whose line before ends with a carriage return."""
    first: str = ""
    _readings: dict[DateOrder, _Reading] = field(default_factory=lambda: {order: _Reading() for order in _PLACES})
    _latest: tuple[int, int, int] | None = None

    def add(self, head: Head, *, after_crlf: bool) -> None:
        """Note the next head. One whose date is none in any order is no head."""
        if head.numbers != self._latest:
            dates = {order: date_of(head, order) for order in _PLACES}
            if not any(dates.values()):
                return
            self._latest = head.numbers
            for order, found in dates.items():
                self._note(self._readings[order], found)
        self.heads += 1
        self.after_crlf += after_crlf
        self.first = self.first or head.text

    @staticmethod
    def _note(reading: _Reading, found: date | None) -> None:
        if found is None:
            reading.fails += 1
            return
        day = found.toordinal()
        reading.back += day < reading.last - 1
        reading.last = day

    def possible(self) -> list[DateOrder]:
        """The orders in which all dates of the file are dates."""
        return [order for order, reading in self._readings.items() if not reading.fails]

    def order(self, asked: DateOrder | None) -> DateOrder | None:
        """The order of the dates; None where the file leaves it open and nobody says.

        What the file shows beyond doubt goes before what a person says, whose answer is meant for the files that do
        not show it. Of several possible orders, the only one that keeps the messages in the order of time is it.
        """
        possible = self.possible()
        if asked in possible:
            return asked
        if len(possible) > 1:
            possible = [order for order in possible if not self._readings[order].back]
        return possible[0] if len(possible) == 1 else None


def main_shape(surveys: dict[tuple[str, ...], DateSurvey]) -> tuple[str, ...] | None:
    """The shape that most heads have; None where there is no head."""
    counts = Counter({shape: survey.heads for shape, survey in surveys.items() if survey.heads})
    return counts.most_common(1)[0][0] if counts else None
