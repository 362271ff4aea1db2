"""What every document store does; run on each backend."""

from __future__ import annotations

import asyncio

import pytest

from primitives.errors import ConflictError, InvalidInputError, LeaseLostError, NotFoundError, StaleEpochError
from storage.filters import parse, scope_of
from storage.ids import Owner, memcell_id, memory_id
from storage.ports import ImportBatch, Span
from storage.records import AtomicFact, MemCell, MemoryType, Message, ProfileEvidence, ProfileItem
from storage.sqlite.backend import SqliteBackend
from tests.support.messages import START, TENANT, message

RAW = [str(MemoryType.RAW_MESSAGE)]


def cell_of(messages: list[Message], *, epoch: int = 0) -> MemCell:
    first = messages[0]
    return MemCell(
        id=memcell_id(first.id, messages[-1].id), tenant_id=first.tenant_id, user_id=first.user_id,
        group_id=first.group_id, partition=first.partition, timestamp=first.timestamp, order_time=first.order_time,
        conversation_id=first.conversation_id, message_keys=[m.id for m in messages],
        source_message_ids=[m.message_id for m in messages], participants=["u1"], sender_ids=["u1"], owner_epoch=epoch,
    )  # fmt: skip


def fact_of(cell: MemCell, text: str, number: int = 0) -> AtomicFact:
    return AtomicFact(
        id=memory_id(cell.id, cell.generation + 1, "atomic_fact", None, number), tenant_id=cell.tenant_id,
        user_id=cell.user_id, group_id=cell.group_id, partition=cell.partition, timestamp=START, order_time=START,
        memcell_id=cell.id, parent_id=cell.id, atomic_fact=text, embedding_text=text, sender_ids=["u1"],
    )  # fmt: skip


async def test_a_message_is_stored_once(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    first = await documents.add_messages([message(1, "hello"), message(2, "there")])
    assert [m.place for m in first.added] == [0, 1]
    assert first.pending == 2
    again = await documents.add_messages([message(1, "hello"), message(3, "new")])
    assert (len(again.added), again.duplicates, again.pending) == (1, 1, 3)
    with pytest.raises(ConflictError) as caught:
        await documents.add_messages([message(4, "fine"), message(1, "other")])
    assert caught.value.details == {"message_ids": ["m1"]}
    assert len(await documents.pending_messages(message(1, "").conversation_id)) == 3  # nothing of the refused add


async def test_the_same_ids_elsewhere_are_other_messages(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    outcome = await documents.add_messages(
        [message(1, "a"), message(1, "b", session="s"), message(1, "c", owner=Owner.group("g"), sender="x")]
    )
    assert len(outcome.added) == 3


async def test_tenants_do_not_meet(backend: SqliteBackend) -> None:
    mine, other = backend.tenant(TENANT).documents, backend.tenant("t2").documents
    await mine.add_messages([message(1, "mine")])
    key = message(1, "").id
    assert await other.fetch([key]) == {}
    assert await other.outline(message(1, "").conversation_id) == []
    assert (await other.counts())["raw_message"] == 0
    with pytest.raises(NotFoundError):
        await other.tombstone(memory_id=key)


async def test_an_imported_batch_counts_once(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    batch = ImportBatch("job", "file", 0, {"read": 3, "skipped: blank": 1})
    rows = [message(1, "a", place=0), message(2, "b", place=1), message(1, "a", place=2)]
    await stores.ledger.open_job("job", {})
    for _ in range(2):
        await stores.documents.add_messages(rows, batch=batch)
    counts = await stores.ledger.import_counts("job")
    assert counts == {"read": 3, "skipped: blank": 1, "new": 2, "duplicate": 1, "conflict": 0, "deleted_before": 0}
    assert await stores.ledger.imported_batches("job", "file") == {0}
    assert await stores.ledger.unplanned("job") == [rows[0].conversation_id]


async def test_undated_messages_keep_their_order(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    await documents.add_messages([message(5, "dated"), message(1, "undated", timestamp=None)])
    await documents.add_messages([message(2, "later undated", timestamp=None)])
    pending = await documents.pending_messages(message(1, "").conversation_id)
    assert [m.text for m in pending] == ["dated", "undated", "later undated"]
    assert [m.time_known for m in pending] == [True, False, False]


async def test_cut_build_and_fence(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    documents = stores.documents
    rows = (await documents.add_messages([message(i, f"text {i}") for i in range(6)])).added
    old = await stores.leases.acquire("c", ttl_ms=1)
    await asyncio.sleep(0.01)
    lease = await stores.leases.acquire("c")
    assert old is not None
    assert lease is not None
    assert lease.fence > old.fence
    cell = cell_of(rows[:4])
    with pytest.raises(LeaseLostError):
        await documents.commit_cut([cell], lease=old)
    await documents.commit_cut([cell], lease=lease)
    assert len(await documents.pending_messages(rows[0].conversation_id)) == 2
    with pytest.raises(ConflictError):
        await documents.commit_cut([cell_of(rows[3:5])], lease=lease)
    assert (await documents.counts())["raw_messages"] == 6

    kept = await documents.save_result(cell, {"first": True})
    assert (await documents.save_result(cell, {"first": False})).result == kept.result == {"first": True}
    built = await documents.commit_build(kept, [fact_of(kept, "fact one")], [])
    assert (built.state, built.generation, len(built.children)) == ("built", 1, 1)
    with pytest.raises(ConflictError):
        await documents.commit_build(kept, [fact_of(kept, "fact one")], [])
    await documents.finish_memcell(built)
    counts = await documents.counts()
    assert (counts["raw_messages"], counts["atomic_fact"], counts["memcells"]) == (2, 1, 1)
    assert await documents.broken_links() == []


async def test_a_worker_with_an_old_window_cannot_bring_a_person_back(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    rows = (await stores.documents.add_messages([message(i, f"text {i}") for i in range(4)])).added
    lease = await stores.leases.acquire("c")
    assert lease is not None
    cell = cell_of(rows)
    await stores.documents.commit_cut([cell], lease=lease)
    assert await stores.documents.tombstone(where=parse({"user_id": "u1"})) == 4
    with pytest.raises(StaleEpochError):
        await stores.documents.save_result(cell, {})
    with pytest.raises(StaleEpochError):
        await stores.documents.commit_build(cell, [fact_of(cell, "secret")], [])
    assert (await stores.documents.counts())["atomic_fact"] == 0
    again = await stores.documents.add_messages([message(0, "text 0")])
    assert (again.deleted, again.added) == (1, [])
    assert len((await stores.documents.add_messages([message(0, "text 0")], restore=True)).added) == 1


async def test_deleting_some_messages_undoes_their_memcell(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    documents = stores.documents
    rows = (await documents.add_messages([message(i, f"text {i}") for i in range(3)])).added
    lease = await stores.leases.acquire("c")
    assert lease is not None
    cell = cell_of(rows)
    await documents.commit_cut([cell], lease=lease)
    built = await documents.commit_build(await documents.save_result(cell, {}), [fact_of(cell, "made of three")], [])
    assert await documents.tombstone(memory_id=rows[1].id) == 2
    (left,) = await documents.memcells([cell.id])
    assert (left.state, left.result, left.source_message_ids) == ("cut", None, ["m0", "m2"])
    assert await documents.fetch(built.children) == {}
    assert sorted(await documents.unpurged()) == sorted([rows[1].id, *built.children])
    await documents.purge(await documents.unpurged())
    assert await documents.unpurged() == []


async def test_pages_follow_filters(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    await documents.add_messages([message(i, f"text {i}", session="s" if i % 2 else "r") for i in range(10)])
    scope = scope_of(parse({"user_id": "u1", "session_id": "s"}), RAW)
    rows, total = await documents.page(scope, offset=1, limit=2, descending=False)
    assert total == 5
    assert [row.text for row in rows if isinstance(row, Message)] == ["text 3", "text 5"]
    rows, _ = await documents.page(scope, offset=0, limit=1)
    assert [row.text for row in rows if isinstance(row, Message)] == ["text 9"]
    assert [row.id async for row in documents.visible_rows()] == sorted(
        [row.id async for row in documents.visible_rows()]
    )


async def test_spans_and_outlines(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    rows = (await documents.add_messages([message(i, f"text {i}") for i in range(8)])).added
    outline = await documents.outline(rows[0].conversation_id)
    assert [item.id for item in outline] == [row.id for row in rows]
    span = Span(outline[2].position, outline[5].position)
    assert [m.message_id for m in await documents.pending_messages(rows[0].conversation_id, span)] == [
        "m2",
        "m3",
        "m4",
        "m5",
    ]


async def test_editing_a_memory(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    documents = stores.documents
    rows = (await documents.add_messages([message(1, "I live in Rome")])).added
    lease = await stores.leases.acquire("c")
    assert lease is not None
    cell = cell_of(rows)
    await documents.commit_cut([cell], lease=lease)
    fact = fact_of(cell, "lives in Rome")
    await documents.commit_build(await documents.save_result(cell, {}), [fact], [])
    await documents.mark_indexed(["k1"], [(fact.id, 1)])
    changed = await documents.update_memory(fact.id, {"atomic_fact": "lives in Oslo"})
    assert (changed.revision, changed.search_text, changed.embedding_text) == (2, "lives in Oslo", "lives in Oslo")
    assert fact.id in [row.id for row in await documents.unindexed()]
    await documents.mark_indexed(["k1"], [(fact.id, 1)])  # a slow writer of the first revision
    assert fact.id in [row.id for row in await documents.lacking("k1")]
    with pytest.raises(InvalidInputError, match="memcell_id"):
        await documents.update_memory(fact.id, {"memcell_id": "x"})
    with pytest.raises(InvalidInputError):
        await documents.update_memory(rows[0].id, {"text": "x"})
    with pytest.raises(NotFoundError):
        await documents.update_memory("nothing", {"atomic_fact": "x"})


async def test_index_generations(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    rows = (await documents.add_messages([message(i, "x") for i in range(3)])).added
    await documents.mark_indexed(["k1"], [(row.id, 1) for row in rows])
    assert await documents.unindexed() == []
    new = await documents.add_generation("keyword")
    assert (new.name, new.live) == ("k2", False)
    assert (await documents.add_generation("keyword")).name == "k2"  # an unfinished rebuild goes on
    assert not await documents.promote_generation("k2")
    with pytest.raises(ConflictError):
        await documents.remove_generation("k1")
    assert len(await documents.lacking("k2")) == 3
    await documents.mark_indexed(["k2"], [(row.id, 1) for row in rows])
    assert await documents.promote_generation("k2")
    await documents.remove_generation("k1")
    assert [(g.name, g.live) for g in await documents.generations()] == [("k2", True)]


async def test_profile_evidence_is_versioned(backend: SqliteBackend) -> None:
    stores = backend.tenant(TENANT)
    documents = stores.documents
    rows = (await documents.add_messages([message(1, "I like tea")])).added
    lease = await stores.leases.acquire("c")
    assert lease is not None
    cell = cell_of(rows)
    await documents.commit_cut([cell], lease=lease)
    item = ProfileItem(category="preference", description="I like tea", evidence=[cell.id], sources=["m1"])
    evidence = ProfileEvidence(user_id="u1", memcell_id=cell.id, ordinal=0, order_time=START, item=item)
    await documents.commit_build(await documents.save_result(cell, {}), [], [evidence])
    assert await documents.stale_profiles() == ["u1"]
    version, found = await documents.profile_evidence("u1")
    assert found == [evidence]
    await documents.save_profile("u1", None, version=version)
    assert await documents.stale_profiles() == []
    await documents.tombstone(where=parse({"user_id": "u1"}))
    assert (await documents.profile_evidence("u1"))[1] == []
    assert await documents.stale_profiles() == ["u1"]


async def test_resources_merge(backend: SqliteBackend) -> None:
    documents = backend.tenant(TENANT).documents
    assert await documents.resource("group", "g") is None
    first = await documents.put_resource("group", "g", {"name": "Hikers"})
    second = await documents.put_resource("group", "g", {"description": "hills"})
    assert (second["name"], second["description"], second["created_at"]) == ("Hikers", "hills", first["created_at"])
    assert await backend.tenant("t2").documents.resource("group", "g") is None
