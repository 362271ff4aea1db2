"""The embedded default: SQLite for documents, keywords, vectors, leases and the ledger."""

from __future__ import annotations

from storage.settings import StorageSettings
from storage.sqlite.backend import SqliteBackend


def open_backend(settings: StorageSettings) -> SqliteBackend:
    """Open (or make) the stores under EVERCORE_DATA_DIR. StoreError, ConfigurationError say what is wrong."""
    return SqliteBackend(settings)
