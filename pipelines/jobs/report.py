"""What a backfill did, for people and for --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipelines.incoming import Rejected
from pipelines.jobs.tally import Example, Reasons, reasons_of


@dataclass
class Stage:
    """How long a stage of this run took and what it went through. A resumed run counts only what was left."""

    name: str
    unit: str
    count: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.count / self.seconds if self.seconds > 0 else 0.0


@dataclass
class BackfillReport:
    """The report of a job. Counts are the whole job's, also what an earlier, stopped run of it did."""

    job: str
    state: str = "importing"
    dry_run: bool = False
    files: int = 0
    read: int = 0
    """All that was met: new, duplicates, conflicts, deleted before, skipped and unreadable."""
    new: int = 0
    duplicates: int = 0
    conflicts: int = 0
    deleted_before: int = 0
    """Messages that were deleted once and therefore stay away."""
    skipped: Reasons = field(default_factory=Reasons)
    unreadable: Reasons = field(default_factory=Reasons)
    noted: Reasons = field(default_factory=Reasons)
    """Stored, but worth knowing: undated, dated in the future."""
    conflict_examples: list[str] = field(default_factory=list)
    conversations: int = 0
    tokens: int | None = None
    """Counted by a dry run."""
    windows: int = 0
    memcells: int = 0
    memories: dict[str, int] = field(default_factory=dict)
    embedded: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    """Kinds of memory that were not made, with the reason."""
    profiles: int = 0
    dead_letters: int = 0
    dead_letter_examples: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    estimated_seconds: float | None = None
    """Of the whole job, by a dry run."""

    def add_import(self, counts: Mapping[str, int], passed_over: Sequence[Rejected]) -> None:
        """Take in the ledger's import counts, and files that no reader saw."""
        self.read = counts.get("read", 0) + len(passed_over)
        self.new = counts.get("new", 0)
        self.duplicates = counts.get("duplicate", 0)
        self.conflicts = counts.get("conflict", 0)
        self.deleted_before = counts.get("deleted_before", 0)
        self.skipped = reasons_of(counts, "skipped", also=passed_over)
        self.unreadable = reasons_of(counts, "unreadable", also=passed_over)
        self.noted = reasons_of(counts, "noted")

    def add_build(self, counts: Mapping[str, int]) -> None:
        """Take in the ledger's window counts."""
        self.windows = sum(counts.get(state, 0) for state in ("planned", "done", "failed"))
        self.memcells = counts.get("memcells", 0)
        self.embedded = counts.get("embedded", 0)
        prefix, out = "memory:", "left out:"
        self.memories = {key.removeprefix(prefix): n for key, n in sorted(counts.items()) if key.startswith(prefix)}
        pairs = (key.removeprefix(out).split("\t", 1) for key in sorted(counts) if key.startswith(out))
        self.left_out = {pair[0]: pair[1] for pair in pairs}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = asdict(self)
        found["stages"] = [asdict(stage) | {"rate": round(stage.rate, 1)} for stage in self.stages]
        return found

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [self._figures()]
        for title, reasons in (("Skipped", self.skipped), ("Unreadable", self.unreadable), ("Note", self.noted)):
            if reasons.counts:
                parts.append(_reasons_table(title, reasons))
        for title, lines in (("Conflicts", self.conflict_examples), ("Dead letters", self.dead_letter_examples)):
            if lines:
                parts.append(Text(f"{title}, the first: " + "; ".join(lines)))
        if self.dead_letters:
            parts.append(Text("Run `evercore replay` to try the dead letters again."))
        return Group(*parts)

    def _figures(self) -> Table:
        title = f"Dry run of {self.job}: nothing was stored" if self.dry_run else f"Backfill {self.job}: {self.state}"
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        rows: list[tuple[str, object]] = [("Files", self.files), ("Records read", self.read)]
        if not self.dry_run:
            rows += [("  new", self.new), ("  duplicate", self.duplicates), ("  conflict (first kept)", self.conflicts)]
            rows += [("  deleted before", self.deleted_before)] if self.deleted_before else []
        rows += [("Skipped", self.skipped.total), ("Unreadable", self.unreadable.total)]
        rows += [("Conversations", self.conversations)]
        rows += [("Tokens", self.tokens)] if self.tokens is not None else []
        rows += [("MemCells (estimated)" if self.dry_run else "MemCells", self.memcells)]
        rows += [(f"  {kind}", number) for kind, number in self.memories.items()]
        rows += [("Profiles folded", self.profiles)] if self.profiles else []
        rows += [] if self.dry_run else [("Texts embedded", self.embedded), ("Dead letters", self.dead_letters)]
        for name, value in rows:
            table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
        for stage in self.stages:
            table.add_row(f"{stage.name}", f"{stage.seconds:,.1f} s, {stage.rate:,.0f} {stage.unit}/s")
        if self.estimated_seconds is not None:
            table.add_row("Whole job (estimated)", f"{self.estimated_seconds:,.0f} s")
        for kind, reason in self.left_out.items():
            table.add_row(f"Not made: {kind}", reason)
        return table


def _reasons_table(title: str, reasons: Reasons) -> Table:
    table = Table(title_justify="left")
    table.add_column(title)
    table.add_column("", justify="right")
    table.add_column("for example", overflow="fold")
    for reason, count in sorted(reasons.counts.items(), key=lambda pair: -pair[1]):
        table.add_row(reason, f"{count:,}", Text("\n").join(map(_line, reasons.examples.get(reason, []))))
    return table


def _line(example: Example) -> Text:
    return Text(f"{example.where}  {example.sample}".rstrip())
