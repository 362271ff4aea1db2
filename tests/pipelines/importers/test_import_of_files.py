"""Files through the stages of an import, without Ray: what is counted, in which order it lies, what is planned."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from models.settings import ModelSettings
from pipelines.importers.registry import find_sources
from pipelines.jobs.backfill import file_plans
from pipelines.jobs.blocks import table_of, values_of
from pipelines.jobs.build_stage import planned_windows, pool_size
from pipelines.jobs.import_stage import prepare, store_batch
from pipelines.jobs.planning import plan_job, plan_late
from pipelines.jobs.reading import read_batches
from pipelines.jobs.report import BackfillReport
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.setup import Setup
from pipelines.settings import PipelineSettings
from primitives.clock import now_ms
from primitives.errors import InvalidInputError
from storage.ports import Span, Window
from storage.settings import StorageSettings
from storage.stores import TenantStores
from tests.pipelines.importers.exports import FORMATS, T0, Said, content_of, rows
from tests.pipelines.importers.exports import write as write_export


def setup_in(folder: Path) -> Setup:
    return Setup(
        tenant_id="t", storage=StorageSettings(evercore_data_dir=folder, _env_file=None),  # type: ignore[call-arg]
        models=ModelSettings(), pipeline=PipelineSettings(_env_file=None),  # type: ignore[call-arg]
    )  # fmt: skip


OPTIONS = {"talks_of": "ann", "timezone": "UTC"}


async def imported(setup: Setup, *paths: Path, batches: int | None = None, **options: Any) -> BackfillReport:
    """An import into a job named after the paths; it stops after so many `batches` of each file."""
    request = BackfillRequest(paths=list(paths), **options)
    sources = find_sources(request.paths)
    plans = file_plans(sources, request, setup)
    ledger, job = setup.stores().ledger, request.job_name
    await ledger.open_job(job, request.arguments())
    for plan in reversed(plans):  # files are stored in any order
        done = await ledger.imported_batches(job, plan.identity)
        for batch in islice(read_batches(plan, request, max_bytes=1_000, done=done), batches):
            table = prepare(table_of("batch", [batch.dump()]), plans={plan.identity: plan}, setup=setup)
            for data in values_of("batch", table):
                await store_batch(setup.stores(), job, data)
    report = BackfillReport(job=job)
    report.add_import(await ledger.import_counts(job), sources.passed_over)
    return report


def write(path: Path, rows: list[dict[str, Any] | str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    lines = (row if isinstance(row, str) else json.dumps({"conversation": "c", "sender": "a"} | row) for row in rows)
    path.write_text("\n".join(lines) + "\n")
    return path


async def pending(stores: TenantStores) -> list[str]:
    (conversation,) = await stores.documents.pending_conversations()
    return [message.text for message in await stores.documents.pending_messages(conversation.id)]


async def test_every_record_is_counted_once(tmp_path: Path) -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    rows: list[dict[str, Any] | str] = [
        {"text": "kept", "message_id": "1"}, {"text": "kept", "message_id": "1"}, {"text": "changed", "message_id": "1"},
        {"text": " "}, {"text": "x" * 2_000}, "{broken",
        '{"conversation":"c","sender":"a","text":["deep",' + deep + "]}",
        '{"conversation":"c","sender":"a","text":["big \\ud800",{"n":100000000000000000000000000}]}', {"text": "after"},
    ]  # fmt: skip
    write(tmp_path / "in" / "a.jsonl", rows)
    (tmp_path / "in" / "empty.jsonl").touch()
    report = await imported(setup_in(tmp_path / "data"), tmp_path / "in")
    assert report.unreadable.counts == {
        "text over 1000 bytes": 1, "bad JSON": 1, "content that cannot be stored": 2, "empty file": 1
    }  # fmt: skip
    assert (report.new, report.duplicates, report.conflicts, report.skipped.total) == (2, 1, 1, 1)
    parts = [report.new, report.duplicates, report.conflicts, report.deleted_before]
    assert report.read == sum(parts) + report.skipped.total + report.unreadable.total == 10


async def test_an_undated_conversation_in_several_files_is_whole_and_in_order(tmp_path: Path) -> None:
    texts = {name: ["hi", f"{name} one", f"{name} two"] for name in ("p1", "p2")}
    for name, said in texts.items():
        write(tmp_path / "in" / f"{name}.jsonl", [{"text": text} for text in said])
    setup = setup_in(tmp_path / "data")
    first = await imported(setup, tmp_path / "in")
    assert (first.read, first.new, first.duplicates) == (6, 6, 0)
    assert await pending(setup.stores()) == texts["p1"] + texts["p2"]
    alone = await imported(setup, tmp_path / "in" / "p2.jsonl")
    assert (alone.job != first.job, alone.new, alone.duplicates) == (True, 0, 3)
    assert await pending(setup.stores()) == texts["p1"] + texts["p2"]


async def test_what_comes_after_planning_is_planned_outside_the_windows_that_are_there(tmp_path: Path) -> None:
    rows: list[dict[str, Any] | str] = [{"text": f"{n}", "time": 1_700_000_000 + n} for n in range(4)]
    path = write(tmp_path / "in" / "a.jsonl", rows[1:3])
    setup = setup_in(tmp_path / "data")
    stores, job = setup.stores(), (await imported(setup, path)).job
    await plan_job(stores, job, setup.pipeline)
    assert await plan_late(stores, job, setup.pipeline) == 0
    write(path, rows)
    await imported(setup, path)
    assert await plan_job(stores, job, setup.pipeline) == 0
    assert await plan_late(stores, job, setup.pipeline) == 2
    assert await plan_late(stores, job, setup.pipeline) == 0
    assert [window.messages for window in await planned_windows(stores, job)] == [2, 1, 1]


def test_few_messages_need_few_workers() -> None:
    window = Window(0, "c", Span((0, 0, ""), (1, 0, "")), messages=30)
    assert pool_size([window], workers=8, blocks=8) == 1
    assert pool_size([window] * 30, workers=8, blocks=8) == 3
    assert pool_size([replace(window, messages=3_000)] * 9, workers=8, blocks=5) == 5


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("format", FORMATS)
async def test_40_each_format_twice_and_grown_adds_only_what_is_new(tmp_path: Path, format: str, zipped: bool) -> None:
    setup = setup_in(tmp_path / "data")
    first = await imported(setup, write_export(format, tmp_path / "in", rows(30), zipped=zipped), **OPTIONS)
    assert (first.new, first.unreadable.total) == (30, 0)
    again = await imported(setup, write_export(format, tmp_path / "copy", rows(30), zipped=zipped), **OPTIONS)
    assert (again.job != first.job, again.new, again.duplicates, again.conflicts) == (True, 0, 30, 0)
    grown = await imported(setup, write_export(format, tmp_path / "grown", rows(45), zipped=zipped), **OPTIONS)
    assert (grown.new, grown.duplicates, grown.conflicts) == (15, 30, 0)


@pytest.mark.parametrize("format", FORMATS)
async def test_39_the_time_of_a_message_is_never_that_of_its_import(tmp_path: Path, format: str) -> None:
    setup = setup_in(tmp_path / "data")
    before = now_ms()
    await imported(setup, write_export(format, tmp_path / "in", rows(3)), **OPTIONS)
    stores = setup.stores()
    (conversation,) = await stores.documents.pending_conversations()
    stored = await stores.documents.pending_messages(conversation.id)
    assert [message.timestamp for message in stored] == [(T0 + 60 * n) * 1_000 for n in range(3)]
    assert all(message.imported_at >= before for message in stored)


@pytest.mark.parametrize("format", FORMATS)
async def test_41_a_stopped_import_knows_how_far_it_came(tmp_path: Path, format: str) -> None:
    path = write_export(format, tmp_path / "in", rows(2_500))
    setup = setup_in(tmp_path / "data")
    stopped = await imported(setup, path, batches=1, **OPTIONS)
    assert (stopped.read, stopped.new) == (1_000, 1_000)
    resumed = await imported(setup, path, **OPTIONS)
    assert (resumed.job, resumed.read, resumed.new, resumed.duplicates) == (stopped.job, 2_500, 2_500, 0)


@pytest.mark.parametrize("format", FORMATS)
async def test_42_messages_of_the_future_and_out_of_order_are_kept_and_said(tmp_path: Path, format: str) -> None:
    century = 86_400 * 365 * 70
    said = [Said("late", 7_200), Said("early", 0), Said("one day", century)]
    report = await imported(setup := setup_in(tmp_path / "data"), write_export(format, tmp_path / "in", said), **OPTIONS)
    assert report.noted.counts == {"dated in the future": 1}
    assert await pending(setup.stores()) == ["early", "late", "one day"]


async def test_42_a_conversation_that_stands_twice_comes_once(tmp_path: Path) -> None:
    tree = json.loads(content_of("chatgpt", rows(10)))
    path = write_export("chatgpt", tmp_path / "in", json.dumps(tree * 2).encode())
    report = await imported(setup_in(tmp_path / "data"), path, **OPTIONS)
    assert (report.read, report.new, report.duplicates) == (20, 10, 10)


def test_whose_an_export_is(tmp_path: Path) -> None:
    talks = find_sources([write_export("chatgpt", tmp_path / "a", rows(2))]).files[0]
    group = find_sources([write_export("whatsapp", tmp_path / "b", rows(2))]).files[0]
    paths = [tmp_path]
    with pytest.raises(InvalidInputError, match="--talks-of"):
        BackfillRequest(paths=paths).ownership(talks)
    mixed = BackfillRequest(paths=paths, talks_of="ann")
    assert (mixed.ownership(talks).user, mixed.ownership(group).user) == ("ann", None)
    mine = BackfillRequest(paths=paths, user="ann")
    assert (mine.ownership(talks).user, mine.ownership(group).user) == ("ann", "ann")
    with pytest.raises(InvalidInputError, match="beside --user"):
        BackfillRequest(paths=paths, talks_of="ann", user="ben")
