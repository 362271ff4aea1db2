"""Who may call: API keys, tenants, the rate of each tenant, and which web pages may reach a server without keys."""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.parse

from starlette.requests import Request

from primitives.errors import OverloadedError
from serve.api.errors import ForbiddenError, UnauthorizedError
from serve.settings import ServeSettings, is_loopback


class Keys:
    """The configured API keys, as hashes."""

    def __init__(self, keys: dict[str, str]) -> None:
        self._tenants = {_digest(key): tenant for key, tenant in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def tenant_of(self, key: str) -> str | None:
        """The tenant of a key. Every hash is compared, in constant time, so that time tells nothing."""
        asked, found = _digest(key), None
        for digest, tenant in self._tenants.items():
            if hmac.compare_digest(digest, asked):
                found = tenant
        return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class RateLimit:
    """A token bucket for each tenant: `rate` requests a second, in bursts of twice that."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, tenant: str, *, now: float | None = None) -> None:
        """Count one request; OverloadedError says when there is room again."""
        if not self._rate:
            return
        moment = time.monotonic() if now is None else now
        full = max(1.0, 2 * self._rate)
        tokens, last = self._buckets.get(tenant, (full, moment))
        tokens = min(full, tokens + (moment - last) * self._rate)
        if tokens < 1:
            self._buckets[tenant] = (tokens, moment)
            raise OverloadedError(
                "too many requests from this tenant",
                hint="Wait as Retry-After says; EVERCORE_RATE_PER_TENANT sets the rate.",
                details={"retry_after_seconds": (1 - tokens) / self._rate},
            )
        self._buckets[tenant] = (tokens - 1, moment)


class Gate:
    """Lets a request in, or says why not."""

    def __init__(self, settings: ServeSettings, *, default_tenant: str) -> None:
        self._keys = Keys(settings.evercore_api_keys)
        self._rate = RateLimit(settings.evercore_rate_per_tenant)
        self._origins = frozenset(settings.evercore_cors_origins)
        self._default_tenant = default_tenant

    @property
    def keyed(self) -> bool:
        """Whether API keys are configured, so that callers may be of different tenants."""
        return bool(self._keys)

    def tenant_of(self, request: Request) -> str:
        """The caller's tenant; UnauthorizedError, ForbiddenError or OverloadedError."""
        tenant = self._by_key(request) if self._keys else self._without_keys(request)
        self._rate.take(tenant)
        return tenant

    def _by_key(self, request: Request) -> str:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        if not key:
            raise UnauthorizedError(
                "an API key is needed", hint="Send it as `Authorization: Bearer KEY` or `X-API-Key`."
            )
        tenant = self._keys.tenant_of(key)
        if tenant is None:
            raise UnauthorizedError("this API key is not known")
        return tenant

    def _without_keys(self, request: Request) -> str:
        """Without keys only this machine may call, and a web page of some other site is not this machine.

        Any page can post text to a port of its visitor's machine, so a foreign Origin is refused; and a name that was
        made to point to 127.0.0.1 is told by its Host.
        """
        host = _parts(f"//{request.headers.get('host', '')}").hostname or ""
        if not is_loopback(host):
            raise ForbiddenError(
                f"this server answers on loopback names only, not on {host!r}", hint="Configure EVERCORE_API_KEYS."
            )
        origin = request.headers.get("origin")
        if origin and not self._known_origin(origin, request.headers.get("host", "")):
            raise ForbiddenError(
                f"pages of {origin} may not call this server", hint="Add the origin to EVERCORE_CORS_ORIGINS."
            )
        return self._default_tenant

    def _known_origin(self, origin: str, host: str) -> bool:
        """Whether a page is allowed by name, or is one of this very server."""
        return bool(self._origins & {"*", origin}) or _parts(origin).netloc == host


def _parts(url: str) -> urllib.parse.SplitResult:
    """The parts of a header's value; one that is no URL has none, so it is nobody's name."""
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        return urllib.parse.urlsplit("")


def admit(request: Request) -> str:
    """The caller's tenant, decided once for each request."""
    tenant = request.scope.get("evercore.tenant")
    if tenant is None:
        tenant = request.app.state.gate.tenant_of(request)
        request.scope["evercore.tenant"] = tenant
    return str(tenant)
