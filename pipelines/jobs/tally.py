"""What the reader of a file counted, as flat integers that a ledger can add up.

Examples travel as keys too: they are committed with their batch, so a resumed job reports what the first run met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.incoming import Rejected

EXAMPLES = 3
"""First examples kept of each reason in a file."""
KINDS = ("skipped", "unreadable", "noted")


@dataclass(frozen=True)
class Example:
    """Where one thing was met."""

    where: str
    sample: str = ""


@dataclass
class Reasons:
    """How often something was met, by reason, with first examples."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def add(self, reason: str, example: Example | None = None, *, count: int = 1, keep: int = EXAMPLES) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + count
        if example is not None:
            self.show(reason, example, keep=keep)

    def show(self, reason: str, example: Example, *, keep: int = EXAMPLES) -> None:
        shown = self.examples.setdefault(reason, [])
        if len(shown) < keep:
            shown.append(example)


class Tally:
    """Counts of one file, taken batch by batch."""

    def __init__(self) -> None:
        self._batch: Counter[str] = Counter()
        self._shown: Counter[tuple[str, str]] = Counter()

    def read(self) -> None:
        """One more record, whatever becomes of it."""
        self._batch["read"] += 1

    def rejected(self, record: Rejected) -> None:
        self.note("skipped" if record.skipped else "unreadable", record.reason, record.where, record.sample)

    def note(self, kind: str, reason: str, where: str, sample: str = "") -> None:
        self._batch[f"{kind}:{reason}"] += 1
        if self._shown[kind, reason] < EXAMPLES:
            self._shown[kind, reason] += 1
            self._batch["\t".join(["example", kind, reason, where.replace("\t", " "), sample.replace("\t", " ")])] = 1

    def take(self, *, read_bytes: int) -> dict[str, int]:
        """The counts since the last call."""
        counts = dict(self._batch)
        counts["bytes"] = read_bytes
        self._batch.clear()
        return counts


def reasons_of(counts: Mapping[str, int], kind: str, *, also: Iterable[Rejected] = ()) -> Reasons:
    """The reasons of one kind in added-up counts, and files that never reached a reader."""
    found = Reasons()
    for key, count in sorted(counts.items()):
        if key.startswith(f"{kind}:"):
            found.add(key.removeprefix(f"{kind}:"), count=count)
        elif key.startswith(f"example\t{kind}\t"):
            _, _, reason, where, sample = key.split("\t", 4)
            found.show(reason, Example(where, sample))
    for record in also:
        if record.skipped == (kind == "skipped") and kind != "noted":
            found.add(record.reason, Example(record.where, record.sample))
    return found
