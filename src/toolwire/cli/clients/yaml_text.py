"""Edits YAML line by line, for the two shapes that clients use: top-level keys, and one list of objects.

The standard library has no YAML parser, and none is needed: a key at the left edge of a block mapping cannot be inside anything else. A file
whose affected part has another form (flow style, anchors, several documents) is refused with an error message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError, quote
from .client import ListItem, Setting, format_path

_TOP = re.compile(
    r"""(?:"(?P<quoted>[^"\\]*)"|'(?P<single>[^']*)'|(?P<plain>[A-Za-z0-9_][^\s:#]*)):(?:\s+(?P<value>.*))?"""
)
_ENTRY = re.compile(r"""(?P<indent> *)(?P<dash>- +)?(?P<name>["']?[A-Za-z0-9_-]+["']?):(?:[ \t]+(?P<value>.*))?""")
_COMPLEX = tuple("|>&*!{[")  # first characters of a value with several lines, an anchor or flow style
_HAND = "Change it by hand; without --write the settings are only shown."


def apply_settings(text: str, settings: Sequence[Setting]) -> str:
    """Raises ConfigError if the text is not plain YAML that can be changed safely."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    before = list(lines)
    for setting in settings:
        spans = _spans(lines)
        match setting.path:
            case (str() as key,):
                _put_key(lines, spans, key, setting.value, setting.is_default)
            case (str() as key, ListItem() as item):
                _put_item(lines, spans, key, item, setting.value)
            case _:
                raise ConfigError(f"{format_path(setting.path)} is not supported in a YAML file.")
    return text if lines == before else newline.join([*lines, ""])


def _spans(lines: list[str]) -> dict[str, tuple[int, int]]:
    """The line range of each top-level key, end exclusive."""
    starts: list[tuple[str, int]] = []
    for index, line in enumerate(lines):
        if not _is_content(line) or (line == "---" and not starts) or (line[0] == " " and starts):
            continue
        match = _TOP.fullmatch(line)
        if match is not None:
            starts.append((match["plain"] or match["single"] or match["quoted"] or "", index))
        elif not (starts and re.match(r"-(\s|$)", line)):
            raise ConfigError(f"line {index + 1} is {quote(line[:60])}; expected a plain block of keys.", hint=_HAND)
    names = [name for name, _ in starts]
    if len(set(names)) < len(names):
        raise ConfigError("a key occurs twice.", hint=_HAND)
    ends = [index for _, index in (*starts, ("", len(lines)))][1:]
    return {name: (index, end) for (name, index), end in zip(starts, ends, strict=True)}


def _put_key(lines: list[str], spans: dict[str, tuple[int, int]], key: str, value: Any, is_default: bool) -> None:
    if key not in spans:
        lines.append(f"{key}: {_format(value)}")
        return
    start, end = spans[key]
    match = _TOP.fullmatch(lines[start])
    found = (match["value"] if match else "") or ""
    if is_default or _scalar(found) == value:
        return
    if found[:1] in _COMPLEX or any(_is_content(line) for line in lines[start + 1 : end]):
        raise ConfigError(f"{quote(key)} has a value with several lines or in flow style.", hint=_HAND)
    lines[start] = f"{key}: {_format(value)}{_comment(found)}"


def _put_item(
    lines: list[str], spans: dict[str, tuple[int, int]], key: str, item: ListItem, members: dict[str, Any]
) -> None:
    if key not in spans:
        lines += [f"{key}:", *_item_lines(item, members, "  ")]
        return
    start, end = spans[key]
    match = _TOP.fullmatch(lines[start])
    found = (match["value"] if match else "") or ""
    if _scalar(found) not in ("", "[]", "null", "~"):
        raise ConfigError(f"{quote(key)} is not a list in block style.", hint=_HAND)
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    starts = _item_starts(lines, start + 1, end)
    if not starts:
        lines[start : start + 1] = [f"{key}:{_comment(found)}", *_item_lines(item, members, "  ")]
        return
    for first, last in zip(starts, [*starts[1:], end], strict=True):
        entries = _entries(lines, first, last)
        if item.member in entries and _scalar(entries[item.member][1]) == item.value:
            _merge_item(lines, entries, members, max(i for i in range(first, last) if _is_content(lines[i])) + 1)
            return
    # First in the list, because some clients (Continue's cn) use the first element.
    indent = lines[starts[0]][: lines[starts[0]].index("-")]
    lines[start + 1 : start + 1] = _item_lines(item, members, indent)


def _item_starts(lines: list[str], start: int, end: int) -> list[int]:
    """The first lines of the elements: all lines indented like the first element."""
    content = [index for index in range(start, end) if _is_content(lines[index])]
    if not content:
        return []
    depth = _depth(lines[content[0]])
    starts = [index for index in content if _depth(lines[index]) <= depth]
    if any(_depth(lines[index]) < depth or not re.match(r" *- +\S", lines[index]) for index in starts):
        raise ConfigError("expected a list in block style.", hint=_HAND)
    return starts


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _entries(lines: list[str], first: int, last: int) -> dict[str, tuple[int, str]]:
    """Line and value of the direct members of one element."""
    depth = len(lines[first]) - len(lines[first].lstrip(" -"))
    found: dict[str, tuple[int, str]] = {}
    for index in range(first, last):
        match = _ENTRY.fullmatch(lines[index])
        if (
            match
            and len(match["indent"]) + len(match["dash"] or "") == depth
            and (index == first) == bool(match["dash"])
        ):
            following = next((line for line in lines[index + 1 : last] if _is_content(line)), "")
            is_continued = match["value"] and _depth(following) > depth
            found[match["name"].strip("\"'")] = (index, "|" if is_continued else match["value"] or "")
    return found


def _merge_item(lines: list[str], entries: dict[str, tuple[int, str]], members: dict[str, Any], end: int) -> None:
    """Replaces strings, leaves existing lists alone, and adds new members at the end of the element."""
    first = lines[min(index for index, _ in entries.values())]
    indent = " " * (len(first) - len(first.lstrip(" -")))
    for name, value in members.items():
        if name not in entries:
            lines.insert(end, f"{indent}{name}: {_format(value)}")
            end += 1
        elif isinstance(value, str) and _scalar(entries[name][1]) != value:
            index, found = entries[name]
            if not _scalar(found) or found[:1] in _COMPLEX:
                raise ConfigError(f"{quote(name)} has a value with several lines or in flow style.", hint=_HAND)
            head = lines[index][: len(lines[index]) - len(found)]
            lines[index] = f"{head}{_format(value)}{_comment(found)}"


def _item_lines(item: ListItem, members: dict[str, Any], indent: str) -> list[str]:
    rows = [f"{name}: {_format(value)}" for name, value in item.create(members).items()]
    return [f"{indent}{'- ' if number == 0 else '  '}{row}" for number, row in enumerate(rows)]


def _scalar(text: str) -> str:
    """The value of a one-line scalar, without quotes and comment."""
    text = text.strip()
    quoted = re.match(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$""", text)
    if quoted is None:
        return re.sub(r"(^|\s+)#.*$", "", text)
    if text[0] == "'":
        return quoted[1][1:-1].replace("''", "'")
    try:
        return str(json.loads(quoted[1]))
    except ValueError:
        return quoted[1]


def _comment(text: str) -> str:
    bare = re.sub(r"""^\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')""", "", text)
    match = re.search(r"(?:^|\s)(#.*)$", bare)
    return f"  {match[1]}" if match else ""


def _format(value: Any) -> str:
    """JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)
