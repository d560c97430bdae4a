"""What may be written about a message: its shape for the log, and a copy without secrets for the trace file.

A shape has names of members, kinds, sizes and ids. Members whose content the client or the model makes up (arguments, schemas, settings)
are counted only: even their names may be content. Secrets are found by the name of the member, by their form, and by comparison with those
that the owner configured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..types import Json

HIDDEN = "[hidden]"
_SECRET_NAMES = re.compile(
    r"(?:^|[_.-])(?:api[_-]?)?key$|apikey|token$|secret|passw|credential|authorization|(?:^|[_-])auth$|cookie|signature$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"prompt_cache_key"})
_SECRET_FORMS = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abp]|glpat)[-_][\w-]{6,}|\bAIza[\w-]{20,}|\bAKIA[A-Z0-9]{12,}"
    r"|\beyJ[\w-]{10,}[\w.-]*|(?i:\b(?:bearer|basic)\s+)[\w.~+/-]{6,}=*"
)
_MIN_SECRET = 8  # anything shorter may be an ordinary word
_MAX_TEXT = 20_000  # of one text, such as an encoded image
_CUT_TEXT = 2_000

_MAX_SHAPE = 1500
_MAX_DEPTH = 5
_MAX_MEMBERS = 24
_MAX_ITEMS = 4
# Members whose text says what a message is, and not what it is about.
_SHOWN = frozenset(
    [
        *("type", "role", "name", "model", "method", "status", "object", "event", "kind", "tool", "finish_reason"),
        *("stop_reason", "code", "effort", "service_tier", "modelProvider", "historyMode", "finishReason", "mode"),
    ]
)
_OPAQUE = frozenset(
    [
        *("arguments", "args", "parameters", "parametersJsonSchema", "input_schema", "inputSchema", "schema", "config"),
        *("outputSchema", "metadata", "client_metadata", "json_schema", "properties", "env"),
    ]
)
# Objects under these names are content; lists and texts are part of the message.
_OPAQUE_OBJECTS = frozenset({"input", "output"})
_ID = re.compile(r"(?:^|_)id$|[a-z]Id$|^id$")
_PLAIN = re.compile(r"[\w.:/@+-]{1,100}\Z")


class Redaction:
    """known: secrets to remove wherever they occur."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        found = {secret for secret in known if len(secret) >= _MIN_SECRET}
        self._known = sorted(found, key=len, reverse=True)  # one may be a prefix of another

    def text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _SECRET_FORMS.sub(HIDDEN, text)
        return text if len(text) <= _MAX_TEXT else f"{text[:_CUT_TEXT]}... {len(text) - _CUT_TEXT} more characters"

    def value(self, value: Json, name: str = "") -> Json:
        match value:
            case str():
                return HIDDEN if value and is_secret(name) else self.text(value)
            case Mapping():
                return {self.text(key): self.value(item, key) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item, name) for item in value]
            case _:
                return value


def is_secret(name: str) -> bool:
    """Whether a member, header or environment variable of this name holds a secret."""
    return name not in _NOT_SECRET and _SECRET_NAMES.search(name) is not None


def shape_of(value: Json) -> str:
    """One line of bounded length."""
    text = "".join(_shape(value, "", _MAX_DEPTH))
    return text if len(text) <= _MAX_SHAPE else f"{text[:_MAX_SHAPE]}..."


def _shape(value: Json, name: str, depth: int) -> Iterator[str]:
    match value:
        case None | True | False:
            yield {None: "null", True: "true", False: "false"}[value]
        case str():
            is_shown = (name in _SHOWN or _ID.search(name) is not None) and _PLAIN.match(value) is not None
            yield value if is_shown else f"text {len(value)}"
        case Mapping() if name == "headers":
            yield f"{{{', '.join(_name(header) for header in list(value)[:_MAX_MEMBERS])}}}"
        case Mapping():
            is_content = name in _OPAQUE or name in _OPAQUE_OBJECTS or (name == "response" and "id" not in value)
            if is_content or not depth:
                yield f"{{{len(value)} members}}"
            else:
                yield from _members(value, depth)
        case list() | tuple():
            yield from _items(value, name, depth)
        case _:
            yield "number"


def _members(value: Mapping[str, Json], depth: int) -> Iterator[str]:
    yield "{"
    for number, (name, item) in enumerate(value.items()):
        if number == _MAX_MEMBERS:
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
    for number, item in enumerate(value[:_MAX_ITEMS]):
        yield ", " if number else ""
        yield from _shape(item, "" if name in _OPAQUE_OBJECTS else name, depth - 1)
    yield ", ...]" if len(value) > _MAX_ITEMS else "]"


def _name(name: str) -> str:
    """A name that is not a plain word may be content."""
    return name if _PLAIN.match(name) else f"name {len(name)}"
