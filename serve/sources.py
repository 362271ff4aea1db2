"""Where a memory comes from: its MemCells (topics) with their messages, and what else was built from them."""

from __future__ import annotations

from typing import Any

from primitives.clock import to_iso
from serve.rows import as_json
from storage.ports import Documents, Row
from storage.records import MemCell, Message, Profile, ProfileItem


async def sources_of(row: Row, *, documents: Documents) -> dict[str, Any]:
    """The topics of `row` in the order of its evidence, each with all its visible messages in conversation order.

    `is_source` marks the messages that `row` itself was made from. A message that is in no topic yet stands alone.
    """
    cells = await documents.memcells(memcells_of(row))
    keys = [key for cell in cells for key in cell.message_keys]
    messages = {message.id: message for message in await documents.messages(keys)}
    children = await documents.fetch([child for cell in cells for child in cell.children])
    topics = []
    for cell in cells:
        own = _sources_in(row, cell)
        topics.append(
            {
                **_topic(cell),
                "messages": [
                    as_json(messages[key]) | {"is_source": messages[key].message_id in own}
                    for key in cell.message_keys
                    if key in messages
                ],
                "memories": [as_json(children[child]) for child in cell.children if child in children],
            }
        )
    pending = [as_json(row) | {"is_source": True}] if isinstance(row, Message) and not cells else []
    return {"memory": as_json(row), "topics": topics, "pending": pending}


def memcells_of(row: Row) -> list[str]:
    """The ids of the MemCells that a row rests on; a profile's are those of its statements, each once."""
    if isinstance(row, Profile):
        return list(dict.fromkeys(cell for item in _items(row) for cell in item.evidence))
    return [row.memcell_id] if row.memcell_id is not None else []


def _sources_in(row: Row, cell: MemCell) -> frozenset[str]:
    """The client ids of the messages in this MemCell that `row` was made from.

    Client ids may repeat in other sessions, so a statement of a profile counts only where its own evidence lies.
    """
    if isinstance(row, Profile):
        return frozenset(source for item in _items(row) if cell.id in item.evidence for source in item.sources)
    return frozenset(row.source_message_ids)


def _items(row: Profile) -> list[ProfileItem]:
    return [*row.explicit_info, *row.implicit_traits]


def _topic(cell: MemCell) -> dict[str, Any]:
    return {
        "memcell_id": cell.id,
        "state": cell.state,
        "timestamp": to_iso(cell.timestamp),
        "session_id": cell.session_id,
        "detector": cell.detector,
        "generation": cell.generation,
        "participants": cell.participants,
    }
