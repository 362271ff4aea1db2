"""Serve files are read strictly: whatever Serve would drop without a word is an error here."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from primitives.errors import ConfigurationError, NotFoundError
from serve.cli import app
from serve.cli_serve_file import IMPORT_PATH, read_serve_file

SHIPPED = sorted((Path(__file__).parents[2] / "serve" / "config").glob("*.yaml"))
CPU = SHIPPED[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_files_are_fine(path: Path) -> None:
    found = read_serve_file(path)
    (application,) = found.applications
    assert (application.name, application.import_path) == ("evercore", IMPORT_PATH)
    assert (found.http_options.host, found.http_options.port) == ("127.0.0.1", 1995)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("proxy_location:", "proxy_locations:", ("unknown key proxy_locations", "proxy_location?")),
        ("keep_alive_timeout_s", "keep_alive_timeout", ("unknown key http_options.keep_alive_timeout", "timeout_s?")),
        ("route_prefix", "route_prefx", ("unknown key applications[0].route_prefx", "route_prefix?")),
        ("    args:", "    deployments: [{name: gateway, num_replica: 2}]\n    args:", ("deployments[0].num_replica",)),
        ("  log_level", "  loglevel", ("unknown key logging_config.loglevel", "log_level?")),
        ("storage: {}", "storage: {evercore_dir: /data}", ("evercore_dir", "evercore_data_dir")),
        ("pipeline: {}", "pipelines: {}", ("pipelines",)),
        ("serve: {}", "serve: {evercore_max_body_bytes: 5}", ("evercore_max_body_bytes",)),
        ("HeadOnly", "Here", ("proxy_location",)),
        ("host: 127.0.0.1", "host: 192.168.1.5", ("192.168.1.5", "EVERCORE_API_KEYS")),
        (IMPORT_PATH, "somewhere:else", (f"no application {IMPORT_PATH}",)),
        ("applications:", "applications: [", ("not readable YAML",)),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in CPU
    path = tmp_path / "serve.yaml"
    path.write_text(CPU.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_serve_file(path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_keys_open_the_door_to_other_addresses(tmp_path: Path) -> None:
    text = CPU.replace("host: 127.0.0.1", "host: 192.168.1.5").replace("serve: {}", "serve: {evercore_api_keys: {k: a}}")
    (tmp_path / "serve.yaml").write_text(text, encoding="utf-8")
    assert read_serve_file(tmp_path / "serve.yaml").http_options.host == "192.168.1.5"


def test_the_doctor_checks_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.commands.doctor.examine", list)
    assert CliRunner().invoke(app, ["doctor", "--serve-file", str(SHIPPED[0])]).exit_code == 0
    missing = CliRunner().invoke(app, ["doctor", "--serve-file", str(tmp_path / "none.yaml")])
    assert missing.exit_code == 1
    assert "no Serve file" in missing.stdout
    with pytest.raises(NotFoundError):
        read_serve_file(tmp_path / "none.yaml")
