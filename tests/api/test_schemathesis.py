"""One minute of generated requests, right and wrong ones, against a running server: it never fails on its side.

`make test-api` runs it. Schemathesis reads /openapi.json and checks every answer: no status from 500 on, a status and a
content type that the description names, and a body of the described shape, errors too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.test_server import Server, start, stop

SECONDS = 60
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
SEARCHES = "/api/v1/memories/search"

pytestmark = [pytest.mark.api, pytest.mark.timeout(500)]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = start(tmp_path_factory.mktemp("api") / "data", VECTORIZE_PROVIDER="local-fast")
    yield started
    stop(started)


def test_no_request_makes_the_server_fail(server: Server, tmp_path: Path) -> None:
    # One worker: with two, Python 3.11 may fail to parse code in two threads at once, inside of Schemathesis.
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/openapi.json", f"--max-time={SECONDS}",
        f"--checks={','.join(CHECKS)}", "--phases=examples,coverage,fuzzing", "--continue-on-failure",
        "--suppress-health-check=all", "--warnings=off", "--no-color", "--request-timeout=60",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS + 240)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client:
        assert client.get("/health/ready").is_success, "it works on"
        counted = client.get("/metrics").text.splitlines()
    requests = [line for line in counted if line.startswith("evercore_http_requests_total{")]
    assert [line for line in requests if 'status="5' in line and 'status="503"' not in line] == []
    assert any(SEARCHES in line and 'status="200"' in line for line in requests), "no valid search was generated"
    assert any(SEARCHES in line and 'status="422"' in line for line in requests), "no invalid search was generated"
