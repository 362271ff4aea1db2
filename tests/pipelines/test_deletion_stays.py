"""What was deleted stays away, also when what is left is built anew; and what fails blocks nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipelines.add import add
from pipelines.deletion import delete
from pipelines.flush import flush, flush_idle
from pipelines.maintenance import sweep, verify
from pipelines.tools import Tools
from pipelines.window import build_window
from pipelines.windows import span_of
from storage.filters import parse, scope_of
from storage.ids import Owner
from storage.records import MemoryType, Message
from tests.support.messages import message

GROUP = Owner.group("g")


def group_chat() -> list[Message]:
    said = [
        ("ann", "I am allergic to peanuts."), ("bob", "I live in Oslo near the harbour."), ("ann", "We meet at the old cinema."),
        ("bob", "The tickets cost 12 euros each."),
    ]  # fmt: skip
    return [message(i, text, owner=GROUP, sender=sender) for i, (sender, text) in enumerate(said)]


async def page(tools: Tools, where: dict[str, Any], kind: MemoryType) -> list[Any]:
    rows, _ = await tools.stores.documents.page(scope_of(parse(where), [kind]), offset=0, limit=100)
    return list(rows)


async def flushed(tools: Tools, rows: list[Message]) -> None:
    await add(tools, rows)
    await flush(tools, [rows[0].conversation_id], wait_s=1)


async def test_a_deleted_person_does_not_come_back_with_the_group(tools: Tools) -> None:
    await flushed(tools, group_chat())
    assert await page(tools, {"user_id": "ann"}, MemoryType.PROFILE)
    await delete(tools, where=parse({"user_id": "ann"}))
    rows = await page(tools, {"group_id": "g"}, MemoryType.RAW_MESSAGE)
    await delete(tools, memory_id=next(row.id for row in rows if row.sender_id == "bob"))
    for kind in (MemoryType.PROFILE, MemoryType.EPISODE):
        assert await page(tools, {"user_id": "ann"}, kind) == []
    assert len(await page(tools, {"user_id": "bob"}, MemoryType.EPISODE)) == 1
    later = [message(9, "I am allergic to cats too.", owner=GROUP, sender="ann", timestamp=2_000_000_000_000)]
    await flushed(tools, later)  # what is said afterwards is remembered again
    assert len(await page(tools, {"user_id": "ann"}, MemoryType.PROFILE)) == 1
    assert (await verify(tools)).differences == []


async def test_evidence_that_was_not_folded_yet_goes_too(tools: Tools) -> None:
    rows = group_chat()
    await add(tools, rows)
    outline = await tools.stores.documents.outline(rows[0].conversation_id)
    await build_window(tools, rows[0].conversation_id, span_of(outline), wait_s=1)
    await delete(tools, where=parse({"user_id": "ann"}))
    assert await page(tools, {"user_id": "ann"}, MemoryType.PROFILE) == []


async def test_a_deleted_fact_does_not_come_back_under_another_id(tools: Tools) -> None:
    rows = [message(i, f"My cousin number {i} lives in town {i} by the sea.") for i in range(6)]
    await flushed(tools, rows)
    fact = next(f for f in await page(tools, {"user_id": "u1"}, MemoryType.ATOMIC_FACT) if "number 2" in f.atomic_fact)
    await delete(tools, memory_id=fact.id)
    await delete(tools, memory_id=rows[5].id)
    left = [f.atomic_fact for f in await page(tools, {"user_id": "u1"}, MemoryType.ATOMIC_FACT)]
    assert any("number 1" in text for text in left)
    assert not any("number 2" in text or "number 5" in text for text in left)


async def test_a_memcell_takes_its_time_from_what_is_left(tools: Tools) -> None:
    rows = [message(i, f"We walked {i} miles along the river today.") for i in range(4)]
    await flushed(tools, rows)
    await delete(tools, memory_id=rows[3].id)
    (episode,) = await page(tools, {"user_id": "u1"}, MemoryType.EPISODE)
    assert (episode.timestamp, episode.order_time) == (rows[2].timestamp, rows[2].order_time)


@pytest.mark.parametrize("gone", [[0, 1, 2, 3], [0, 3]], ids=["all", "the ends"])
async def test_restored_messages_get_a_memcell(tools: Tools, gone: list[int]) -> None:
    rows = [message(i, f"We walked {i} miles along the river today.") for i in range(4)]
    await flushed(tools, rows)
    for number in gone:
        await delete(tools, memory_id=rows[number].id)
    await add(tools, [rows[number] for number in gone], restore=True)
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    episodes = await page(tools, {"user_id": "u1"}, MemoryType.EPISODE)
    assert sorted(s for e in episodes for s in e.source_message_ids) == ["m0", "m1", "m2", "m3"]
    assert (await verify(tools)).differences == []


class Choking:
    """An extractor that one text is too much for."""

    name = "choking"

    def __init__(self, real: Any) -> None:
        self._real = real

    async def extract(self, cell: Any, messages: Any, vectors: Any) -> Any:
        if any("choke" in m.text for m in messages):
            raise RuntimeError("cannot read this")
        return await self._real.extract(cell, messages, vectors)


async def test_a_memcell_that_cannot_be_built_blocks_nobody(tools: Tools) -> None:
    choking = replace(
        tools, extractor=Choking(tools.extractor), settings=tools.settings.model_copy(update={"idle_flush_minutes": 1e-9})
    )
    bad = [message(0, "choke on this", owner=Owner.user("bad"))]
    await add(tools, bad)
    with pytest.raises(RuntimeError):
        await flush(choking, [bad[0].conversation_id], wait_s=1)
    rows = [message(i, f"We walked {i} miles along the river today.") for i in range(4)]
    await flushed(tools, rows)
    await delete(choking, where=parse({"user_id": "u1"}))
    assert await tools.stores.documents.unpurged() == []
    await add(tools, [message(7, "choke again", owner=Owner.user("bad2")), ])
    await add(tools, [message(8, "all is well here", owner=Owner.user("good"))])
    assert (await sweep(choking, older_than_ms=0)).failures == 1
    assert await flush_idle(choking) == 1  # the good one, although another one fails
    assert len(await page(tools, {"user_id": "good"}, MemoryType.EPISODE)) == 1
    assert (await sweep(tools, older_than_ms=0)).memcells == 2  # once the cause is gone, nothing was lost


async def test_late_messages_inside_a_span_keep_the_hard_limits(tools: Tools) -> None:
    small = replace(tools, settings=tools.settings.model_copy(update={"memcell_hard_message_limit": 5}))
    rows = [message(i, f"We walked {i} miles along the river today.") for i in range(12)]
    await add(tools, [rows[0], rows[11]])
    outline = await tools.stores.documents.outline(rows[0].conversation_id)
    await add(tools, rows[1:11])
    await build_window(small, rows[0].conversation_id, span_of(outline), wait_s=1)
    cells = [e.source_message_ids for e in await page(tools, {"user_id": "u1"}, MemoryType.EPISODE)]
    assert sum(map(len, cells)) == 12
    assert max(map(len, cells)) <= 5
