"""One hash over all that a tenant can see, to tell whether two ways of building gave the same."""

from __future__ import annotations

import orjson

from primitives.hashing import content_hash
from storage.ports import Documents

NOT_CONTENT = {"imported_at", "revision", "strength", "last_recalled_at", "place"}
"""When and how often a row was written, and how often it was recalled, is not what it says."""


async def visible_content_hash(documents: Documents) -> str:
    """SHA-256 over all visible rows in id order, without import times, revisions, index state, recall and vectors."""
    rows = [orjson.dumps(row.model_dump(exclude=NOT_CONTENT)) async for row in documents.visible_rows()]
    return content_hash(rows)
