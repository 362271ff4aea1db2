"""What must be true before a server starts, said in one sentence where it is not."""

from __future__ import annotations

import errno
import shutil
import socket
from pathlib import Path

from models.factory import build_embedder
from primitives.errors import ConfigurationError, StoreError
from serve.configuration import Settings
from storage.sqlite import open_backend

LEAST_FREE_BYTES = 512 * 2**20
"""SQLite's write-ahead logs and Ray's spill files need some room beside the data."""


def require_free_port(host: str, port: int) -> None:
    """ConfigurationError where somebody listens on the port already."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as fault:
            if fault.errno == errno.EADDRINUSE:
                raise ConfigurationError(
                    f"port {port} on {host} is in use by another program",
                    hint="Stop that program, or set EVERCORE_PORT to a free port.",
                ) from fault
            raise ConfigurationError(
                f"cannot listen on {host}:{port}: {fault.strerror or fault}",
                hint="Check EVERCORE_HOST and EVERCORE_PORT.",
            ) from fault


def require_space(folder: Path, *, least: int = LEAST_FREE_BYTES) -> None:
    """StoreError where the disk of `folder` is nearly full."""
    free = shutil.disk_usage(folder).free
    if free < least:
        raise StoreError(
            f"only {free // 2**20} MiB are free on the disk of {folder}, at least {least // 2**20} MiB are needed",
            hint="Free some space, or set EVERCORE_DATA_DIR to another disk.",
        )


async def require_own_vectors(settings: Settings) -> None:
    """ConfigurationError where the stored vectors are another model's: they could not be compared with a query's."""
    embedder = build_embedder(settings.models)
    backend = open_backend(settings.storage)
    try:
        documents = backend.tenant(settings.storage.evercore_tenant).documents
        live = [g.model_id for g in await documents.generations() if g.kind == "vector" and g.live]
    finally:
        await backend.close()
        await embedder.close()
    if live and live[0] != embedder.identity.space:
        raise ConfigurationError(
            f"the stored vectors were made by {live[0]}, and the configured model is {embedder.identity.space}",
            hint="Run `evercore rebuild-index --index vector`, or set VECTORIZE_PROVIDER back.",
        )
