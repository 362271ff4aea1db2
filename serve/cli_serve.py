"""Ray Serve with our application on it, for as long as a block lasts."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from ray import serve as ray_serve
from ray.serve.config import HTTPOptions, ProxyLocation
from ray.serve.schema import LoggingConfig

from primitives.errors import UnavailableError
from serve.configuration import Settings
from serve.deployments import APPLICATION, build
from serve.relay import Relay

IPV4_LOOPBACK = "127.0.0.1"


@contextlib.contextmanager
def serve_application(settings: Settings) -> Iterator[None]:
    """Deploy the application on the Ray that this process is connected to, and take it down in the end."""
    host = IPV4_LOOPBACK if settings.serve.evercore_host == "localhost" else settings.serve.evercore_host
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    relay: Relay | None = None
    try:
        ray_serve.start(
            proxy_location=ProxyLocation.HeadOnly,
            http_options=HTTPOptions(host=host, port=settings.serve.evercore_port, keep_alive_timeout_s=75),
            logging_config=LoggingConfig(log_level="WARNING", enable_access_log=False),
        )
        try:
            ray_serve.run(
                build(settings),
                name=APPLICATION,
                route_prefix="/",
                logging_config=LoggingConfig(log_level="WARNING", enable_access_log=False),
            )
        except RuntimeError as fault:
            raise UnavailableError(
                f"the server did not start: {_why(fault)}", hint="`evercore doctor` may say why."
            ) from fault
        if host == IPV4_LOOPBACK:
            relay = Relay(settings.serve.evercore_port)
            if not relay.start():
                relay = None
        yield
    finally:
        if relay is not None:
            relay.stop()
        ray_serve.shutdown()  # type: ignore[no-untyped-call]


def _why(fault: RuntimeError) -> str:
    """Serve's words, with the reason that the replica gave where there is one."""
    try:
        status = ray_serve.status().applications[APPLICATION]
        messages = [d.message for d in status.deployments.values() if d.message] or [status.message]
        return messages[0].strip().splitlines()[-1].removeprefix("primitives.errors.")
    except (KeyError, IndexError):
        return str(fault)
