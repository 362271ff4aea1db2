"""`evercore settings`: every setting with its default and what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import PydanticUndefined
from rich.table import Table
from rich.text import Text

from serve.commands.output import JsonOption, console, print_json
from serve.configuration import CLASSES


def register(app: typer.Typer) -> None:
    app.command("settings")(settings)


def settings(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table, for the documentation.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List all settings. They are read from the environment and from .env.

    Example: evercore settings --markdown > SETTINGS.md
    """
    found = all_settings()
    if as_json:
        print_json(found)
    elif markdown:
        print("| Setting | Default | Meaning |\n|---|---|---|")
        for one in found:
            print(f"| `{one['name']}` | `{one['default']}` | {one['description']} |".replace("``", ""))
    else:
        table = Table("Setting", "Default", "Meaning")
        for one in found:
            table.add_row(Text(one["name"]), Text(str(one["default"])), Text(one["description"]))
        console.print(table)


def all_settings() -> list[dict[str, Any]]:
    """Name, default and description; never a value, which may be secret."""
    out = []
    for kind in CLASSES:
        for name, field in kind.model_fields.items():
            default = field.get_default(call_default_factory=True)
            out.append(
                {
                    "name": name.upper(),
                    "default": _shown(default),
                    "description": field.description or "",
                    "of": kind.__name__,
                }
            )
    return out


def _shown(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return ""
    if isinstance(default, list | dict):
        return json.dumps(default)
    return (
        str(default)
        if isinstance(default, Path | str | int | float | bool)
        else str(getattr(default, "value", default))
    )
