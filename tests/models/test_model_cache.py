"""The folder of converted models: made again when damaged, never half made."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from models.model_cache import prepared_folder
from primitives.errors import ModelError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(b"weights")
    return path


def convert(source: Path, folder: Path) -> dict[str, float]:
    (folder / "model").write_bytes(source.read_bytes() * 2)
    return {"cosine": 1.0}


def make(source: Path, cache_dir: Path, *, verify: bool = False) -> Path:
    return prepared_folder(
        cache_dir=cache_dir,
        name="model-1",
        source=source,
        source_sha256=hashlib.sha256(b"weights").hexdigest(),
        convert=convert,
        verify=verify,
    )


def test_a_damaged_folder_is_made_again(source: Path, tmp_path: Path) -> None:
    folder = make(source, tmp_path / "cache")
    (folder / "model").write_bytes(b"short")
    assert (make(source, tmp_path / "cache") / "model").read_bytes() == b"weightsweights"
    (folder / "model").write_bytes(b"WEIGHTSweights")
    assert (make(source, tmp_path / "cache", verify=True) / "model").read_bytes() == b"weightsweights"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock") == ["model-1"]


def test_another_source_is_refused(source: Path, tmp_path: Path) -> None:
    source.write_bytes(b"other")
    with pytest.raises(ModelError, match="SHA-256"):
        make(source, tmp_path / "cache")


def test_a_failed_conversion_leaves_nothing(source: Path, tmp_path: Path) -> None:
    def fail(source: Path, folder: Path) -> dict[str, float]:
        (folder / "half").write_bytes(b"x")
        raise ModelError("differs")

    with pytest.raises(ModelError, match="differs"):
        prepared_folder(
            cache_dir=tmp_path / "cache",
            name="model-1",
            source=source,
            source_sha256=hashlib.sha256(b"weights").hexdigest(),
            convert=fail,
        )
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"] == []


def test_an_unusable_cache_folder_names_the_setting(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelError, match="MODEL_CACHE_DIR"):
        make(source, tmp_path / "file" / "cache")
