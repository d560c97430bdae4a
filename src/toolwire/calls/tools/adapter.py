"""The tools of a request as a back end takes them: schemas rewritten by its profile, and tools for a history that has none.

It is the last step before a request is written, after every tool has become a function that has to. The client's own schemas are what
calls are judged by; what is written here is only what the model gets to see. What a tool's own dialect says of it beside the schema
stays as it was: only the schema in its source is another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import quote
from ...profiles import Profile, SchemaRules
from ...types import Json, JsonObject, Loss, Request, Source, Tool, ToolCall, ToolChoice
from ...wire.exact_json import BadJson, encode
from ..schemas.clean import Change, cleaned
from ..schemas.tool_sets import ToolSet
from .encoded_arguments import Encoding

_MAX_BYTES = 32 << 20  # of memory, estimated
_MOST = 2000  # schemas; small ones would take long to reach the bound in bytes
_PER_BYTE = 10  # a rewritten schema weighs about so much for each byte of its JSON
_TOLD = 4  # places of a schema that a loss names
_SAME = frozenset({"a type was added", "properties were added"})  # changes that mean what was meant before
_NULLABLE = "it may be null instead of left out"

_Fits: TypeAlias = "dict[int, _Fit]"  # by the place of the tool


class Fitted(Struct, frozen=True):
    """The same request where nothing had to change. encodings: tools whose arguments the model writes in another form than the
    client's schema has."""

    request: Request
    losses: tuple[Loss, ...] = ()
    encodings: Mapping[str, Encoding] = {}


class _Fit(Struct, frozen=True):
    """What becomes of one schema. told: what of it is a loss, in words."""

    schema: JsonObject | None
    strict: bool | None
    told: str
    encoding: Encoding | None


class Fitter:
    """Remembers what became of each schema; the least recently used are dropped first.

    lock: held while the cache is looked at, where several threads use it.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES, lock: AbstractContextManager[object] | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = lock or nullcontext()
        self._size = 0
        self._known: OrderedDict[tuple[SchemaRules, bool | None, bytes], tuple[int, _Fit | None]] = OrderedDict()

    def fit(self, request: Request, profile: Profile, known: ToolSet | None = None, *, is_own: bool = False) -> Fitted:
        """known: the tools of the client's request, as they were checked. is_own: the back end speaks the client's dialect."""
        if not request.tools:
            return Fitted(_without_list(request)) if is_own else with_history_tools(request, profile)
        fits = self._fits(request.tools, profile, known)
        if fits and is_own and not request.is_lowered:
            fits = _within_reach(request, fits)
        return _fitted(request, fits) if fits else Fitted(request)

    def _fits(self, tools: tuple[Tool, ...], profile: Profile, known: ToolSet | None) -> _Fits:
        if known is None or known.tools is not tools:
            return self._looked(tools, profile)
        rules = (profile.schemas, profile.strict_schemas)
        found: _Fits | None = known.recall(rules)
        if found is None:
            found = self._looked(tools, profile)
            known.remember(rules, found)
        return found

    def _looked(self, tools: tuple[Tool, ...], profile: Profile) -> _Fits:
        found = [self._fit(tool, profile) if tool.kind == "function" else None for tool in tools]
        return {place: fit for place, fit in enumerate(found) if fit is not None}

    def _fit(self, tool: Tool, profile: Profile) -> _Fit | None:
        rules = (tool.strict and profile.strict_schemas) or profile.schemas
        try:
            key = (rules, tool.strict, encode(tool.schema))
        except (BadJson, TypeError, ValueError):
            return _fit_of(tool, rules)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known[1]
        fit = _fit_of(tool, rules)
        self._keep(key, fit)
        return fit

    def _keep(self, key: tuple[SchemaRules, bool | None, bytes], fit: _Fit | None) -> None:
        weight = len(key[2]) * (1 if fit is None else _PER_BYTE) + 200
        if weight > self._max_bytes // 4:  # one must not push out all others
            return
        with self._lock:
            self._size += weight - self._known.get(key, (0, None))[0]
            self._known[key] = (weight, fit)
            while self._size > self._max_bytes or len(self._known) > _MOST:
                self._size -= self._known.popitem(last=False)[1][0]

    def __len__(self) -> int:
        return len(self._known)


def with_history_tools(request: Request, profile: Profile) -> Fitted:
    """Some refuse a history with calls where no tools are offered (H089): its tools are named, and none of them may be called.
    Clients of the back end's own dialect know that; this is for the others."""
    if not profile.needs_tools or request.tools:
        return Fitted(request)
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    names = dict.fromkeys(call.name for call in calls)
    if not names:
        return Fitted(request)
    tools = tuple(Tool(name=name, schema={"type": "object"}) for name in names)
    why = "the back end wants to see the tools of past calls; they are named, and none may be called"
    offered = replace(request, tools=tools, tool_choice=ToolChoice(mode="none"), is_lowered=True, wire=b"")
    return Fitted(offered, (Loss("tools.history", "tools", why),))


def _without_list(request: Request) -> Request:
    """Who has no tools to offer does not say so with an empty list (H063)."""
    is_empty = not request.is_lowered and request.source.get("tools") == []
    return replace(request, tool_choice=None, is_lowered=True, wire=b"") if is_empty else request


def _fit_of(tool: Tool, rules: SchemaRules) -> _Fit | None:
    """None where the schema stays."""
    found = cleaned(tool.schema, rules)
    strict = found.is_strict if rules.is_strict else tool.strict
    if strict == tool.strict and (found.schema is tool.schema or found.schema == tool.schema):
        return None
    has_nulls = found.is_strict and any(change.what == _NULLABLE for change in found.changes)
    encoding = Encoding(texts=found.texts, has_nulls=has_nulls) if has_nulls or found.texts else None
    return _Fit(found.schema, strict, _told(found.changes), encoding)


def _told(changes: tuple[Change, ...]) -> str:
    lost = [change for change in changes if change.what not in _SAME]
    words = [f"{what} ({quote(where[:60])})" if where else what for where, what in lost[:_TOLD]]
    rest = len(lost) - len(words)
    return "; ".join(words) + (f"; and {rest} more" if rest else "")


def _fitted(request: Request, fits: _Fits) -> Fitted:
    tools = tuple(_tool(tool, fits[place]) if place in fits else tool for place, tool in enumerate(request.tools))
    losses = tuple(
        Loss("schema", f"tools {quote(tools[place].name[:60])}", fit.told) for place, fit in fits.items() if fit.told
    )
    encodings = {tools[place].name: fit.encoding for place, fit in fits.items() if fit.encoding is not None}
    return Fitted(_offering(request, tools), losses, encodings)


def _tool(tool: Tool, fit: _Fit) -> Tool:
    return replace(tool, schema=fit.schema, strict=fit.strict, source=_source(tool, fit))


def _source(tool: Tool, fit: _Fit) -> Source | None:
    """The same wire object with another schema, which stands in it or one step further in; None where that cannot be written."""
    if tool.source is None or tool.schema is None or fit.schema is None:
        return None
    value: JsonObject = tool.source.value
    for key, item in [(None, value), *value.items()]:
        if isinstance(item, dict) and (found := _with_schema(item, tool.schema, fit)) is not None:
            return Source(tool.source.dialect, found if key is None else {**value, key: found})
    return None


def _with_schema(owner: JsonObject, schema: JsonObject, fit: _Fit) -> JsonObject | None:
    for key, item in owner.items():
        if item is schema:
            strict = {"strict": fit.strict} if owner.get("strict") is not None else {}
            return {**owner, key: fit.schema, **strict}
    return None


def _within_reach(request: Request, fits: _Fits) -> _Fits:
    """Tools that a conversation declares in its items stay as they are: what their own dialect made of them is its own matter."""
    listed = {id(item) for item in _flat(request.source.get("tools"))}
    sources = [tool.source for tool in request.tools]
    return {
        place: fit for place, fit in fits.items() if (source := sources[place]) is None or id(source.value) in listed
    }


def _offering(request: Request, tools: tuple[Tool, ...]) -> Request:
    """In its own dialect only the list is another; the choice among the tools, and all that it may say, stays."""
    changed = [(old, new) for old, new in zip(request.tools, tools, strict=True) if new is not old]
    if request.is_lowered or any(old.source is None or new.source is None for old, new in changed):
        return replace(request, tools=tools, is_lowered=True, wire=b"")
    others = {id(old.source.value): new.source.value for old, new in changed if old.source and new.source}
    listed = {"tools": [_item(item, others) for item in request.source["tools"]]} if "tools" in request.source else {}
    return replace(request, tools=tools, source={**request.source, **listed}, wire=b"")


def _item(item: Json, others: dict[int, Json]) -> Json:
    if not isinstance(item, dict):
        return item
    if isinstance(inner := item.get("tools"), list) and any(id(one) in others for one in inner):
        return {**item, "tools": [others.get(id(one), one) for one in inner]}
    return others.get(id(item), item)


def _flat(listed: Json) -> list[Json]:
    """With the tools of a namespace, which is a list in the list."""
    inner = [one for item in _list(listed) if isinstance(item, dict) for one in _list(item.get("tools"))]
    return [*_list(listed), *inner]


def _list(given: Json) -> list[Json]:
    return given if isinstance(given, list) else []
