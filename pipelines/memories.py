"""From a stored extraction result to the records of a MemCell: ids, links, sources and times.

Everything comes from the MemCell, its messages and the result, so that a retry writes the same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primitives.clock import now_ms
from storage.ids import memory_id, user_partition
from storage.records import (
    AtomicFact,
    Episode,
    Foresight,
    MemCell,
    Memory,
    MemoryType,
    Message,
    ProfileEvidence,
    ProfileItem,
)

WINDOW_BYTES = 2_048
"""About the 512 tokens that the smallest embedding model reads of a text; what stands behind them is in no vector."""


def memories_of(cell: MemCell, messages: Sequence[Message]) -> list[Memory]:
    """The memories of the next generation of `cell`, whose `result` is stored.

    Team scenes have one episode for the group and one a participant; all share the group's embedding text, since they
    tell the same stretch. Facts and foresights point to the messages they were said in. A fact's vector is its
    message's, where a model sees that whole: embedding each sentence anew cost 1.4 more texts a message on LongMemEval
    and found no more there.
    """
    result = cell.result or {}
    common = _common(cell, result)
    group = _episode(cell, common, result["episode"], None)
    out: list[Memory] = [group]
    for person, told in result["personal"].items():
        personal = common | {"user_id": person, "partition": user_partition(person)}
        out.append(_episode(cell, personal, told, person).model_copy(update={"embedding_text": group.embedding_text}))
    by_key = {message.id: message for message in messages}
    for number, fact in enumerate(result["facts"]):
        said = by_key[fact["message_key"]]
        out.append(
            AtomicFact(
                **common | _said(cell, said, MemoryType.ATOMIC_FACT, number, group.id),
                atomic_fact=fact["text"], embedding_text=said.embedding_text if _seen_whole(said) else fact["embedding_text"],
            )
        )  # fmt: skip
    for number, plan in enumerate(result["foresights"]):
        said = by_key[plan["message_key"]]
        out.append(
            Foresight(
                **common | _said(cell, said, MemoryType.FORESIGHT, number, group.id),
                content=plan["content"], evidence=plan["evidence"], start_time=plan["start_time"],
                end_time=plan.get("end_time"), duration_days=plan.get("duration_days"), embedding_text=plan["content"],
            )
        )  # fmt: skip
    return out


def _seen_whole(message: Message) -> bool:
    return len(message.embedding_text.encode("utf-8", "replace")) <= WINDOW_BYTES


def evidence_of(cell: MemCell, messages: Sequence[Message]) -> list[ProfileEvidence]:
    """The self-statements of the stored result, by person."""
    by_key = {message.id: message for message in messages}
    out = []
    for number, item in enumerate((cell.result or {})["profile"]):
        said = by_key[item["message_key"]]
        out.append(
            ProfileEvidence(
                user_id=item["user_id"], memcell_id=cell.id, ordinal=number, order_time=said.order_time,
                item=ProfileItem(category=item["category"], description=item["description"], evidence=[cell.id],
                                 sources=[said.message_id], timestamp=said.timestamp),
            )
        )  # fmt: skip
    return out


def _common(cell: MemCell, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "tenant_id": cell.tenant_id, "user_id": cell.user_id, "group_id": cell.group_id, "session_id": cell.session_id,
        "partition": cell.partition, "timestamp": cell.timestamp, "order_time": cell.order_time,
        "imported_at": now_ms(), "language": result["language"], "memcell_id": cell.id, "parent_type": "memcell",
        "parent_id": cell.id, "participants": cell.participants, "sender_ids": cell.sender_ids,
        "source_message_ids": cell.source_message_ids,
    }  # fmt: skip


def _episode(cell: MemCell, common: dict[str, Any], told: dict[str, str], person: str | None) -> Episode:
    return Episode(
        **common, id=memory_id(cell.id, cell.generation + 1, MemoryType.EPISODE, person, 0),
        subject=told["subject"], summary=told["summary"], episode=told["episode"],
        embedding_text=f"{told['subject']}\n{told['summary']}",
    )  # fmt: skip


def _said(cell: MemCell, message: Message, kind: MemoryType, number: int, episode: str) -> dict[str, Any]:
    """What a memory of one message has of its own: its sender, its time, its source."""
    return {
        "id": memory_id(cell.id, cell.generation + 1, kind, None, number), "timestamp": message.timestamp,
        "order_time": message.order_time, "sender_ids": [message.sender_id], "source_message_ids": [message.message_id],
        "parent_type": "episode", "parent_id": episode, "valid_from": message.timestamp,
    }  # fmt: skip
