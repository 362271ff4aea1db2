"""cluster.yaml: Ray's own schema and validator take it, and so do our rules on pools, ports, secrets and files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[2]
REPOSITORY_ON_NODES = "~/evercore"
RAW = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
COMMANDS = (
    "setup_commands", "head_setup_commands", "worker_setup_commands", "head_start_ray_commands",
    "worker_start_ray_commands", "initialization_commands",
)  # fmt: skip


@pytest.fixture
def config() -> dict[str, Any]:
    return dict(yaml.safe_load(RAW))


@pytest.fixture
def prepared(config: dict[str, Any]) -> dict[str, Any]:
    return dict(prepare_config(config))


def commands_of(config: dict[str, Any]) -> list[str]:
    found = [command for name in COMMANDS for command in config.get(name, [])]
    for kind in config["available_node_types"].values():
        found += kind.get("worker_setup_commands", []) + kind.get("initialization_commands", [])
    return found


def start_of_head(config: dict[str, Any]) -> str:
    (command,) = [one for one in config["head_start_ray_commands"] if "ray start" in one]
    return str(command)


def test_ray_takes_it(prepared: dict[str, Any]) -> None:
    validate_config(prepared)


def test_the_validator_would_complain(config: dict[str, Any]) -> None:
    """So that the test above can fail: a misspelt key, and more workers at least than at most."""
    from jsonschema import ValidationError

    with pytest.raises(ValidationError):
        validate_config(prepare_config(config | {"max_worker": 3}))
    config["available_node_types"]["cpu_worker"]["min_workers"] = config["max_workers"] + 1
    with pytest.raises(ValueError, match="min_workers"):
        validate_config(prepare_config(config))


def test_a_head_without_gpu_and_pools_of_both_kinds(prepared: dict[str, Any]) -> None:
    kinds = prepared["available_node_types"]
    head = kinds[prepared["head_node_type"]]
    assert head["resources"]["GPU"] == 0
    assert (head["min_workers"], head["max_workers"]) == (0, 0)
    assert all(0 <= kind["min_workers"] <= kind["max_workers"] for kind in kinds.values())
    assert sum(kind["min_workers"] for kind in kinds.values()) <= prepared["max_workers"]
    pools = [kind for name, kind in kinds.items() if name != prepared["head_node_type"]]
    assert {bool(kind["resources"]["GPU"]) for kind in pools} == {True, False}
    assert all(kind["max_workers"] > 0 for kind in pools)


def test_the_gpu_extra_is_installed_on_gpu_workers_only(prepared: dict[str, Any]) -> None:
    kinds = prepared["available_node_types"]
    for kind in kinds.values():
        lines = kind.get("worker_setup_commands", prepared["worker_setup_commands"])
        assert any("setup_node.sh" in line for line in lines)
        assert any(line.endswith("setup_node.sh gpu") for line in lines) == bool(kind["resources"]["GPU"])
    assert not any("gpu" in line for line in prepared["head_setup_commands"])


def test_ports_are_on_loopback(config: dict[str, Any]) -> None:
    start = start_of_head(config)
    assert "--dashboard-host=127.0.0.1" in start
    assert config["provider"].get("security_group") is None, "Ray's own group lets in nothing but SSH"
    served = yaml.safe_load((ROOT / "serve/config/cpu.yaml").read_text(encoding="utf-8"))
    assert served["http_options"]["host"] == "127.0.0.1"
    for text in (RAW, (ROOT / "serve/config/cpu.yaml").read_text(encoding="utf-8")):
        assert "0.0.0.0" not in text
        assert not re.search(r"host[ =:]+['\"]?::", text)


def test_authentication_is_named_before_every_start(config: dict[str, Any]) -> None:
    starts = [one for one in commands_of(config) if "ray start" in one]
    assert len(starts) == 2
    assert all(one.index("RAY_AUTH_MODE=token") < one.index("ray start") for one in starts)
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"


def test_no_secrets(config: dict[str, Any]) -> None:
    for text in (RAW, (ROOT / "deploy/node.env").read_text(encoding="utf-8")):
        assigned = re.findall(r"(?i)(?:password|token|secret|api_keys?|access_key)[\"']?\s*[=:]\s*[\"']?([^\s\"']+)", text)
        assert [value for value in assigned if not value.startswith(("$", "~"))] == []


def test_files_that_commands_name_are_in_the_repository(config: dict[str, Any]) -> None:
    assert config["file_mounts"][REPOSITORY_ON_NODES] == "."
    named = set()
    for command in commands_of(config):
        named |= set(re.findall(rf"{REPOSITORY_ON_NODES}/([\w./-]+)", command))
        named |= set(re.findall(r"(?<=\. )deploy/[\w./-]+", command))
    assert named == {"deploy/setup_node.sh", "deploy/node.env"}
    tracked = subprocess.run(
        ["git", "ls-files", *sorted(named)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()  # fmt: skip
    if (ROOT / ".git").exists():
        assert set(tracked) == named, "git leaves a file out that the nodes need"
    assert all((ROOT / name).is_file() for name in named)


def test_extras_that_nodes_install_exist() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(re.findall(r"setup_node\.sh (\w+)", RAW))
    assert extras == {"gpu", "aws"}
    assert extras <= set(project["optional-dependencies"])


def environment_of_a_node(home: Path) -> dict[str, str]:
    script = ". deploy/node.env && env"
    done = subprocess.run(
        ["sh", "-c", script], cwd=ROOT, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_what_a_node_sets(tmp_path: Path) -> None:
    found = environment_of_a_node(tmp_path)
    assert found["RAY_AUTH_MODE"] == "token"
    assert found["EVERCORE_DATA_DIR"] == f"{tmp_path}/evercore-data"
    assert found["PATH"].startswith(f"{tmp_path}/evercore/.venv/bin:")
    assert "RAY_REDIS_ADDRESS" not in found
    (tmp_path / "ray.env").write_text("RAY_REDIS_ADDRESS=redis.internal:6379\nRAY_REDIS_PASSWORD=given\n")
    found = environment_of_a_node(tmp_path)
    assert (found["RAY_REDIS_ADDRESS"], found["RAY_REDIS_PASSWORD"]) == ("redis.internal:6379", "given")


def test_the_head_takes_redis_from_its_environment(config: dict[str, Any]) -> None:
    start = start_of_head(config)
    assert start.index("deploy/node.env") < start.index("ray start")
    assert '--redis-password="${RAY_REDIS_PASSWORD:-}"' in start
