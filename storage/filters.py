"""The filter language of search, get and delete, with one meaning in every store.

    {"user_id": "u1", "timestamp": {"gte": 1709629200000}, "OR": [{"session_id": "a"}, {"tags": {"in": ["x"]}}]}

Fields of one object are joined by AND; `AND` and `OR` take lists, `NOT` an object. Operators: plain equality, `eq`, `in`,
`gt`, `gte`, `lt`, `lte`. A missing value matches no comparison, so `NOT` of it is true. Values of `timestamp` are
milliseconds, seconds (below 10^11) or ISO 8601 strings. Unknown fields and operators are refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import orjson

from primitives.clock import to_ms
from primitives.errors import InvalidFilterError
from storage.ids import group_partition, solo_group_id, user_partition

FIELDS = ("user_id", "group_id", "session_id", "sender_id", "timestamp", "memory_type", "tags")
MANY_VALUED = {"sender_id": "sender_ids", "tags": "tags"}
"""Fields that look into a list of the row: the condition holds where one of its members fits."""
OPERATORS = ("eq", "in", "gt", "gte", "lt", "lte")
SECONDS_BELOW = 100_000_000_000
MAX_DEPTH = 16
MAX_CONDITIONS = 500
MAX_VALUES = 10_000
"""Most values of one `in`."""


class Filterable(Protocol):
    """What a filter looks at; messages, memories and index entries all have it."""

    user_id: str | None
    group_id: str | None
    session_id: str | None
    timestamp: int | None


@dataclass(frozen=True)
class Condition:
    field: str
    operator: Literal["eq", "in", "gt", "gte", "lt", "lte"]
    value: Any


@dataclass(frozen=True)
class All:
    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class Not:
    part: Filter


Filter = Condition | All | AnyOf | Not


# ---------------------------------------------------------------- reading


def parse(raw: Any, *, _depth: int = 0) -> Filter:
    """A filter object as the API takes it; InvalidFilterError names what is wrong and what is known."""
    if not isinstance(raw, dict):
        raise InvalidFilterError("filters must be an object", hint=f"Known fields: {', '.join(FIELDS)}.")
    if _depth > MAX_DEPTH:
        raise InvalidFilterError(f"filters are nested more than {MAX_DEPTH} deep")
    parts: list[Filter] = []
    for key, value in raw.items():
        if key in ("AND", "OR"):
            if not isinstance(value, list) or not value:
                raise InvalidFilterError(f"{key} takes a non-empty list of filters")
            inner = tuple(parse(item, _depth=_depth + 1) for item in value)
            parts.append(All(inner) if key == "AND" else AnyOf(inner))
        elif key == "NOT":
            parts.append(Not(parse(value, _depth=_depth + 1)))
        elif key in FIELDS:
            parts.extend(_conditions(key, value))
        else:
            raise InvalidFilterError(
                f"unknown filter field {key!r}",
                hint=f"Known: {', '.join(FIELDS)}, AND, OR, NOT.",
                details={"field": key},
            )
    result = parts[0] if len(parts) == 1 else All(tuple(parts))
    if _depth == 0 and sum(1 for _ in _walk(result)) > MAX_CONDITIONS:
        raise InvalidFilterError(f"filters hold more than {MAX_CONDITIONS} conditions")
    return result


def _conditions(field: str, value: Any) -> Iterable[Filter]:
    if not isinstance(value, dict):
        yield Condition(field, "eq", _value(field, value))
        return
    if not value:
        raise InvalidFilterError(f"the filter on {field} is empty", hint=f"Operators: {', '.join(OPERATORS)}.")
    for operator, operand in value.items():
        if operator not in OPERATORS:
            raise InvalidFilterError(
                f"unknown operator {operator!r} on {field}", hint=f"Operators: {', '.join(OPERATORS)}."
            )
        if operator == "in":
            if not isinstance(operand, list) or not 0 < len(operand) <= MAX_VALUES:
                raise InvalidFilterError(f"'in' on {field} takes a list of 1 to {MAX_VALUES} values")
            yield Condition(field, "in", tuple(_value(field, item) for item in operand))
        elif operator != "eq" and operand is None:
            raise InvalidFilterError(f"{operator!r} on {field} needs a value")
        else:
            yield Condition(field, operator, _value(field, operand))


def _value(field: str, value: Any) -> Any:
    if value is None:
        return None
    if field == "timestamp":
        return _moment(value)
    if not isinstance(value, str):
        raise InvalidFilterError(f"the filter on {field} takes strings, not {type(value).__name__}")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise InvalidFilterError(f"the filter on {field} holds a lone surrogate")
    return value


def _moment(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidFilterError("timestamp takes milliseconds, seconds or an ISO 8601 string")
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        except (ValueError, OverflowError) as fault:
            raise InvalidFilterError(f"timestamp {value[:40]!r} is not ISO 8601") from fault
    if not abs(value) < 1e17:
        raise InvalidFilterError(f"timestamp {value!r} is out of range")
    return int(value) if abs(value) >= SECONDS_BELOW else int(value * 1000)


def _walk(node: Filter) -> Iterable[Condition]:
    if isinstance(node, Condition):
        yield node
    elif isinstance(node, Not):
        yield from _walk(node.part)
    else:
        for part in node.parts:
            yield from _walk(part)


# ---------------------------------------------------------------- matching in Python


def matches(node: Filter, row: Any) -> bool:
    """Whether `row` (anything with the fields' attributes) passes; the reference for every store."""
    if isinstance(node, All):
        return all(matches(part, row) for part in node.parts)
    if isinstance(node, AnyOf):
        return any(matches(part, row) for part in node.parts)
    if isinstance(node, Not):
        return not matches(node.part, row)
    if node.field in MANY_VALUED:
        return any(_holds(node, value) for value in getattr(row, MANY_VALUED[node.field]))
    return _holds(node, getattr(row, node.field))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda a, b: a > b, "gte": lambda a, b: a >= b, "lt": lambda a, b: a < b, "lte": lambda a, b: a <= b,
}  # fmt: skip


def _holds(condition: Condition, value: Any) -> bool:
    if condition.operator == "eq":
        return bool(value == condition.value)
    if condition.operator == "in":
        return value in condition.value
    return value is not None and _COMPARE[condition.operator](value, condition.value)


# ---------------------------------------------------------------- SQL


_SQL_OPERATOR = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def to_sql(node: Filter, *, table: str = "") -> tuple[str, list[Any]]:
    """A condition over the shared column names of all embedded tables; never NULL, so NOT is exact.

    `sender_ids` and `tags` are JSON arrays. `table` is a prefix such as `e.`.
    """
    if isinstance(node, Not):
        sql, values = to_sql(node.part, table=table)
        return f"NOT {sql}", values
    if isinstance(node, All | AnyOf):
        if not node.parts:
            return "1", []
        pieces = [to_sql(part, table=table) for part in node.parts]
        glue = " AND " if isinstance(node, All) else " OR "
        return "(" + glue.join(p[0] for p in pieces) + ")", [v for p in pieces for v in p[1]]
    if node.field in MANY_VALUED:
        sql, values = _sql_condition(node, "value")
        return f"EXISTS (SELECT 1 FROM json_each({table}{MANY_VALUED[node.field]}) WHERE {sql})", values
    return _sql_condition(node, table + node.field)


def _sql_condition(condition: Condition, column: str) -> tuple[str, list[Any]]:
    if condition.operator == "eq":
        return f"({column} IS ?)", [condition.value]
    if condition.operator == "in":
        # One parameter for any number of values: a chain of ORs meets SQLite's limit on the depth of expressions.
        known = orjson.dumps([value for value in condition.value if value is not None]).decode()
        sql = f"({column} IS NOT NULL AND {column} IN (SELECT value FROM json_each(?)))"
        return (f"({sql} OR {column} IS NULL)" if None in condition.value else sql), [known]
    return f"({column} IS NOT NULL AND {column} {_SQL_OPERATOR[condition.operator]} ?)", [condition.value]


# ---------------------------------------------------------------- whose rows


@dataclass(frozen=True)
class Scope:
    """Where to look: partitions and types, and what is left of the filter once these are given."""

    partitions: tuple[str, ...]
    memory_types: tuple[str, ...]
    where: Filter | None = None


def scope_of(node: Filter, memory_types: Sequence[str]) -> Scope:
    """The partitions that can hold matching rows; InvalidFilterError where the filter names no owner.

    {user_id} means that person's rows, {group_id} the group's rows, both that person's rows in that group. A solo
    user's rows also answer the derived solo group id.
    """
    owners = _owners(node)
    if owners is None:
        raise InvalidFilterError(
            "filters name no owner", hint="Give user_id or group_id, at the top or in every branch of OR."
        )
    partitions: dict[str, None] = {}
    for user, group in owners:
        if user is not None and group is None:
            partitions |= {group_partition(solo_group_id(user)): None, user_partition(user): None}
        elif user is None and group is not None:
            partitions[group_partition(group)] = None
        elif user is not None and group is not None:
            partitions[user_partition(user)] = None
            if group == solo_group_id(user):
                partitions[group_partition(group)] = None
    return Scope(tuple(partitions), tuple(memory_types), _residual(node))


Pair = tuple[str | None, str | None]


def _owners(node: Filter) -> list[Pair] | None:
    """The (user, group) pairs that a row must belong to; None where the filter leaves the owner open."""
    if isinstance(node, Condition):
        if node.field not in ("user_id", "group_id") or node.operator not in ("eq", "in"):
            return None
        values = node.value if node.operator == "in" else (node.value,)
        if any(value is None for value in values):
            return None
        return [(value, None) if node.field == "user_id" else (None, value) for value in dict.fromkeys(values)]
    if isinstance(node, Not):
        return None
    if isinstance(node, AnyOf):
        branches = [_owners(part) for part in node.parts]
        known = [branch for branch in branches if branch is not None]
        return [pair for branch in known for pair in branch] if len(known) == len(branches) else None
    found: list[Pair] | None = None
    for part in node.parts:
        pairs = _owners(part)
        if pairs is not None:
            found = pairs if found is None else [m for a in found for b in pairs if (m := _meet(a, b)) is not None]
    return found


def _meet(left: Pair, right: Pair) -> Pair | None:
    """Both at once; None where they contradict each other."""
    merged: list[str | None] = []
    for a, b in zip(left, right, strict=True):
        if a is not None and b is not None and a != b:
            return None
        merged.append(a if a is not None else b)
    return merged[0], merged[1]


def _residual(node: Filter) -> Filter | None:
    """The filter without the owner condition that the partitions already say; None where nothing is left."""
    parts = node.parts if isinstance(node, All) else (node,)
    fields = [c.field for c in _walk(node) if c.field in ("user_id", "group_id")]
    if len(fields) != 1:
        return node
    left = tuple(
        p for p in parts if not (isinstance(p, Condition) and p.field == fields[0] and p.operator in ("eq", "in"))
    )
    return None if not left else left[0] if len(left) == 1 else All(left)
