"""The server's port on ::1 as well: bytes that come in there are handed to 127.0.0.1 and back.

Ray Serve listens on one address, and `localhost` is ::1 first on many machines, so a client without a fallback would
not reach it otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading

CHUNK = 65_536

logger = logging.getLogger(__name__)


class Relay:
    """Listens on ::1 in a thread of its own, until it is stopped."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)

    def start(self) -> bool:
        """False where this machine has no ::1 or the port is taken there."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "::1", self._port), self._loop).result(5)
        except OSError as fault:
            logger.info("not listening on ::1: %s", fault)
            self.stop()
            return False
        return True

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    with contextlib.suppress(ConnectionError, OSError):
        writer.close()
