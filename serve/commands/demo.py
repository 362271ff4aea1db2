"""`evercore up --demo`: the sample chats become memories, and three searches find something in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.markup import escape

from primitives.errors import InvalidInputError
from serve.commands.client import ServerClient
from serve.commands.output import console
from serve.commands.search import print_hits
from serve.configuration import Settings
from serve.instance import RunningServer

SEARCHES = "searches.json"
SHOWN_HITS = 3
TALKS_OF = "kai"
"""Whose ChatGPT export lies among the samples; such an export names nobody."""
TIMEZONE = "Asia/Shanghai"
"""Of the WhatsApp chat among them."""


def run_demo(settings: Settings, server: RunningServer, samples: Path) -> None:
    """Backfill the samples (again: nothing is stored twice) and search them over HTTP."""
    files = sample_files(samples)
    console.print(f"\n[bold]Backfill of the sample chats in {escape(str(samples))}[/]")
    _backfill(settings, files)
    searches = json.loads((samples / SEARCHES).read_text(encoding="utf-8"))
    with ServerClient(server, settings.serve) as client:
        for search in searches:
            _search(client, search)


def sample_files(samples: Path) -> list[Path]:
    """JSONL files, and a folder for each export of another application."""
    there = sorted(samples.iterdir()) if samples.is_dir() else []
    files = [path for path in there if path.suffix == ".jsonl" or path.is_dir()]
    if not files or not (samples / SEARCHES).is_file():
        raise InvalidInputError(
            f"no sample chats in {samples}", hint="Run it in the project's folder, or give --samples."
        )
    return files


def _backfill(settings: Settings, paths: list[Path]) -> None:
    from pipelines.jobs.backfill import run_backfill
    from pipelines.jobs.progress import RichProgress
    from pipelines.jobs.request import BackfillRequest

    request = BackfillRequest(
        paths=paths, tenant=settings.storage.evercore_tenant, talks_of=TALKS_OF, timezone=TIMEZONE
    )
    with RichProgress(console) as progress:
        report = run_backfill(
            request,
            storage=settings.storage,
            models=settings.models,
            pipeline=settings.pipeline,
            progress=progress,
        )
    console.print(report)


def _search(client: ServerClient, search: dict[str, Any]) -> None:
    body = {
        "query": search["query"],
        "method": search["method"],
        "memory_types": ["episodic_memory", "atomic_fact", "raw_message"],
        "filters": search["owner"],
        "top_k": SHOWN_HITS,
    }
    data = client.call("POST", "/api/v1/memories/search", body)
    owner = ", ".join(f"{name} {value}" for name, value in search["owner"].items())
    console.print(f"\n[bold cyan]{escape(search['query'])}[/]  [dim]({escape(owner)})[/]")
    print_hits(data, most=SHOWN_HITS)
