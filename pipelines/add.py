"""Accepting messages: on disk first, then findable by keyword."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.indexing import index_messages
from pipelines.tools import Tools
from storage.ports import AddOutcome
from storage.records import Message


async def add(tools: Tools, messages: Sequence[Message], *, restore: bool = False) -> AddOutcome:
    """Store the messages of one conversation, each once; ConflictError where an id is there with other content.

    When this returns the messages are durable. Where the keyword index fails they stay unindexed and accepted, and the
    sweeper makes up for it, so that error is raised only after the messages are safe.
    """
    outcome = await tools.stores.documents.add_messages(messages, restore=restore)
    await index_messages(tools.stores, outcome.added)
    return outcome
