"""Requests, the part that all dialects share: losses, instructions, effort, failed results, output formats and call ids.

Decoders store members that they do not interpret in `extra`, under the name of the dialect that knows them. An encoder writes its own
dialect's extra; foreign_members() reports the rest as losses. A member is idle, and not reported, if its value requests what happens anyway.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from hashlib import blake2b

from msgspec.structs import replace

from ...profiles import Profile
from ...types import (
    Extra,
    Json,
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...wire.exact_json import decode, encode

CACHE_HINT = "cache_control"  # a member of Messages that clients of Chat Completions use too
_LONGEST_NAME = 60
_KINDS: dict[type, str] = {ToolCall: "call", ToolResult: "result"}
_MOST = 100  # losses by members of one request: their names are the client's choice
# Chat Completions and Responses come from one vendor, and these members mean the same in both.
_SAME = frozenset({"chat", "responses"})
# Members that decoders read in part: the rest of them is reported member by member.
_PARTLY_READ = frozenset(
    [
        "generationConfig",
        "generation_config",
        "options",
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
    "interactions": {
        "response_modalities": (["text"],),
        "service_tier": ("standard",),
    },
    "ollama": {
        "raw": (False,),
        "template": ("",),
        "truncate": (True,),
        "shift": (True,),
        "name": ("",),
    },
    "gemini": {
        "serviceTier": ("standard", "unspecified", "SERVICE_TIER_UNSPECIFIED"),
        "store": (False,),
        "behavior": ("BLOCKING", "UNSPECIFIED"),
    },
}
# Values of "include" in Responses that the gateway sends in any case.
_INCLUDED = frozenset({"message.output_text.logprobs", "reasoning.encrypted_content"})
# Thresholds of Gemini's filters that let everything pass, as back ends without such filters do.
_UNFILTERED = frozenset({"BLOCK_NONE", "OFF", "HARM_BLOCK_THRESHOLD_UNSPECIFIED"})
_INSTRUCTIONS = ("system", "developer")
# The member of each dialect for the effort. Messages has no "minimal", Gemini no "xhigh".
_MEMBERS: dict[str, tuple[str, ...]] = {
    "chat": ("reasoning_effort",),
    "gemini": ("generationConfig", "thinkingConfig", "thinkingLevel"),
    "messages": ("output_config", "effort"),
    "responses": ("reasoning", "effort"),
}
NO_SUMMARY = "none"  # the client does not want to see any reasoning
_LEAST = {"messages": {"minimal": "low"}, "gemini": {"xhigh": "high"}}
FAILED = "Error: the tool call failed."  # first line of a failed result in dialects without a member for it (H093)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def shared_members(request: Request, own: str, profile: Profile) -> JsonObject:
    """Members of the client's dialect that mean the same in this one and that the back end accepts."""
    if own not in _SAME or request.origin not in _SAME:
        return {}
    given = request.extra.get(request.origin, {})
    return {name: value for name, value in given.items() if name in profile.shared_members and value is not None}


def foreign_members(request: Request, own: str, losses: list[Loss], carried: Container[str] = ()) -> None:
    """Report members of other dialects: of the request, its messages, their parts, and its tools; each name once.

    carried: members of the request itself that the encoder has written anyway.
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
    """A cache hint of a Chat Completions client for a Messages back end; the decoder has stored it as a member of Messages."""
    return own == "messages" and name == CACHE_HINT and isinstance(value, dict)


def with_hint(extra: Extra, hint: Json) -> Extra:
    """The same members, with a cache hint for Messages."""
    if not isinstance(hint, dict):
        return extra
    return {**extra, "messages": {**extra.get("messages", {}), CACHE_HINT: hint}}


def is_direct(tool: JsonObject) -> bool:
    """Whether the model may call the tool itself: "allowed_callers", where it is a list, names the model as "direct"."""
    callers = tool.get("allowed_callers")
    return not isinstance(callers, list) or not callers or "direct" in callers


def whole_schema(schema: JsonObject | None) -> JsonObject:
    """The schema with "type": "object", which some clients omit and some back ends require."""
    if not schema:
        return {"type": "object", "properties": {}}
    return schema if "type" in schema else {"type": "object", "properties": {}, **schema}


def lose_thinking(part: Reasoning, where: str, losses: list[Loss]) -> None:
    """Past reasoning of another back end; it is never rewritten as text."""
    losses.append(Loss("reasoning", where, "reasoning of another dialect cannot be forwarded"))


def _places(request: Request) -> Iterator[tuple[str, str, Extra]]:
    """Not reasoning and opaque parts, which are reported as a whole, nor media, which media/policy.py reports."""
    yield "request", "", request.extra
    for number, message in enumerate(request.messages):
        where = f"messages[{number}]"
        if message.extra:
            yield "message", where, message.extra
        for part in message.parts:
            for piece in (*part.parts, part) if isinstance(part, ToolResult) else (part,):
                if piece.extra and not isinstance(piece, Reasoning | Opaque | Media):
                    yield _KINDS.get(type(piece), "part"), where, piece.extra
    for tool in request.tools:
        if tool.extra:
            yield "tool", f'tools "{tool.name[:_LONGEST_NAME]}"', tool.extra


def _meant(dialect: str, members: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in members.items():
        if is_idle(dialect, name, value):
            continue
        if name in _PARTLY_READ and isinstance(value, dict):
            yield from ((f"{name}.{inner}", item) for inner, item in value.items() if item is not None)
        else:
            yield name, value


def is_idle(dialect: str, name: str, value: Json) -> bool:
    """Whether this value requests nothing, or what happens without it."""
    if value is None or value == [] or value == {} or value in _IDLE.get(dialect, {}).get(name, ()):
        return True
    if dialect == "responses" and name == "include" and isinstance(value, list):
        return all(isinstance(item, str) and item in _INCLUDED for item in value)
    if dialect == "gemini" and name == "safetySettings" and isinstance(value, list):
        return all(isinstance(one, dict) and str(one.get("threshold")) in _UNFILTERED for one in value)
    return False


def split_head(messages: tuple[Message, ...]) -> tuple[list[Message], list[Message]]:
    """The instructions at the start, for dialects with a separate member for them, and the other messages."""
    count = 0
    while count < len(messages) and _is_instruction(messages[count]):
        count += 1
    return list(messages[:count]), list(messages[count:])


def with_listener(messages: tuple[Message, ...], losses: list[Loss]) -> tuple[Message, ...]:
    """If there are only instructions, the last one becomes a user message: a conversation needs at least one."""
    if not messages or not all(map(_is_instruction, messages)):
        return messages
    losses.append(Loss("role.system", "messages", "the last instruction is sent as a user message"))
    return (*messages[:-1], replace(messages[-1], role="user", is_head=False, source=None))


def with_one_head(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The instructions at the start as one message, for back ends that accept only one (H112)."""
    if not all(map(_is_instruction, messages[:2])):
        return messages
    head, rest = split_head(messages)
    parts: tuple[Part, ...] = tuple(part for message in head for part in message.parts)
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) == len(parts):
        parts = (Text(text="\n\n".join(texts)),)
    return (head[0].with_parts(parts), *rest) if len(head) > 1 else messages


def as_note(text: str, where: str, losses: list[Loss]) -> str:
    """An instruction in a position that the dialect does not allow, as a note for a user message there (H112, H141)."""
    losses.append(Loss("role.system", where, "written as a note in a user message"))
    return label_instruction(text)


def label_instruction(instruction: str) -> str:
    return f"<system>\n{instruction}\n</system>"


def _is_instruction(message: Message) -> bool:
    return message.role in _INSTRUCTIONS


def with_effort(request: Request, effort: str) -> Request:
    """The same request with this effort (from the model's name), unless the client has set how much to think."""
    given = request.thinking or Thinking()
    if not effort or given.effort is not None or given.budget is not None or given.mode == "off":
        return request
    thinking = replace(given, effort=effort)
    if request.origin not in _MEMBERS:
        return replace(request, thinking=thinking)
    path = _MEMBERS[request.origin]
    word = _LEAST.get(request.origin, {}).get(effort, effort)
    wire = encode(_with_member(decode(request.wire), path, word)) if request.wire else b""
    source = _with_member(request.source, path, word) if request.source else {}
    return replace(request, thinking=thinking, source=source, wire=wire)


def lose_amount(thinking: Thinking, losses: list[Loss]) -> None:
    """For dialects that have only an effort, if the client has not set one."""
    if thinking.budget is not None:
        losses.append(Loss("thinking.budget", "thinking", "this dialect has an effort and no budget for reasoning"))
    elif thinking.mode:
        why = "this dialect has no switch for reasoning, only an effort; the model's own default applies"
        losses.append(Loss("thinking", "thinking", why))


def lose_summary(thinking: Thinking, losses: list[Loss]) -> None:
    if thinking.summary not in (None, NO_SUMMARY):
        losses.append(Loss("thinking.summary", "thinking", "this dialect cannot request summaries of reasoning"))


def _with_member(body: JsonObject, path: tuple[str, ...], value: str) -> JsonObject:
    """The request has been decoded, so each value on the path is an object or null."""
    if len(path) == 1:
        return {**body, path[0]: value}
    return {**body, path[0]: _with_member(body.get(path[0]) or {}, path[1:], value)}


def with_failure(text: str) -> str:
    return f"{FAILED}\n{text}" if text else FAILED


def with_failure_first(parts: list[Part]) -> list[Part]:
    """The same for parts: the line goes into the first text, or before everything else."""
    if parts and isinstance(first := parts[0], Text):
        return [replace(first, text=with_failure(first.text)), *parts[1:]]
    return [Text(text=FAILED), *parts]


def split_failure(text: str) -> str | None:
    """The text after the fixed line; None if it does not begin with that line."""
    first, _, rest = text.partition("\n")
    return rest if first == FAILED else None


def split_result(parts: tuple[Text | Media | Opaque, ...]) -> tuple[bool, tuple[Text | Media | Opaque, ...]]:
    """Whether the parts of a result report a failure, and the parts without that line."""
    rest = split_failure(parts[0].text) if parts and isinstance(parts[0], Text) else None
    if rest is None:
        return False, parts
    return True, (Text(text=rest), *parts[1:]) if rest or len(parts) == 1 else parts[1:]


def form_instruction(output: OutputFormat, *, has_tools: bool) -> str:
    """An instruction for back ends without a member for the output format; "" for free text."""
    what = "An answer that calls no tool" if has_tools else "Your answer"
    if output.format == "schema":
        schema = encode(output.schema or {}).decode()
        return f"{what} must be JSON, and nothing else, by this schema: {schema}"
    return f"{what} must be one JSON object, and nothing else." if output.format == "json" else ""


def fit_id(call_id: str, limit: int) -> str:
    """The id in letters, digits, _ and -, at most limit characters long. Legal ids are unchanged; others get a hash of the original, so that
    equal ids stay equal and a call keeps its result."""
    if len(call_id) <= limit and not _ILLEGAL.search(call_id):
        return call_id
    mark = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{_ILLEGAL.sub('_', call_id)[: limit - len(mark) - 1]}_{mark}"
