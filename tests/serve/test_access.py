"""Keys, tenants, and who may reach a server without keys."""

from __future__ import annotations

import httpx
import pytest

from primitives.errors import ConfigurationError
from serve.configuration import require_safe_address
from serve.services import Services
from serve.settings import ServeSettings
from storage.sqlite.backend import SqliteBackend
from tests.serve.calls import add, assert_error, get
from tests.serve.conftest import MakeSettings, client_of
from tests.support.embedder import BagOfCharacters

KEYS = {"key-of-a": "a", "key-of-b": "b"}


@pytest.fixture
async def keyed(make_settings: MakeSettings, backend: SqliteBackend) -> Services:
    opened = Services(settings=make_settings(evercore_api_keys=KEYS), backend=backend, embedder=BagOfCharacters())
    await opened.tools(opened.default_tenant)
    return opened


async def test_a_key_is_needed(keyed: Services) -> None:
    async with client_of(keyed) as client:
        answer = await client.get("/api/v1/stats")
        assert_error(answer, 401, "UNAUTHORIZED")
        assert answer.headers["www-authenticate"] == "Bearer"
        for headers in ({"X-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic key-of-a"}):
            assert_error(await client.get("/api/v1/stats", headers=headers), 401)
        assert_error(await client.get("/metrics"), 401)
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 200


async def test_each_key_has_its_tenant(keyed: Services) -> None:
    a, b = {"Authorization": "Bearer key-of-a"}, {"X-API-Key": "key-of-b"}
    async with client_of(keyed, headers=a) as of_a, client_of(keyed, headers=b) as of_b:
        await add(of_a, "only for a")
        assert (await get(of_a, "raw_message"))["total_count"] == 1
        assert (await get(of_b, "raw_message"))["total_count"] == 0
        assert (await of_b.get("/api/v1/stats")).json()["data"]["tenant_id"] == "b"


async def test_metrics_show_the_callers_tenant_only(keyed: Services) -> None:
    a, b = {"Authorization": "Bearer key-of-a"}, {"X-API-Key": "key-of-b"}
    async with client_of(keyed, headers=a) as of_a:
        await add(of_a, "only for a")
        of_a_text = (await of_a.get("/metrics")).text
        of_b_text = (await of_a.get("/metrics", headers=b | {"Authorization": ""})).text
    assert 'evercore_messages_added_total{tenant="a"} 1.0' in of_a_text
    assert 'evercore_rows{memory_type="raw_message",tenant="a"} 1.0' in of_a_text
    assert 'tenant="a"' not in of_b_text
    assert 'evercore_rows{memory_type="raw_message",tenant="b"} 0.0' in of_b_text
    assert 'evercore_http_requests_total{method="POST"' in of_b_text


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "192.168.1.5:1995", ""])
async def test_without_keys_other_hosts_are_refused(client: httpx.AsyncClient, host: str) -> None:
    assert_error(await client.get("/api/v1/stats", headers={"Host": host}), 403, "FORBIDDEN")


@pytest.mark.parametrize("host", ["localhost:1995", "127.0.0.1", "[::1]:1995"])
async def test_loopback_names_are_fine(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/api/v1/stats", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/stats", "/nothing"])
@pytest.mark.parametrize("headers", [{"Host": "["}, {"Host": "[::1"}, {"Origin": "http://["}])
async def test_headers_that_are_no_url_are_refused(
    client: httpx.AsyncClient, headers: dict[str, str], path: str
) -> None:
    assert_error(await client.get(path, headers=headers), 403 if path != "/nothing" else 404)


async def test_pages_of_other_sites_are_refused(make_settings: MakeSettings, backend: SqliteBackend) -> None:
    settings = make_settings(evercore_cors_origins=["https://app.example"])
    services = Services(settings=settings, backend=backend, embedder=BagOfCharacters())
    async with client_of(services) as client:
        assert_error(await client.get("/api/v1/stats", headers={"Origin": "https://evil.example"}), 403)
        own = await client.get("/api/v1/stats", headers={"Origin": "http://127.0.0.1:1995"})
        assert own.status_code == 200
        known = await client.get("/api/v1/stats", headers={"Origin": "https://app.example"})
        assert known.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5"])
def test_a_network_address_needs_keys(host: str) -> None:
    with pytest.raises(ConfigurationError, match="EVERCORE_API_KEYS"):
        require_safe_address(ServeSettings(_env_file=None, evercore_host=host))
    require_safe_address(ServeSettings(_env_file=None, evercore_host=host, evercore_api_keys=KEYS))


def test_keys_are_not_shown() -> None:
    assert "key-of-a" not in repr(ServeSettings(_env_file=None, evercore_api_keys=KEYS))
