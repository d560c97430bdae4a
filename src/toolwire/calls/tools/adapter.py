"""The tools and call ids of a request as a back end accepts them: schemas rewritten by its profile, and legal ids.

Schemas are adapted last, after tools were translated to functions. Calls are validated against the client's own schemas; the adapted ones
are only what the model sees. The other members of a tool's source stay unchanged.

Legal ids stay; others are mapped, for calls and their results alike. The new id depends on the id itself and on what precedes it, never on
what follows: a conversation that grows keeps its beginning to the byte, as prompt caches need. A legal id that was given to another call
before it appears is mapped, too. Some models expect ids with the tool's name and the number of the call (H118); those are numbered again
for every request. A result without a call keeps its id, unless that looks like a numbered one.
"""

from __future__ import annotations

import re
import string
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import quote
from ...profiles import IdRule, Profile, SchemaRules
from ...types import (
    Json,
    JsonObject,
    Loss,
    Message,
    Part,
    RecurringTools,
    Request,
    Source,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import BadJson, encode
from ..ledger.messages import as_function
from ..schemas.clean import SchemaChange, clean_schema
from .encoded_arguments import Encoding

_MAX_BYTES = 32 << 20  # of memory, estimated
_MOST = 2000  # schemas; small ones would take long to reach the bound in bytes
_PER_BYTE = 10  # a rewritten schema weighs about so much for each byte of its JSON
_TOLD = 4  # places of a schema that a loss names
_SAME = frozenset({"a type was added", "properties were added"})  # changes that mean what was meant before
_NULLABLE = "it may be null instead of left out"

_Fits: TypeAlias = "dict[int, _Fit]"  # by the place of the tool


class AdaptedRequest(Struct, frozen=True):
    """The same request where nothing had to change. encodings: tools whose arguments the model writes in another form than the
    client's schema has."""

    request: Request
    losses: tuple[Loss, ...] = ()
    encodings: Mapping[str, Encoding] = {}


class _Fit(Struct, frozen=True):
    """The adapted schema of one tool. report: the description of its losses."""

    schema: JsonObject | None
    strict: bool | None
    report: str
    encoding: Encoding | None


class ToolAdapter:
    """Adapts tools to profiles, with an LRU cache of adapted schemas. lock: guards it where several threads use it."""

    def __init__(self, max_bytes: int = _MAX_BYTES, lock: AbstractContextManager[object] | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = lock or nullcontext()
        self._size = 0
        self._known: OrderedDict[tuple[SchemaRules, bool | None, bytes], tuple[int, _Fit | None]] = OrderedDict()

    def adapt(self, request: Request, profile: Profile, *, is_own: bool = False) -> AdaptedRequest:
        """is_own: the back end speaks the client's dialect."""
        if not request.tools:
            if is_own and profile.keeps_state:  # its clients know what it accepts
                return AdaptedRequest(_without_list(request))
            return with_history_tools(_without_list(request) if is_own else request, profile)
        fits = self._fits(request.tools, profile)
        if fits and is_own and not request.has_new_tools:
            fits = _within_reach(request, fits)
        return _adapt(request, fits) if fits else AdaptedRequest(request)

    def _fits(self, tools: tuple[Tool, ...], profile: Profile) -> _Fits:
        if not isinstance(tools, RecurringTools):
            return self._looked(tools, profile)
        rules = (profile.schemas, profile.strict_schemas)
        found: _Fits | None = tools.facts.get(rules)
        if found is None:
            found = self._looked(tools, profile)
            tools.remember(rules, found)
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


def with_history_tools(request: Request, profile: Profile) -> AdaptedRequest:
    """Some refuse a history with calls where no tools are offered (H089): its tools are named, and none of them may be called."""
    if not profile.needs_tools or request.tools:
        return AdaptedRequest(request)
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    names = dict.fromkeys(call.name for call in calls)
    if not names:
        return AdaptedRequest(request)
    tools = tuple(Tool(name=name, schema={"type": "object"}) for name in names)
    why = "the back end wants to see the tools of past calls; they are named, and none may be called"
    offered = replace(request, tools=tools, tool_choice=ToolChoice(mode="none"), has_new_tools=True, wire=b"")
    return AdaptedRequest(offered, (Loss("tools.history", "tools", why),))


def _without_list(request: Request) -> Request:
    """Without an empty list of tools, which some providers refuse (H063)."""
    is_empty = not request.has_new_tools and request.source.get("tools") == []
    return replace(request, tool_choice=None, has_new_tools=True, wire=b"") if is_empty else request


def _fit_of(tool: Tool, rules: SchemaRules) -> _Fit | None:
    """None where the schema stays."""
    found = clean_schema(tool.schema, rules)
    strict = found.is_strict if rules.is_strict else tool.strict
    if strict == tool.strict and (found.schema is tool.schema or found.schema == tool.schema):
        return None
    has_nulls = found.is_strict and any(change.what == _NULLABLE for change in found.changes)
    encoding = Encoding(texts=found.texts, has_nulls=has_nulls) if has_nulls or found.texts else None
    return _Fit(found.schema, strict, _loss_text(found.changes), encoding)


def _loss_text(changes: tuple[SchemaChange, ...]) -> str:
    lost = [change for change in changes if change.what not in _SAME]
    words = [f"{what} ({quote(where[:60])})" if where else what for where, what in lost[:_TOLD]]
    rest = len(lost) - len(words)
    return "; ".join(words) + (f"; and {rest} more" if rest else "")


def _adapt(request: Request, fits: _Fits) -> AdaptedRequest:
    tools = tuple(_tool(tool, fits[place]) if place in fits else tool for place, tool in enumerate(request.tools))
    losses = tuple(
        Loss("schema", f"tools {quote(tools[place].name[:60])}", fit.report)
        for place, fit in fits.items()
        if fit.report
    )
    encodings = {tools[place].name: fit.encoding for place, fit in fits.items() if fit.encoding is not None}
    return AdaptedRequest(_offering(request, tools), losses, encodings)


def _tool(tool: Tool, fit: _Fit) -> Tool:
    return replace(tool, schema=fit.schema, strict=fit.strict, source=_source(tool, fit))


def _source(tool: Tool, fit: _Fit) -> Source | None:
    """The source with the adapted schema, which is in it or one level deeper; None where it cannot be replaced."""
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
    """Tools that a conversation declares in its items stay as they are: what their own dialect made of them is its own matter. So do
    tools of a namespace without a schema: only a schema can be replaced in the list, and outside of it they would lose their namespace."""
    listed = {id(item) for item in _flat(request.source.get("tools"))}
    found = {}
    for place, fit in fits.items():
        tool = request.tools[place]
        is_listed = tool.source is None or id(tool.source.value) in listed
        if is_listed and not (tool.namespace and tool.schema is None):
            found[place] = fit
    return found


def _offering(request: Request, tools: tuple[Tool, ...]) -> Request:
    """In the client's own dialect only the list is replaced; the tool choice stays as it is."""
    changed = [(old, new) for old, new in zip(request.tools, tools, strict=True) if new is not old]
    if request.has_new_tools or any(old.source is None or new.source is None for old, new in changed):
        return replace(request, tools=tools, has_new_tools=True, wire=b"")
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


_ANY = IdRule()
_BASE62 = string.digits + string.ascii_letters
_LETTERS = {"word": f"{_BASE62}_-".encode(), "base62": _BASE62.encode()}
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_NUMBERED = re.compile(r"functions\..*:\d+", re.DOTALL)
_LONGEST = 64  # of ids that we make, where the rule allows any length
_SHORT = 24  # where there is less room, nothing is left of the old id
_HASHED = 16  # letters of a hashed id, where the rule gives no length
_PAIRED = (ToolCall, ToolResult)  # a constant: `X | Y` would build the union for each part

IdOf: TypeAlias = Callable[[Part], str]


def adapt_ids(messages: tuple[Message, ...], rule: IdRule, ids: Collection[str] | None = None) -> tuple[Message, ...]:
    """The same object where every id is legal. ids: those of the messages, where they are known."""
    if rule == _ANY:
        return messages
    if rule.is_numbered:
        return messages if _are_numbered(messages) else _rewritten(messages, _Numbers(messages).of)
    found = ids_in(messages) if ids is None else ids
    if not found or _are_legal(found, rule):
        return messages
    given = _Given(lambda call_id: _is_legal(call_id, rule), lambda call_id, tries: _made(call_id, tries, rule))
    return _rewritten(messages, lambda part: given.of(_id(part)))


def ids_in(messages: tuple[Message, ...]) -> set[str]:
    """The ids of all calls and results."""
    found: set[str] = set()
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                found.add(part.id)
            elif type(part) is ToolResult:
                found.add(part.call_id)
    return found


class _Given:
    """Maps each id to a unique legal one."""

    def __init__(self, is_legal: Callable[[str], bool], make: Callable[[str, int], str]) -> None:
        self._is_legal = is_legal
        self._make = make
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, call_id: str) -> str:
        known = self._known.get(call_id)
        return self._new(call_id) if known is None else known

    def _new(self, call_id: str) -> str:
        fitted, tries = call_id, 0
        while fitted in self._taken or (tries == 0 and not self._is_legal(call_id)):
            fitted, tries = self._make(call_id, tries), tries + 1
        self._known[call_id] = fitted
        self._taken.add(fitted)
        return fitted


class _Numbers:
    """Calls numbered from 0. Of several calls with one id, a result answers the last before it, else the first behind it."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
        self._numbered = [f"functions.{call.name}:{number}" for number, call in enumerate(calls)]
        self._next = 0
        self._known: dict[str, str] = {}
        for call, numbered in zip(calls, self._numbered, strict=True):
            self._known.setdefault(call.id, numbered)
        self._strays = _Given(lambda call_id: not _NUMBERED.fullmatch(call_id), _stray)

    def of(self, part: Part) -> str:
        call_id = _id(part)
        if isinstance(part, ToolCall):
            self._known[call_id] = self._numbered[self._next]
            self._next += 1
        return self._known.get(call_id) or self._strays.of(call_id)


def _rewritten(messages: tuple[Message, ...], id_of: IdOf) -> tuple[Message, ...]:
    written = tuple(_message(message, id_of) for message in messages)
    return messages if all(new is old for new, old in zip(written, messages, strict=True)) else written


def _message(message: Message, id_of: IdOf) -> Message:
    parts = [_part(part, id_of) if isinstance(part, _PAIRED) else part for part in message.parts]
    is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if is_same else message.with_parts(tuple(parts))


def _part(part: Part, id_of: IdOf) -> Part:
    """With the new id. A typed call can only be encoded from its source, so it becomes a function call."""
    fitted = id_of(part)
    if fitted == _id(part):
        return part
    if isinstance(part, ToolCall):
        return replace(as_function(part), id=fitted)
    if isinstance(part, ToolResult):
        return replace(part, call_id=fitted, kind="function" if part.kind == "typed" else part.kind)
    return part


def _id(part: Part) -> str:
    return part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else ""


def _are_numbered(messages: tuple[Message, ...]) -> bool:
    """Each call by its place, and each result of one that came before it: the usual case, in one look."""
    known: set[str] = set()
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                if part.id != f"functions.{part.name}:{len(known)}":
                    return False
                known.add(part.id)
            elif type(part) is ToolResult and part.call_id not in known:
                return False
    return True


def _are_legal(ids: Collection[str], rule: IdRule) -> bool:
    """Checks all ids at once: every request does this, and may have hundreds."""
    lengths = set(map(len, ids))
    is_legal = (
        0 not in lengths
        and (not rule.length or lengths == {rule.length})
        and (not rule.longest or max(lengths) <= rule.longest)
        and (rule.letters == "any" or _has_legal_letters("".join(ids), rule))
    )
    return is_legal or (bool(rule.preserved) and all(_is_legal(call_id, rule) for call_id in ids))


def _is_legal(call_id: str, rule: IdRule) -> bool:
    if rule.preserved and rule.preserved in call_id:
        return True
    return (
        bool(call_id)
        and (not rule.length or len(call_id) == rule.length)
        and (not rule.longest or len(call_id) <= rule.longest)
        and (rule.letters == "any" or _has_legal_letters(call_id, rule))
    )


def _has_legal_letters(text: str, rule: IdRule) -> bool:
    return not text.encode("utf-8", "surrogatepass").translate(None, _LETTERS[rule.letters])


def _made(call_id: str, tries: int, rule: IdRule) -> str:
    """With the beginning of the old id where there is room for it, so that people find it again; always with a hash of the whole."""
    longest = rule.length or rule.longest or _LONGEST
    if rule.letters == "base62" or rule.length or longest < _SHORT:
        return _base62(_hash(call_id, tries, 64), rule.length or min(longest, _HASHED))
    mark = _hash(call_id, tries, 6).hex()
    return f"{_ILLEGAL.sub('_', call_id[: longest - len(mark) - 1])}_{mark}"


def _stray(call_id: str, tries: int) -> str:
    return f"call_{_hash(call_id, tries, 12).hex()}"


def _hash(call_id: str, tries: int, size: int) -> bytes:
    data = call_id.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=size, salt=tries.to_bytes(8, "big")).digest()


def _base62(data: bytes, size: int) -> str:
    number, letters = int.from_bytes(data, "big"), ""
    for _ in range(size):
        number, place = divmod(number, len(_BASE62))
        letters += _BASE62[place]
    return letters
