"""Slack's message markup as the text that people saw."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MARKUP = re.compile(r"<([^<>]+)>|&(amp|lt|gt);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">"}
_SCHEME = re.compile(r"^(https?://(www\.)?|mailto:|tel:)")


def readable(text: str, *, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """Mentions by name (`people` and `channels`: id -> name; the id itself where it is not known), links as their
    label with the address behind it, entities as characters. A raw < or > in Slack's text is always markup."""

    def shown(match: re.Match[str]) -> str:
        if match[2]:
            return _ENTITIES[match[2]]
        target, _, label = match[1].partition("|")
        return _entities(_shown(target, label, people, channels))

    return _MARKUP.sub(shown, text)


def _entities(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _shown(target: str, label: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    kind, name = target[0], target[1:]
    if kind == "@":
        return "@" + (people.get(name) or label or name)
    if kind == "#":
        return "#" + (channels.get(name) or label or name)
    if kind == "!":  # <!here>, <!subteam^S1|@team>, <!date^1700000000^{date}|14 November>
        return label or "@" + name.split("^")[0]
    bare = _SCHEME.sub("", target)
    if not label:
        return bare if target.startswith(("mailto:", "tel:")) else target
    if label in (target, bare, bare.rstrip("/")):
        return label
    return f"{label} ({bare if target.startswith(('mailto:', 'tel:')) else target})"
