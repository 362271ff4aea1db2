"""`evercore parse`: what the importers read from chat files, without storing anything."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import orjson
import typer
from rich.text import Text

from pipelines.jobs.parse import ParsedMessage, Parsing
from pipelines.jobs.request import BackfillRequest, parse_fields
from serve.commands.output import console, errors
from serve.commands.reading_options import (
    ConversationOption,
    DateOrderOption,
    FieldsOption,
    FormatOption,
    LimitOption,
    PathsArgument,
    SinceOption,
    TimezoneOption,
    UntilOption,
    moment_of,
)
from serve.configuration import load_settings

SHOWN_MESSAGES = 3
"""Of each conversation, in the preview."""
SHOWN_CONVERSATIONS = 20
SHOWN_TEXT = 120

JsonLines = Annotated[bool, typer.Option("--json", help="Print every message as a line of JSON.")]


def register(app: typer.Typer) -> None:
    app.command("parse")(parse)


def parse(
    paths: PathsArgument,
    format: FormatOption = "auto",
    fields: FieldsOption = "",
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = None,
    timezone: TimezoneOption = None,
    date_order: DateOrderOption = None,
    conversation: ConversationOption = None,
    as_json: JsonLines = False,
) -> None:
    """Show what a backfill would read from chat files; nothing is stored. Each message comes once.

    With --json one message a line on standard output: conversation, sender, time, text and ids. What was left out is
    counted on standard error. Exit code 1 where not a single message could be read.

    Example: evercore parse "WhatsApp Chat with Anna.txt" --timezone Europe/Berlin
    """
    request = BackfillRequest(
        paths=paths,
        format=format,
        fields=parse_fields(fields),
        since=moment_of("--since", since),
        until=moment_of("--until", until),
        limit=limit,
        timezone=timezone,
        date_order=date_order,
        conversation=conversation,
    )
    parsing = Parsing(request, max_bytes=load_settings().pipeline.message_max_bytes)
    parsing.open()
    try:
        count = _print_lines(parsing) if as_json else _preview(parsing)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    _print_counts(parsing, count)
    if not count and parsing.reasons("unreadable").counts:
        raise typer.Exit(1)


def _print_lines(parsing: Parsing) -> int:
    count = 0
    for message in parsing.messages():
        count += 1
        sys.stdout.write(orjson.dumps(asdict(message)).decode() + "\n")
    sys.stdout.flush()
    return count


@dataclass
class _Conversation:
    """What the preview says of one."""

    title: str
    messages: int = 0
    first: str = ""
    last: str = ""


def _preview(parsing: Parsing) -> int:
    found: dict[str, _Conversation] = {}
    for message in parsing.messages():
        seen = found.setdefault(message.conversation_id, _Conversation(message.conversation))
        seen.messages += 1
        if message.time:
            seen.first, seen.last = min(seen.first or message.time, message.time), max(seen.last, message.time)
        if len(found) <= SHOWN_CONVERSATIONS and seen.messages <= SHOWN_MESSAGES:
            _show(message, seen)
    for key, seen in list(found.items())[:SHOWN_CONVERSATIONS]:
        name = seen.title if seen.title == key else f"{seen.title} ({key})"
        span = f"{seen.first[:10]} to {seen.last[:10]}" if seen.last else "undated"
        console.print(Text(f"{name}: {seen.messages:,} messages, {span}"), soft_wrap=True)
    if len(found) > SHOWN_CONVERSATIONS:
        console.print(f"and {len(found) - SHOWN_CONVERSATIONS:,} more conversations")
    return sum(seen.messages for seen in found.values())


def _show(message: ParsedMessage, seen: _Conversation) -> None:
    if seen.messages == 1:
        console.print(Text(message.conversation, style="bold cyan"), soft_wrap=True)
    when = (message.time or "undated")[:16].replace("T", " ")
    text = " ".join(message.text.split())
    text = text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…"
    console.print(Text.assemble((f"{when}  ", "dim"), (f"{message.sender}: ", "bold"), text), soft_wrap=True)


def _print_counts(parsing: Parsing, count: int) -> None:
    """How many messages there are, and what was left out and why, on standard error."""
    errors.print(f"{count:,} messages from {parsing.read:,} records", soft_wrap=True)
    for name, number in (("duplicate", parsing.duplicates), ("same id, other content", parsing.conflicts)):
        if number:
            errors.print(f"  {number:,} left out: {name}", soft_wrap=True)
    for kind in ("unreadable", "skipped", "noted"):
        reasons = parsing.reasons(kind)
        for reason, number in sorted(reasons.counts.items(), key=lambda pair: -pair[1]):
            errors.print(Text(f"  {number:,} {kind}: {reason}"), soft_wrap=True)
            for example in reasons.examples.get(reason, []):
                errors.print(Text(f"      {example.where}  {example.sample}".rstrip(), style="dim"), soft_wrap=True)
