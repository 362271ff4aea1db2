"""`evercore migrate`: bring the stores to this program's schema."""

from __future__ import annotations

import typer

from serve.commands.output import JsonOption, console, print_json
from serve.configuration import load_settings
from serve.instance import Instance
from storage.sqlite.backup import migrate as migrate_stores


def register(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate(as_json: JsonOption = False) -> None:
    """Bring the stores to this program's schema. Make a backup first; the server must be stopped.

    Example: evercore backup before-migration && evercore migrate
    """
    settings = load_settings()
    with Instance(settings.storage.evercore_data_dir):
        before, after = migrate_stores(settings.storage.evercore_data_dir)
    if as_json:
        print_json({"before": before, "after": after})
    else:
        console.print(f"Schema {before} -> {after}." if before != after else f"Schema {after}: nothing to do.")
