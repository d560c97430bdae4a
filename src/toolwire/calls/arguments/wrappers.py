"""What models write around arguments: fences, tags, labels, quotes, sentences; and whether it can go without losing anything.

Marks are taken off by their form. Sentences are dropped only if they cannot be a part of the arguments: no brackets, and no
name that the tool knows with a colon behind it. Whatever is dropped behind an object, the object itself was closed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANK = " \t\r\n\x00\ufeff\u200b"
_FENCE = re.compile(r"(?:```|~~~)[\w-]{0,20}[ \t]*\n?")
_FENCE_BELOW = re.compile(r"\n[ \t]*(?:```|~~~)[\w-]{0,20}[ \t]*\n")
_MARK = re.compile(
    r"<\|?/?[A-Za-z_][\w:. =\"/-]{0,60}\|?>|<｜[^<>\n]{1,60}｜>|\[/?[A-Z_]{2,20}\]|json\s+(?=[{\[])", re.IGNORECASE
)
_LABEL = re.compile(
    r"(?:arguments?|args|input|parameters?|params|json|(?:tool|function)?_?call)\s*[:=]\s*(?=[{\[\"'`(<])",
    re.IGNORECASE,
)
_END_MARK = re.compile(r"(?:```|~~~|</[\w:.-]{1,60}>|<[|｜][^<>\n]{1,60}[|｜]>|\[/[A-Z_]{2,20}\])\Z")
_CLOSING = re.compile(r"(?:[}\])\s;`~]|</?[\w:|.=-]{1,60}>|<[|｜][^<>\n]{1,60}[|｜]>|\[/?[A-Z_]{2,20}\])*")
_LONE = ('"', "'", ",", ".", "...", "…", '",', "',")
_MEMBER = re.compile(r"([\w$-]{1,80})[\"'’”]?\s*[:=]")
_LONGEST = 4000  # characters of sentences
_MOST_BEHIND = 50_000
_MOST_MARKS = 6


class Bare(NamedTuple):
    """is_ended: the model itself wrote an end behind it."""

    text: str
    is_ended: bool
    repairs: tuple[str, ...]


def without_marks(raw: str) -> Bare:
    """Without the marks before and behind."""
    text, before = _from_left(raw)
    text, is_ended = _from_right(text)
    repairs = dict.fromkeys([*before, *(["fence" if "fence" in before else "junk"] if is_ended else [])])
    return Bare(text, is_ended, tuple(repairs))


def is_sentence_before(text: str, names: frozenset[str]) -> bool:
    """Whether what stands before the first bracket can go."""
    words = text.strip()
    if not words:
        return True
    if len(words) > _LONGEST or not words[0].isalnum() or words.count('"') % 2:
        return False
    return words.rstrip(":= (").replace(".", "").isidentifier() or _is_prose(words, names)


def is_junk_behind(text: str, names: frozenset[str]) -> bool:
    """Whether what follows a closed object can go: more closers, marks, or sentences."""
    if len(text) > _MOST_BEHIND:
        return False
    closing = _CLOSING.match(text)
    rest = (text[closing.end() :] if closing else text).strip(_BLANK)
    if not rest or rest in _LONE:
        return True
    if (
        rest.split()[0] in ("true", "false", "null")
        or len(rest) > _LONGEST
        or rest[0] in ",:=\"'0123456789"
        or re.search(r"[{}\[\]]", rest)
    ):
        return False
    is_apart = "\n" in text[: closing.end() if closing else 0]
    return _is_prose(rest, names) and (is_apart or '"' not in rest)


def _is_prose(text: str, names: frozenset[str]) -> bool:
    return all(found.group(1) not in names for found in _MEMBER.finditer(text))


def _from_left(raw: str) -> tuple[str, list[str]]:
    text = raw.lstrip(_BLANK)
    repairs: list[str] = []
    below = _FENCE_BELOW.search(text, 0, _LONGEST) if text[:1].isalpha() else None
    if below and not re.search(r"[{}]", text[: below.start()]):
        text = text[below.start() :].lstrip(_BLANK)
    for _ in range(_MOST_MARKS):
        found, repair = _FENCE.match(text), "fence"
        if found is None:
            found, repair = _MARK.match(text) or _LABEL.match(text), "junk"
        if found is None or found.end() == len(text):
            break
        repairs.append(repair)
        text = text[found.end() :].lstrip(_BLANK)
    return text, repairs


def _from_right(text: str) -> tuple[str, bool]:
    """The last line end stays: it says that what stands before it had ended."""
    is_ended = False
    for _ in range(_MOST_MARKS):
        stripped = text.rstrip(_BLANK + ";")
        found = _END_MARK.search(stripped[-80:])
        if found is None:
            return (stripped if is_ended or "\n" not in text[len(stripped) :] else f"{stripped}\n"), is_ended
        text, is_ended = stripped[: len(stripped) - len(found.group())], True
    return text, is_ended
