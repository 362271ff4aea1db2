"""A Ray of our own for one command, or one that runs already. It leaves no process and no file behind.

`serve.ray_environment` must have been called before this module is imported.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any

import psutil
import ray
from ray._private import worker
from ray._private.ray_logging import global_worker_stdstream_dispatcher

from primitives.errors import UnavailableError
from serve.configuration import Settings
from serve.ray_folder import new_folder, remove_folder

NAMESPACE = "evercore"
STOP_SECONDS = 15.0
START_TRIES = 2
"""Ray gives its node 30 s, which a busy machine may miss once."""

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def own_ray(settings: Settings) -> Iterator[str]:
    """Start a local Ray and yield its address; everything of it is gone when the block ends."""
    folder = new_folder()
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    try:
        for left in reversed(range(START_TRIES)):
            try:
                _start(settings, folder)
                break
            except UnavailableError:
                if not left:
                    raise
                logger.warning("Ray did not start; once more", exc_info=True)
                _stop(before)
        _silence_workers()
        yield str(ray.get_runtime_context().gcs_address)
    finally:
        _stop(before)
        remove_folder(folder)


def _stop(before: set[int]) -> None:
    """Ray and all processes of it, those of a start that failed too."""
    started = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    ray.shutdown()
    _end(started)


def _start(settings: Settings, folder: str) -> None:
    try:
        with _quiet():
            ray.init(
                address="local",
                num_cpus=max(2, os.cpu_count() or 1),
                include_dashboard=False,
                object_store_memory=settings.serve.evercore_object_store_bytes,
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=folder,
            )
    except Exception as fault:  # Ray raises plain ones, as where its node is not up within 30 s
        raise UnavailableError(
            f"Ray did not start: {str(fault).splitlines()[0]}",
            hint="`evercore doctor` checks what it needs. On a very busy machine, try again.",
        ) from fault


@contextlib.contextmanager
def joined_ray(address: str, *, hint: str) -> Iterator[str]:
    """Connect to a Ray that runs already; `hint` says what to look at where it cannot be reached."""
    try:
        with _quiet():
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as fault:
        raise UnavailableError(f"cannot reach the Ray at {address}: {str(fault).splitlines()[0]}", hint=hint) from fault
    _silence_workers()
    try:
        yield address
    finally:
        ray.shutdown()


def _silence_workers() -> None:
    """Ray prints what its system processes report to standard output, where --json has one document and nothing else.

    Everything of it stands in Ray's log files too. There is no public switch: log_to_driver leaves these messages on.
    """
    worker.print_to_stdstream = _say_nothing
    global_worker_stdstream_dispatcher.remove_handler("ray_print_logs")


def _say_nothing(*_: Any, **__: Any) -> None:
    """In place of Ray's printing."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray warns of its own future defaults while it starts; none of that is for a user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _end(processes: list[psutil.Process]) -> None:
    """Wait for the processes that this Ray had, and kill those that stay, by their ids."""
    _, alive = psutil.wait_procs(processes, timeout=STOP_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            logger.warning("process %d of Ray did not end and is killed", process.pid)
            process.kill()
    psutil.wait_procs(alive, timeout=5)
