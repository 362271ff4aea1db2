"""The same chat as an export of each format."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

FORMATS = ("jsonl", "chatgpt", "slack", "whatsapp")
T0 = 1_711_357_200  # 25 March 2024, 09:00: no month, so the order of day and month shows


class Said(NamedTuple):
    text: str
    second: int
    """After T0."""


def rows(count: int, *, text: str = "number {n}") -> list[Said]:
    return [Said(text.format(n=n), 60 * n) for n in range(count)]


def content_of(format: str, said: list[Said]) -> bytes:
    """The file with the messages. Senders alternate between two people."""
    if format == "whatsapp":
        heads = [f"{datetime.fromtimestamp(T0 + row.second, UTC):%d/%m/%Y, %H:%M} - {'Ann' if n % 2 else 'Ben'}: " for n, row in enumerate(said)]
        return "".join(f"{head}{row.text}\n" for head, row in zip(heads, said, strict=True)).encode("utf-8", "surrogatepass")
    made: list[dict[str, Any]] = []
    if format == "jsonl":
        made = [{"conversation": "c", "sender": "Ann", "message_id": f"m{n}", "text": row.text, "time": T0 + row.second} for n, row in enumerate(said)]
        return "".join(json.dumps(row) + "\n" for row in made).encode()
    if format == "slack":
        made = [{"type": "message", "user": "U1", "ts": f"{T0 + row.second}.{n % 1_000:06d}", "text": row.text} for n, row in enumerate(said)]
        return json.dumps(made).encode()
    parts = [said[at : at + 50] for at in range(0, len(said), 50)]
    return json.dumps([_tree(f"talk-{n}", part) for n, part in enumerate(parts)]).encode()


def _tree(key: str, said: list[Said]) -> dict[str, Any]:
    nodes = {
        f"{key}-{n}": {"parent": f"{key}-{n - 1}" if n else None, "message": {
            "author": {"role": "assistant" if n % 2 else "user"}, "create_time": T0 + row.second, "content": {"parts": [row.text]}}}
        for n, row in enumerate(said)
    }  # fmt: skip
    return {"title": key, "id": key, "current_node": f"{key}-{len(said) - 1}", "mapping": nodes}


def write(format: str, folder: Path, said: list[Said] | bytes, *, zipped: bool = False) -> Path:
    """The export in a folder of its own; `said` may be the bytes of its file with messages."""
    data = said if isinstance(said, bytes) else content_of(format, said)
    name = {"jsonl": "a.jsonl", "chatgpt": "conversations.json", "slack": "general/2024-03-25.json", "whatsapp": "WhatsApp Chat with us.txt"}[format]
    files = {name: data}
    if format == "slack":
        files |= {"users.json": b'[{"id": "U1", "name": "ann"}]', "channels.json": b'[{"id": "C1", "name": "general"}]'}
    folder.mkdir(parents=True, exist_ok=True)
    if zipped:
        with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for inner, content in files.items():
                archive.writestr(inner, content)
        return folder / "export.zip"
    for inner, content in files.items():
        (folder / inner).parent.mkdir(parents=True, exist_ok=True)
        (folder / inner).write_bytes(content)
    return folder if format == "slack" else folder / name
