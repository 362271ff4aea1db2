"""`evercore backup`: a consistent copy of the data folder, also while the server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serve.commands.output import JsonOption, console, print_json, table_of
from serve.configuration import load_settings
from storage.sqlite.backup import backup as backup_stores


def register(app: typer.Typer) -> None:
    app.command("backup")(backup)


def backup(
    destination: Annotated[Path, typer.Argument(help="A new or empty folder.")], as_json: JsonOption = False
) -> None:
    """Copy all stores into a new folder. To restore, set EVERCORE_DATA_DIR to the copy.

    Example: evercore backup /backups/monday
    """
    settings = load_settings()
    sizes = backup_stores(settings.storage.evercore_data_dir, destination)
    if as_json:
        print_json({"destination": str(destination.absolute()), "bytes": sizes})
    else:
        console.print(table_of(f"Copied to {destination}", {f"{name}, bytes": size for name, size in sizes.items()}))
