"""Phrases of a prompt: which kind of tool its verb asks for, and the texts that verbs and prepositions introduce."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

# Words of a prompt -> words in the names of tools that do it.
_VERBS = (
    ("cat describe display explain open print read show summarize summarise view", "cat open read view"),
    ("list ls", "dir directory folder list ls"),
    ("contain contains find grep locate mention mentions search where", "find grep search"),
    ("execute launch run", "bash command exec execute run shell terminal"),
    ("create save write", "create write"),
    ("change edit modify replace", "edit replace"),
    ("delete remove", "delete remove"),
)
_FILE_FINDERS = "file find glob"
_FOLDER_WORDS = frozenset(
    re.findall(r"\w+", "codebase directory directories file files folder folders project repo repository workspace")
)
_READING = frozenset(_VERBS[0][0].split())
_SEARCHING = frozenset(_VERBS[2][0].split())
_ENDINGS = {
    "c": "c",
    "css": "css",
    "go": "go",
    "html": "html",
    "java": "java",
    "javascript": "js",
    "json": "json",
    "markdown": "md",
    "python": "py",
    "rust": "rs",
    "text": "txt",
    "toml": "toml",
    "typescript": "ts",
    "yaml": "yaml",
}
_WORD = re.compile(r"[a-z]+")
_WILDCARD = re.compile(r"[\w./{},-]*\*[\w./*{},?-]*")
_KIND_OF_FILES = re.compile(rf"\b({'|'.join(_ENDINGS)})\s+files?\b", re.IGNORECASE)
_LOCATION = re.compile(
    r"\b(?:in|inside|under|within|of|from)\s+(?:the\s+)?(?:(?:folder|directory)\s+)?([\w.~-][\w./~-]{0,199})",
    re.IGNORECASE,
)
_NO_LOCATIONS = frozenset(
    re.findall(
        r"\w+",
        "a all an any each every file files folder directory here it me my our that the them there these this those you your",
    )
)
_COMMAND = re.compile(r"\b(?:run|execute|launch)\s+(?:(?:the\s+)?(?:shell\s+)?command\s*:?\s+)?(\S.{0,500})", re.I)
_SEARCHED = re.compile(
    r"\b(?:search|look|grep|find|where is|contains?|mentions?)\s+(?:for\s+)?(?:the\s+)?(?:(?:word|text|string)\s+)?"
    r"(?!(?:all|an?|any|every|files?|for|in|my|the|this|through)\b)([\w.:@/-]{1,200})",
    re.IGNORECASE,
)
_REPLACED = re.compile(r"\breplace\s+(\S.{0,300}?)\s+(?:with|by)\s+(\S.{0,300}?)(?=\s+in\s|[.!?]?$)", re.I | re.M)
_CONTENT = (
    re.compile(
        r"\b(?:with|containing|that\s+says|saying)\s+(?:the\s+)?(?:(?:text|content|words?)\s+)?(\S.{0,500})", re.I
    ),
    re.compile(r"\b(?:write|save|put|add)\s+(\S.{0,500}?)\s+(?:to|into|in)\s", re.I),
)
_QUOTES = "\"'`“”‘’"


def tool_words(prompt: str, paths: Sequence[str]) -> frozenset[str]:
    """Words that the name of a fitting tool has. The verb decides; without one, a file is to be read and a folder to be listed."""
    lowered = prompt.lower().replace("look for", "search").replace("look at", "read")
    words = frozenset(_WORD.findall(lowered))
    found = [names for verbs, names in _VERBS if words & frozenset(verbs.split())]
    if not paths and words & _READING:
        found.remove(_VERBS[0][1])  # nothing to read
    if words & _SEARCHING and wildcard_in(prompt):
        found = [_FILE_FINDERS]
    elif not found and paths:
        found = [_VERBS[0][1]]
    elif not found and words & _FOLDER_WORDS:
        found = [_VERBS[1][1]]
    return frozenset(" ".join(found).split())


def wildcard_in(prompt: str) -> str:
    """A pattern of file names such as `*.py`, also for "python files"; "" if there is none."""
    if found := _WILDCARD.search(prompt):
        return found[0].rstrip(",") if found[0].strip("*") else ""
    kind = _KIND_OF_FILES.search(prompt)
    return "" if kind is None else f"*.{_ENDINGS[kind[1].lower()]}"


def location_in(prompt: str, texts: Collection[str]) -> str:
    """The folder in "list the files in src"; texts: those that may be one. "" if there is none."""
    found = (match.rstrip(".") for match in _LOCATION.findall(prompt))
    return next((name for name in found if name in texts and name.lower() not in _NO_LOCATIONS), "")


def searched_in(prompt: str) -> list[str]:
    """The text in "search for TODO"."""
    return [text.rstrip(".:,!?") for text in _SEARCHED.findall(prompt)]


def text_for(name: frozenset[str], prompt: str) -> str:
    """The text that a phrase gives for a property with these words in its name; "" if there is none."""
    if name & {"command", "cmd", "script"}:
        return _unquoted(_COMMAND.search(prompt))
    if name & {"old", "new"}:
        return _unquoted(_REPLACED.search(prompt), 1 if "old" in name else 2)
    if name & {"content", "contents", "text"}:
        return next((text for phrase in _CONTENT if (text := _unquoted(phrase.search(prompt)))), "")
    return ""


def _unquoted(found: re.Match[str] | None, group: int = 1) -> str:
    return "" if found is None else found[group].strip().strip(_QUOTES)
