"""`evercore flush`: make memories of what is pending."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from primitives.errors import InvalidInputError
from serve.api.memories_write import run_flush
from serve.commands.backend import with_services
from serve.commands.client import ServerClient
from serve.commands.output import JsonOption, console, print_json, table_of
from serve.commands.owner import GroupOption, TenantOption, UserOption, owner_filter
from serve.configuration import load_settings
from serve.instance import running_server
from serve.services import Services


def register(app: typer.Typer) -> None:
    app.command("flush")(flush)


def flush(
    user: UserOption = None,
    group: GroupOption = None,
    session: Annotated[str | None, typer.Option(help="One session only.")] = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make memories of the pending messages of a person or a group.

    Example: evercore flush --user alice
    """
    settings = load_settings()
    if user is not None and group is not None:
        raise InvalidInputError("both --user and --group are given", hint="Flush one after the other.")
    owner = owner_filter(user, group)
    request: dict[str, Any] = owner | {"session_id": session}
    server = running_server(settings.storage.evercore_data_dir)
    if server is not None and tenant is None:
        path = "/api/v1/memories/flush" if user is not None else "/api/v1/memories/group/flush"
        with ServerClient(server, settings.serve) as client:
            report = client.call("POST", path, request | {"wait": True})
    else:

        async def work(services: Services) -> dict[str, Any]:
            tools = await services.tools(tenant or services.default_tenant)
            return await run_flush(tools, request, metrics=services.metrics)

        report = with_services(settings, work)
    if as_json:
        print_json(report)
    else:
        console.print(table_of(report["status"], {"MemCells": report["memcells"], **report["memories"]}))
        for kind, reason in report["skipped"].items():
            console.print(f"[dim]Not made: {kind}: {reason}[/]")
