"""What is searched for: one checked search request, independent of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from primitives.errors import InvalidInputError
from storage.filters import Filter, Scope, parse, scope_of
from storage.records import MemoryType

METHODS = ("keyword", "vector", "hybrid", "agentic")
DEFAULT_TYPES = (MemoryType.EPISODE, MemoryType.PROFILE)
AGENT_MEMORY = "agent_memory"
"""EverCore's name of cases and skills together."""
ALL_ABOVE_THRESHOLD = -1
MOST_HITS = 1_000
"""Most hits of one type in an answer; more are cut off, and the answer says so."""
MOST_TOP_K = 100


@dataclass(frozen=True)
class Query:
    """A search. Times are milliseconds."""

    text: str
    method: str
    memory_types: tuple[MemoryType, ...]
    filters: dict[str, Any]
    where: Filter
    partitions: tuple[str, ...]
    residual: Filter | None
    top_k: int = ALL_ABOVE_THRESHOLD
    radius: float | None = None
    as_of: int | None = None
    include_faded: bool = False
    explain: bool = False
    include_original_data: bool = False

    @property
    def limit(self) -> int:
        """Most hits of one type."""
        return MOST_HITS if self.top_k == ALL_ABOVE_THRESHOLD else self.top_k

    def scope(self, *memory_types: MemoryType) -> Scope:
        return Scope(self.partitions, tuple(memory_types), self.residual)


def memory_types_of(names: Sequence[str] | None) -> tuple[MemoryType, ...]:
    """The types of these names, each once; InvalidInputError names the known ones."""
    if names is None:
        return DEFAULT_TYPES
    if not names:
        raise InvalidInputError("memory_types is empty", hint=f"Known: {', '.join(known_type_names())}.")
    found: dict[MemoryType, None] = {}
    for name in names:
        if name == AGENT_MEMORY:
            found |= {MemoryType.AGENT_CASE: None, MemoryType.AGENT_SKILL: None}
        elif name in MemoryType._value2member_map_:
            found[MemoryType(name)] = None
        else:
            raise InvalidInputError(
                f"unknown memory type {name!r}",
                hint=f"Known: {', '.join(known_type_names())}.",
                details={"memory_type": name, "known": known_type_names()},
            )
    return tuple(found)


def known_type_names() -> list[str]:
    return [str(kind) for kind in MemoryType] + [AGENT_MEMORY]


def make_query(
    *,
    text: str,
    filters: dict[str, Any],
    method: str = "hybrid",
    memory_types: Sequence[str] | None = None,
    top_k: int = ALL_ABOVE_THRESHOLD,
    radius: float | None = None,
    as_of: int | None = None,
    include_faded: bool = False,
    explain: bool = False,
    include_original_data: bool = False,
) -> Query:
    """A checked query; InvalidInputError or InvalidFilterError says what is wrong with it."""
    if not text.strip():
        raise InvalidInputError("query is blank", hint="Give at least one word to search for.")
    if method not in METHODS:
        raise InvalidInputError(f"unknown method {method!r}", hint=f"Known: {', '.join(METHODS)}.")
    if top_k != ALL_ABOVE_THRESHOLD and not 1 <= top_k <= MOST_TOP_K:
        raise InvalidInputError(f"top_k is {top_k}", hint=f"Give 1 to {MOST_TOP_K}, or -1 for all above the threshold.")
    where = parse(filters)
    kinds = memory_types_of(memory_types)
    scope = scope_of(where, [str(kind) for kind in kinds])
    return Query(
        text=text,
        method=method,
        memory_types=kinds,
        filters=filters,
        where=where,
        partitions=scope.partitions,
        residual=scope.where,
        top_k=top_k,
        radius=radius,
        as_of=as_of,
        include_faded=include_faded,
        explain=explain,
        include_original_data=include_original_data,
    )
