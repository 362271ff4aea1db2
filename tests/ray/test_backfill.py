"""The backfill on a local Ray: the same result however often it is run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.jobs.progress import Snapshot
from pipelines.jobs.report import BackfillReport
from pipelines.jobs.request import BackfillRequest
from primitives.errors import ConfigurationError, ConflictError, InvalidInputError
from tests.ray.support import backfill, content, differences, run_backfill, settings, stores, write_chats

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "chats.jsonl"
    write_chats(path, conversations=6, messages=40)
    with path.open("a", encoding="utf-8") as out:
        out.write('{"conversation": "chat-0", "sender": "Ann", "text": " "}\n{"broken\n')
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, chats: Path, local_ray: None) -> tuple[Path, BackfillReport]:
    """A finished job; tests that share it add nothing that is not there."""
    folder = tmp_path_factory.mktemp("built")
    return folder, backfill(folder, chats)


def test_every_message_is_stored_once_and_built(built: tuple[Path, BackfillReport], chats: Path) -> None:
    folder, report = built
    assert (report.state, report.read, report.new, report.duplicates, report.conflicts) == ("done", 242, 240, 0, 0)
    assert report.skipped.counts == {"blank text": 1}
    assert report.unreadable.counts == {"bad JSON": 1}
    assert report.unreadable.examples["bad JSON"][0].where == f"{chats.resolve()}:242"
    assert report.noted.counts == {"no time; the order of the file stands": 120}
    assert (report.conversations, report.dead_letters) == (6, 0)
    counts = asyncio.run(stores(folder).documents.counts())
    assert (counts["raw_message"], counts["raw_messages"], counts["unindexed"]) == (240, 0, 0)
    assert counts["memcells"] == report.memcells > 6
    assert counts["episodic_memory"] == report.memories["episodic_memory"]
    assert differences(folder).differences == []
    assert [stage.name for stage in report.stages] == ["Import", "Plan", "Build", "Finish"]
    assert report.to_dict()["stages"][0]["rate"] > 0


def test_twice_changes_nothing(built: tuple[Path, BackfillReport], chats: Path) -> None:
    folder, first = built
    before = content(folder)
    again = backfill(folder, chats)
    assert (again.job, again.read, again.new, again.duplicates, again.memcells) == (first.job, 242, 0, 240, 0)
    assert content(folder) == before


def test_other_paths_and_workers_give_the_same_content(built: tuple[Path, BackfillReport], chats: Path, tmp_path: Path) -> None:
    copy = tmp_path / "in" / chats.name  # the keys of undated messages without ids hold it
    copy.parent.mkdir()
    copy.write_bytes(chats.read_bytes())
    report = backfill(tmp_path / "data", copy.parent, workers=1, job="mine")
    assert (report.job, report.new) == ("mine", 240)
    assert content(tmp_path / "data") == content(built[0])


def test_a_job_name_keeps_its_arguments(built: tuple[Path, BackfillReport], chats: Path) -> None:
    folder, first = built
    with pytest.raises(ConflictError, match="other arguments"):
        backfill(folder, chats, job=first.job, limit=3)


def test_changed_content_under_an_id_is_a_reported_conflict(built: tuple[Path, BackfillReport], tmp_path: Path) -> None:
    path = tmp_path / "changed.jsonl"
    path.write_text('{"conversation": "chat-1", "message_id": "1-3", "sender": "Ann", "text": "something else"}\n')
    before = content(built[0])
    report = backfill(built[0], path)
    assert (report.new, report.conflicts, report.conflict_examples) == (0, 1, ["1-3"])
    assert content(built[0]) == before


def test_a_dry_run_stores_nothing(chats: Path, tmp_path: Path) -> None:
    report = backfill(tmp_path / "data", chats, dry_run=True)
    assert (report.read, report.conversations, report.skipped.total, report.unreadable.total) == (242, 6, 1, 1)
    assert report.tokens
    assert report.tokens > 1_000
    assert report.memcells >= 6
    assert report.estimated_seconds is not None
    assert not (tmp_path / "data").exists()


def test_limit_since_and_until(chats: Path, tmp_path: Path) -> None:
    limited = backfill(tmp_path / "limited", chats, limit=50)
    assert (limited.read, limited.new) == (50, 50)
    day = 86_400_000
    start = 1_709_620_800_000
    dated = backfill(tmp_path / "dated", chats, since=start + day, until=start + 2 * day)
    assert (dated.read, dated.new) == (242, 40)
    assert dated.skipped.counts == {
        "blank text": 1, "no time to compare with --since or --until": 120, "not before --until": 80
    }  # fmt: skip


def test_owners_are_asked_for(tmp_path: Path, chats: Path) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(
        '[{"title": "t", "id": "talk", "current_node": "b", "mapping": {'
        '"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["I love my garden"]}}, "parent": null},'
        '"b": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["How nice"]}}, "parent": "a"}}}]'
    )
    with pytest.raises(InvalidInputError, match="--user"):
        backfill(tmp_path / "data", export)
    with pytest.raises(InvalidInputError, match="one owner"):
        BackfillRequest(paths=[export], user="a", group="b")
    report = backfill(tmp_path / "data", export, user="u1")
    assert report.new == 2
    conversation = asyncio.run(stores(tmp_path / "data").ledger.job_conversations(report.job))[0]
    stored = asyncio.run(stores(tmp_path / "data").documents.conversation(conversation))
    assert stored is not None
    assert (stored.user_id, stored.session_id) == ("u1", "talk")


def test_progress_is_told(chats: Path, tmp_path: Path) -> None:
    seen: list[Snapshot] = []

    class Listener:
        def update(self, snapshot: Snapshot) -> None:
            seen.append(snapshot)

    run_backfill(BackfillRequest(paths=[chats]), **settings(tmp_path / "data"), progress=Listener())
    last = {snapshot.stage: snapshot for snapshot in seen}
    assert (last["import"].done, last["import"].messages) == (last["import"].total, 242)
    assert (last["build"].done, last["build"].total, last["build"].errors) == (240, 240, 0)


def test_embedded_stores_stay_on_one_node(chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.nodes", lambda: [{"Alive": True}, {"Alive": True}, {"Alive": False}])
    with pytest.raises(ConfigurationError, match=r"2 nodes.*EVERCORE_DATA_DIR") as caught:
        backfill(tmp_path / "data", chats)
    assert "stores on servers" in str(caught.value.hint)


def test_a_file_that_grew_under_a_stopped_job_is_imported_and_old_letters_go(tmp_path: Path) -> None:
    folder, path = tmp_path / "data", tmp_path / "chats.jsonl"
    write_chats(path, conversations=2, messages=10)
    job = backfill(folder, path).job
    ledger = stores(folder).ledger
    asyncio.run(ledger.update_job(job, state="building"))  # as if stopped there
    with path.open("a", encoding="utf-8") as out:
        out.write('{"conversation": "chat-0", "sender": "Ann", "text": "one more"}\n')
    report = backfill(folder, path)
    assert (report.state, report.read, report.new, report.duplicates) == ("done", 41, 21, 20)
    assert differences(folder).differences == []
    assert asyncio.run(stores(folder).documents.pending_conversations()) == []
    asyncio.run(ledger.add_dead_letters(job, [{"error": "lost"}]))
    assert backfill(folder, path).dead_letters == 0
