"""The command line. Each command is a file of its own under serve/commands; errors end in one clear line."""

from __future__ import annotations

import contextlib
import sys
import traceback
from pathlib import Path

import typer

from primitives.clock import now_ms, to_iso
from primitives.errors import EverCoreError
from serve.commands import (
    backfill,
    backup,
    doctor,
    down,
    flush,
    migrate,
    parse,
    rebuild_index,
    replay,
    search,
    settings,
    status,
    up,
    verify,
)
from serve.commands.output import INTERRUPTED, print_error
from serve.configuration import load_settings

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
    up, down, backfill, parse, search, flush, status, doctor, verify, rebuild_index, replay, migrate, backup, settings,
):  # fmt: skip
    command.register(app)

LOG_FILE = "commands.log"


def main() -> None:
    """Run the command line; errors exit with 1 and no traceback."""
    try:
        app()
    except EverCoreError as fault:
        print_error(fault, as_json="--json" in sys.argv)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as fault:  # noqa: BLE001 - the last resort
        print_error(_unexpected(fault), as_json="--json" in sys.argv)
        sys.exit(1)


def _unexpected(fault: Exception) -> EverCoreError:
    """A fault of this program in one line. Its traceback stands in the data folder's logs, where that is writable."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    path = _keep_traceback(fault)
    return EverCoreError(
        f"{type(fault).__name__}: {lines[0]}" if lines else type(fault).__name__,
        hint=f"This was not expected. The whole of it is in {path}." if path else "This was not expected.",
    )


def _keep_traceback(fault: Exception) -> Path | None:
    # Whatever goes wrong here must not hide the fault itself.
    with contextlib.suppress(EverCoreError, OSError, ValueError):
        path = load_settings().storage.evercore_data_dir / "logs" / LOG_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{to_iso(now_ms())} {sys.argv[1:]}\n{''.join(traceback.format_exception(fault))}\n")
        return path
    return None


if __name__ == "__main__":
    main()
