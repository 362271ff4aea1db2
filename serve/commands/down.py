"""`evercore down`: stop the server of this data folder."""

from __future__ import annotations

import os
import signal
import time
from typing import Annotated

import typer

from primitives.errors import UnavailableError
from serve.commands.output import JsonOption, console, print_json
from serve.configuration import load_settings
from serve.instance import running_server


def register(app: typer.Typer) -> None:
    app.command("down")(down)


def down(
    timeout: Annotated[float, typer.Option(help="Seconds to wait for its end.")] = 60.0, as_json: JsonOption = False
) -> None:
    """Stop the running server, with everything it started.

    Example: evercore down
    """
    settings = load_settings()
    server = running_server(settings.storage.evercore_data_dir)
    if server is not None:
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout
        while server.lives():
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"the server (process {server.pid}) has not ended after {timeout:.0f} s",
                    hint="Wait a little, or end it with `kill -9` as a last resort: nothing stored is lost.",
                )
            time.sleep(0.1)
    if as_json:
        print_json({"stopped": server is not None, "pid": server.pid if server else None})
    else:
        console.print(f"Stopped (process {server.pid})." if server else "No server is running on this data folder.")
