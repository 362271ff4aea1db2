"""`evercore backfill`: chat files become memories."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from serve.commands.jobs import ray_for_job
from serve.commands.output import INTERRUPTED, JsonOption, console, errors, print_json
from serve.commands.owner import GroupOption, TenantOption, UserOption
from serve.commands.reading_options import (
    ConversationOption,
    DateOrderOption,
    FieldsOption,
    FormatOption,
    LimitOption,
    PathsArgument,
    SinceOption,
    TimezoneOption,
    UntilOption,
    moment_of,
)
from serve.configuration import load_settings
from serve.ray_environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.jobs.report import BackfillReport


def register(app: typer.Typer) -> None:
    app.command("backfill")(backfill)


def backfill(
    paths: PathsArgument,
    format: FormatOption = "auto",
    fields: FieldsOption = "",
    user: UserOption = None,
    group: GroupOption = None,
    talks_of: Annotated[
        str | None,
        typer.Option(help="Whose the talks with an assistant are, where chats of groups lie beside them."),
    ] = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = None,
    timezone: TimezoneOption = None,
    date_order: DateOrderOption = None,
    conversation: ConversationOption = None,
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
        talks_of=talks_of,
        tenant=tenant or settings.storage.evercore_tenant,
        since=moment_of("--since", since),
        until=moment_of("--until", until),
        limit=limit,
        timezone=timezone,
        date_order=date_order,
        conversation=conversation,
        dry_run=dry_run,
        workers=workers,
        job=job,
    )
    try:
        with contextlib.nullcontext() if as_json else RichProgress(console) as progress:
            report = run_backfill(
                request,
                storage=settings.storage,
                models=settings.models,
                pipeline=settings.pipeline,
                progress=progress,
                on=lambda: ray_for_job(settings),
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
