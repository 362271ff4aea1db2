"""Flushing: what is pending becomes memories, on request or because a conversation fell silent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.profiles import refresh_profiles
from pipelines.tools import Tools
from pipelines.window import WindowReport, build_conversation
from primitives.clock import now_ms
from primitives.errors import ConflictError

logger = logging.getLogger(__name__)


@dataclass
class FlushReport:
    """What a flush made. `status` is EverCore's: `extracted`, or `no_extraction` where nothing was pending."""

    status: str = "no_extraction"
    memcells: int = 0
    memories: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


async def flush(tools: Tools, conversations: Sequence[str], *, wait_s: float) -> FlushReport:
    """Cut and build the conversations, one after the other, and fold the profiles of those who spoke of themselves.

    ConflictError where another flush holds one of them for longer than `wait_s` seconds.
    """
    total = WindowReport()
    for conversation_id in conversations:
        total.add(await build_conversation(tools, conversation_id, wait_s=wait_s))
    if total.people:
        await refresh_profiles(tools, sorted(total.people))
    return FlushReport(
        status="extracted" if total.memcells else "no_extraction", memcells=total.memcells,
        memories=dict(sorted(total.memories.items())), skipped=total.skipped,
    )  # fmt: skip


async def flush_idle(tools: Tools) -> int:
    """Flush conversations that have been silent for `idle_flush_minutes`; returns how many. 0 minutes: never.

    Conversations of unfinished jobs are left to their jobs, and those that somebody is flushing now to that one.
    """
    if not tools.settings.idle_flush_minutes:
        return 0
    silent_since = now_ms() - int(tools.settings.idle_flush_minutes * 60_000)
    flushed = 0
    for conversation in await tools.stores.documents.pending_conversations(idle_since=silent_since):
        try:
            await flush(tools, [conversation.id], wait_s=0)
            flushed += 1
        except ConflictError:
            continue
        except Exception:  # one conversation that cannot be built keeps no other waiting
            logger.exception("conversation %s cannot be flushed", conversation.id)
    return flushed
