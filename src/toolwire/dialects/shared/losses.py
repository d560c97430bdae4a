"""Members that one dialect has and another has not: each arrives, is idle, or is reported as a loss.

Decoders keep what they do not interpret in `extra`, under the name of the dialect that understands it. An encoder writes its own
dialect's extra; this module reports the rest. A member is idle, and not reported, where its value asks for what happens anyway.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from ...profiles import Profile
from ...types import (
    Extra,
    Json,
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    ToolCall,
    ToolResult,
)

CACHE_HINT = "cache_control"  # a member of Messages that clients of Chat Completions use too
_LONGEST_NAME = 60
_MOST = 100  # losses by members of one request: their names are the client's choice
# Chat Completions and Responses come from one vendor, and these members mean the same in both.
_SAME = frozenset({"chat", "responses"})
# Members of which a decoder reads a part: the rest of them is reported member by member.
_PARTLY_READ = frozenset(
    [
        "generationConfig",
        "output_config",
        "reasoning",
        "stream_options",
        "text",
        "thinking",
        "toolConfig",
    ]
)
_IDLE: dict[str, dict[str, tuple[Json, ...]]] = {
    "chat": {
        "store": (False,),
        "service_tier": ("auto", "default"),
        "prompt_cache_retention": ("in_memory",),
        "modalities": (["text"],),
        "stream_options": ({"include_obfuscation": False},),
    },
    "responses": {
        "store": (True, False),  # the gateway stores answers itself
        "background": (True, False),  # and runs them in the background itself
        "service_tier": ("auto", "default"),
        "prompt_cache_retention": ("in_memory",),
        "truncation": ("disabled",),
        "stream_options": ({"include_obfuscation": False},),
        "async": (False,),
        "caller": ({"type": "direct"},),
        "allowed_callers": (["direct"],),
        "detail": ("auto",),
    },
    "messages": {
        "service_tier": ("auto",),
        "speed": ("standard",),
        "caller": ({"type": "direct"},),
        "allowed_callers": (["direct"],),
        "eager_input_streaming": (False,),
    },
    "gemini": {
        "serviceTier": ("standard", "unspecified", "SERVICE_TIER_UNSPECIFIED"),
        "store": (False,),
        "behavior": ("BLOCKING", "UNSPECIFIED"),
    },
}
# What a client of Responses asks to see more of, and gets from the gateway in any case.
_INCLUDED = frozenset({"message.output_text.logprobs", "reasoning.encrypted_content"})
# Gemini's filters in the setting that lets everything pass, as back ends without such filters do.
_UNFILTERED = frozenset({"BLOCK_NONE", "OFF", "HARM_BLOCK_THRESHOLD_UNSPECIFIED"})


def shared_members(request: Request, own: str, profile: Profile) -> JsonObject:
    """Members of the client's dialect that have the same meaning in this one, and that the back end takes."""
    if own not in _SAME or request.origin not in _SAME:
        return {}
    given = request.extra.get(request.origin, {})
    return {name: value for name, value in given.items() if name in profile.shared_members and value is not None}


def foreign_members(request: Request, own: str, losses: list[Loss], carried: Container[str] = ()) -> None:
    """Report members of other dialects: of the request, its messages, their parts, and its tools; each name once.

    carried: members of the request itself that were written all the same.
    """
    found: dict[str, Loss] = {}
    if request.metadata and request.origin != own and "metadata" not in carried:
        found["request.metadata"] = Loss("request.metadata", "metadata", f"{own} has no such member")
    for kind, where, extra in _places(request):
        for dialect, members in extra.items():
            if dialect == own:
                continue
            for name, value in _meant(dialect, members):
                feature = f"{kind}.{name[:_LONGEST_NAME]}"
                if feature in found or (kind == "request" and name in carried) or is_hint(own, name, value):
                    continue
                place = f"{where}.{name[:_LONGEST_NAME]}" if where else name[:_LONGEST_NAME]
                found[feature] = Loss(feature, place, f"{own} has no such member")
                if len(found) == _MOST:
                    losses += found.values()
                    return
    losses += found.values()


def is_hint(own: str, name: str, value: Json) -> bool:
    """A cache hint of a client of Chat Completions on its way to Messages: the decoder has made it a member of that dialect."""
    return own == "messages" and name == CACHE_HINT and isinstance(value, dict)


def with_hint(extra: Extra, hint: Json) -> Extra:
    """The same members, with a cache hint for the dialect that knows such."""
    if not isinstance(hint, dict):
        return extra
    return {**extra, "messages": {**extra.get("messages", {}), CACHE_HINT: hint}}


def whole_schema(schema: JsonObject | None) -> JsonObject:
    """What a function takes, as an object by its own word: some clients leave that out, and some back ends insist on it."""
    if not schema:
        return {"type": "object", "properties": {}}
    return schema if "type" in schema else {"type": "object", "properties": {}, **schema}


def lose_thinking(part: Reasoning, where: str, losses: list[Loss]) -> None:
    """Past reasoning that belongs to another back end; it is never rewritten into something it was not."""
    losses.append(Loss("reasoning", where, "reasoning of another dialect cannot be handed on"))


def _places(request: Request) -> Iterator[tuple[str, str, Extra]]:
    yield "request", "", request.extra
    for number, message in enumerate(request.messages):
        yield from _message_places(message, f"messages[{number}]")
    for tool in request.tools:
        if tool.extra:
            yield "tool", f'tools "{tool.name[:_LONGEST_NAME]}"', tool.extra


def _message_places(message: Message, where: str) -> Iterator[tuple[str, str, Extra]]:
    if message.extra:
        yield "message", where, message.extra
    for part in message.parts:
        if isinstance(part, ToolResult):
            for inner in part.parts:
                yield from _part_place(inner, where)
        yield from _part_place(part, where)


def _part_place(part: Part, where: str) -> Iterator[tuple[str, str, Extra]]:
    """Reasoning and parts that are not interpreted are reported as a whole, and media by the module that places them."""
    if part.extra and not isinstance(part, Reasoning | Opaque | Media):
        kind = "call" if isinstance(part, ToolCall) else "result" if isinstance(part, ToolResult) else "part"
        yield kind, where, part.extra


def _meant(dialect: str, members: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in members.items():
        if is_idle(dialect, name, value):
            continue
        if name in _PARTLY_READ and isinstance(value, dict):
            yield from ((f"{name}.{inner}", item) for inner, item in value.items() if item is not None)
        else:
            yield name, value


def is_idle(dialect: str, name: str, value: Json) -> bool:
    """Whether this value asks for nothing, or for what is so without it."""
    if value is None or value == [] or value == {} or value in _IDLE.get(dialect, {}).get(name, ()):
        return True
    if dialect == "responses" and name == "include" and isinstance(value, list):
        return all(isinstance(item, str) and item in _INCLUDED for item in value)
    if dialect == "gemini" and name == "safetySettings" and isinstance(value, list):
        return all(isinstance(one, dict) and str(one.get("threshold")) in _UNFILTERED for one in value)
    return False
