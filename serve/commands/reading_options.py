"""Options of the commands that read chat files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pipelines.importers.contract import DateOrder
from primitives.clock import to_ms
from primitives.errors import InvalidInputError

PathsArgument = Annotated[list[Path], typer.Argument(help="Files, folders or zips of chats.")]
FormatOption = Annotated[str, typer.Option(help="auto, or the name of a format: jsonl, chatgpt, slack, whatsapp.")]
FieldsOption = Annotated[str, typer.Option(help="Fields of JSONL files: conversation=conv,text=body,...")]
SinceOption = Annotated[str | None, typer.Option(help="Only messages from this time on (ISO 8601).")]
UntilOption = Annotated[str | None, typer.Option(help="Only messages before this time (ISO 8601).")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="At most so many messages.")]
TimezoneOption = Annotated[str | None, typer.Option(help="Zone of times that name none: Asia/Shanghai.")]
DateOrderOption = Annotated[
    DateOrder | None,
    typer.Option(help="Which number of a date comes first, where a WhatsApp file leaves it open."),
]
ConversationOption = Annotated[
    str | None, typer.Option(help="Name of a WhatsApp chat; default: from the name of its file, zip or folder.")
]


def moment_of(name: str, text: str | None) -> int | None:
    """Milliseconds of an ISO 8601 time; a time without a zone is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as fault:
        raise InvalidInputError(f"{name} {text!r} is not ISO 8601", hint=f"Write {name} 2024-03-05.") from fault
    return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
