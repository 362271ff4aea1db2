"""What a backfill is asked to do, and the name by which a repeated one finds its ledger again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.importers.contract import DateOrder, ReadOptions
from pipelines.importers.registry import AUTO, Source
from pipelines.importers.times import zone_of
from pipelines.intake import Ownership
from primitives.errors import InvalidInputError
from primitives.hashing import stable_id


class BackfillRequest(BaseModel):
    """The arguments of `evercore backfill`."""

    model_config = ConfigDict(frozen=True)

    paths: list[Path]
    format: str = AUTO
    fields: dict[str, str] = Field(default_factory=dict)
    """Field of ours -> name in a JSONL file."""
    user: str | None = None
    """Every conversation becomes this person's."""
    group: str | None = None
    """Every conversation becomes this group's."""
    talks_of: str | None = None
    """Whose the talks with an assistant are (ChatGPT), where chats of groups lie beside them and stay the groups'."""
    tenant: str = "default"
    since: int | None = None
    """Milliseconds, included; messages before it are counted as skipped."""
    until: int | None = None
    """Milliseconds, not included."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many messages, in the order of the files."""
    timezone: str | None = None
    date_order: DateOrder | None = None
    conversation: str | None = None
    dry_run: bool = False
    workers: int | None = Field(default=None, ge=1)
    job: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> BackfillRequest:
        if not self.paths:
            raise InvalidInputError("no path given", hint="Name the files or folders to import.")
        if self.user is not None and self.group is not None:
            raise InvalidInputError("both --user and --group are given", hint="Give one: memories have one owner.")
        if self.talks_of is not None and (self.user is not None or self.group is not None):
            raise InvalidInputError(
                "--talks-of is given beside --user or --group",
                hint="Give --talks-of where chats of groups are to stay the groups', else --user.",
            )
        zone_of(self.timezone)
        return self

    def options(self) -> ReadOptions:
        """What importers are told; a meter of its own for each file."""
        return ReadOptions(
            fields=self.fields, timezone=self.timezone, date_order=self.date_order, conversation=self.conversation
        )

    def ownership(self, source: Source) -> Ownership:
        """Whose memory a file becomes; InvalidInputError where it has to be said and was not."""
        if source.importer.owner_rule != "user":
            return Ownership(rule=source.importer.owner_rule, user=self.user, group=self.group)
        user = self.user or self.talks_of
        if user is None and self.group is None:
            raise InvalidInputError(
                f"{source.path} ({source.format}) holds one person's talks, and nobody said whose",
                hint="Give --user with that person's id, for example --user alice; or --talks-of alice, where chats of "
                "groups are imported with it.",
            )
        return Ownership(rule="user", user=user, group=self.group)

    def arguments(self) -> dict[str, Any]:
        """What makes it the same job: everything that changes which messages are stored, and where."""
        found = self.model_dump(mode="json", exclude={"dry_run", "workers", "job", "tenant"})
        return found | {"paths": [str(path.resolve()) for path in self.paths]}

    @property
    def job_name(self) -> str:
        """The name given, or one made of the arguments, so that the same command resumes its job after a stop."""
        return self.job or "backfill-" + stable_id(sorted(self.arguments().items()))[:12]


def parse_fields(text: str) -> dict[str, str]:
    """`conversation=conv,sender=speaker` as a mapping; InvalidInputError for anything else."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        ours, equals, theirs = part.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise InvalidInputError(f"{part!r} is no field", hint="Write --fields conversation=conv,text=body.")
        found[ours.strip()] = theirs.strip()
    return found
