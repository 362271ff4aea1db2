"""All settings together, read once, with unknown names refused.

A misspelt setting that is silently ignored costs hours, so every key of `.env` must be known, and so must every
environment variable that carries one of this project's prefixes or looks like a misspelt setting.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsError

from models.settings import ModelSettings
from pipelines.settings import PipelineSettings
from primitives.errors import ConfigurationError
from serve.settings import ServeSettings
from storage.settings import StorageSettings

OWN_PREFIXES = ("EVERCORE_", "VECTORIZE_", "RERANK_", "MEMCELL_", "BOUNDARY_")
"""Prefixes that nobody else uses; everything that begins with one must be a known setting."""
MISSPELT = 0.88
"""Similarity from which any other variable counts as a misspelt setting."""

SomeSettings = TypeVar("SomeSettings", bound=BaseSettings)


@dataclass(frozen=True)
class Settings:
    """The settings of every part. Picklable, so that Ray can hand it to workers."""

    serve: ServeSettings
    storage: StorageSettings
    pipeline: PipelineSettings
    models: ModelSettings

    def parts(self) -> tuple[BaseSettings, ...]:
        return self.serve, self.storage, self.pipeline, self.models


CLASSES: tuple[type[BaseSettings], ...] = (ServeSettings, StorageSettings, PipelineSettings, ModelSettings)


def known_names() -> dict[str, type[BaseSettings]]:
    """Every setting's name as it stands in the environment, and the class it belongs to."""
    names: dict[str, type[BaseSettings]] = {}
    for kind in CLASSES:
        for name, field in kind.model_fields.items():
            alias = field.validation_alias if isinstance(field.validation_alias, str) else name
            names[alias.upper()] = kind
    return names


def load_settings(*, env_file: Path = Path(".env"), environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment and `.env`; ConfigurationError for an unknown name or an unusable value."""
    known = known_names()
    in_file = [name for name in dotenv_values(env_file) if name] if env_file.is_file() else []
    refuse_unknown((name for name in in_file), known, where=str(env_file))
    variables = os.environ if environment is None else environment
    refuse_unknown((name for name in variables if _ours(name, known)), known, where="the environment")
    settings = Settings(
        serve=_read(ServeSettings, env_file),
        storage=anywhere(_read(StorageSettings, env_file)),
        pipeline=_read(PipelineSettings, env_file),
        models=_read(ModelSettings, env_file),
    )
    require_safe_address(settings.serve)
    return settings


def anywhere(storage: StorageSettings) -> StorageSettings:
    """With an absolute folder, since Ray's workers run in other folders."""
    return storage.model_copy(update={"evercore_data_dir": storage.evercore_data_dir.expanduser().absolute()})


def require_safe_address(settings: ServeSettings) -> None:
    """Refuse to serve a network without API keys: whoever reaches the port could read every memory."""
    if not settings.loopback and not settings.evercore_api_keys:
        raise ConfigurationError(
            f"the server would listen on {settings.evercore_host}, but no API keys are configured",
            hint="Set EVERCORE_API_KEYS, or listen on 127.0.0.1 (EVERCORE_HOST, or http_options of a Serve file).",
        )


def refuse_unknown(names: Iterable[str], known: Mapping[str, object], *, where: str) -> None:
    """ConfigurationError for the first name that is not a setting, with the closest known one."""
    for name in names:
        if name.upper() not in known:
            close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
            raise ConfigurationError(
                f"unknown setting {name} in {where}",
                hint=f"Did you mean {close[0]}?" if close else "`evercore settings` lists all settings.",
                details={"setting": name},
            )


def _ours(name: str, known: Mapping[str, object]) -> bool:
    upper = name.upper()
    if upper.startswith(OWN_PREFIXES):
        return True
    return upper not in known and bool(difflib.get_close_matches(upper, known, n=1, cutoff=MISSPELT))


def _read(kind: type[SomeSettings], env_file: Path) -> SomeSettings:
    try:
        return kind(_env_file=env_file if env_file.is_file() else None)
    except ValidationError as fault:
        first = fault.errors()[0]
        name = str(first["loc"][0]).upper() if first["loc"] else kind.__name__
        raise ConfigurationError(
            f"setting {name} is not usable: {first['msg']}", hint="`evercore settings` shows what each setting takes."
        ) from fault
    except SettingsError as fault:
        raise ConfigurationError(str(fault), hint="Lists and mappings are given as JSON.") from fault
