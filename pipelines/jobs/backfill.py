"""Backfill: chat files become memories, in one job that can be stopped anywhere and run again.

    files -> (import stage) -> raw messages -> plan -> windows -> (build stage) -> memories -> profiles, sweep, report

The ledger holds how far a job came. Every step of it may be repeated without changing the result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from models.settings import ModelSettings
from pipelines.importers.registry import Sources, check_start, find_sources
from pipelines.jobs.build_stage import planned_windows, run_build
from pipelines.jobs.dry_run import estimate
from pipelines.jobs.import_stage import run_import
from pipelines.jobs.planning import plan_job, plan_late
from pipelines.jobs.progress import ProgressListener, Watcher
from pipelines.jobs.reading import FilePlan, plan_limits
from pipelines.jobs.report import BackfillReport, Stage
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.setup import Setup, check_cluster, worker_count
from pipelines.maintenance import sweep
from pipelines.profiles import refresh_profiles
from pipelines.settings import PipelineSettings
from storage.ports import Job
from storage.settings import StorageSettings

EXAMPLES = 5


def run_backfill(
    request: BackfillRequest,
    *,
    storage: StorageSettings,
    models: ModelSettings,
    pipeline: PipelineSettings,
    progress: ProgressListener | None = None,
    on: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BackfillReport:
    """Run the job to its end (or, with dry_run, only read), on the Ray that this process is connected to or that `on`
    starts.

    What is wrong with the request or the files is raised before Ray is started and anything is stored. Blocks; call it
    outside an event loop.
    """
    setup = Setup(tenant_id=request.tenant, storage=storage, models=models, pipeline=pipeline).anywhere()
    sources = find_sources(request.paths, format=request.format)
    plans = file_plans(sources, request, setup)
    report = BackfillReport(job=request.job_name, dry_run=request.dry_run, files=len(plans))
    if request.dry_run:
        estimate(plans, request, report, passed_over=sources.passed_over, settings=pipeline, models=models)
        return report
    with on():
        check_cluster()
        return _Run(request, setup, plans, sources, report, progress).run()


def file_plans(sources: Sources, request: BackfillRequest, setup: Setup) -> list[FilePlan]:
    """The files with their owners and their shares of the limit; what refuses one is raised here."""
    plans = []
    for source in sources.files:
        ownership = request.ownership(source)
        check_start(source, request.options())
        plans.append(FilePlan(source, source.identity, source.size, ownership))
    return plan_limits(_each_once(plans), request, max_bytes=setup.pipeline.message_max_bytes)


def _each_once(plans: Sequence[FilePlan]) -> list[FilePlan]:
    """A file that was named twice is read once; the others are numbered."""
    once = {plan.identity: plan for plan in plans}.values()
    return [replace(plan, number=number) for number, plan in enumerate(once)]


class _Run:
    """One run of a job."""

    def __init__(
        self, request: BackfillRequest, setup: Setup, plans: list[FilePlan], sources: Sources, report: BackfillReport,
        progress: ProgressListener | None,
    ) -> None:  # fmt: skip
        self._request = request
        self._setup = setup
        self._plans = plans
        self._passed_over = sources.passed_over
        self._report = report
        self._job = request.job_name
        self._stores = setup.stores()
        self._workers = worker_count(request.workers)
        self._watcher = Watcher(setup=setup, job=self._job, listener=progress)

    def run(self) -> BackfillReport:
        job = asyncio.run(self._open())
        if plans := asyncio.run(self._unread(job)):
            self._import(plans)
            asyncio.run(self._stores.ledger.update_job(self._job, state="building"))
        self._build()
        asyncio.run(self._finish())
        return self._report

    async def _open(self) -> Job:
        """The job; one that is done starts anew, since its files may have grown."""
        job = await self._stores.ledger.open_job(self._job, self._request.arguments())
        if job.state in ("done", "failed"):
            await self._resolve_letters()
            await self._stores.ledger.forget_import(self._job)
            job = await self._stores.ledger.open_job(self._job, self._request.arguments())
        return job

    async def _resolve_letters(self) -> None:
        """What the last run left unbuilt is planned again, so its dead letters say nothing any more."""
        ledger = self._stores.ledger
        while letters := await ledger.dead_letters(job=self._job):
            await ledger.resolve_dead_letters([letter["id"] for letter in letters])

    async def _unread(self, job: Job) -> list[FilePlan]:
        """The files to import: all of them at first; of a job that builds already, those that came or changed since.

        Every file that was read has a batch, and such a job has read its files to their ends: it goes back to
        importing before another one is begun.
        """
        if job.state == "importing":
            return self._plans
        ledger = self._stores.ledger
        unread = [plan for plan in self._plans if not await ledger.imported_batches(self._job, plan.identity)]
        if unread:
            await ledger.update_job(self._job, state="importing")
        return unread

    def _import(self, plans: Sequence[FilePlan]) -> None:
        before = asyncio.run(self._stores.ledger.import_counts(self._job)).get("read", 0)
        started = time.monotonic()
        with self._watcher.stage("import", total=sum(plan.size for plan in plans)):
            conflicts = run_import(
                plans, job=self._job, request=self._request, setup=self._setup, workers=self._workers
            )
        self._report.conflict_examples = conflicts[:EXAMPLES]
        count = asyncio.run(self._stores.ledger.import_counts(self._job)).get("read", 0) - before
        self._report.stages.append(Stage("Import", "messages", count, time.monotonic() - started))

    def _build(self) -> None:
        started = time.monotonic()
        asyncio.run(self._plan())
        self._report.stages.append(Stage("Plan", "windows", asyncio.run(self._planned()), time.monotonic() - started))
        started = time.monotonic()
        windows = asyncio.run(planned_windows(self._stores, self._job))
        messages = sum(window.messages for window in windows)
        with self._watcher.stage("build", total=messages):
            run_build(windows, job=self._job, setup=self._setup, workers=self._workers)
        self._report.stages.append(Stage("Build", "messages", messages, time.monotonic() - started))

    async def _plan(self) -> None:
        resumed = bool(await self._stores.ledger.window_counts(self._job))
        await plan_job(self._stores, self._job, self._setup.pipeline)
        if resumed:  # a file may have grown since its conversations were planned
            await plan_late(self._stores, self._job, self._setup.pipeline)

    async def _planned(self) -> int:
        return (await self._stores.ledger.window_counts(self._job)).get("planned", 0)

    async def _finish(self) -> None:
        """Profiles and what a stopped run left, then the report. The job is done when all of it is."""
        started = time.monotonic()
        tools, backend = await self._setup.tools()
        try:
            profiles = await refresh_profiles(tools, None)
            swept = await sweep(tools, older_than_ms=0)
        finally:
            await tools.embedder.close()
            await backend.close()
        ledger = self._stores.ledger
        report = self._report
        report.add_import(await ledger.import_counts(self._job), self._passed_over)
        report.add_build(await ledger.window_counts(self._job))
        report.memcells += swept.memcells
        report.profiles = profiles + swept.profiles
        report.conversations = len(await ledger.job_conversations(self._job))
        letters = await ledger.dead_letters(job=self._job)
        report.dead_letters = len(letters)
        report.dead_letter_examples = [_letter(letter) for letter in letters[:EXAMPLES]]
        report.state = "done"
        report.stages.append(Stage("Finish", "profiles", report.profiles, time.monotonic() - started))
        await ledger.update_job(self._job, state="done", report=report.to_dict())


def _letter(letter: dict[str, Any]) -> str:
    return f"{letter.get('conversation_id', '')[:12]}: {letter.get('error', '')}"
