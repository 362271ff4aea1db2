"""`evercore backfill`: chat files become memories."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.importers.registry import find_sources
from primitives.clock import to_ms
from primitives.errors import InvalidInputError
from serve.commands.jobs import ray_for_job
from serve.commands.output import JsonOption, console, errors, print_json
from serve.commands.owner import GroupOption, TenantOption, UserOption
from serve.configuration import load_settings
from serve.ray_environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.jobs.report import BackfillReport

INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    app.command("backfill")(backfill)


def backfill(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders of chats.")],
    format: Annotated[str, typer.Option(help="auto, or the name of a format.")] = "auto",
    fields: Annotated[str, typer.Option(help="Fields of JSONL files: conversation=conv,text=body,...")] = "",
    user: UserOption = None,
    group: GroupOption = None,
    tenant: TenantOption = None,
    since: Annotated[str | None, typer.Option(help="Only messages from this time on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option(help="Only messages before this time (ISO 8601).")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many messages.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Zone of times that name none: Asia/Shanghai.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count only; store nothing.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one a core.")] = None,
    job: Annotated[str | None, typer.Option(help="Name of the job; the same name resumes it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn chat files into memories, in bulk. Stopped anywhere, the same command goes on where it was.

    Exit code 1 where not a single message could be read.

    Example: evercore backfill chats.jsonl --fields conversation=conv,sender=speaker,text=text,time=ts
    """
    settings = load_settings()
    prepare_environment(settings.storage.evercore_data_dir)
    # Ray Data takes a second to import, which the other commands need not wait for.
    from pipelines.jobs.backfill import run_backfill
    from pipelines.jobs.progress import RichProgress
    from pipelines.jobs.request import BackfillRequest, parse_fields

    request = BackfillRequest(
        paths=paths,
        format=format,
        fields=parse_fields(fields),
        user=user,
        group=group,
        tenant=tenant or settings.storage.evercore_tenant,
        since=moment_of("--since", since),
        until=moment_of("--until", until),
        limit=limit,
        timezone=timezone,
        dry_run=dry_run,
        workers=workers,
        job=job,
    )
    find_sources(paths, format=format)  # a wrong path is said before Ray starts, which takes seconds
    try:
        with contextlib.nullcontext() if dry_run else ray_for_job(settings), contextlib.ExitStack() as stack:
            report = run_backfill(
                request,
                storage=settings.storage,
                models=settings.models,
                pipeline=settings.pipeline,
                progress=None if as_json else stack.enter_context(RichProgress(console)),
            )
    except KeyboardInterrupt:
        errors.print("Stopped; the same command goes on where it was.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(report.to_dict())
    else:
        console.print(report)
    if nothing_readable(report):
        raise typer.Exit(1)


def nothing_readable(report: BackfillReport) -> bool:
    """Whether no message came out of the files, and not only because the options left all of them out."""
    unreadable, skipped = report.unreadable.total, report.skipped.total
    return not report.read or (unreadable > 0 and report.read <= unreadable + skipped)


def moment_of(name: str, text: str | None) -> int | None:
    """Milliseconds of an ISO 8601 time; a time without a zone is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as fault:
        raise InvalidInputError(f"{name} {text!r} is not ISO 8601", hint=f"Write {name} 2024-03-05.") from fault
    return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
