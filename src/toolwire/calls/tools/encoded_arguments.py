"""Decodes arguments that follow an adapted schema into the form of the client's schema.

Adapting encodes two things: a value is declared as a string that holds JSON (schemas.subset), and an optional member as a nullable one
(schemas.strict). Both are decoded here, for every call and guard level. That is no repair and is not reported, because the model followed
its schema. A call of such a tool is sent in one piece. What cannot be decoded stays as the model wrote it, for the guard to validate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...events import Event, PartDelta, PartEnded, PartStarted
from ...types import Json, JsonObject, Tool, ToolCall
from ...wire.exact_json import BadJson, decode, encode
from ..schemas import Schemas, Texts, without_added_nulls
from ..schemas.subset import WHOLE
from .names import without_prefix


class Encoding(Struct, frozen=True):
    """What was done to the schema of one tool. has_nulls: members that may be absent were declared as null."""

    texts: Texts = Texts()
    has_nulls: bool = False


class ArgumentDecoder:
    """encodings: by the names that the model knows; tools: by the same names, with the client's own schemas."""

    def __init__(self, encodings: Mapping[str, Encoding], tools: Iterable[Tool], schemas: Schemas) -> None:
        self._encodings = encodings
        self._tools = {tool.name: tool for tool in tools if tool.name in encodings}
        self._schemas = schemas
        self._held: set[int] = set()

    def call(self, call: ToolCall) -> ToolCall:
        """The same object where nothing is encoded in it."""
        name = self._known(call)
        if not name or call.args is None:
            return call
        args = self._decoded(call.args, self._encodings[name], self._tools.get(name))
        return call if args is call.args else replace(call, raw=encode(args).decode(), args=args)

    def send(self, events: list[Event]) -> list[Event]:
        """The same list where no call of an encoded tool is under way."""
        if not self._held and not any(isinstance(event, PartStarted) and self._holds(event) for event in events):
            return events
        kept: list[Event] = []
        for event in events:
            kept += self._event(event)
        return kept

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartStarted() if self._holds(event):
                self._held.add(event.index)
                return [event]
            case PartDelta(index=index) if index in self._held:
                return []
            case PartEnded(part=ToolCall() as call) if event.index in self._held:
                self._held.discard(event.index)
                decoded = self.call(call)
                whole = [PartDelta(event.index, decoded.raw)] if decoded.raw else []
                return [*whole, event if decoded is call else replace(event, part=decoded)]
            case _:
                return [event]

    def _holds(self, event: PartStarted) -> bool:
        return isinstance(event.part, ToolCall) and bool(self._known(event.part))

    def _known(self, call: ToolCall) -> str:
        """The name of the encoded tool that it calls, "" if there is none."""
        if call.kind != "function":
            return ""
        return next((name for name in (call.name, without_prefix(call.name)) if name in self._encodings), "")

    def _decoded(self, args: JsonObject, encoding: Encoding, tool: Tool | None) -> JsonObject:
        if encoding.texts:
            args = _without_texts(args, encoding.texts)
        checker = self._schemas.of(tool.schema).checker if encoding.has_nulls and tool is not None else None
        return args if checker is None else without_added_nulls(args, checker.schema)


class _Node:
    """Where to look: below which members and items there are texts, and whether here is one."""

    def __init__(self) -> None:
        self.inner: dict[str | None, _Node] = {}
        self.is_text = self.needs_structure = False


def _tree(texts: Texts) -> _Node:
    """All places as one, so that arguments are walked once however many places there are."""
    root = _Node()
    for place in texts.objects | texts.anything:
        node = root
        for step in place:
            node = node.inner.setdefault(step, _Node())
        node.is_text, node.needs_structure = True, place not in texts.anything
    return root


def _without_texts(args: JsonObject, texts: Texts) -> JsonObject:
    if texts.is_whole:
        whole = _parsed(args[WHOLE], needs_structure=True) if args.keys() == {WHOLE} else None
        return whole if isinstance(whole, dict) else args
    found = _walked(args, _tree(texts))
    return found if isinstance(found, dict) else args


def _walked(value: Json, node: _Node) -> Json:
    """The same object where there is nothing to decode."""
    if isinstance(value, str):
        return _parsed(value, needs_structure=node.needs_structure) if node.is_text else value
    if isinstance(value, list) and None in node.inner:
        items = [_walked(item, node.inner[None]) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        changed = {
            name: found
            for name, inner in node.inner.items()
            if name is not None and name in value and (found := _walked(value[name], inner)) is not value[name]
        }
        return {**value, **changed} if changed else value
    return value


def _parsed(value: Json, *, needs_structure: bool) -> Json:
    if not isinstance(value, str):
        return value
    try:
        found = decode(value)
    except BadJson:
        return value
    return value if needs_structure and not isinstance(found, dict | list) else found
