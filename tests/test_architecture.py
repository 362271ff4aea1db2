"""The dependency rule: serve -> pipelines -> storage, models -> primitives, and Ray at the edges only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "primitives": set(),
    "models": {"primitives"},
    "storage": {"primitives"},
    "pipelines": {"primitives", "models", "storage"},
    "serve": {"primitives", "models", "storage", "pipelines"},
}
RAY_IN = ("serve/deployments.py", "serve/cli", "serve/commands/", "pipelines/jobs/")
FILES = sorted(path for package in ALLOWED for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    package = name.split("/")[0]
    found = set(imported(path))
    assert found & set(ALLOWED) <= ALLOWED[package] | {package}
    assert "ray" not in found or name.startswith(RAY_IN)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_one_idea_a_file(path: Path) -> None:
    assert path.stat().st_size <= 15_000, "over 15 KB: two ideas in one file"
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), "a module says what it is responsible for"
