"""Work that a request starts and does not wait for. What became of it is kept in the document store.

A task whose process died is run again when somebody asks for it: flushing is the only kind, and flushing twice makes
nothing twice. While a task runs its entry is touched, so that a live one is told from an abandoned one.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from primitives.clock import now_ms
from primitives.errors import EverCoreError, NotFoundError
from storage.ports import Documents

KIND = "task"
TOUCH_SECONDS = 10.0
ABANDONED_MS = 60_000

Work = Callable[[], Awaitable[dict[str, Any]]]

logger = logging.getLogger(__name__)


class Tasks:
    """The tasks of one process."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, documents: Documents, *, request: dict[str, Any], work: Work) -> str:
        """Begin `work` and return the task's id; `request` is what it takes to begin it anew."""
        task_id = uuid.uuid4().hex
        await documents.put_resource(KIND, task_id, {"status": "queued", "request": request})
        self._launch(documents, task_id, work)
        return task_id

    async def state(
        self, documents: Documents, task_id: str, *, resume: Callable[[dict[str, Any]], Work]
    ) -> dict[str, Any]:
        """How far a task is. NotFoundError where there is none of that id."""
        found = await documents.resource(KIND, task_id)
        if found is None:
            raise NotFoundError(f"no task {task_id}")
        unfinished = found["status"] in ("queued", "running")
        if unfinished and task_id not in self._running and now_ms() - int(found["updated_at"]) > ABANDONED_MS:
            logger.warning("task %s was left by a process that is gone; it runs again", task_id)
            self._launch(documents, task_id, resume(found["request"]))
        return found

    def _launch(self, documents: Documents, task_id: str, work: Work) -> None:
        task = asyncio.create_task(self._run(documents, task_id, work), name=f"task-{task_id}")
        self._running[task_id] = task
        task.add_done_callback(lambda _: self._running.pop(task_id, None))

    async def _run(self, documents: Documents, task_id: str, work: Work) -> None:
        await documents.put_resource(KIND, task_id, {"status": "running"})
        touching = asyncio.create_task(_touch(documents, task_id))
        try:
            outcome: dict[str, Any] = {"status": "succeeded", "result": await work()}
        except EverCoreError as fault:
            outcome = {"status": "failed", "error": {"code": fault.code, "message": fault.message, "hint": fault.hint}}
        except Exception:
            logger.exception("task %s failed", task_id)
            outcome = {"status": "failed", "error": {"code": "INTERNAL_ERROR", "message": "the server is at fault"}}
        finally:
            touching.cancel()
        await documents.put_resource(KIND, task_id, outcome)

    async def drain(self, seconds: float) -> None:
        """Wait for running tasks; those that take longer are cut off, and resume when somebody asks for them."""
        if self._running:
            _, late = await asyncio.wait(list(self._running.values()), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


async def _touch(documents: Documents, task_id: str) -> None:
    while True:
        await asyncio.sleep(TOUCH_SECONDS)
        await documents.put_resource(KIND, task_id, {})
