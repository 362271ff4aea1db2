"""`evercore replay`: try dead letters again."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from serve.commands.jobs import ray_for_job
from serve.commands.output import JsonOption, console, print_json, table_of
from serve.commands.owner import TenantOption
from serve.configuration import load_settings
from serve.ray_environment import prepare_environment


def register(app: typer.Typer) -> None:
    app.command("replay")(replay)


def replay(
    job: Annotated[str | None, typer.Option(help="Dead letters of one job only.")] = None,
    tenant: TenantOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one a core.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build again what failed in a backfill. Exit code 1 where some failed again.

    Example: evercore replay --job monday
    """
    settings = load_settings()
    prepare_environment(settings.storage.evercore_data_dir)
    from pipelines.jobs.replay import run_replay

    with ray_for_job(settings):
        report = run_replay(
            tenant=tenant or settings.storage.evercore_tenant,
            storage=settings.storage,
            models=settings.models,
            pipeline=settings.pipeline,
            job=job,
            workers=workers,
        )
    if as_json:
        print_json(report.to_dict())
    else:
        figures = {"Tried": report.tried, "Resolved": report.resolved, "Failed again": report.failed}
        console.print(table_of("Replay", figures | {"MemCells": report.memcells, **report.memories}))
        for example in report.examples:
            console.print(escape(example))
    if report.failed:
        raise typer.Exit(1)
