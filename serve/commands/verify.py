"""`evercore verify`: whether the documents and both indexes agree."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines.maintenance import verify as verify_stores
from serve.commands.backend import with_services
from serve.commands.output import JsonOption, console, print_json
from serve.commands.owner import TenantOption
from serve.configuration import load_settings
from serve.services import Services

SHOWN = 20


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Bring the indexes in line with the documents.")] = False,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare documents and both indexes row by row. Exit code 1 where they differ and were not repaired.

    Example: evercore verify --repair
    """
    settings = load_settings()

    async def work(services: Services) -> dict[str, Any]:
        tenants = [tenant] if tenant is not None else await services.backend.tenants()
        return {
            name: (await verify_stores(await services.tools(name), repair=repair)).to_dict()
            for name in tenants or [services.default_tenant]
        }

    reports = with_services(settings, work)
    left = sum(_left(report, repair=repair) for report in reports.values())
    if as_json:
        print_json({"tenants": reports, "differences": sum(len(r["differences"]) for r in reports.values())})
    for name, report in reports.items() if not as_json else ():
        checked = ", ".join(f"{count:,} rows of {index}" for index, count in report["checked"].items()) or "nothing yet"
        console.print(f"Tenant {escape(name)}: compared {checked}; {report['pending']:,} rows wait for indexing")
        for difference in report["differences"][:SHOWN]:
            console.print(f"  {difference['where']}: {difference['what']} {difference['id']}")
        console.print(f"  {len(report['differences']):,} differences, {report['repaired']:,} repaired")
    if left:
        raise typer.Exit(1)


def _left(report: dict[str, Any], *, repair: bool) -> int:
    return len(report["differences"]) - (report["repaired"] if repair else 0)
