"""The messages behind the hits of a search, for clients that want to show or quote them."""

from __future__ import annotations

from typing import Any

from serve.retrieval import Answer
from serve.rows import LISTS, as_json
from storage.ports import Documents
from storage.records import MemoryType


async def original_data(found: Answer, *, documents: Documents) -> dict[str, dict[str, Any]]:
    """By list and hit id: the MemCell and its messages, as far as they are visible."""
    hits = [(kind, hit.row) for kind in found.hits for hit in found.hits[kind] if kind is not MemoryType.RAW_MESSAGE]
    wanted = list(dict.fromkeys(row.memcell_id for _, row in hits if row.memcell_id is not None))
    cells = {cell.id: cell for cell in await documents.memcells(wanted)}
    keys = list(dict.fromkeys(key for cell in cells.values() for key in cell.message_keys))
    messages = {message.id: as_json(message) for message in await documents.messages(keys)}
    out: dict[str, dict[str, Any]] = {}
    for kind, row in hits:
        cell = cells.get(row.memcell_id or "")
        if cell is not None:
            shown = [messages[key] for key in cell.message_keys if key in messages]
            out.setdefault(LISTS[kind], {})[row.id] = {"memcell_id": cell.id, "messages": shown}
    return out
