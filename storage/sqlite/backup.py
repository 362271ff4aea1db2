"""A consistent copy of the embedded stores while they are in use, and the way to a newer schema."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from primitives.errors import InvalidInputError, NotFoundError
from storage.sqlite import schema
from storage.sqlite.backend import DOCUMENTS, KEYWORD, VECTOR
from storage.sqlite.database import translated


def backup(folder: Path, target: Path) -> dict[str, int]:
    """Copy all stores of `folder` into the new or empty folder `target`; returns bytes by file.

    Documents are copied first: the indexes may then be ahead of them, and what they are ahead by is never shown, since
    search reads rows from the documents. `evercore verify --repair` evens that out after a restore.
    Source: SQLite's online backup, https://www.sqlite.org/backup.html.
    """
    if not (folder / DOCUMENTS).exists():
        raise NotFoundError(f"no stores in {folder}", hint="Check EVERCORE_DATA_DIR.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"{target} is not an empty folder", hint="Name a new folder.")
    sizes = {}
    with translated(target):
        target.mkdir(parents=True, exist_ok=True)
        for name in (DOCUMENTS, KEYWORD, VECTOR):
            if (folder / name).exists():
                partial = target / f"{name}.partial"
                with (
                    contextlib.closing(sqlite3.connect(folder / name, timeout=60)) as source,
                    contextlib.closing(sqlite3.connect(partial)) as copy,
                ):
                    source.backup(copy)
                os.replace(partial, target / name)
                sizes[name] = (target / name).stat().st_size
    return sizes


def migrate(folder: Path) -> tuple[int, int]:
    """Bring the document store of `folder` to this program's schema; returns the versions before and after."""
    path = folder / DOCUMENTS
    if not path.exists():
        raise NotFoundError(f"no stores in {folder}", hint="Check EVERCORE_DATA_DIR.")
    with translated(path), contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
        return schema.migrate(connection)
