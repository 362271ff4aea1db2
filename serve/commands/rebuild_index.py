"""`evercore rebuild-index`: make an index anew from the documents, while the server runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from serve.commands.jobs import ray_for_job
from serve.commands.output import JsonOption, console, print_json, table_of
from serve.configuration import load_settings
from serve.ray_environment import prepare_environment


class Which(StrEnum):
    keyword = "keyword"
    vector = "vector"
    both = "both"


def register(app: typer.Typer) -> None:
    app.command("rebuild-index")(rebuild_index)


def rebuild_index(
    index: Annotated[Which, typer.Option(help="Which index.")] = Which.both,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one a core.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the keyword or vector index anew from the documents. Searches use the old one until the new one is whole.

    Example: evercore rebuild-index --index vector
    """
    settings = load_settings()
    prepare_environment(settings.storage.evercore_data_dir)
    from pipelines.jobs.rebuild import run_rebuild

    with ray_for_job(settings):
        reports = run_rebuild(
            ["keyword", "vector"] if index is Which.both else [index.value],  # type: ignore[list-item]
            storage=settings.storage,
            models=settings.models,
            pipeline=settings.pipeline,
            workers=workers,
        )
    if as_json:
        print_json([report.to_dict() for report in reports])
        return
    for report in reports:
        figures = {"Rows": report.rows, "Embedded": report.embedded, "Vectors reused": report.reused}
        figures |= {"Seconds": round(report.seconds)}
        console.print(table_of(f"{report.kind}: {report.generation} replaces {report.replaced or 'nothing'}", figures))
