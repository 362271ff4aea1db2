"""Rows of the document store as the API shows them: plain dictionaries, ready for JSON.

Attributes are read one by one and not through pydantic's dump, since a search serialises hundreds of rows.
"""

from __future__ import annotations

import functools
from typing import Any

from primitives import clock
from storage.ports import Row
from storage.records import (
    AgentCase,
    AgentSkill,
    AtomicFact,
    Episode,
    Foresight,
    Memory,
    MemoryType,
    Message,
    Profile,
    ProfileItem,
)

to_iso = functools.lru_cache(maxsize=65_536)(clock.to_iso)
"""The times of one answer repeat: an episode, its facts and their sources share theirs."""

LISTS: dict[MemoryType, str] = {
    MemoryType.EPISODE: "episodes",
    MemoryType.ATOMIC_FACT: "atomic_facts",
    MemoryType.FORESIGHT: "foresights",
    MemoryType.PROFILE: "profiles",
    MemoryType.RAW_MESSAGE: "raw_messages",
    MemoryType.AGENT_CASE: "agent_cases",
    MemoryType.AGENT_SKILL: "agent_skills",
}
"""Where the rows of each type stand in an answer of /get."""


def as_json(row: Row) -> dict[str, Any]:
    """One row as the API shows it."""
    if isinstance(row, Message):
        return _message(row)
    return {**_common(row), **_own_fields(row)}


def _head(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "memory_type": str(row.memory_type),
        "user_id": row.user_id,
        "group_id": row.group_id,
        "session_id": row.session_id,
        "timestamp": to_iso(row.timestamp),
        "time_known": row.time_known,
    }


def _message(row: Message) -> dict[str, Any]:
    return {
        **_head(row),
        "message_id": row.message_id,
        "sender_id": row.sender_id,
        "sender_name": row.sender_name,
        "role": row.role,
        "content": row.text,
        "content_items": row.content_items,
        "memcell_id": row.memcell_id,
        "parent_type": "memcell" if row.memcell_id else None,
        "parent_id": row.memcell_id,
        "participants": [row.sender_id] if row.role == "user" else [],
        "sender_ids": [row.sender_id],
        "source_message_ids": [row.message_id],
        "language": row.language,
        "revision": row.revision,
    }


def _common(row: Memory) -> dict[str, Any]:
    return {
        **_head(row),
        "memcell_id": row.memcell_id,
        "parent_type": row.parent_type,
        "parent_id": row.parent_id,
        "participants": row.participants,
        "sender_ids": row.sender_ids,
        "source_message_ids": row.source_message_ids,
        "tags": row.tags,
        "language": row.language,
        "valid_from": to_iso(row.valid_from),
        "valid_to": to_iso(row.valid_to),
        "superseded_by": row.superseded_by,
        "strength": row.strength,
        "last_recalled_at": to_iso(row.last_recalled_at),
        "revision": row.revision,
    }


def _own_fields(row: Memory) -> dict[str, Any]:
    match row:
        case Episode():
            return {"subject": row.subject, "summary": row.summary, "episode": row.episode, "type": "Conversation"}
        case AtomicFact():
            return {"atomic_fact": row.atomic_fact}
        case Foresight():
            return {
                "content": row.content,
                "evidence": row.evidence,
                "start_time": row.start_time,
                "end_time": row.end_time,
                "duration_days": row.duration_days,
            }
        case Profile():
            explicit = [_item(item) for item in row.explicit_info]
            implicit = [_item(item) for item in row.implicit_traits]
            return {
                "explicit_info": explicit,
                "implicit_traits": implicit,
                # EverCore V1 clients read the two lists from here.
                "profile_data": {"explicit_info": explicit, "implicit_traits": implicit},
                "memcell_count": row.memcell_count,
            }
        case AgentCase():
            return {
                "task_intent": row.task_intent,
                "approach": row.approach,
                "key_insight": row.key_insight,
                "quality_score": row.quality_score,
            }
        case AgentSkill():
            return {
                "cluster_id": row.cluster_id,
                "name": row.name,
                "description": row.description,
                "content": row.content,
                "confidence": row.confidence,
                "maturity_score": row.maturity_score,
                "source_case_ids": row.source_case_ids,
            }
        case _:
            return {"text": row.embedding_text}


def _item(item: ProfileItem) -> dict[str, Any]:
    return {
        "category": item.category,
        "description": item.description,
        "evidence": item.evidence,
        "sources": item.sources,
        "timestamp": to_iso(item.timestamp),
    }
