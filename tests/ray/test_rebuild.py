"""rebuild-index: a new generation takes the old one's place, made from documents alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.jobs.rebuild import run_rebuild
from primitives.text import query_words
from storage.filters import parse, scope_of
from tests.ray.support import backfill, content, differences, settings, stores, write_chats

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


def test_both_indexes(tmp_path: Path) -> None:
    folder, path = tmp_path / "data", tmp_path / "chats.jsonl"
    write_chats(path, conversations=4, messages=20)
    backfill(folder, path)
    before = content(folder)
    keyword, vector = run_rebuild(["keyword", "vector"], **settings(folder))
    rows = sum(asyncio.run(stores(folder).documents.counts())[kind] for kind in ("raw_message", "episodic_memory"))
    assert (keyword.generation, keyword.replaced, vector.generation, vector.replaced) == ("k2", "k1", "v2", "v1")
    assert keyword.rows >= rows
    assert (vector.embedded, vector.reused) == (0, vector.rows)
    assert vector.rows >= rows

    async def after() -> tuple[list[tuple[str, bool]], int]:
        opened = stores(folder)
        live = [(g.name, g.live) for g in await opened.documents.generations()]
        index = await opened.indexes.keyword()
        scope = scope_of(parse({"group_id": "chat-0"}), ["raw_message"])
        return live, len(await index.search(query_words("tomatoes"), scope, limit=5))

    live, found = asyncio.run(after())
    assert live == [("k2", True), ("v2", True)]
    assert found > 0
    assert content(folder) == before
    assert differences(folder).differences == []
