"""Where a request differs from the previous one of its conversation: why the provider's prompt cache missed.

Providers cache the beginning of a prompt: the tools, then the system prompt, then the messages. The first byte that differs ends what can
be read from the cache. What the back end got is compared, since only that matters; without it, what the client sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from ..types import Json, JsonObject
from ..wire.exact_json import BadJson, decode, encode
from .sealed import SealedFlow, SealedWire

PromptParts: TypeAlias = list[tuple[str, bytes]]

_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_MESSAGES = ("messages", "input", "contents")
_HISTORY = "messages"
_SHOWN_BEFORE, _SHOWN_AFTER = 60, 240  # bytes around a difference


class FirstChange(Struct, frozen=True, kw_only=True):
    """part: model, tools, system or messages[N]. offset: of the first byte that differs, in the JSON of the part."""

    part: str
    offset: int
    before: str
    after: str


class FlowChanges(Struct, frozen=True, kw_only=True):
    """same_prefix_bytes: of the prompt, before the first change. first_change: None if the request only appends."""

    previous: str
    same_prefix_bytes: int
    first_change: FirstChange | None


def changes_between(previous: SealedFlow, flow: SealedFlow) -> FlowChanges | None:
    """None if one of the requests cannot be read."""
    before, after = _comparable(previous, flow)
    old, new = _parts(before), _parts(after)
    if old is None or new is None:
        return None
    same, change = _first_change(old, new)
    return FlowChanges(previous=previous.summary.id, same_prefix_bytes=same, first_change=change)


def _comparable(previous: SealedFlow, flow: SealedFlow) -> tuple[SealedWire, SealedWire]:
    if previous.upstream and flow.upstream and previous.upstream[0].dialect == flow.upstream[0].dialect != "":
        return previous.upstream[0], flow.upstream[0]
    return previous.client, flow.client


def _parts(wire: SealedWire) -> PromptParts | None:
    """The prompt in the order in which providers cache it."""
    try:
        body = decode(wire.body)
    except BadJson:
        return None
    return list(_pieces(body)) if isinstance(body, dict) else None


def _pieces(body: JsonObject) -> Iterator[tuple[str, bytes]]:
    yield "model", encode(body.get("model"))
    yield "tools", encode(_plain(body.get("tools")))
    system = [body[name] for name in _SYSTEM if name in body]
    given: Json = next((body[name] for name in _MESSAGES if name in body), [])
    messages: list[Json] = given if isinstance(given, list) else [given]
    heads = 0
    while heads < len(messages) and _is_system(messages[heads]):
        heads += 1
    yield "system", encode(_plain([*system, *messages[:heads]]))
    for number, message in enumerate(messages[heads:], heads):
        yield f"{_HISTORY}[{number}]", encode(_plain(message))


def _is_system(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _plain(value: Json) -> Json:
    """Without the marks that only say where the provider shall cache; clients move them with each request."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _first_change(old: PromptParts, new: PromptParts) -> tuple[int, FirstChange | None]:
    same = 0
    for place, (name, before) in enumerate(old):
        name, after = new[place] if place < len(new) else (name, b"")
        if before != after:
            offset = _common(before, after)
            start = max(0, offset - _SHOWN_BEFORE)
            texts = [side[start : offset + _SHOWN_AFTER].decode("utf-8", "replace") for side in (before, after)]
            return same + offset, FirstChange(part=name, offset=offset, before=texts[0], after=texts[1])
        same += len(before)
    return same, None


def _common(one: bytes, other: bytes) -> int:
    """The length of the common beginning, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
