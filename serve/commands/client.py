"""Speaking to a running server of this machine."""

from __future__ import annotations

import time
from typing import Any

import httpx

from primitives.errors import EverCoreError, UnavailableError
from serve.instance import RunningServer
from serve.settings import ServeSettings


class ServerError(EverCoreError):
    """What the server answered, as an error of this side."""

    code = "SERVER_ERROR"


class ServerClient:
    """Calls the API of one server. A context manager."""

    def __init__(self, server: RunningServer, settings: ServeSettings, *, timeout: float = 600.0) -> None:
        key = next(iter(settings.evercore_api_keys), "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=server.url, headers=headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> ServerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The `data` of the answer; ServerError or UnavailableError."""
        try:
            answer = self._http.request(method, path, json=body)
            parsed = answer.json() if answer.content else {}
        except (httpx.HTTPError, ValueError) as fault:
            raise UnavailableError(
                f"the server does not answer: {fault}", hint="`evercore status` tells whether it runs."
            ) from fault
        if answer.is_success:
            return parsed.get("data", parsed)
        details = parsed.get("details", {})
        raise ServerError(
            str(parsed.get("message", answer.text[:200])), hint=str(details.get("hint", "")), details=details
        )

    def wait_ready(self, seconds: float) -> None:
        """Until the server is ready; UnavailableError with its own words where it is not in time."""
        deadline = time.monotonic() + seconds
        reason = "no answer"
        while time.monotonic() < deadline:
            try:
                answer = self._http.get("/health/ready", timeout=15.0)
                if answer.is_success:
                    return
                reason = answer.text[:500]
            except httpx.HTTPError as fault:
                reason = str(fault)
            time.sleep(0.2)
        raise UnavailableError(f"the server is not ready after {seconds:.0f} s: {reason}", hint="See its log file.")
