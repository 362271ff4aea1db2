"""One server for one data folder: the lock that keeps a second one out, and the file that tells where it runs."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import psutil

from primitives.clock import now_ms
from primitives.errors import ConfigurationError, StoreError

LOCK, RUN_FILE = "lock", "run.json"


@dataclass(frozen=True)
class RunningServer:
    """Where a server runs."""

    pid: int
    host: str
    port: int
    ray_address: str
    started_at: int
    process_started: float
    """The process's own start, since process ids are used again."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def lives(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.process_started) < 1 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


def running_server(data_dir: Path) -> RunningServer | None:
    """The living server of this data folder, if there is one."""
    try:
        found = RunningServer(**json.loads((data_dir / RUN_FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return found if found.lives() else None


class Instance:
    """Holds the data folder for this process: `with Instance(folder) as instance: ... instance.announce(...)`."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._descriptor: int | None = None

    def __enter__(self) -> Instance:
        make_writable(self._folder)
        descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # The kernel frees the lock with the process, so a crash never leaves the folder locked. Children must not
            # inherit the descriptor: one that outlives its parent would keep it.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(descriptor)
            there = running_server(self._folder)
            where = f" (process {there.pid}, {there.url})" if there else ""
            raise ConfigurationError(
                f"another server already uses {self._folder}{where}",
                hint="Stop it with `evercore down`, or set EVERCORE_DATA_DIR to another folder.",
            ) from fault
        self._descriptor = descriptor
        return self

    def announce(self, *, host: str, port: int, ray_address: str) -> RunningServer:
        """Write where this server runs, for the other commands."""
        server = RunningServer(os.getpid(), host, port, ray_address, now_ms(), psutil.Process().create_time())
        partial = self._folder / f"{RUN_FILE}.partial"
        partial.write_text(json.dumps(asdict(server)) + "\n", encoding="utf-8")
        os.replace(partial, self._folder / RUN_FILE)
        return server

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            (self._folder / RUN_FILE).unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def make_writable(folder: Path) -> None:
    """Make the folder, or say why nothing can be written there."""
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as fault:
        raise StoreError(
            f"cannot write to the data folder {folder}: {fault.strerror or fault}",
            hint="Make it writable, or set EVERCORE_DATA_DIR to another folder.",
        ) from fault
