"""Finds files and folders in a prompt, and the part of a prompt that the user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MOST_PATHS = 20
_MOST_NOTES = 50
_SEARCHED = 200_000  # characters of a conversation that are searched for the workspace folder
# Tags in which clients put the text of the user: userRequest (VS Code), user_query (Cursor), task (Cline).
_REQUEST_TAG = re.compile(r"<([\w-]{0,40}(?:request|query|task|prompt|question|feedback))>", re.IGNORECASE)
_NOTE_TAG = re.compile(r"<([A-Za-z][\w-]{0,60})>")
_SEPARATORS = re.compile(r"[\s\"'`“”‘’<>()\[\]{},;|*=]+")
_FILE_NAME = re.compile(r"(?:[\w@+-][\w.@+-]*)?\.[A-Za-z][A-Za-z0-9]{0,9}")
_ROOTED = re.compile(r"(?:~|\.{1,2})?[/\\]|[A-Za-z]:[/\\]")
_INTRODUCED = re.compile(
    r"\b(?:file|folder|directory)\s+(?:named\s+|called\s+)?[\"'`]?([\w.@+~/\\-]{1,200})", re.IGNORECASE
)
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "a an and at for from here i in is it me my named of on or please that the there this to with you",
    )
)
_WORKSPACE = re.compile(
    r"\b(?:workspace|working directory|cwd|folders?)\b[^\n/\\]{0,60}[\n>:\s-]{0,8}((?:/|[A-Za-z]:[/\\])[^\s\"'`<>]{1,300})",
    re.IGNORECASE,
)


def request_in(text: str) -> str:
    """The text of the user: the content of a request tag, else the text without tagged notes."""
    for tag in reversed(list(_REQUEST_TAG.finditer(text))[-_MOST_NOTES:]):
        end = text.find(f"</{tag[1]}>", tag.end())
        if end >= 0 and (inner := text[tag.end() : end].strip()):
            return inner
    return _without_notes(text).strip() or text


def paths_in(text: str) -> tuple[str, ...]:
    """Words that look like a path, then words after "file" or "folder"; each once."""
    words = (word.rstrip(".:!?") for word in _SEPARATORS.split(text))
    found = [word for word in words if _is_path(word)]
    introduced = (word.rstrip(".:!?") for word in _INTRODUCED.findall(text))
    found += [word for word in introduced if word and word.lower() not in _NO_NAMES]
    return tuple(dict.fromkeys(found))[:_MOST_PATHS]


def workspace_in(texts: Iterable[str]) -> str:
    """The folder that the client works in; "" if it names none."""
    left = _SEARCHED
    for text in texts:
        if (found := _WORKSPACE.search(text[: max(0, left)])) is not None:
            return found[1].rstrip(".,:;/\\") or "/"
        left -= len(text)
    return ""


def absolute(path: str, workspace: str) -> str:
    if not workspace or path.startswith(("/", "~", "\\")) or path[1:2] == ":":
        return path
    separator = "\\" if "\\" in workspace else "/"
    return f"{workspace.rstrip(separator)}{separator}{path.removeprefix('./')}"


def _without_notes(text: str) -> str:
    kept: list[str] = []
    start = 0
    for _ in range(_MOST_NOTES):
        if (tag := _NOTE_TAG.search(text, start)) is None:
            break
        end = text.find(f"</{tag[1]}>", tag.end())
        kept.append(text[start : tag.start() if end >= 0 else tag.end()])
        start = tag.end() if end < 0 else end + len(tag[1]) + 3
    return "".join([*kept, text[start:]])


def _is_path(word: str) -> bool:
    if not 2 < len(word) <= 300 or "://" in word or word.endswith(("...", "…")):
        return False
    name = re.split(r"[/\\]", word)[-1]
    has_letters = any(character.isalnum() for character in word)
    if _ROOTED.match(word):
        return has_letters
    is_file = _FILE_NAME.fullmatch(name) is not None and (len(name) > 3 or "/" in word)
    is_mail = "@" in name.partition(".")[0].lstrip("@")
    return has_letters and not is_mail and (is_file or word.endswith(("/", "\\")))
