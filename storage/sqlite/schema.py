"""The tables of the embedded document store, their version, and the way from one version to the next."""

from __future__ import annotations

import sqlite3

from primitives.errors import ConfigurationError

VERSION = 1

TABLES = """
CREATE TABLE rows (                       -- raw messages and memories, told apart by memory_type
    tenant_id TEXT NOT NULL, id TEXT NOT NULL, memory_type TEXT NOT NULL, partition TEXT NOT NULL,
    user_id TEXT, group_id TEXT, session_id TEXT, timestamp INTEGER, order_time INTEGER NOT NULL,
    place INTEGER NOT NULL, sender_ids TEXT NOT NULL, tags TEXT NOT NULL,
    conversation_id TEXT,                 -- of raw messages
    memcell_id TEXT,                      -- of raw messages: NULL while they are pending
    vector_wanted INTEGER NOT NULL, revision INTEGER NOT NULL, index_state TEXT NOT NULL,
    unindexed INTEGER NOT NULL,           -- 1 while some active index generation lacks this revision
    imported_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, deleted_at INTEGER, purged INTEGER NOT NULL DEFAULT 0,
    body TEXT NOT NULL, PRIMARY KEY (tenant_id, id)
);
CREATE INDEX rows_of_owner ON rows (tenant_id, partition, memory_type, order_time, place) WHERE deleted_at IS NULL;
CREATE INDEX rows_pending ON rows (tenant_id, conversation_id, order_time, place, id)
    WHERE memory_type = 'raw_message' AND memcell_id IS NULL AND deleted_at IS NULL;
CREATE INDEX rows_unindexed ON rows (tenant_id, changed_at) WHERE unindexed = 1 AND deleted_at IS NULL;
CREATE INDEX rows_unpurged ON rows (tenant_id, id) WHERE deleted_at IS NOT NULL AND purged = 0;
CREATE INDEX rows_of_memcell ON rows (memcell_id) WHERE memcell_id IS NOT NULL;

CREATE TABLE conversations (
    tenant_id TEXT NOT NULL, id TEXT NOT NULL, user_id TEXT, group_id TEXT, session_id TEXT, partition TEXT NOT NULL,
    next_place INTEGER NOT NULL, last_added_at INTEGER NOT NULL, PRIMARY KEY (tenant_id, id)
);
CREATE TABLE owners (tenant_id TEXT NOT NULL, partition TEXT NOT NULL, epoch INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, partition));

CREATE TABLE memcells (
    tenant_id TEXT NOT NULL, id TEXT NOT NULL, conversation_id TEXT NOT NULL, partition TEXT NOT NULL,
    state TEXT NOT NULL, generation INTEGER NOT NULL, order_time INTEGER NOT NULL, message_count INTEGER NOT NULL,
    imported_at INTEGER NOT NULL, deleted_at INTEGER, result TEXT, children TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX memcells_unfinished ON memcells (tenant_id, conversation_id) WHERE state != 'indexed' AND deleted_at IS NULL;

CREATE TABLE profile_evidence (
    tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, memcell_id TEXT NOT NULL, ordinal INTEGER NOT NULL,
    order_time INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (tenant_id, user_id, memcell_id, ordinal)
);
CREATE INDEX evidence_of_memcell ON profile_evidence (tenant_id, memcell_id);
CREATE TABLE profiles (tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, version INTEGER NOT NULL, folded INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id));
CREATE INDEX profiles_stale ON profiles (tenant_id) WHERE version != folded;

CREATE TABLE forgotten (                  -- people whose rows were deleted: no MemCell cut before brings them back
    tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (tenant_id, user_id)
);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL);
CREATE TABLE generations (name TEXT PRIMARY KEY, kind TEXT NOT NULL, live INTEGER NOT NULL,
    model_id TEXT NOT NULL, dimension INTEGER NOT NULL);
CREATE TABLE resources (tenant_id TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (tenant_id, kind, id));

CREATE TABLE jobs (tenant_id TEXT NOT NULL, name TEXT NOT NULL, arguments TEXT NOT NULL, state TEXT NOT NULL,
    report TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (tenant_id, name));
CREATE TABLE import_batches (tenant_id TEXT NOT NULL, job TEXT NOT NULL, file TEXT NOT NULL, number INTEGER NOT NULL,
    counts TEXT NOT NULL, PRIMARY KEY (tenant_id, job, file, number));
CREATE TABLE job_conversations (tenant_id TEXT NOT NULL, job TEXT NOT NULL, conversation_id TEXT NOT NULL,
    planned INTEGER NOT NULL, PRIMARY KEY (tenant_id, job, conversation_id));
CREATE TABLE windows (tenant_id TEXT NOT NULL, job TEXT NOT NULL, number INTEGER NOT NULL, conversation_id TEXT NOT NULL,
    span TEXT NOT NULL, messages INTEGER NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL, counts TEXT NOT NULL,
    PRIMARY KEY (tenant_id, job, number));
CREATE INDEX windows_by_state ON windows (tenant_id, job, state, number);
CREATE TABLE dead_letters (number INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, job TEXT NOT NULL,
    body TEXT NOT NULL, created_at INTEGER NOT NULL, resolved_at INTEGER);
"""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file; refuse a file of another version, naming the way out."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version_of(connection)
        if found == 0:
            for statement in _statements(TABLES):
                connection.execute(statement)
            connection.execute("INSERT INTO generations VALUES ('k1', 'keyword', 1, '', 0)")
            connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if found not in (0, VERSION):
        newer = found > VERSION
        raise ConfigurationError(
            f"the data folder has schema version {found}, this program has {VERSION}",
            hint="Install a newer evercore-ray." if newer else "Run `evercore backup`, then `evercore migrate`.",
        )


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


MIGRATIONS: dict[int, str] = {}
"""Schema version -> the statements that lead from it to the next one."""


def migrate(connection: sqlite3.Connection) -> tuple[int, int]:
    """Bring a file to VERSION, all steps in one transaction; returns the versions before and after."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = version_of(connection)
        for step in range(before, VERSION) if before else ():
            for statement in _statements(MIGRATIONS[step]):
                connection.execute(statement)
        if before:
            connection.execute(f"PRAGMA user_version={max(before, VERSION)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return before, max(before, VERSION)


def _statements(script: str) -> list[str]:
    """executescript would commit on its own, so the script is run one by one inside our transaction."""
    out, current = [], ""
    for line in script.splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            out.append(current)
            current = ""
    return out
