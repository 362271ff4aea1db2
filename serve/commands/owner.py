"""Whose memories a command is about: the options --user, --group and --tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from primitives.errors import InvalidInputError

UserOption = Annotated[str | None, typer.Option("--user", "-u", help="A person's id.")]
GroupOption = Annotated[str | None, typer.Option("--group", "-g", help="A group's id.")]
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Tenant; default: EVERCORE_TENANT.")]


def owner_filter(user: str | None, group: str | None) -> dict[str, str]:
    """The filter for these options; InvalidInputError where both are missing."""
    found = {name: value for name, value in (("user_id", user), ("group_id", group)) if value is not None}
    if not found:
        raise InvalidInputError("whose memories?", hint="Give --user ID or --group ID.")
    return found
