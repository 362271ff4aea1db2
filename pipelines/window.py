"""Cut and build: the only way from pending messages to memories, online and in bulk.

Cutting assigns messages to MemCells in one commit, under the conversation's lease. Building makes the memories of one
MemCell, each step resumable: the extraction result is stored before anything is made of it, memories are durable before
they are indexed, and a MemCell is finished when both indexes have them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pipelines.indexing import index_rows
from pipelines.leasing import held
from pipelines.memories import evidence_of, memories_of
from pipelines.tools import Tools
from pipelines.windows import plan_windows, span_of
from primitives.clock import now_ms
from primitives.errors import ConflictError, NotFoundError
from storage.ids import memcell_id
from storage.ports import Lease, Outline, Row, Span
from storage.records import MemCell, Memory, Message

logger = logging.getLogger(__name__)

TRIES = 5
"""How often a MemCell is begun anew when somebody else moved it meanwhile."""


@dataclass
class WindowReport:
    """What became of one window."""

    messages: int = 0
    memcells: int = 0
    memories: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    embedded: int = 0
    """Texts that were embedded: messages, and what memories say in other words than a message."""
    people: set[str] = field(default_factory=set)
    """Whose profiles may have changed."""
    failures: int = 0
    """MemCells that could not be built and are left for later."""

    def add(self, other: WindowReport) -> None:
        self.messages += other.messages
        self.memcells += other.memcells
        self.memories += other.memories
        self.skipped |= other.skipped
        self.embedded += other.embedded
        self.people |= other.people
        self.failures += other.failures


def conversation_lease(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"


async def build_window(tools: Tools, conversation_id: str, span: Span, *, wait_s: float) -> WindowReport:
    """Cut what is pending inside the span and build it, with what an earlier attempt cut there and did not finish.

    The conversation's lease is held for the commit only, so windows of one conversation run side by side.
    ConflictError where somebody else holds it for longer than `wait_s` seconds.
    """
    for attempt in range(TRIES):
        cuts = await find_topics(tools, conversation_id, span)
        try:
            async with held(tools.stores.leases, conversation_lease(conversation_id), wait_s=wait_s) as lease:
                cuts = await _commit(tools, cuts, lease)
            break
        except ConflictError:
            if attempt == TRIES - 1:
                raise
    report = await build_all(tools, cuts)
    report.add(await build_all(tools, await _left_in(tools, conversation_id, span)))
    return report


async def _left_in(tools: Tools, conversation_id: str, span: Span) -> list[Cut]:
    """Unfinished MemCells that begin inside the span."""
    documents = tools.stores.documents
    cells = {cell.message_keys[0]: cell for cell in await documents.unfinished_memcells(
        conversation_id=conversation_id, limit=10_000)}  # fmt: skip
    firsts = await documents.messages(list(cells))
    return [Cut(cells[m.id]) for m in firsts if span.first <= (m.order_time, m.place, m.id) <= span.last]


async def build_conversation(tools: Tools, conversation_id: str, *, wait_s: float) -> WindowReport:
    """Cut and build all that is pending, window by window, under the conversation's lease; then what was left before.

    ConflictError where somebody else holds the conversation for longer than `wait_s` seconds.
    """
    report = WindowReport()
    documents = tools.stores.documents
    async with held(tools.stores.leases, conversation_lease(conversation_id), wait_s=wait_s) as lease:
        for window in plan_windows(await documents.outline(conversation_id), tools.settings):
            cuts = await find_topics(tools, conversation_id, span_of(window))
            report.add(await build_all(tools, await _commit(tools, cuts, lease)))
    left = await documents.unfinished_memcells(conversation_id=conversation_id, limit=10_000)
    report.add(await build_all(tools, [Cut(cell) for cell in left]))
    return report


async def build_unfinished(tools: Tools, *, cut_before: int | None = None, undone: bool = False) -> WindowReport:
    """Build what was cut and not finished (before a moment in ms), whoever left it; `undone`: what lost messages.

    One MemCell that cannot be built stops no other: its failure is logged and counted, and it is tried again next time.
    """
    report = WindowReport()
    for cell in await tools.stores.documents.unfinished_memcells(cut_before=cut_before, undone=undone):
        try:
            report.add(await build(tools, Cut(cell)))
        except Exception:  # whatever it was
            logger.exception("MemCell %s cannot be built", cell.id)
            report.failures += 1
    return report


@dataclass(frozen=True)
class Cut:
    """A MemCell to be built, with its messages and their vectors where they are at hand from cutting."""

    cell: MemCell
    messages: Sequence[Message] = ()
    vectors: NDArray[np.float32] | None = None


async def _commit(tools: Tools, cuts: Sequence[Cut], lease: Lease) -> list[Cut]:
    stored = await tools.stores.documents.commit_cut([one.cell for one in cuts], lease=lease)
    return [replace(one, cell=cell) for one, cell in zip(cuts, stored, strict=True)]


async def find_topics(tools: Tools, conversation_id: str, span: Span) -> list[Cut]:
    """The topics of the pending messages of one window, as MemCells that are not committed yet."""
    documents = tools.stores.documents
    conversation = await documents.conversation(conversation_id)
    if conversation is None:
        raise NotFoundError(f"no conversation {conversation_id}")
    messages = await documents.pending_messages(conversation_id, span)
    if not messages:
        return []
    vectors = await tools.embedder.embed_documents([message.embedding_text for message in messages])
    cuts, start = [], 0
    # One window as a rule; more where late messages fell into the span since it was planned.
    for window in plan_windows([_outline(message) for message in messages], tools.settings):
        part = slice(start, start + len(window))
        inner = await tools.detector.boundaries(messages[part], vectors[part])
        for end in [*(part.start + cut for cut in inner), part.stop]:
            cell = _memcell(messages[start:end], epoch=conversation.epoch, detector=tools.detector.name)
            cuts.append(Cut(cell, messages[start:end], vectors[start:end]))
            start = end
    return cuts


def _outline(m: Message) -> Outline:
    return Outline(m.id, m.order_time, m.time_known, m.place, m.tokens)


def _memcell(messages: Sequence[Message], *, epoch: int, detector: str) -> MemCell:
    first, last = messages[0], messages[-1]
    times = [message.timestamp for message in messages if message.timestamp is not None]
    return MemCell(
        id=memcell_id(first.id, last.id), tenant_id=first.tenant_id, user_id=first.user_id, group_id=first.group_id,
        session_id=first.session_id, partition=first.partition, timestamp=times[-1] if times else None,
        order_time=last.order_time, imported_at=now_ms(), language=first.language,
        conversation_id=first.conversation_id, message_keys=[message.id for message in messages],
        source_message_ids=[message.message_id for message in messages],
        participants=list(dict.fromkeys(m.sender_id for m in messages if m.role == "user")),
        sender_ids=list(dict.fromkeys(m.sender_id for m in messages)), owner_epoch=epoch, detector=detector,
    )  # fmt: skip


async def build_all(tools: Tools, cuts: Sequence[Cut]) -> WindowReport:
    """Build MemCells side by side; the first error is raised once all have ended, so that nothing is half awaited."""
    report = WindowReport()
    outcomes = await asyncio.gather(*(build(tools, one) for one in cuts), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        report.add(outcome)
    return report


async def build(tools: Tools, one: Cut) -> WindowReport:
    """Make, store and index the memories of one MemCell; several builders of one MemCell do it once."""
    documents = tools.stores.documents
    for attempt in range(TRIES):
        found = await documents.memcells([one.cell.id]) if attempt or not one.messages else [one.cell]
        if not found or found[0].state == "indexed":
            return WindowReport()  # deleted meanwhile, or finished by somebody else
        cell = found[0]
        try:
            return await _build(tools, cell, one if cell.message_keys == one.cell.message_keys else Cut(cell))
        except ConflictError:
            if attempt == TRIES - 1:
                raise
    raise AssertionError("unreachable")


async def _build(tools: Tools, cell: MemCell, known: Cut) -> WindowReport:
    documents = tools.stores.documents
    messages = known.messages or await documents.messages(cell.message_keys)
    if len(messages) != len(cell.message_keys):
        raise ConflictError(f"messages of MemCell {cell.id} were deleted while it was being built")
    vectors = known.vectors
    if vectors is None:
        vectors = await tools.embedder.embed_documents([message.embedding_text for message in messages])
    skipped: dict[str, str] = {}
    if cell.state == "cut":
        if cell.result is None:
            extraction = await tools.extractor.extract(cell, messages, vectors)
            cell = await documents.save_result(cell, extraction.result)
            skipped = extraction.skipped
        memories = memories_of(cell, messages)
        cell = await documents.commit_build(cell, memories, evidence_of(cell, messages))
        memories = [memory for memory in memories if memory.id in cell.children]  # what was deleted stays out
    else:
        memories = [row for row in (await documents.fetch(cell.children)).values() if isinstance(row, Memory)]
    rows: list[Row] = [*messages, *memories]
    by_text = {message.embedding_text: vector for message, vector in zip(messages, vectors, strict=True)}
    texts = list(dict.fromkeys(row.embedding_text for row in memories if row.embedding_text not in by_text))
    by_text |= zip(texts, await tools.embedder.embed_documents(texts), strict=True) if texts else ()
    by_id = {row.id: by_text[row.embedding_text] for row in rows}
    await index_rows(tools.stores, rows, by_id, model_id=tools.embedder.identity.space)
    await documents.finish_memcell(cell)
    people = {item["user_id"] for item in (cell.result or {})["profile"]}
    return WindowReport(
        messages=len(messages), memcells=1, memories=Counter(str(memory.memory_type) for memory in memories),
        skipped=skipped, embedded=len(messages) + len(texts), people=people,
    )  # fmt: skip
