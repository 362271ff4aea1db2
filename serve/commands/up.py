"""`evercore up`: Ray, the server and its stores in the foreground, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from serve.commands.output import JsonOption, console, print_json
from serve.commands.signals import StopSignals
from serve.configuration import Settings, load_settings
from serve.instance import Instance, RunningServer
from serve.preflight import require_free_port, require_own_vectors, require_space
from serve.ray_environment import prepare_environment

READY_SECONDS = 180.0


def register(app: typer.Typer) -> None:
    app.command("up")(up)


def up(
    demo: Annotated[
        bool, typer.Option("--demo", help="Also backfill the sample chats and run three searches.")
    ] = False,
    samples: Annotated[Path, typer.Option(help="Folder of the sample chats.")] = Path("samples"),
    as_json: JsonOption = False,
) -> None:
    """Start the server in the foreground; Ctrl-C stops all of it.

    Example: EVERCORE_PORT=2000 evercore up
    """
    settings = load_settings()
    prepare_environment(settings.storage.evercore_data_dir, may_join=False)
    with Instance(settings.storage.evercore_data_dir) as instance, StopSignals() as signals:
        require_space(settings.storage.evercore_data_dir)
        require_free_port(settings.serve.evercore_host, settings.serve.evercore_port)
        asyncio.run(require_own_vectors(settings))
        with serving(settings, instance, signals, say=not as_json) as server:
            if demo:
                from serve.commands.demo import run_demo

                run_demo(settings, server, samples)
            if as_json:
                print_json(
                    {
                        "status": "ready",
                        "url": server.url,
                        "console": f"{server.url}/console",
                        "pid": server.pid,
                    }
                )
            else:
                console.print(f"\n[bold green]Ready[/] on {server.url}, its API described at {server.url}/docs")
                console.print(f"Open the console at [bold]{server.url}/console[/], or try `evercore search`.")
                console.print("Ctrl-C stops everything.\n")
            # In slices, since a wait without an end would not notice signals on every platform.
            while not signals.stopped.wait(0.5):
                pass
        if not as_json:
            console.print("Stopped.")


@contextlib.contextmanager
def serving(settings: Settings, instance: Instance, signals: StopSignals, *, say: bool) -> Iterator[RunningServer]:
    """Ray, Serve and the application, from ready to gone."""
    # Ray takes a second to import, which the other commands need not wait for.
    from serve.cli_ray import own_ray
    from serve.cli_serve import serve_application
    from serve.commands.client import ServerClient

    def tell(text: str) -> None:
        if say:
            console.print(text)

    tell("Starting Ray ...")
    with own_ray(settings) as ray_address:
        signals.install()  # Ray has put handlers of its own in their place
        tell("Starting the server (the very first start makes the embedding model, which takes minutes) ...")
        with serve_application(settings):
            server = instance.announce(
                host=settings.serve.evercore_host, port=settings.serve.evercore_port, ray_address=ray_address
            )
            with ServerClient(server, settings.serve) as client:
                client.wait_ready(READY_SECONDS)
            try:
                yield server
            finally:
                tell("Stopping ...")
