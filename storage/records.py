"""The records of the document store, as frozen pydantic models.

Times are milliseconds since 1970 in UTC. `timestamp` is event time and never import time; it is None where nobody
knows it, and `order_time` then carries the time of the message before, so that every conversation has one order:
(order_time, place, id).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from primitives.hashing import stable_id


class MemoryType(StrEnum):
    """EverCore's names of the searchable types."""

    RAW_MESSAGE = "raw_message"
    EPISODE = "episodic_memory"
    ATOMIC_FACT = "atomic_fact"
    FORESIGHT = "foresight"
    AGENT_CASE = "agent_case"
    AGENT_SKILL = "agent_skill"
    PROFILE = "profile"


class Record(BaseModel):
    """What every row has."""

    model_config = ConfigDict(frozen=True)

    id: str
    tenant_id: str
    user_id: str | None = None
    group_id: str | None = None
    session_id: str | None = None
    partition: str
    """Where the row is indexed; see storage.ids."""
    timestamp: int | None = None
    """Event time; of a MemCell and what is built from it, the time of its last dated message."""
    order_time: int = 0
    imported_at: int = 0
    language: str = "en"
    revision: int = 1

    @property
    def time_known(self) -> bool:
        return self.timestamp is not None


class Message(Record):
    """A raw message; `id` is its key, `message_id` the client's own id (or a derived `gen_msg_...`)."""

    conversation_id: str
    message_id: str
    sender_id: str
    sender_name: str
    role: str = "user"
    text: str
    content_items: list[dict[str, Any]] = Field(default_factory=list)
    """Parts that are not text, kept as they came."""
    place: int = -1
    """Position in the source; -1 asks the store for the next one of the conversation."""
    tokens: int = 0
    """Length in o200k_base tokens, sender name included."""
    memcell_id: str | None = None

    memory_type: MemoryType = MemoryType.RAW_MESSAGE

    @property
    def sender_ids(self) -> list[str]:
        return [self.sender_id]

    @property
    def source_message_ids(self) -> list[str]:
        return [self.message_id]

    @property
    def tags(self) -> list[str]:
        return []

    @property
    def embedding_text(self) -> str:
        return self.search_text

    @property
    def search_text(self) -> str:
        """What was said, in a group with who said it: a question about a person means what that person said."""
        return self.text if self.user_id is not None else f"{self.sender_name}: {self.text}"


class MemCell(Record):
    """A whole topic of a conversation: the messages from which memories are built, and how far building is."""

    conversation_id: str
    message_keys: list[str]
    source_message_ids: list[str]
    participants: list[str]
    """Sender ids of people, in order of first appearance."""
    sender_ids: list[str]
    """All sender ids, assistants included."""
    owner_epoch: int = 0
    detector: str = "cohesion"
    state: str = "cut"
    """`cut` (messages assigned), `built` (memories durable), `indexed` (in both indexes)."""
    generation: int = 0
    result: dict[str, Any] | None = None
    """The extraction result, stored before any memory is written and reused by a retry."""
    children: list[str] = Field(default_factory=list)
    suppressed: list[str] = Field(default_factory=list)
    """Marks of memories that were deleted one by one: building anew does not bring them back."""


class Memory(Record):
    """What all built memories share; `embedding_text` is what the vector is made of."""

    memory_type: MemoryType
    memcell_id: str | None = None
    parent_type: str = "memcell"
    parent_id: str | None = None
    participants: list[str] = Field(default_factory=list)
    sender_ids: list[str] = Field(default_factory=list)
    source_message_ids: list[str] = Field(default_factory=list)
    """The client's own message ids in conversation order; of an episode, all messages of its MemCell."""
    tags: list[str] = Field(default_factory=list)
    embedding_text: str
    valid_from: int | None = None
    valid_to: int | None = None
    superseded_by: str | None = None
    strength: float = 1.0
    last_recalled_at: int | None = None

    @property
    def search_text(self) -> str:
        """What keyword search sees."""
        return self.embedding_text

    @property
    def mark(self) -> str:
        """What a memory says and for whom, whatever its id: the same in every generation of its MemCell."""
        return stable_id(self.memory_type, self.user_id, self.search_text)


class Episode(Memory):
    """A narrative of one MemCell, for the group or (with `user_id` in a team scene) from one person's view."""

    memory_type: MemoryType = MemoryType.EPISODE
    subject: str
    summary: str
    episode: str

    @property
    def search_text(self) -> str:
        return f"{self.subject}\n{self.summary}\n{self.episode}"


class AtomicFact(Memory):
    """One statement with who said it and when."""

    memory_type: MemoryType = MemoryType.ATOMIC_FACT
    atomic_fact: str

    @property
    def search_text(self) -> str:
        return self.atomic_fact


class Foresight(Memory):
    """Something that lies ahead: a plan with the time it is about."""

    memory_type: MemoryType = MemoryType.FORESIGHT
    content: str
    evidence: str
    start_time: str | None = None
    """ISO date, as far as known."""
    end_time: str | None = None
    duration_days: int | None = None

    @property
    def search_text(self) -> str:
        return f"{self.content}\n{self.evidence}"


class AgentCase(Memory):
    """How an agent went about a task, and how well it went."""

    memory_type: MemoryType = MemoryType.AGENT_CASE
    task_intent: str
    approach: str
    key_insight: str = ""
    quality_score: float = 0.0


class AgentSkill(Memory):
    """A reusable way of doing things, distilled from a cluster of cases."""

    memory_type: MemoryType = MemoryType.AGENT_SKILL
    cluster_id: str
    name: str
    description: str
    content: str
    confidence: float = 0.5
    maturity_score: float = 0.6
    source_case_ids: list[str] = Field(default_factory=list)


class ProfileItem(BaseModel):
    """One thing a person said of themselves, with its evidence."""

    model_config = ConfigDict(frozen=True)

    category: str
    description: str
    evidence: list[str]
    """MemCell ids."""
    sources: list[str]
    """The client's message ids."""
    timestamp: int | None = None


class Profile(Memory):
    """What is known of one person."""

    memory_type: MemoryType = MemoryType.PROFILE
    explicit_info: list[ProfileItem] = Field(default_factory=list)
    implicit_traits: list[ProfileItem] = Field(default_factory=list)
    memcell_count: int = 0


MEMORY_CLASSES: dict[MemoryType, type[Memory]] = {
    MemoryType.EPISODE: Episode,
    MemoryType.ATOMIC_FACT: AtomicFact,
    MemoryType.FORESIGHT: Foresight,
    MemoryType.AGENT_CASE: AgentCase,
    MemoryType.AGENT_SKILL: AgentSkill,
    MemoryType.PROFILE: Profile,
}


class ProfileEvidence(BaseModel):
    """A self-statement found in one MemCell; profiles are folded from these, in (order_time, memcell) order."""

    model_config = ConfigDict(frozen=True)

    user_id: str
    memcell_id: str
    ordinal: int
    order_time: int
    item: ProfileItem
