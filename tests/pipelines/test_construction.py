"""Add, cut, build, index: what holds whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.add import add
from pipelines.content import visible_content_hash
from pipelines.deletion import delete
from pipelines.flush import flush, flush_idle
from pipelines.indexing import entry_of
from pipelines.leasing import held
from pipelines.maintenance import sweep, verify
from pipelines.tools import Tools
from pipelines.window import build_conversation, build_window, conversation_lease
from pipelines.windows import plan_windows, span_of
from primitives.errors import ConflictError, EverCoreError, StaleEpochError
from storage.filters import parse, scope_of
from storage.ids import Owner
from storage.ports import ImportBatch
from storage.records import MemoryType, Message, Profile
from storage.sqlite.backend import SqliteBackend
from tests.support.messages import START, message
from tests.support.tools import backend_in, tools_over

TEXTS = [
    "I like hiking in the hills near Oslo.", "We went to the Nordmarka forest on Sunday with Anna.", "The weather was cold.",
    "明天我打算去博物馆看青铜器展览。", "我喜欢路小雨。", "哈哈", "My dog is called Biscuit and he eats everything.", "Where did you buy the tent?",
    "The tent came from a shop in Bergen, it cost 2,300 kroner.", "I will fly to Rome on March 3rd.",
]  # fmt: skip


def chat(count: int, **fields: Any) -> list[Message]:
    """Messages 20 s apart, with a silence of half a day after every ninth."""
    return [
        message(i, f"{TEXTS[i % len(TEXTS)]} ({i})", timestamp=START + i * 20_000 + (i // 9) * 43_200_000, **fields)
        for i in range(count)
    ]


async def assert_whole(tools: Tools, count: int) -> None:
    """Every message is there once, in exactly one MemCell, and the stores agree."""
    report = await verify(tools)
    assert report.differences == []
    assert report.pending == 0
    rows = [row async for row in tools.stores.documents.visible_rows()]
    messages = [row for row in rows if isinstance(row, Message)]
    assert len(messages) == count
    assert all(m.memcell_id for m in messages)
    cells = await tools.stores.documents.memcells(sorted({m.memcell_id for m in messages if m.memcell_id}))
    assert Counter(key for cell in cells for key in cell.message_keys) == Counter(m.id for m in messages)


async def test_found_by_keyword_from_the_add_and_by_vector_from_the_flush(tools: Tools) -> None:
    rows = chat(4)
    await add(tools, rows)
    scope = scope_of(parse({"user_id": "u1"}), [str(MemoryType.RAW_MESSAGE)])
    keyword, vector = await tools.stores.indexes.keyword(), await tools.stores.indexes.vector()
    assert len(await keyword.search(["oslo"], scope, limit=5)) == 1
    query = await tools.embedder.embed_query(rows[0].text)
    assert await vector.search(query, scope, limit=5) == []
    report = await flush(tools, [rows[0].conversation_id], wait_s=1)
    assert (report.status, report.memories["episodic_memory"]) == ("extracted", 1)
    assert (await vector.search(query, scope, limit=1))[0].id == rows[0].id
    assert (await flush(tools, [rows[0].conversation_id], wait_s=1)).status == "no_extraction"
    await assert_whole(tools, 4)


async def test_no_text_is_embedded_twice_and_facts_take_their_messages_vectors(tools: Tools) -> None:
    rows = chat(30)
    await add(tools, rows)
    report = await build_conversation(tools, rows[0].conversation_id, wait_s=1)
    there = [row async for row in tools.stores.documents.visible_rows() if row.memory_type is not MemoryType.PROFILE]
    assert report.embedded == len({(row.memcell_id, row.embedding_text) for row in there}) <= 1.6 * len(rows)
    index = await tools.stores.indexes.vector()
    vectors = await index.vectors([row.id for row in there])
    made = await tools.embedder.embed_documents([row.embedding_text for row in there])
    for row, vector in zip(there, made, strict=True):
        assert abs(vectors[row.id][1] - vector).max() <= 1e-6
    spoken = {row.message_id: row for row in there if isinstance(row, Message)}
    facts = [row for row in there if row.memory_type is MemoryType.ATOMIC_FACT]
    assert facts
    for fact in facts:
        assert fact.embedding_text == spoken[fact.source_message_ids[0]].text


async def test_facts_at_the_end_of_a_long_message_have_a_vector_of_their_own(tools: Tools) -> None:
    long = "We talked for a long time about the weather in the hills. " * 60 + "My sister Ingrid lives in Tromsø now."
    await add(tools, [message(0, long)])
    await build_conversation(tools, message(0, long).conversation_id, wait_s=1)
    facts = [row async for row in tools.stores.documents.visible_rows() if row.memory_type is MemoryType.ATOMIC_FACT]
    assert facts
    assert all(len(fact.embedding_text) < 300 for fact in facts)


async def test_where_rows_stand(tools: Tools) -> None:
    rows = chat(6)
    await add(tools, rows)
    documents = tools.stores.documents
    before = await documents.standings([rows[0].id, "nowhere"])
    assert {(s.conversation_id, s.place, s.episode_id) for s in before.values()} == {(rows[0].conversation_id, 0, None)}
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    there = {row.id: row async for row in documents.visible_rows()}
    found = await documents.standings(list(there))
    for row_id, standing in found.items():
        row = there[row_id]
        assert standing.timestamp == row.timestamp
        if row.memory_type in (MemoryType.RAW_MESSAGE, MemoryType.ATOMIC_FACT):
            episode = there[str(standing.episode_id)]
            assert (episode.memory_type, episode.memcell_id) == (MemoryType.EPISODE, row.memcell_id)
        else:
            assert standing.episode_id is None or row.memory_type is MemoryType.FORESIGHT


async def test_one_by_one_or_at_once_gives_the_same(tmp_path: Path) -> None:
    hashes = set()
    for name, size in (("a", 1), ("b", 7), ("c", 60)):
        backend = backend_in(tmp_path / name)
        tools = await tools_over(backend)
        rows = chat(60)
        for start in range(0, 60, size):
            await add(tools, rows[start : start + size])
        await flush(tools, [rows[0].conversation_id], wait_s=1)
        await assert_whole(tools, 60)
        hashes.add(await visible_content_hash(tools.stores.documents))
        await backend.close()
    assert len(hashes) == 1


async def test_late_messages_go_into_a_later_memcell(tools: Tools) -> None:
    rows = chat(30)
    late, early = rows[::5], [row for i, row in enumerate(rows) if i % 5]
    await add(tools, early)
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    before = {cell.id: cell.message_keys for cell in await _cells(tools)}
    await add(tools, late)
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    after = {cell.id: cell.message_keys for cell in await _cells(tools)}
    assert before.items() <= after.items()
    await assert_whole(tools, 30)


async def _cells(tools: Tools) -> list[Any]:
    ids = {row.memcell_id async for row in tools.stores.documents.visible_rows() if row.memcell_id}
    return await tools.stores.documents.memcells(sorted(ids))


class Killed(BaseException):
    """Stands for kill -9 between two steps: nothing of ours catches it."""


class Crashing:
    """A store handle whose chosen write dies before or after it took effect."""

    def __init__(self, real: Any, step: str, when: str, at: list[int]) -> None:
        self._real, self._step, self._when, self._at = real, step, when, at

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._real, name)
        if name != self._step:
            return attribute

        async def crashing(*args: Any, **kwargs: Any) -> Any:
            self._at[0] -= 1
            mine = self._at[0] == 0
            if mine and self._when == "before":
                raise Killed
            value = await attribute(*args, **kwargs)
            if mine:
                raise Killed
            return value

        return crashing


class CrashingIndexes:
    def __init__(self, real: Any, *how: Any) -> None:
        self._real, self._how = real, how

    async def keywords(self) -> list[Any]:
        return [Crashing(index, *self._how) for index in await self._real.keywords()]

    async def vectors(self) -> list[Any]:
        return [Crashing(index, *self._how) for index in await self._real.vectors()]


def crashing(tools: Tools, step: str, when: str, at: int) -> Tools:
    how = (step, when, [at])
    stores = replace(
        tools.stores,
        documents=Crashing(tools.stores.documents, *how),
        indexes=CrashingIndexes(tools.stores.indexes, *how),
    )
    return replace(tools, stores=stores)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "step", ["commit_cut", "save_result", "commit_build", "mark_indexed", "finish_memcell", "upsert", "save_profile"]
)
async def test_a_crash_at_any_step_of_building_changes_nothing_in_the_end(tmp_path: Path, step: str, when: str) -> None:
    async def run(folder: Path, crash_at: int | None) -> str:
        backend = backend_in(folder)
        tools = await tools_over(backend)
        rows = chat(40)
        await add(tools, rows)
        conversation = [rows[0].conversation_id]
        if crash_at is not None:
            with pytest.raises(Killed):
                await flush(crashing(tools, step, when, crash_at), conversation, wait_s=0)
            lease = await tools.stores.leases.acquire(conversation_lease(conversation[0]))
            assert lease is not None
            await tools.stores.leases.release(lease)
        await flush(tools, conversation, wait_s=5)
        await sweep(tools, older_than_ms=0)
        await assert_whole(tools, 40)
        found = await visible_content_hash(tools.stores.documents)
        await backend.close()
        return found

    undisturbed = await run(tmp_path / "undisturbed", None)
    for crash_at in (1, 2):
        if step in ("commit_cut", "save_profile") and crash_at > 1:
            continue
        assert await run(tmp_path / str(crash_at), crash_at) == undisturbed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["upsert", "mark_indexed"])
async def test_a_crash_after_the_add_loses_no_message(tools: Tools, step: str, when: str) -> None:
    with pytest.raises(Killed):
        await add(crashing(tools, step, when, 1), chat(5))
    assert (await tools.stores.documents.counts())["raw_message"] == 5
    again = await add(tools, chat(5))
    assert (again.duplicates, again.added) == (5, [])
    await sweep(tools, older_than_ms=0)
    assert (await verify(tools)).differences == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["tombstone", "delete", "purge", "commit_build", "save_profile"])
async def test_a_crash_while_deleting_brings_nothing_back(tools: Tools, step: str, when: str) -> None:
    await add(tools, chat(20))
    await add(tools, chat(20, owner=Owner.user("u2")))
    for owner in ("u1", "u2"):
        await flush(tools, [Owner.user(owner).conversation_id("t1", None)], wait_s=1)
    where = parse({"user_id": "u1", "sender_id": "u1", "timestamp": {"lt": chat(20)[10].timestamp}})
    with contextlib.suppress(Killed):
        await delete(crashing(tools, step, when, 1), where=where)
    if (step, when) == ("tombstone", "before"):
        await delete(tools, where=where)
    await sweep(tools, older_than_ms=0)
    assert (await verify(tools)).differences == []
    assert await tools.stores.documents.unpurged() == []
    gone = {f"m{i}" for i in range(10)}
    for kind in MemoryType:
        rows, _ = await tools.stores.documents.page(scope_of(parse({"user_id": "u1"}), [kind]), offset=0, limit=100)
        assert all(not gone & set(row.source_message_ids) for row in rows)
    assert (await tools.stores.documents.counts())["raw_message"] == 30


async def test_adders_and_flushers_at_once(backend: SqliteBackend, tmp_path: Path) -> None:
    tools = await tools_over(backend)
    rows = chat(120)
    random.Random(3).shuffle(rows)
    conversation = rows[0].conversation_id

    async def adder(part: list[Message]) -> None:
        for row in part:
            await add(tools, [row])

    async def flusher() -> None:
        for _ in range(6):
            await flush(tools, [conversation], wait_s=20)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(adder(rows[i::4]) for i in range(4)), *(flusher() for _ in range(3)))
    await flush(tools, [conversation], wait_s=20)
    await assert_whole(tools, 120)


async def test_a_held_conversation_is_a_conflict(tools: Tools) -> None:
    rows = chat(3)
    await add(tools, rows)
    async with held(tools.stores.leases, conversation_lease(rows[0].conversation_id), wait_s=0):
        with pytest.raises(ConflictError):
            await build_conversation(tools, rows[0].conversation_id, wait_s=0.05)
        assert (
            await flush_idle(replace(tools, settings=tools.settings.model_copy(update={"idle_flush_minutes": 1e-9})))
            == 0
        )
    await build_conversation(tools, rows[0].conversation_id, wait_s=0.05)


async def test_hard_limits_hold(backend: SqliteBackend) -> None:
    tools = await tools_over(backend, memcell_hard_message_limit=7, memcell_hard_token_limit=60)
    rows = chat(50)
    await add(tools, rows)
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    for cell in await _cells(tools):
        messages = await tools.stores.documents.messages(cell.message_keys)
        assert len(messages) <= 7
        assert len(messages) == 1 or sum(m.tokens for m in messages) <= 60
    await assert_whole(tools, 50)


async def test_idle_conversations_are_flushed(backend: SqliteBackend) -> None:
    tools = await tools_over(backend, idle_flush_minutes=0.02)
    await add(tools, chat(3))
    await add(tools, chat(3, session="s"))
    assert await flush_idle(tools) == 0
    await asyncio.sleep(1.3)
    assert await flush_idle(tools) == 2
    assert await flush_idle(replace(tools, settings=tools.settings.model_copy(update={"idle_flush_minutes": 0}))) == 0
    await assert_whole(tools, 6)


async def test_messages_of_an_unfinished_job_are_left_to_it(backend: SqliteBackend) -> None:
    tools = await tools_over(backend, idle_flush_minutes=0.0001)
    await tools.stores.ledger.open_job("job", {})
    rows = [row.model_copy(update={"place": i}) for i, row in enumerate(chat(3))]
    await tools.stores.documents.add_messages(rows, batch=ImportBatch("job", "f", 0))
    await asyncio.sleep(0.02)
    assert await flush_idle(tools) == 0
    await tools.stores.ledger.update_job("job", state="done")
    assert await flush_idle(tools) == 1


async def test_profiles_are_folded_from_all_evidence(tools: Tools) -> None:
    rows = [
        message(0, "我喜欢路小雨。"),
        message(1, "I like tea."),
        message(2, "我喜欢路小雨。", session="s"),
        message(3, "I live in Oslo.", session="s"),
    ]
    for row in rows:
        await add(tools, [row])
    await flush(tools, [rows[0].conversation_id, rows[2].conversation_id], wait_s=1)
    scope = scope_of(parse({"user_id": "u1"}), [str(MemoryType.PROFILE)])
    (profile,), total = await tools.stores.documents.page(scope, offset=0, limit=5)
    assert isinstance(profile, Profile)
    assert total == 1
    assert [item.description for item in profile.explicit_info] == ["I like tea.", "我喜欢路小雨。", "I live in Oslo."]
    twice = next(item for item in profile.explicit_info if "路小雨" in item.description)
    assert twice.sources == ["m0", "m2"]
    await delete(tools, where=parse({"user_id": "u1", "session_id": "s"}))
    (profile,), _ = await tools.stores.documents.page(scope, offset=0, limit=5)
    assert isinstance(profile, Profile)
    assert [item.description for item in profile.explicit_info] == ["我喜欢路小雨。", "I like tea."]
    assert (await verify(tools)).differences == []


async def test_verify_sees_and_repairs(tools: Tools) -> None:
    rows = chat(12)
    await add(tools, rows)
    await flush(tools, [rows[0].conversation_id], wait_s=1)
    keyword, vector = await tools.stores.indexes.keyword(), await tools.stores.indexes.vector()
    await keyword.delete([rows[0].id])
    await vector.delete([rows[1].id])
    stranger = message(99, "never stored")
    await keyword.upsert([entry_of(stranger)])
    await keyword.upsert([replace(entry_of(rows[2]), revision=7)])
    found = await verify(tools)
    assert Counter(d.what for d in found.differences) == {"missing": 2, "orphan": 1, "revision 7 instead of 1": 1}
    assert (await verify(tools, repair=True)).repaired == 4
    assert (await verify(tools)).differences == []


async def test_a_deletion_beats_a_running_build(tools: Tools) -> None:
    rows = chat(10)
    await add(tools, rows)

    class Slow:
        identity = tools.embedder.identity

        async def embed_documents(self, texts: Any) -> Any:
            if first.pop("pending", None):
                await delete(tools, where=parse({"user_id": "u1"}))
            return await tools.embedder.embed_documents(texts)

    first = {"pending": True}
    with pytest.raises(EverCoreError) as caught:
        await flush(replace(tools, embedder=Slow()), [rows[0].conversation_id], wait_s=1)  # type: ignore[arg-type]
    assert isinstance(caught.value, StaleEpochError | ConflictError)
    await sweep(tools, older_than_ms=0)
    assert [row async for row in tools.stores.documents.visible_rows()] == []
    assert (await verify(tools)).differences == []


async def test_extraction_that_answers_otherwise_the_second_time(tools: Tools) -> None:
    answers = itertools.count()
    real: Callable[..., Awaitable[Any]] = tools.extractor.extract

    class Moody:
        name = "moody"

        async def extract(self, *args: Any) -> Any:
            found = await real(*args)
            found.result["episode"]["subject"] = f"answer {next(answers)}"
            return found

    moody = replace(tools, extractor=Moody())
    rows = chat(5)
    await add(tools, rows)
    with pytest.raises(Killed):
        await flush(crashing(moody, "commit_build", "before", 1), [rows[0].conversation_id], wait_s=1)
    await flush(moody, [rows[0].conversation_id], wait_s=1)
    scope = scope_of(parse({"user_id": "u1"}), [str(MemoryType.EPISODE)])
    (episode,), _ = await tools.stores.documents.page(scope, offset=0, limit=5)
    assert episode.subject == "answer 0"  # type: ignore[union-attr]


async def test_windows_of_one_conversation_side_by_side_beside_a_flush(backend: SqliteBackend) -> None:
    tools = await tools_over(backend, memcell_hard_message_limit=10)
    rows = chat(100)
    await add(tools, rows)
    conversation = rows[0].conversation_id
    windows = plan_windows(await tools.stores.documents.outline(conversation), tools.settings)
    spans = [span_of(window) for window in windows]
    runs = [build_window(tools, conversation, span, wait_s=30) for span in [*spans, *spans]]
    await asyncio.gather(*runs, flush(tools, [conversation], wait_s=30))
    await assert_whole(tools, 100)


async def test_a_window_finishes_what_an_earlier_attempt_cut_in_it_alone(tools: Tools) -> None:
    rows = chat(40)
    await add(tools, rows)
    outline = await tools.stores.documents.outline(rows[0].conversation_id)
    first, second = span_of(outline[:18]), span_of(outline[18:])
    for span in (first, second):
        with pytest.raises(Killed):
            await build_window(crashing(tools, "save_result", "before", 1), rows[0].conversation_id, span, wait_s=1)
    before = len(await tools.stores.documents.unfinished_memcells())
    done = await build_window(tools, rows[0].conversation_id, first, wait_s=1)
    assert 0 < done.memcells < before
    assert len(await tools.stores.documents.unfinished_memcells()) == before - done.memcells
    await build_window(tools, rows[0].conversation_id, second, wait_s=1)
    await assert_whole(tools, 40)
