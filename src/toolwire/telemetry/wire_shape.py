"""The shape of a message for the log: names of members, kinds, sizes and ids, and nothing of what anybody said.

Members that hold words of the client's or the model's own making (arguments, schemas, settings) are counted, not entered: even
their names may be content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..types import Json

_DEPTH = 5
_MEMBERS = 24  # of an object
_ITEMS = 4  # of a list
_LONGEST = 1500  # characters of a whole shape
# Members whose text says what a message is, and not what it is about.
_TELLING = frozenset(
    [
        *("type", "role", "name", "model", "method", "status", "object", "event", "kind", "tool", "finish_reason"),
        *("stop_reason", "code", "effort", "service_tier", "modelProvider", "historyMode", "finishReason", "mode"),
    ]
)
_ID = re.compile(r"(?:^|_)id$|[a-z]Id$|^id$")
_PLAIN = re.compile(r"[\w.:/@+-]{1,100}\Z")
_OPAQUE = frozenset(
    [
        *("arguments", "args", "parameters", "parametersJsonSchema", "input_schema", "inputSchema", "schema", "config"),
        *("outputSchema", "metadata", "client_metadata", "json_schema", "properties", "env"),
    ]
)
# Objects under these names are content, lists and texts under them are part of the message.
_OPAQUE_OBJECTS = frozenset({"input", "output"})


def shape_of(value: Json) -> str:
    """Bounded, on one line."""
    text = "".join(_shape(value, "", _DEPTH))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _shape(value: Json, name: str, depth: int) -> Iterator[str]:
    match value:
        case None | True | False:
            yield {None: "null", True: "true", False: "false"}[value]
        case str():
            yield _text(value, name)
        case Mapping() if name == "headers":
            yield f"{{{', '.join(_name(header) for header in list(value)[:_MEMBERS])}}}"
        case Mapping():
            is_content = name in _OPAQUE or name in _OPAQUE_OBJECTS or (name == "response" and "id" not in value)
            yield from _counted(len(value)) if is_content or not depth else _members(value, depth)
        case list() | tuple():
            yield from _items(value, name, depth)
        case _:
            yield "number"


def _members(value: Mapping[str, Json], depth: int) -> Iterator[str]:
    yield "{"
    for number, (name, item) in enumerate(value.items()):
        if number == _MEMBERS:
            yield f", and {len(value) - number} more"
            break
        yield f"{', ' if number else ''}{_name(name)}: "
        yield from _shape(item, name, depth - 1)
    yield "}"


def _items(value: list[Json] | tuple[Json, ...], name: str, depth: int) -> Iterator[str]:
    if not value or not depth:
        yield f"[{len(value)}]"
        return
    yield f"[{len(value)}: "
    for number, item in enumerate(value[:_ITEMS]):
        yield ", " if number else ""
        yield from _shape(item, "" if name in _OPAQUE_OBJECTS else name, depth - 1)
    yield ", ...]" if len(value) > _ITEMS else "]"


def _counted(count: int) -> Iterator[str]:
    yield f"{{{count} members}}"


def _text(text: str, name: str) -> str:
    is_shown = (name in _TELLING or _ID.search(name) is not None) and _PLAIN.match(text) is not None
    return text if is_shown else f"text {len(text)}"


def _name(name: str) -> str:
    """A name that is no word is somebody's content."""
    return name if _PLAIN.match(name) else f"name {len(name)}"
