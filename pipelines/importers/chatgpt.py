"""ChatGPT's data export: conversations.json, conversations-000.json and so on, each an array of conversation trees.

A conversation is a tree with edits and regenerations. The live thread runs from `current_node` up through `parent`;
`children` is not needed, and there may be several roots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import ijson

from pipelines.importers.arrays import MARK, items, without_mark
from pipelines.importers.contract import Importer, ReadOptions, Records, Titled
from pipelines.importers.files import DAMAGED, Readable, open_bytes
from pipelines.importers.repair import RepairedBytes
from pipelines.importers.times import BadTimeError, moment
from pipelines.incoming import Incoming, Rejected
from primitives.text import storable

_TREE = re.compile(rb'"mapping"\s*:\s*\{')
_NAME = re.compile(r"conversations(-\d+)?\.json(\.gz)?", re.IGNORECASE)
_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]")
_INNER = {"thoughts", "reasoning_recap", "model_editable_context", "user_editable_context"}
"""Content types that are the model's own notes and settings, no part of the conversation."""


def sniff(path: Readable, head: bytes) -> bool:
    """An array or object with a conversation tree near its beginning, or an empty array under the export's name."""
    start = head.removeprefix(MARK).lstrip()
    if not start.startswith((b"[", b"{")):
        return False
    return bool(_TREE.search(head)) or (bool(_NAME.fullmatch(path.name)) and start.rstrip() == b"[]")


def read(path: Readable, options: ReadOptions) -> Records:
    """The live thread of every conversation, streamed."""
    prefix = _prefix(path)
    if prefix is None:
        yield Rejected("no conversation tree in the file", str(path))
        return
    for found in items(path, prefix, noun="conversation", meter=options.meter):
        if isinstance(found, Rejected):
            yield found
            continue
        try:
            yield from _conversation(found.value, found.where)
        except RecursionError:
            yield Rejected("nested too deep", found.where)


def _prefix(path: Readable) -> str | None:
    """Where in the file the conversations are: `item` for an array, `conversations.item` in a wrapping object."""
    with open_bytes(path) as stream:
        try:
            for prefix, event, value in ijson.parse(RepairedBytes(without_mark(stream))):
                if event == "map_key" and value == "mapping":
                    return str(prefix)
        except (ijson.JSONError, *DAMAGED):
            return None  # nothing readable before the damage; the caller reports the file
    return None


# ---------------------------------------------------------------- one conversation


def _conversation(tree: Any, where: str) -> Iterator[Incoming | Rejected]:
    mapping = tree.get("mapping") if isinstance(tree, dict) else None
    if not isinstance(mapping, dict):
        yield Rejected("a conversation without messages", where)
        return
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    title = storable(str(tree.get("title") or ""))
    name = storable(str(tree.get("conversation_id") or tree.get("id") or "")) or title or _root_id(nodes)
    for key in _thread(nodes, tree.get("current_node")):
        message = nodes[key].get("message")
        if message is None:
            continue
        here = f"{where}, node {storable(key)}"
        if not isinstance(message, dict):
            yield Rejected("not a message", here, sample=str(message)[:80])
            continue
        yield _message(message, storable(str(message.get("id") or key)), name, title, here)


def _root_id(nodes: dict[str, Any]) -> str:
    return storable(next(iter(nodes), "unnamed"))


def _thread(nodes: dict[str, Any], current: Any) -> list[str]:
    """Keys of the live thread, first message first. Without a usable `current_node`, the latest leaf is its end."""
    if not isinstance(current, str) or current not in nodes:
        current = _latest_leaf(nodes)
    keys: list[str] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        keys.append(current)
        current = nodes[current].get("parent")
    return keys[::-1]


def _latest_leaf(nodes: dict[str, Any]) -> str | None:
    inner = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}

    def created(key: str) -> float:
        message = nodes[key].get("message")
        time = message.get("create_time") if isinstance(message, dict) else None
        return float(time) if isinstance(time, int | float) else float("-inf")

    leaves = [key for key in nodes if key not in inner]
    return max(reversed(leaves), key=created, default=None)  # of equal ones, the one that stands last in the file


class _Content(NamedTuple):
    text: str
    parts: tuple[dict[str, Any], ...]


def _message(message: dict[str, Any], key: str, conversation: str, title: str, where: str) -> Incoming | Rejected:
    author = message.get("author")
    role = str((author.get("role") if isinstance(author, dict) else author) or "")
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))
    content = message.get("content")
    kind = str(content.get("content_type") or "") if isinstance(content, dict) else ""
    if role == "system":
        return Rejected("system message", where, skipped=True)
    if hidden or kind in _INNER:
        return Rejected("hidden message", where, skipped=True)
    if role == "tool" or message.get("recipient") not in (None, "", "all"):
        return Rejected("tool message", where, skipped=True)
    if role not in ("user", "assistant"):
        return Rejected("unknown role", where, sample=role[:80])
    text, parts = _content(content)
    if not text.strip():
        return Rejected("blank text", where, skipped=True)
    try:
        time = moment(message.get("create_time"), None, where=where)
    except BadTimeError as fault:
        return Rejected("bad time", where, sample=str(fault))
    return Titled(
        conversation=conversation, sender_id=role, text=text, role=role, timestamp=time, message_id=key,
        content_items=parts, title=title,
    )  # fmt: skip


def _content(content: Any) -> _Content:
    """Text parts joined by line ends; images and files beside them."""
    if isinstance(content, str):
        content = {"parts": [content]}
    if not isinstance(content, dict):
        return _Content("", ())
    parts = content.get("parts")
    texts: list[str] = []
    others: list[dict[str, Any]] = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])  # a transcript of something spoken
        elif isinstance(part, dict):
            others.append(part)
    return _Content(_CITATION.sub("", storable("\n".join(filter(None, texts)))), tuple(others))


IMPORTER = Importer(name="chatgpt", owner_rule="user", sniff=sniff, read=read)
