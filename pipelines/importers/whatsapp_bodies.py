"""What stands behind the head of a WhatsApp message: a sender and a text, or a line that the app itself wrote."""

from __future__ import annotations

import re
from typing import NamedTuple

from pipelines.importers.whatsapp_heads import MARKS

APP = "\u200e"
"""WhatsApp on iOS puts this mark in front of whatever it writes itself."""
_SENDER = re.compile(r"([^\n]{1,200}?)[ \u00a0]?:(?: |\u00a0|(?=\n)|$)")
_INVISIBLE = re.compile(f"[{MARKS}]")
_SPACES = re.compile("[\u00a0\u2009\u202f]")
_ISOLATES = re.compile("[\u2068\u2069]")
"""Around the names of mentions."""
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("«", "»"))
_LEFT_OUT = re.compile(
    "<(?:Media omitted|Medien ausgeschlossen|Multimedia omitido|Archivo omitido|Médias omis|Arquivo de mídia oculto"
    "|Mídia oculta|Media weggelaten|Media omessi|Mediafiler har utelämnats|Без медиафайлов|省略媒体文件|已忽略媒体文件"
    "|媒體已略去|省略多媒體檔案|メディアは含まれていません|미디어 파일을 생략한 대화내용)>"
)
_DELETED = frozenset(
    (
        "This message was deleted", "This message was deleted.", "You deleted this message", "You deleted this message.",
        "Diese Nachricht wurde gelöscht.", "Se eliminó este mensaje.", "Ce message a été supprimé",
        "Esta mensagem foi apagada", "此消息已删除", "此訊息已刪除", "このメッセージは削除されました",
    )
)  # fmt: skip
_ATTACHED = re.compile(rf"{APP}<[^<>:：\n]{{2,24}}[:：] ?(?P<name>[^<>\n]+)>")
"""iOS: `<attached: 00000012-PHOTO.jpg>`, in the phone's language."""
_FILE = re.compile(
    rf"(?P<mark>{APP})?(?P<name>[^\n/]{{1,200}}\.\w{{2,5}}) "
    r"\((?P<word>[^()\n]{2,30})\)(?:\n|$)"
)
_FILE_WORDS = frozenset(
    (
        "file attached", "Datei angehängt", "archivo adjunto", "fichier joint", "arquivo anexado", "bestand bijgevoegd",
        "file allegato", "файл добавлен", "bifogad fil", "附件", "文件附件", "檔案附件", "ファイル添付", "파일 첨부됨",
    )
)  # fmt: skip
_EDITED = re.compile(rf"\s?(?:{APP}<[^<>\n]{{2,60}}>|{APP}?<This message was edited>)$")


class Body(NamedTuple):
    """The words of a message and the files beside them; `reason` where there are no words and why."""

    text: str
    files: tuple[str, ...] = ()
    reason: str = ""


def parted(whole: str) -> tuple[str | None, str]:
    """Sender and rest of what follows a head; without a sender it is a system line.

    A quotation that is opened before the colon and closed behind it is a group's subject, in a system line.
    """
    match = _SENDER.match(whole)
    if match is None:
        return None, whole
    sender = _SPACES.sub(" ", _INVISIBLE.sub("", match[1])).strip()
    open_quote = any(
        sender.count(first) % 2 if first == last else sender.count(first) > sender.count(last) for first, last in _QUOTES
    )
    if not sender or open_quote:
        return None, whole
    return sender.replace("~ ", "~", 1) if sender.startswith("~ ") else sender, whole[match.end() :]


def read_body(said: str) -> Body:
    """What a person wrote."""
    said = said.strip("\r\n")
    files = tuple(match["name"].strip() for match in _ATTACHED.finditer(said))
    text = _ATTACHED.sub("", said)
    if (match := _FILE.match(text)) is not None and (match["mark"] or match["word"] in _FILE_WORDS):
        files, text = (*files, match["name"]), text[match.end() :]
    plain = _cleaned(text)
    if not plain.strip():
        return Body("", files, "file without text" if files else "blank text")
    if _LEFT_OUT.fullmatch(plain.strip()):
        return Body("", files, "media left out of the export")
    if plain.strip() in _DELETED:
        return Body("", files, "deleted message")
    if text.startswith(APP) and not files and "\n" not in plain and "://" not in plain:
        return Body("", files, "system line")  # calls, events of the group, media left out; polls and places have more
    return Body(plain, files)


def _cleaned(text: str) -> str:
    """Without the app's own marks; spaces and lines stay as they were written."""
    return _ISOLATES.sub("", _EDITED.sub("", text).replace(APP, "")).strip("\r\n")
