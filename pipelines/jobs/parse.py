"""What a backfill of the same paths would read, message by message, without owners and without storing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelines.importers.contract import Titled
from pipelines.importers.registry import Sources, check_start, find_sources
from pipelines.incoming import Incoming
from pipelines.intake import Ownership, Placed, message_fields
from pipelines.jobs.reading import FilePlan, read_batches
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.tally import Reasons, reasons_of
from primitives.clock import to_iso
from primitives.hashing import stable_id

_TENANT = "parse"


@dataclass(frozen=True)
class ParsedMessage:
    """One message, as a person would name it."""

    conversation: str
    """Its title, or its id where it has none."""
    conversation_id: str
    sender: str
    """The name, or the id where there is none."""
    sender_id: str
    role: str
    time: str | None
    """ISO 8601 in UTC; None where the source has none."""
    text: str
    message_id: str | None


@dataclass
class Parsing:
    """The messages of the paths of a request; the counts are whole when all messages were taken."""

    request: BackfillRequest
    max_bytes: int
    """Of the text of one message, in UTF-8."""
    duplicates: int = 0
    """The same message once more: the same key and content, in whichever file."""
    conflicts: int = 0
    """The same key with other content; the first one counts."""
    _counts: Counter[str] = field(default_factory=Counter)
    _seen: dict[int, int] = field(default_factory=dict)
    """Key -> content of each message, as hashes of 64 bits."""
    _sources: Sources = field(default_factory=Sources)

    def open(self) -> None:
        """Find the files and look at their beginnings; what refuses one is raised here."""
        self._sources = find_sources(self.request.paths, format=self.request.format)
        for source in self._sources.files:
            check_start(source, self.request.options())

    def messages(self) -> Iterator[ParsedMessage]:
        """The messages in the order of the files, each of them once."""
        left = self.request.limit
        for source in self._sources.files:
            if left is not None and left <= 0:
                return
            plan = FilePlan(source, source.identity, source.size, Ownership(), limit=left)
            for batch in read_batches(plan, self.request, max_bytes=self.max_bytes):
                self._counts.update(batch.counts)
                left = None if left is None else left - len(batch.placed)
                for placed in batch.placed:
                    if self._is_new(placed, source.path.name):
                        yield _parsed(placed.incoming)

    def reasons(self, kind: str) -> Reasons:
        """Records that were `skipped`, `unreadable` or `noted`, by reason."""
        return reasons_of(self._counts, kind, also=self._sources.passed_over)

    @property
    def read(self) -> int:
        """All records that were met, and files that no reader saw."""
        return self._counts["read"] + len(self._sources.passed_over)

    def _is_new(self, placed: Placed, source: str) -> bool:
        """Whether a message is not known yet, by the key that it would be stored under."""
        owner, session = Ownership().of(placed.incoming)
        fields = message_fields(placed, owner, session, _TENANT, online=False, source=source)
        key = int(fields["id"][:16], 16)
        content = int(stable_id(fields["sender_id"], fields["timestamp"], fields["text"])[:16], 16)
        known = self._seen.get(key)
        if known is None:
            self._seen[key] = content
            return True
        self.duplicates += known == content
        self.conflicts += known != content
        return False


def _parsed(incoming: Incoming) -> ParsedMessage:
    title = incoming.title if isinstance(incoming, Titled) else ""
    return ParsedMessage(
        conversation=title or incoming.conversation, conversation_id=incoming.conversation,
        sender=incoming.sender_name or incoming.sender_id, sender_id=incoming.sender_id, role=incoming.role,
        time=to_iso(incoming.timestamp), text=incoming.text, message_id=incoming.message_id,
    )  # fmt: skip
