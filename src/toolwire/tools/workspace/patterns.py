"""Path patterns as in .gitignore and ripgrep's --glob: * ? [...] within a name, ** for any folders.

Matching is linear in the pattern and the path: only the last ** is ever retried, and fnmatch compiles the stars of one name to atomic
groups.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from .messages import ToolRefused

_MAX_PATTERN = 1000
_MAX_BRACES = 64
_WILD = re.compile(r"[*?\[\\]")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_Name = Callable[[str], object]


class Pattern:
    """A pattern without a slash, except at its end, matches a name at any depth; any other matches a path from its base."""

    def __init__(self, text: str) -> None:
        is_floating = "/" not in text.rstrip("/")
        names = [name for name in text.split("/") if name]
        if names and names[-1] == "**":
            names.append("*")  # a/** matches what is in a, not a itself
        self._names: list[_Name | None] = [None if name == "**" else _name_matcher(name) for name in names]
        self._only = self._names[0] if is_floating and len(names) == 1 else None

    def matches(self, parts: Sequence[str]) -> bool:
        if self._only is not None:
            return bool(self._only(parts[-1]))
        return bool(self._names) and _match_path(self._names, parts)


class Patterns:
    """A pattern from a model, with {a,b} for alternatives."""

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_PATTERN:
            raise ToolRefused(
                f"the pattern has {len(text):,} characters, expected at most {_MAX_PATTERN}; use a shorter one."
            )
        if not text.strip("/"):
            raise ToolRefused('the pattern is empty; write one such as "*.py" or "src/**/test_*.py".')
        if ".." in text.split("/"):
            raise ToolRefused('the pattern holds "..", expected names below the folder; give the folder as path.')
        self._patterns = [Pattern(alternative) for alternative in _alternatives(text.removeprefix("./"))]

    def matches(self, parts: Sequence[str]) -> bool:
        return any(pattern.matches(parts) for pattern in self._patterns)


class IgnoreFile:
    """The rules of one .gitignore; depth is the number of folders between the root and the file."""

    def __init__(self, text: str, depth: int) -> None:
        self._depth = depth
        lines = [line for line in map(_clean_line, text.splitlines()) if line and len(line) <= _MAX_PATTERN]
        self._rules = [_Rule(line) for line in lines if "//" not in line]  # no path has an empty component

    def verdict(self, parts: Sequence[str], *, is_folder: bool) -> bool | None:
        """Whether the last rule that matches ignores it; None if no rule matches."""
        below = parts[self._depth :]
        for rule in reversed(self._rules):
            if (is_folder or not rule.is_for_folders) and rule.pattern.matches(below):
                return not rule.is_exception
        return None


def is_ignored(files: Sequence[IgnoreFile], parts: Sequence[str], *, is_folder: bool) -> bool:
    """The deepest file with a matching rule decides."""
    for file in reversed(files):
        if (verdict := file.verdict(parts, is_folder=is_folder)) is not None:
            return verdict
    return False


class _Rule:
    def __init__(self, line: str) -> None:
        self.is_exception = line.startswith("!")
        line = line.removeprefix("!")
        self.is_for_folders = line.endswith("/")
        self.pattern = Pattern(line)


def _clean_line(line: str) -> str:
    if line.startswith("#"):
        return ""
    stripped = line.rstrip(" \t")
    return stripped + " " if stripped.endswith("\\") and stripped != line else stripped


def _match_path(names: Sequence[_Name | None], parts: Sequence[str]) -> bool:
    at = position = retry = 0
    any_folders = -1
    while position < len(parts):
        if at < len(names) and names[at] is None:
            any_folders, retry = at, position
            at += 1
        elif at < len(names) and (name := names[at]) is not None and name(parts[position]):
            at += 1
            position += 1
        elif any_folders >= 0:
            retry += 1
            position, at = retry, any_folders + 1
        else:
            return False
    return all(name is None for name in names[at:])


def _name_matcher(text: str) -> _Name:
    if not _WILD.search(text):
        return text.__eq__
    if text.startswith("*") and not _WILD.search(text, 1):
        ending = text[1:]
        return lambda name: name.endswith(ending)
    try:
        return re.compile(fnmatch.translate(_to_fnmatch(text))).match
    except re.error:
        return lambda name: False


def _to_fnmatch(text: str) -> str:
    """fnmatch has no backslash escapes, and only [!a] where others also have [^a]."""
    text = re.sub(r"\\(.?)", lambda found: f"[{found[1]}]" if found[1] in tuple("*?[") else found[1], text)
    return text.replace("[^", "[!")


def _alternatives(text: str) -> list[str]:
    waiting, done = [text], list[str]()
    while waiting:
        text = waiting.pop()
        if found := _BRACES.search(text):
            choices = found[1].split(",")
            waiting += [text[: found.start()] + choice + text[found.end() :] for choice in reversed(choices)]
        else:
            done.append(text)
        if len(waiting) + len(done) > _MAX_BRACES:
            raise ToolRefused(f"the braces of the pattern mean more than {_MAX_BRACES} patterns; use fewer.")
    return done
