"""Rows of bytes in Ray Data blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from ray.data.block import Block, BlockAccessor


def table_of(name: str, rows: Iterable[bytes]) -> pa.Table:
    """A block with one column."""
    return pa.table({name: pa.array(rows, pa.large_binary())})


def values_of(name: str, table: pa.Table) -> list[bytes]:
    """The rows of a block. One without rows may come without columns too."""
    found: list[bytes] = table[name].to_pylist() if table.num_rows else []
    return found


def values_of_blocks(name: str, blocks: Iterable[Block]) -> Iterator[bytes]:
    """The rows of all blocks, one block in memory at a time."""
    for block in blocks:
        yield from values_of(name, BlockAccessor.for_block(block).to_arrow())
