"""The command line. Each command is a file of its own under serve/commands; errors end in one clear line."""

from __future__ import annotations

import sys

import typer

from primitives.errors import EverCoreError
from serve.commands import (
    backfill,
    backup,
    doctor,
    down,
    flush,
    migrate,
    rebuild_index,
    replay,
    search,
    settings,
    status,
    up,
    verify,
)
from serve.commands.output import print_error

app = typer.Typer(
    name="evercore",
    help="A memory cluster for agents on Ray: backfill chats in bulk, search them as memories.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    up, down, backfill, search, flush, status, doctor, verify, rebuild_index, replay, migrate, backup, settings,
):  # fmt: skip
    command.register(app)

INTERRUPTED = 130


def main() -> None:
    """Run the command line; expected errors exit with 1 and no traceback."""
    try:
        app()
    except EverCoreError as fault:
        print_error(fault, as_json="--json" in sys.argv)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
