"""`evercore status`: whether a server runs, and what is stored."""

from __future__ import annotations

import asyncio
from typing import Any

import typer

from primitives.clock import to_iso
from serve.commands.output import JsonOption, console, print_json, table_of
from serve.configuration import Settings, load_settings
from serve.instance import running_server
from storage.sqlite import open_backend


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(as_json: JsonOption = False) -> None:
    """Show the server, the counts of each tenant, and unfinished jobs.

    Example: evercore status --json
    """
    settings = load_settings()
    server = running_server(settings.storage.evercore_data_dir)
    there = (settings.storage.evercore_data_dir / "documents.sqlite").exists()
    data: dict[str, Any] = {
        "server": {"url": server.url, "pid": server.pid, "since": to_iso(server.started_at)} if server else None,
        "data_dir": str(settings.storage.evercore_data_dir),
        "tenants": asyncio.run(_tenants(settings)) if there else {},
    }
    if as_json:
        print_json(data)
        return
    console.print(f"Server: {server.url} (process {server.pid})" if server else "Server: not running")
    console.print(f"Data:   {data['data_dir']}")
    for tenant, found in data["tenants"].items():
        console.print(table_of(f"Tenant {tenant}", found["counts"]))
        for job in found["jobs"]:
            console.print(f"Job {job['name']}: {job['state']}")
        if found["dead_letters"]:
            console.print(f"{found['dead_letters']} dead letters: `evercore replay` tries them again.")


async def _tenants(settings: Settings) -> dict[str, Any]:
    backend = open_backend(settings.storage)
    try:
        found = {}
        for tenant in await backend.tenants():
            stores = backend.tenant(tenant)
            jobs = await stores.ledger.jobs()
            found[tenant] = {
                "counts": await stores.documents.counts(),
                "jobs": [{"name": job.name, "state": job.state} for job in jobs],
                "dead_letters": len(await stores.ledger.dead_letters()),
            }
        return found
    finally:
        await backend.close()
