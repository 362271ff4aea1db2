"""Reading a Serve YAML file strictly: Serve itself drops what it does not know without a word."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from ray.serve.schema import ServeDeploySchema

from primitives.errors import ConfigurationError, NotFoundError
from serve.configuration import load_settings, require_safe_address
from serve.deployments import AppArguments

IMPORT_PATH = "serve.deployments:application"


def read_serve_file(path: Path) -> ServeDeploySchema:
    """The file as `serve deploy` takes it. ConfigurationError for an unknown key anywhere, also in our arguments, for a
    value that Serve does not take, and for an address that a network can reach without API keys."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise NotFoundError(f"no Serve file {path}", hint="The shipped ones lie in serve/config.") from fault
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise ConfigurationError(f"{path} is not readable YAML: {str(fault).splitlines()[0]}") from fault
    if not isinstance(raw, dict):
        raise ConfigurationError(f"{path} holds no mapping", hint="See serve/config/cpu.yaml.")
    for where, key, known in unknown_keys(ServeDeploySchema, raw):
        close = difflib.get_close_matches(key, known, n=1)
        raise ConfigurationError(
            f"unknown key {where}{key} in {path}, which Serve would drop",
            hint=f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(sorted(known))}.",
            details={"key": where + key},
        )
    try:
        found = ServeDeploySchema.model_validate(raw)
        ours = [
            AppArguments.model_validate(app.args) for app in found.applications if app.import_path == IMPORT_PATH
        ]  # fmt: skip
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{path}: {place}: {first['msg']}", hint="See serve/config/cpu.yaml.") from fault
    if not ours:
        raise ConfigurationError(f"{path} has no application {IMPORT_PATH}", hint="See serve/config/cpu.yaml.")
    load_settings()
    for arguments in ours:
        require_safe_address(arguments.serve.model_copy(update={"evercore_host": found.http_options.host}))
    return found


def unknown_keys(model: type[BaseModel], raw: Any, where: str = "") -> Iterator[tuple[str, str, set[str]]]:
    """(place, key, what is known there) of every key that the model would ignore."""
    if not isinstance(raw, dict):
        return
    for key, value in raw.items():
        field = model.model_fields.get(str(key))
        if field is None:
            yield where, str(key), set(model.model_fields)
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        inner = next(_models(field.annotation), None)
        for number, item in items if inner is not None else ():
            place = f"{where}{key}." if number is None else f"{where}{key}[{number}]."
            yield from unknown_keys(inner, item, place)  # type: ignore[arg-type]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names: of itself, of its items, of its alternatives."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)
