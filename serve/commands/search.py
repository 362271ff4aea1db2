"""`evercore search`: through the server where one runs, else directly on the stores."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from serve.commands.backend import with_services
from serve.commands.client import ServerClient
from serve.commands.output import JsonOption, console, print_json
from serve.commands.owner import GroupOption, TenantOption, UserOption, owner_filter
from serve.configuration import Settings, load_settings
from serve.instance import running_server
from serve.presentation import as_data
from serve.query import make_query
from serve.rows import LISTS
from serve.services import Services
from storage.records import MemoryType

SHOWN_TYPES = "episodic_memory,atomic_fact,foresight,profile,raw_message"
TEXT_FIELDS = ("subject", "atomic_fact", "content", "task_intent", "name")


def register(app: typer.Typer) -> None:
    app.command("search")(search)


def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: UserOption = None,
    group: GroupOption = None,
    method: Annotated[str, typer.Option(help="keyword, vector, hybrid or agentic.")] = "hybrid",
    types: Annotated[str, typer.Option(help="Memory types, with commas.")] = SHOWN_TYPES,
    top_k: Annotated[int, typer.Option(help="Hits of each type, 1 to 100; -1: all above the threshold.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each arm ranked the hits.")] = False,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search memories; works with and without a running server.

    Example: evercore search "where does she want to travel" --user alice
    """
    settings = load_settings()
    body = {
        "query": query,
        "method": method,
        "memory_types": [name.strip() for name in types.split(",") if name.strip()],
        "filters": owner_filter(user, group),
        "top_k": top_k,
        "explain": explain,
    }
    data = run_search(settings, body, tenant=tenant)
    if as_json:
        print_json(data)
    else:
        print_hits(data)


def run_search(settings: Settings, body: dict[str, Any], *, tenant: str | None) -> dict[str, Any]:
    """The answer of /search, from the server or made here. A tenant that is named is searched here."""
    server = running_server(settings.storage.evercore_data_dir)
    if server is not None and tenant is None:
        with ServerClient(server, settings.serve) as client:
            found: dict[str, Any] = client.call("POST", "/api/v1/memories/search", body)
            return found
    query = make_query(text=body["query"], **{name: value for name, value in body.items() if name != "query"})

    async def work(services: Services) -> dict[str, Any]:
        retriever = await services.retriever(tenant or services.default_tenant)
        return as_data(query, await retriever.search(query))

    return with_services(settings, work)


def print_hits(data: dict[str, Any], *, most: int = 10) -> None:
    """The best hits of all types together, each with where it comes from."""
    hits = [hit for kind, name in LISTS.items() for hit in hits_of(data, kind, name)]
    hits.sort(key=lambda hit: -hit["score"])
    for hit in hits[:most]:
        when = (hit["timestamp"] or "undated")[:16].replace("T", " ")
        console.print(f"[bold]{hit['score']:.3f}[/]  {escape(text_of(hit))}", soft_wrap=True)
        sources = hit["source_message_ids"]
        more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
        console.print(
            f"       [dim]{hit['memory_type']}, {when}, from {escape(', '.join(sources[:3]))}{more}[/]", soft_wrap=True
        )
    if not hits:
        console.print("Nothing found.")
    for part, reason in data["degraded"].items():
        console.print(f"[yellow]Without {escape(part)}: {escape(reason)}[/]")


def hits_of(data: dict[str, Any], kind: MemoryType, name: str) -> list[dict[str, Any]]:
    if kind in (MemoryType.AGENT_CASE, MemoryType.AGENT_SKILL):
        found: list[dict[str, Any]] = data["agent_memory"][name.removeprefix("agent_")]
        return found
    return list(data[name])


def text_of(hit: dict[str, Any]) -> str:
    """One line that says what a hit is."""
    if hit["memory_type"] == "profile":
        return "; ".join(item["description"] for item in hit["explicit_info"][:5])
    text = next((str(hit[name]) for name in TEXT_FIELDS if hit.get(name)), "")
    return " ".join(text.split())[:200]
