"""A file as a sequence of record batches, the same ones each time it is read.

A batch is what one transaction stores. Its number is its identity in the ledger, so its borders depend on the file and
on the request only, never on what is stored already.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from pipelines.importers.registry import Source
from pipelines.incoming import Incoming
from pipelines.intake import Ownership, Placed, SourceOrder, refusal
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.tally import Tally
from primitives.clock import now_ms, to_iso

BATCH_RECORDS = 1_000
BATCH_CHARACTERS = 1_000_000
"""So that a batch of long texts stays small in memory."""
DAY_MS = 86_400_000


@dataclass(frozen=True)
class FilePlan:
    """One file of a job."""

    source: Source
    identity: str
    size: int
    ownership: Ownership
    number: int = 0
    """Which file of the job it is; the messages of one conversation follow each other in this order."""
    limit: int | None = None
    """At most so many messages."""


@dataclass
class RecordBatch:
    """Up to BATCH_RECORDS records of one file."""

    file: str
    number: int
    counts: dict[str, int] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)

    def dump(self) -> bytes:
        """Bytes for the way between processes; they never leave the machine or reach a disk of ours."""
        return pickle.dumps((self.file, self.number, self.counts, [tuple(item) for item in self.placed]), protocol=5)

    @classmethod
    def load(cls, data: bytes) -> RecordBatch:
        file, number, counts, placed = pickle.loads(data)
        return cls(file, number, counts, [Placed(*item) for item in placed])


def read_batches(
    plan: FilePlan, request: BackfillRequest, *, max_bytes: int, done: Collection[int] = ()
) -> Iterator[RecordBatch]:
    """The batches of a file without those in `done`. The whole file is read all the same, since places and
    occurrence numbers come from its order."""
    options = request.options()
    order, tally, select = SourceOrder(), Tally(), Selection(request)
    now, where = now_ms(), str(plan.source.path)
    number = records = characters = taken = position = 0
    placed: list[Placed] = []

    def close() -> RecordBatch:
        return RecordBatch(plan.identity, number, tally.take(read_bytes=options.meter.position - position), placed)

    for count, record in enumerate(plan.source.read(options), 1):
        records += 1
        tally.read()
        if isinstance(record, Incoming):
            here = order.place(record)
            reason = refusal(record, max_bytes=max_bytes)
            outside = None if reason else select.outside(here)
            if reason is not None:
                tally.note("unreadable", reason, f"{where}: record {count}", record.text[:80])
            elif outside is not None:
                tally.note("skipped", outside, f"{where}: record {count}")
            else:
                _note(tally, record, f"{where}: record {count}", now)
                placed.append(here)
                characters += len(record.text)
                taken += 1
        else:
            tally.rejected(record)
        if records >= BATCH_RECORDS or characters >= BATCH_CHARACTERS:
            if number not in done:
                yield close()
            else:
                tally.take(read_bytes=0)
            position = options.meter.position
            number, records, characters, placed = number + 1, 0, 0, []
        if plan.limit is not None and taken >= plan.limit:
            break
    if records and number not in done:
        yield close()


def _note(tally: Tally, record: Incoming, where: str, now: int) -> None:
    if record.timestamp is None:
        tally.note("noted", "no time; the order of the file stands", where)
    elif record.timestamp > now + DAY_MS:
        tally.note("noted", "dated in the future", where, str(to_iso(record.timestamp)))


class Selection:
    """--since and --until. An undated message goes with the message before it."""

    def __init__(self, request: BackfillRequest) -> None:
        self._since, self._until = request.since, request.until

    def outside(self, placed: Placed) -> str | None:
        """Why a message is left out; None where it is not."""
        if self._since is None and self._until is None:
            return None
        time = placed.incoming.timestamp
        if time is None and placed.order_time == 0:
            return "no time to compare with --since or --until"
        time = placed.order_time if time is None else time
        if self._since is not None and time < self._since:
            return "before --since"
        if self._until is not None and time >= self._until:
            return "not before --until"
        return None


def plan_limits(plans: list[FilePlan], request: BackfillRequest, *, max_bytes: int) -> list[FilePlan]:
    """The files with their share of --limit: read in order until it is reached, once, before the job begins."""
    left = request.limit
    if left is None:
        return plans
    found: list[FilePlan] = []
    for plan in plans:
        if left <= 0:
            break
        capped = replace(plan, limit=left)
        count = sum(len(batch.placed) for batch in read_batches(capped, request, max_bytes=max_bytes))
        found.append(capped)
        left -= count
    return found
