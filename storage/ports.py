"""What a backend is: the protocols of the document store, the two indexes, leases and the job ledger.

Every handle is made for one tenant and cannot see another's rows. All methods are coroutines; a store that does not
answer raises `StoreError`. Write methods are atomic: all or nothing, and durable when they return.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from storage.filters import Filter, Scope
from storage.records import MemCell, Memory, Message, ProfileEvidence

# ---------------------------------------------------------------- leases


@dataclass(frozen=True)
class Lease:
    """A held lease. `fence` grows with every holder, and is checked inside the transactions that it protects."""

    name: str
    holder: str
    fence: int


class Leases(Protocol):
    async def acquire(self, name: str, *, ttl_ms: int = 15_000) -> Lease | None:
        """The lease, or None while somebody living holds it. A dead holder's lease is taken over."""
        ...

    async def renew(self, lease: Lease, *, ttl_ms: int = 15_000) -> bool:
        """False where it is lost."""
        ...

    async def release(self, lease: Lease) -> None: ...


# ---------------------------------------------------------------- indexes


@dataclass(frozen=True)
class IndexEntry:
    """One searchable row. `text` feeds the keyword index, `vector` (float32, normalised) the vector index."""

    id: str
    revision: int
    memory_type: str
    partition: str
    user_id: str | None
    group_id: str | None
    session_id: str | None
    timestamp: int | None
    sender_ids: Sequence[str]
    tags: Sequence[str]
    text: str = ""
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class IndexGeneration:
    """One build of an index: `k1`, `v2`, ... Searches read the live one, writers write to all of them."""

    name: str
    kind: str
    """`keyword` or `vector`."""
    live: bool
    model_id: str = ""
    dimension: int = 0


@dataclass(frozen=True)
class Hit:
    id: str
    score: float
    """Raw: BM25 (higher is better) or cosine."""
    memory_type: str


class Index(Protocol):
    generation: IndexGeneration

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        """Write each entry unless the same or a later revision is there."""
        ...

    async def delete(self, ids: Sequence[str]) -> None: ...

    async def scan(self, *, after: str = "", limit: int = 5_000) -> list[tuple[str, int]]:
        """(id, revision) in id order, from behind `after`."""
        ...

    async def count(self) -> int:
        """Searchable entries of the tenant."""
        ...

    async def drop(self) -> None:
        """Remove this generation altogether."""
        ...


class KeywordIndex(Index, Protocol):
    async def search(self, words: Sequence[str], scope: Scope, *, limit: int) -> list[Hit]:
        """BM25 over `words` (OR): the best `limit` of each type, best first; filters never change a score."""
        ...


class VectorIndex(Index, Protocol):
    async def search(self, vector: NDArray[np.float32], scope: Scope, *, limit: int) -> list[Hit]:
        """Cosine similarity: the best `limit` of each type, best first."""
        ...

    async def similarities(
        self, vector: NDArray[np.float32], ids: Sequence[str], partitions: Sequence[str]
    ) -> dict[str, float]:
        """Cosine similarity of the given rows, those that are there."""
        ...

    async def vectors(self, ids: Sequence[str]) -> dict[str, tuple[int, NDArray[np.float32]]]:
        """(revision, vector) of the given ids, those that are there."""
        ...


# ---------------------------------------------------------------- documents


@dataclass(frozen=True)
class ImportBatch:
    """Which part of which file a write belongs to, recorded in the same transaction, so that no part counts twice."""

    job: str
    file: str
    number: int
    counts: dict[str, int] = field(default_factory=dict)
    """What the reader counted: read, skipped, unreadable by reason."""


@dataclass(frozen=True)
class AddOutcome:
    """What became of each message of one add."""

    added: list[Message] = field(default_factory=list)
    """Stored now, with their places."""
    duplicates: int = 0
    conflicts: list[str] = field(default_factory=list)
    """message_ids that are there with other content; the first content was kept."""
    deleted: int = 0
    """Messages that were deleted before and therefore stay away."""
    pending: int = 0
    """Messages of the conversation that are in no MemCell yet (not counted for imports)."""


@dataclass(frozen=True)
class Conversation:
    id: str
    user_id: str | None
    group_id: str | None
    session_id: str | None
    epoch: int
    pending: int = 0


@dataclass(frozen=True)
class Outline:
    """One pending message without its text: enough to plan windows."""

    id: str
    order_time: int
    dated: bool
    place: int
    tokens: int

    @property
    def position(self) -> tuple[int, int, str]:
        return self.order_time, self.place, self.id


@dataclass(frozen=True)
class Span:
    """A stretch of a conversation, both ends included."""

    first: tuple[int, int, str]
    last: tuple[int, int, str]


Row = Message | Memory


@dataclass(frozen=True, slots=True)
class Standing:
    """What search looks at around a row, without reading the row itself."""

    timestamp: int | None
    conversation_id: str | None
    """Of a message; its neighbours have the places before and behind its own."""
    place: int
    episode_id: str | None
    """The episode of its MemCell, also where that is deleted. None of an episode itself."""


class Documents(Protocol):
    """The truth. `revision` of a row grows with each change of what is visible or searchable."""

    tenant_id: str

    # raw messages
    async def add_messages(
        self, messages: Sequence[Message], *, batch: ImportBatch | None = None, restore: bool = False
    ) -> AddOutcome:
        """Store messages of any conversations, each once. Online (no batch), a conflict raises ConflictError."""
        ...

    async def conversation(self, conversation_id: str) -> Conversation | None: ...

    async def pending_conversations(
        self,
        *,
        user_id: str | None = None,
        group_id: str | None = None,
        idle_since: int | None = None,
        limit: int = 100,
    ) -> list[Conversation]:
        """Those with messages in no MemCell; `idle_since`: no message added since then, and in no unfinished job."""
        ...

    async def outline(self, conversation_id: str) -> list[Outline]: ...

    async def pending_messages(self, conversation_id: str, span: Span | None = None) -> list[Message]: ...

    async def messages(self, ids: Sequence[str]) -> list[Message]:
        """Visible messages, in the order of `ids`."""
        ...

    # MemCells
    async def commit_cut(self, cells: Sequence[MemCell], *, lease: Lease) -> list[MemCell]:
        """Insert MemCells and assign their messages; returns them as they are stored.

        LeaseLostError, StaleEpochError, ConflictError: nothing was written.
        """
        ...

    async def memcells(self, ids: Sequence[str]) -> list[MemCell]: ...

    async def unfinished_memcells(
        self, *, conversation_id: str | None = None, cut_before: int | None = None, undone: bool = False,
        limit: int = 10_000,
    ) -> list[MemCell]:
        """MemCells that are not built and indexed; `undone`: only those that were once and lost messages since."""
        ...

    async def save_result(self, cell: MemCell, result: dict[str, Any]) -> MemCell:
        """Keep the extraction result; where another builder was first, its result is what comes back."""
        ...

    async def commit_build(
        self, cell: MemCell, memories: Sequence[Memory], evidence: Sequence[ProfileEvidence]
    ) -> MemCell:
        """Write memories (pending) as the MemCell's next generation; old children are tombstoned.

        What was deleted stays away: suppressed memories, and rows of people who were deleted since the cut.

        ConflictError where the MemCell moved on, StaleEpochError where its owner was deleted from.
        """
        ...

    async def finish_memcell(self, cell: MemCell) -> None: ...

    # profiles
    async def stale_profiles(self, *, user_ids: Sequence[str] | None = None, limit: int = 1_000) -> list[str]:
        """Users whose evidence changed since their profile was folded."""
        ...

    async def profile_evidence(self, user_id: str) -> tuple[int, list[ProfileEvidence]]:
        """A version that grows with every change, and the evidence in (order_time, memcell, ordinal) order."""
        ...

    async def save_profile(self, user_id: str, profile: Memory | None, *, version: int) -> None:
        """Replace (or, with None, remove) a profile that was folded from evidence of this version."""
        ...

    # any visible row
    async def fetch(self, ids: Sequence[str]) -> dict[str, Row]: ...

    async def standings(self, ids: Sequence[str]) -> dict[str, Standing]: ...

    async def page(self, scope: Scope, *, offset: int, limit: int, descending: bool = True) -> tuple[list[Row], int]:
        """Rows by (order_time, place or id), and how many there are in all. One memory type at a time."""
        ...

    async def update_memory(self, memory_id: str, changes: dict[str, Any]) -> Row:
        """Change text fields or tags of a memory; its revision grows. NotFoundError, InvalidInputError."""
        ...

    async def counts(self) -> dict[str, int]:
        """Visible rows by type, `memcells`, and `raw_messages` (those not yet consumed)."""
        ...

    def visible_rows(self) -> AsyncIterator[Row]:
        """All visible rows in id order."""
        ...

    # index state
    async def generations(self) -> list[IndexGeneration]: ...

    async def add_generation(
        self, kind: str, *, model_id: str = "", dimension: int = 0, first: bool = False
    ) -> IndexGeneration:
        """A generation to be built, or the unfinished one of that model. `first`: the live one, made if there is none."""
        ...

    async def promote_generation(self, name: str) -> bool:
        """Make it the live one, unless a document lacks it; True where it is live now."""
        ...

    async def remove_generation(self, name: str) -> None: ...

    async def mark_indexed(self, generations: Sequence[str], rows: Iterable[tuple[str, int]]) -> list[str]:
        """Note (id, revision) as written; returns the ids that are deleted now, whose entries must go again."""
        ...

    async def unindexed(self, *, limit: int = 500, older_than: int | None = None) -> list[Row]:
        """Rows that some active generation lacks."""
        ...

    async def lacking(self, generation: str, *, after: str = "", limit: int = 500) -> list[Row]: ...

    async def scan_revisions(self, kind: str, *, after: str = "", limit: int = 5_000) -> list[tuple[str, int, bool]]:
        """(id, revision, pending) of rows that belong in an index of this kind, in id order."""
        ...

    async def wants_vector(self, ids: Sequence[str]) -> set[str]:
        """Those of `ids` that belong in the vector index: memories, and messages of built MemCells."""
        ...

    async def broken_links(self, *, limit: int = 1_000) -> list[tuple[str, str]]:
        """(what is wrong, id): rows that do not agree with each other."""
        ...

    # deletion
    async def tombstone(self, *, memory_id: str | None = None, where: Filter | None = None) -> int:
        """Hide rows at once and bump their owners' epochs. Returns how many rows were hidden."""
        ...

    async def unpurged(self, *, limit: int = 1_000) -> list[str]: ...

    async def purge(self, ids: Sequence[str]) -> None:
        """Blank tombstoned rows; their ids stay."""
        ...

    # small resources: groups, senders, settings, tasks
    async def resource(self, kind: str, resource_id: str) -> dict[str, Any] | None: ...

    async def put_resource(self, kind: str, resource_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merge `body` into the resource; created_at and updated_at (ms) are kept by the store."""
        ...


# ---------------------------------------------------------------- ledger


@dataclass(frozen=True)
class Job:
    """A backfill as the ledger knows it."""

    name: str
    arguments: dict[str, Any]
    state: str
    """`importing`, `building`, `done`, `failed`."""
    report: dict[str, Any] = field(default_factory=dict)
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True)
class Window:
    """One stretch of pending messages to cut and build, and what became of it."""

    number: int
    conversation_id: str
    span: Span
    messages: int = 0
    state: str = "planned"
    """`planned`, `done`, `failed`."""
    error: str = ""
    counts: dict[str, int] = field(default_factory=dict)


class Ledger(Protocol):
    async def open_job(self, name: str, arguments: dict[str, Any]) -> Job:
        """The job of that name, made now or found; ConflictError where it is there with other arguments."""
        ...

    async def job(self, name: str) -> Job | None: ...

    async def jobs(self) -> list[Job]: ...

    async def update_job(
        self, name: str, *, state: str | None = None, report: dict[str, Any] | None = None
    ) -> None: ...

    async def imported_batches(self, job: str, file: str) -> set[int]: ...

    async def forget_import(self, job: str) -> None:
        """Count a finished job from nothing, so that its files are read anew."""
        ...

    async def import_counts(self, job: str) -> dict[str, int]: ...

    async def job_conversations(self, job: str) -> list[str]:
        """Conversations that this job brought messages to."""
        ...

    async def plan(self, job: str, windows: Sequence[Window], *, conversations: Sequence[str]) -> None:
        """Append windows, and note these conversations as planned."""
        ...

    async def unplanned(self, job: str, *, limit: int = 1_000) -> list[str]: ...

    async def windows(
        self, job: str, *, state: str = "planned", after: int = -1, limit: int = 10_000
    ) -> list[Window]: ...

    async def finish_windows(self, job: str, outcomes: Sequence[Window]) -> None:
        """Store outcomes; a failed window becomes a dead letter in the same transaction."""
        ...

    async def window_counts(self, job: str) -> dict[str, int]: ...

    async def add_dead_letters(self, job: str, letters: Sequence[dict[str, Any]]) -> None: ...

    async def dead_letters(self, *, job: str | None = None, limit: int = 1_000) -> list[dict[str, Any]]: ...

    async def resolve_dead_letters(self, ids: Sequence[int]) -> None: ...
