"""100,000 messages in one conversation: cut by the hard limits, in bounded memory and time, with nothing lost."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.flush import flush
from storage.filters import parse, scope_of
from storage.ids import Owner
from storage.records import MemoryType, Message
from tests.support.embedder import DIMENSION, BagOfCharacters
from tests.support.messages import TENANT, message
from tests.support.tools import backend_in, tools_over

MESSAGES = 100_000
AT_ONCE = 5_000
MOST_SECONDS = 240
"""Of CPU time, since the wall clock says how busy the machine is; what is quadratic in the messages takes hours."""
MOST_MB = 400
"""What the process may grow by: the messages of a window at a time, the outline of all, and the caches of the stores."""
WORDS = ("river", "window", "ticket", "garden", "letter", "winter", "spoon", "engine", "paper", "cloud")
OWNER = Owner.user("u1")


class Fast(BagOfCharacters):
    """One vector for all texts: this test is about amounts."""

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), DIMENSION), DIMENSION**-0.5, np.float32)


def said(number: int) -> Message:
    text = f"{WORDS[number % 10]} {number}"
    return message(number, text, owner=OWNER, gap_ms=1_000, tokens=6)


class Uncut:
    """No topics inside a window: the hard limits alone part the talk."""

    name = "uncut"

    async def boundaries(self, *_: Any, **__: Any) -> list[int]:
        return []


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform == "linux" else 2**20)


@pytest.mark.wide
@pytest.mark.timeout(900)
async def test_100_000_messages_in_one_conversation(tmp_path: Path) -> None:
    backend = backend_in(tmp_path / "data")
    tools = replace(await tools_over(backend), embedder=Fast(), detector=Uncut())
    documents = tools.stores.documents
    before, began = peak_mb(), time.process_time()
    for start in range(0, MESSAGES, AT_ONCE):
        await documents.add_messages([said(n) for n in range(start, start + AT_ONCE)])
    report = await flush(tools, [OWNER.conversation_id(TENANT, None)], wait_s=5)
    spent, grown = time.process_time() - began, peak_mb() - before
    assert report.status == "extracted"
    assert report.memcells >= MESSAGES // tools.settings.memcell_hard_message_limit
    counts = await documents.counts()
    assert (counts["raw_message"], counts["raw_messages"], counts["unindexed"]) == (MESSAGES, 0, 0), "none is pending"

    scope = scope_of(parse({"user_id": "u1"}), [str(MemoryType.EPISODE)])
    sources: list[str] = []
    for offset in range(0, report.memcells, 100):
        episodes, total = await documents.page(scope, offset=offset, limit=100, descending=False)
        assert total == report.memcells
        assert all(len(row.source_message_ids) <= tools.settings.memcell_hard_message_limit for row in episodes)
        sources += [one for row in episodes for one in row.source_message_ids]
    assert sources == [f"m{n}" for n in range(MESSAGES)], "each message in one topic, in order"
    assert grown < MOST_MB, f"grew by {grown:.0f} MB"
    assert spent < MOST_SECONDS, f"took {spent:.0f} s of CPU"
    await backend.close()
