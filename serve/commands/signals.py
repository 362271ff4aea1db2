"""Ctrl-C and SIGTERM as an orderly end: KeyboardInterrupt once, so that everything is cleaned up on the way out."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import typer

from serve.commands.output import console

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Takes both signals while the block runs, and ends the program with 0 where one came.

    Further signals while stopping are ignored, since a stop that is broken off would leave processes.
    """

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self._before = {number: signal.getsignal(number) for number in NUMBERS}
        self.install()
        return self

    def install(self) -> None:
        """Take the signals, again where something else took them meanwhile."""
        for number in NUMBERS:
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if isinstance(fault, KeyboardInterrupt) and self.stopped.is_set():
            console.print("Stopped.")
            raise typer.Exit(0) from None
