"""The job ledger in the embedded document store: what was imported, planned, built, and what failed."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from primitives.clock import now_ms
from primitives.errors import ConflictError
from storage.ports import Job, Span, Window
from storage.sqlite.codec import dumps, id_list
from storage.sqlite.database import Database


class SqliteLedger:
    """See storage.ports.Ledger."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._db = database
        self.tenant_id = tenant_id

    async def open_job(self, name: str, arguments: dict[str, Any]) -> Job:
        def work(connection: sqlite3.Connection) -> Job:
            found = self._jobs(connection, name)
            if found and found[0].arguments != orjson.loads(orjson.dumps(arguments)):
                raise ConflictError(
                    f"job {name!r} exists with other arguments", hint="Choose another --job name.",
                    details={"stored": found[0].arguments},
                )  # fmt: skip
            if not found:
                now = now_ms()
                connection.execute(
                    "INSERT INTO jobs VALUES (?, ?, ?, 'importing', '{}', ?, ?)",
                    (self.tenant_id, name, dumps(arguments), now, now),
                )
                found = self._jobs(connection, name)
            return found[0]

        return await self._db.write(work)

    def _jobs(self, connection: sqlite3.Connection, name: str | None = None) -> list[Job]:
        rows = connection.execute(
            "SELECT name, arguments, state, report, created_at, updated_at FROM jobs WHERE tenant_id = ? "
            "AND (?2 IS NULL OR name = ?2) ORDER BY created_at, name",
            (self.tenant_id, name),
        )
        return [Job(row[0], orjson.loads(row[1]), row[2], orjson.loads(row[3]), row[4], row[5]) for row in rows]

    async def job(self, name: str) -> Job | None:
        found = await self._db.read(lambda connection: self._jobs(connection, name))
        return found[0] if found else None

    async def jobs(self) -> list[Job]:
        return await self._db.read(self._jobs)

    async def update_job(self, name: str, *, state: str | None = None, report: dict[str, Any] | None = None) -> None:
        await self._db.write(
            lambda c: c.execute(
                "UPDATE jobs SET state = ifnull(?, state), report = ifnull(?, report), updated_at = ? "
                "WHERE tenant_id = ? AND name = ?",
                (state, dumps(report) if report is not None else None, now_ms(), self.tenant_id, name),
            )
        )

    async def imported_batches(self, job: str, file: str) -> set[int]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT number FROM import_batches WHERE tenant_id = ? AND job = ? AND file = ?",
                (self.tenant_id, job, file),
            ).fetchall()
        )
        return {row[0] for row in rows}

    async def forget_import(self, job: str) -> None:
        """Read the files of a finished job anew: its batches, conversations and windows are counted from nothing."""

        def work(connection: sqlite3.Connection) -> None:
            for table in ("import_batches", "job_conversations", "windows"):
                connection.execute(f"DELETE FROM {table} WHERE tenant_id = ? AND job = ?", (self.tenant_id, job))
            connection.execute(
                "UPDATE jobs SET state = 'importing', updated_at = ? WHERE tenant_id = ? AND name = ?",
                (now_ms(), self.tenant_id, job),
            )

        await self._db.write(work)

    async def import_counts(self, job: str) -> dict[str, int]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT key, sum(value) FROM import_batches, json_each(counts) WHERE tenant_id = ? AND job = ? GROUP BY key",
                (self.tenant_id, job),
            ).fetchall()
        )
        return dict(rows)

    async def job_conversations(self, job: str) -> list[str]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT conversation_id FROM job_conversations WHERE tenant_id = ? AND job = ? ORDER BY conversation_id",
                (self.tenant_id, job),
            ).fetchall()
        )
        return [row[0] for row in rows]

    async def unplanned(self, job: str, *, limit: int = 1_000) -> list[str]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT conversation_id FROM job_conversations WHERE tenant_id = ? AND job = ? AND planned = 0 "
                "ORDER BY conversation_id LIMIT ?",
                (self.tenant_id, job, limit),
            ).fetchall()
        )
        return [row[0] for row in rows]

    async def plan(self, job: str, windows: Sequence[Window], *, conversations: Sequence[str]) -> None:
        """Windows are numbered here, behind those that are there."""

        def work(connection: sqlite3.Connection) -> None:
            start = connection.execute(
                "SELECT ifnull(max(number), -1) + 1 FROM windows WHERE tenant_id = ? AND job = ?", (self.tenant_id, job)
            ).fetchone()[0]
            connection.executemany(
                "INSERT INTO windows VALUES (?, ?, ?, ?, ?, ?, 'planned', '', '{}')",
                [
                    (self.tenant_id, job, start + i, w.conversation_id, dumps([w.span.first, w.span.last]), w.messages)
                    for i, w in enumerate(windows)
                ],
            )
            connection.execute(
                "UPDATE job_conversations SET planned = 1 WHERE tenant_id = ? AND job = ? "
                "AND conversation_id IN (SELECT value FROM json_each(?))",
                (self.tenant_id, job, id_list(conversations)),
            )

        await self._db.write(work)

    async def windows(self, job: str, *, state: str = "planned", after: int = -1, limit: int = 10_000) -> list[Window]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT number, conversation_id, span, messages, state, error, counts FROM windows "
                "WHERE tenant_id = ? AND job = ? AND state = ? AND number > ? ORDER BY number LIMIT ?",
                (self.tenant_id, job, state, after, limit),
            ).fetchall()
        )
        found = []
        for number, conversation_id, span, messages, window_state, error, counts in rows:
            first, last = (tuple(end) for end in orjson.loads(span))
            found.append(
                Window(number, conversation_id, Span(first, last), messages, window_state, error, orjson.loads(counts))
            )
        return found

    async def finish_windows(self, job: str, outcomes: Sequence[Window]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for outcome in outcomes:
                changed = connection.execute(
                    "UPDATE windows SET state = ?, error = ?, counts = ? "
                    "WHERE tenant_id = ? AND job = ? AND number = ? AND state = 'planned'",
                    (outcome.state, outcome.error, dumps(outcome.counts), self.tenant_id, job, outcome.number),
                ).rowcount
                if outcome.state == "failed" and changed:
                    letter = {
                        "window": outcome.number, "conversation_id": outcome.conversation_id,
                        "span": [outcome.span.first, outcome.span.last], "error": outcome.error,
                    }  # fmt: skip
                    self._letter(connection, job, letter)

        await self._db.write(work)

    async def window_counts(self, job: str) -> dict[str, int]:
        """Windows by state (`planned`, `done`, `failed`), and the sums of what the outcomes counted."""

        def work(connection: sqlite3.Connection) -> dict[str, int]:
            found: Counter[str] = Counter()
            for state, number, messages in connection.execute(
                "SELECT state, count(*), sum(messages) FROM windows WHERE tenant_id = ? AND job = ? GROUP BY state",
                (self.tenant_id, job),
            ):
                found[state] += number
                found[f"{state}_messages"] += messages
            for key, value in connection.execute(
                "SELECT key, sum(value) FROM windows, json_each(counts) WHERE tenant_id = ? AND job = ? GROUP BY key",
                (self.tenant_id, job),
            ):
                found[key] += value
            return dict(found)

        return await self._db.read(work)

    def _letter(self, connection: sqlite3.Connection, job: str, letter: dict[str, Any]) -> None:
        connection.execute(
            "INSERT INTO dead_letters (tenant_id, job, body, created_at) VALUES (?, ?, ?, ?)",
            (self.tenant_id, job, dumps(letter), now_ms()),
        )

    async def add_dead_letters(self, job: str, letters: Sequence[dict[str, Any]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for letter in letters:
                self._letter(connection, job, letter)

        await self._db.write(work)

    async def dead_letters(self, *, job: str | None = None, limit: int = 1_000) -> list[dict[str, Any]]:
        rows = await self._db.read(
            lambda c: c.execute(
                "SELECT number, job, body, created_at FROM dead_letters WHERE tenant_id = ?1 AND resolved_at IS NULL "
                "AND (?2 IS NULL OR job = ?2) ORDER BY number LIMIT ?3",
                (self.tenant_id, job, limit),
            ).fetchall()
        )
        return [{"id": n, "job": j, "created_at": at} | orjson.loads(body) for n, j, body, at in rows]

    async def resolve_dead_letters(self, ids: Sequence[int]) -> None:
        await self._db.write(
            lambda c: c.execute(
                "UPDATE dead_letters SET resolved_at = ? WHERE tenant_id = ? AND number IN (SELECT value FROM json_each(?))",
                (now_ms(), self.tenant_id, dumps(list(ids))),
            )
        )
