"""Settings: every name is known, or the start is refused with the nearest known one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from primitives.errors import ConfigurationError
from serve.configuration import known_names, load_settings
from serve.deployments import AppArguments, application


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    return tmp_path / ".env"


def test_known_names_are_read(env_file: Path) -> None:
    env_file.write_text(
        "EVERCORE_PORT=2000\nMEMCELL_HARD_MESSAGE_LIMIT=100\nVECTORIZE_PROVIDER=local\n", encoding="utf-8"
    )
    settings = load_settings(env_file=env_file, environment={})
    assert settings.serve.evercore_port == 2000
    assert settings.pipeline.memcell_hard_message_limit == 100
    assert settings.storage.evercore_data_dir.is_absolute()


@pytest.mark.parametrize(
    ("name", "near"),
    [("EVERCORE_PROT", "EVERCORE_PORT"), ("SOMETHING_ELSE", ""), ("VECTORIZE_PROVIDR", "VECTORIZE_PROVIDER")],
)
def test_unknown_names_in_the_file_are_refused(env_file: Path, name: str, near: str) -> None:
    env_file.write_text(f"{name}=1\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(env_file=env_file, environment={})
    assert name in caught.value.message
    assert near in caught.value.hint


@pytest.mark.parametrize("name", ["EVERCORE_PROT", "MEMCELL_LIMIT", "IDLE_FLUSH_MINUTE", "FLUSH_WAIT_SECOND"])
def test_unknown_names_of_ours_in_the_environment_are_refused(env_file: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        load_settings(env_file=env_file, environment={name: "1"})


def test_other_peoples_variables_are_nobodys_business(env_file: Path) -> None:
    load_settings(env_file=env_file, environment={"PATH": "/bin", "MESSAGE_BUS": "x", "FLUSH": "1", "MODEL": "y"})


def test_unusable_values_name_their_setting(env_file: Path) -> None:
    env_file.write_text("EVERCORE_PORT=none\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="EVERCORE_PORT"):
        load_settings(env_file=env_file, environment={})
    env_file.write_text("EVERCORE_API_KEYS=not json\n", encoding="utf-8")
    with pytest.raises(ConfigurationError):
        load_settings(env_file=env_file, environment={})


def test_every_setting_is_described() -> None:
    for name, kind in known_names().items():
        assert kind.model_fields[name.lower()].description, name


def test_arguments_of_a_serve_file_are_strict() -> None:
    empty = {"serve": {}, "storage": {}, "pipeline": {}, "models": {}}
    assert AppArguments.model_validate(empty | {"serve": {"evercore_port": 2000}}).serve.evercore_port == 2000
    with pytest.raises(ValidationError, match="evercore_prot"):
        AppArguments.model_validate(empty | {"serve": {"evercore_prot": 2000}})
    with pytest.raises(ValidationError, match="replicas"):
        AppArguments.model_validate(empty | {"replicas": 2})
    # Serve hands the arguments over as they stand in the file; so they are checked where the application is built.
    with pytest.raises(ValidationError, match="unknown settings evercore_dir"):
        application({"storage": {"evercore_dir": "/data"}})
