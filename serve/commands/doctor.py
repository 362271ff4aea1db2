"""`evercore doctor`: whether everything that a server needs is there, and what to do where it is not."""

from __future__ import annotations

import asyncio
import importlib.metadata
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from primitives.errors import EverCoreError
from serve.commands.backend import services_of
from serve.commands.client import ServerClient
from serve.commands.output import JsonOption, console, print_json
from serve.configuration import Settings, load_settings
from serve.instance import make_writable, running_server
from serve.preflight import require_free_port, require_space
from serve.probes import failing_parts

PACKAGES = ("ray", "fastapi", "pydantic", "onnxruntime", "numpy")
PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `advice` says what to do where it is not well."""

    name: str
    well: bool
    text: str
    advice: str = ""


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    serve_file: Annotated[
        Path | None, typer.Option(help="Also check this Serve file, whose misspelt keys `serve deploy` drops silently.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check settings, folder, disk, port, stores and model. Exit code 1 where something is wrong.

    Example: evercore doctor --serve-file serve/config/cpu.yaml
    """
    findings = examine()
    if serve_file is not None:
        findings.append(_serve_file(serve_file))
    well = all(finding.well for finding in findings)
    if as_json:
        print_json({"well": well, "findings": [asdict(finding) for finding in findings]})
    for finding in () if as_json else findings:
        mark = "[green]ok  [/]" if finding.well else "[bold red]BAD [/]"
        console.print(f"{mark} {finding.name:<10} {escape(finding.text)}")
        if finding.advice:
            console.print(f"                {escape(finding.advice)}")
    if not well:
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """All findings; settings come first, since nothing else can be looked at without them."""
    findings = [_versions()]
    try:
        settings = load_settings()
    except EverCoreError as fault:
        return [*findings, Finding("settings", False, fault.message, fault.hint)]
    folder = settings.storage.evercore_data_dir
    findings.append(Finding("settings", True, "all known and usable"))
    findings.append(_check("folder", f"{folder} is writable", lambda: make_writable(folder)))
    if not findings[-1].well:
        return findings
    free = shutil.disk_usage(folder).free // 2**20
    findings.append(_check("disk", f"{free:,} MiB free", lambda: require_space(folder)))
    findings.append(_server(settings))
    return [*findings, *asyncio.run(_stores(settings))]


def _versions() -> Finding:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    missing = []
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    text = ", ".join(f"{name} {version}" for name, version in found.items())
    if sys.version_info < PYTHON:
        return Finding("versions", False, text, "Python 3.11 or newer is needed.")
    if missing:
        return Finding(
            "versions", False, f"{text}; missing: {', '.join(missing)}", "Install again: `pip install evercore-ray`."
        )
    return Finding("versions", True, text)


def _check(name: str, text: str, work: Callable[[], object]) -> Finding:
    try:
        work()
    except EverCoreError as fault:
        return Finding(name, False, fault.message, fault.hint)
    return Finding(name, True, text)


def _serve_file(path: Path) -> Finding:
    def read() -> None:
        from serve.cli_serve_file import read_serve_file  # takes Ray Serve along, which costs a second

        read_serve_file(path)

    return _check("serve file", f"{path} has known keys and usable values only", read)


def _server(settings: Settings) -> Finding:
    """The running server where there is one, else whether its port is free."""
    server = running_server(settings.storage.evercore_data_dir)
    if server is None:
        host, port = settings.serve.evercore_host, settings.serve.evercore_port
        text = f"not running; port {port} on {host} is free"
        return _check("server", text, lambda: require_free_port(host, port))

    def ready() -> None:
        with ServerClient(server, settings.serve, timeout=15.0) as client:
            client.call("GET", "/health/ready")

    return _check("server", f"ready on {server.url} (process {server.pid})", ready)


async def _stores(settings: Settings) -> list[Finding]:
    """Stores and model, opened here: what the server would find."""
    try:
        async with services_of(settings) as services:
            parts = await failing_parts(services)
            identity = services.embedder.identity
            counts = await services.backend.tenant(services.default_tenant).documents.counts()
    except EverCoreError as fault:
        return [Finding("stores", False, fault.message, fault.hint)]
    findings = [Finding(name, not reason, reason or "works") for name, reason in parts.items()]
    findings.append(Finding("model", True, f"{identity.id}, {identity.dimension} dimensions"))
    waiting = counts.get("unindexed", 0)
    findings.append(
        Finding("backlog", True, f"{counts['raw_messages']:,} messages pending, {waiting:,} rows wait for indexing")
    )
    return findings
