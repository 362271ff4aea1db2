"""How commands speak: tables and lines for people on a terminal, one JSON document for programs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from primitives.errors import EverCoreError

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(orjson.dumps(data, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")
    sys.stdout.flush()


def print_error(fault: EverCoreError, *, as_json: bool) -> None:
    """What went wrong, and the way out."""
    if as_json:
        print_json(
            {"error": {"code": fault.code, "message": fault.message, "hint": fault.hint, "details": fault.details}}
        )
        return
    errors.print(Text.assemble(("Error: ", "bold red"), fault.message))
    if fault.hint:
        errors.print(Text(fault.hint))


def table_of(title: str, rows: dict[str, Any]) -> Table:
    """Names and values in two columns."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right", overflow="fold")
    for name, value in rows.items():
        table.add_row(
            name, Text(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
        )
    return table
