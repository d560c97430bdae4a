"""Free text as the argument of a function, and back: for tools that take text, on back ends that know only functions."""

from __future__ import annotations

import re
from typing import Any

from ...types import Json, JsonObject, Tool
from ...wire.exact_json import BadJson, decode, encode, object_of

FIELD = "input"
# What models call the text beside other members that they invent.
_OTHER_FIELDS = ("patch", "code", "script", "text", "content", "command", "diff", "body")
_MOST_GRAMMAR = 20_000
_FENCE = re.compile(r"(```+|~~~+)[^`~]*")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


def schema_of(tool: Tool) -> JsonObject:
    about = f"The text that {tool.name} takes, as it is: no JSON, no quotes around it, no code fence."
    return {
        "type": "object",
        "properties": {FIELD: {"type": "string", "description": about}},
        "required": [FIELD],
        "additionalProperties": False,
    }


def description_of(tool: Tool) -> str:
    """The tool's description, with its grammar for back ends that have no grammars."""
    words = tool.description or ""
    if not tool.grammar:
        return words
    rule = f'The text in "{FIELD}" must match this grammar:\n{tool.grammar[:_MOST_GRAMMAR]}'
    return f"{words}\n\n{rule}" if words else rule


def wrapped(text: str) -> str:
    return encode({FIELD: text}).decode("utf-8", "surrogatepass")


def unwrapped(raw: str, *, has_grammar: bool) -> str:
    """The text inside the expected object, or inside one of the wrappers that models invent (H104).

    Fences, heredocs and a second object are removed only where a grammar shows that the tool takes no prose.
    """
    text = _inner(raw)
    return _bare(_inner(text)) if has_grammar else text


def _inner(raw: str) -> str:
    value = object_of(raw)
    if value is None:
        return _string(raw)
    given = value.get(FIELD)
    if isinstance(given, str):
        return given
    if not value:
        return ""
    fields = tuple(value) if len(value) == 1 else _OTHER_FIELDS
    texts = [found for field in fields if (found := _text_in(value.get(field))) is not None]
    return texts[0] if len(texts) == 1 else raw


def _string(raw: str) -> str:
    """A JSON string in place of the object, or no JSON at all."""
    if raw.lstrip().startswith('"'):
        try:
            value: Any = decode(raw.encode("utf-8", "surrogatepass"))
        except BadJson:
            return raw
        if isinstance(value, str):
            return value
    return raw


def _text_in(value: Json) -> str | None:
    """A text, or the last argument of a command line such as ["apply_patch", "..."]."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return str(value[-1])
    return value if isinstance(value, str) else None


def _bare(text: str) -> str:
    """Without the lines around it that a model puts there for a reader or a shell."""
    for opening in (_FENCE.fullmatch, _HEREDOC.search):
        first, newline, rest = text.strip().partition("\n")
        match = opening(first)
        if match is None or not newline:
            continue
        inside, _, last = rest.rpartition("\n")
        if last.strip() == match.group(1) and not any(line.strip() == last.strip() for line in inside.split("\n")):
            text = inside + "\n"
    return text
