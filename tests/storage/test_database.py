from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from primitives.errors import ConfigurationError, InvalidInputError, StoreError
from storage.sqlite import schema
from storage.sqlite.backup import backup, migrate
from storage.sqlite.database import Database
from tests.support.messages import TENANT, message
from tests.support.tools import backend_in


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)")


async def test_writes_share_commits_and_fail_alone(tmp_path: Path) -> None:
    database = Database(tmp_path / "x.sqlite", prepare=table)

    def insert(n: int) -> object:
        return database.write(lambda c: c.execute("INSERT INTO t VALUES (?)", (n,)).lastrowid)

    outcomes = await asyncio.gather(*(insert(n % 40) for n in range(80)), return_exceptions=True)  # type: ignore[arg-type]
    assert sum(isinstance(o, StoreError) for o in outcomes) == 40
    assert (await database.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()))[0] == 40
    await database.close()
    for use in (database.write, database.read):
        with pytest.raises(StoreError, match="closed"):
            await use(table)


async def test_readers_cannot_write(tmp_path: Path) -> None:
    database = Database(tmp_path / "x.sqlite", prepare=table)
    await database.read(lambda c: c.execute("INSERT INTO t VALUES (1)"))
    assert (await database.read(lambda c: c.execute("SELECT count(*) FROM t").fetchone()))[0] == 0
    await database.close()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"not a database at all, " * 100)
    with pytest.raises(StoreError, match="damaged"):
        Database(tmp_path / "x.sqlite", prepare=table)


async def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("here already")
    with pytest.raises(StoreError):
        backend_in(tmp_path / "data")


async def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    backend = backend_in(tmp_path / "data")
    documents = backend.tenant(TENANT).documents
    await documents.add_messages([message(0, "kept")])

    def limit(connection: sqlite3.Connection) -> None:  # SQLite's own limit gives the error that a full disk gives
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    await backend.documents_file.write(limit)
    with pytest.raises(StoreError, match="disk is full"):
        await documents.add_messages([message(i, "x" * 50_000) for i in range(1, 20)])
    assert [m.text for m in await documents.pending_messages(message(0, "").conversation_id)] == ["kept"]
    await documents.add_messages([message(99, "small still fits")])
    await backend.close()


async def test_schema_versions(tmp_path: Path) -> None:
    await backend_in(tmp_path / "data").close()
    path = tmp_path / "data" / "documents.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    with pytest.raises(ConfigurationError, match="newer"):
        backend_in(tmp_path / "data")


async def test_migrate_is_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await backend_in(tmp_path / "data").close()
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(ConfigurationError, match="evercore migrate"):
        backend_in(tmp_path / "data")
    monkeypatch.setattr(schema, "MIGRATIONS", {1: "CREATE TABLE extra (n);\nSELECT broken;\n"})
    with pytest.raises(StoreError):
        migrate(tmp_path / "data")
    monkeypatch.setattr(schema, "MIGRATIONS", {1: "CREATE TABLE extra (n);\n"})
    assert migrate(tmp_path / "data") == (1, 2)
    assert migrate(tmp_path / "data") == (2, 2)


async def test_backup_while_in_use(tmp_path: Path) -> None:
    backend = backend_in(tmp_path / "data")
    documents = backend.tenant(TENANT).documents

    async def keep_adding() -> None:
        for i in range(200):
            await documents.add_messages([message(i, f"text {i}")])

    await documents.add_messages([message(1000, "before")])
    adding = asyncio.create_task(keep_adding())
    await asyncio.to_thread(backup, tmp_path / "data", tmp_path / "copy")
    await adding
    with pytest.raises(InvalidInputError, match="empty"):
        backup(tmp_path / "data", tmp_path / "copy")
    await backend.close()
    restored = backend_in(tmp_path / "copy")
    rows = await restored.tenant(TENANT).documents.pending_messages(message(0, "").conversation_id)
    assert "before" in [row.text for row in rows]
    await restored.close()
