"""Anthropic Messages: requests out. What this dialect cannot express is reworded or dropped, and recorded as a loss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, assert_never

from ...profiles import Profile
from ...types import (
    Json,
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import encode, object_of
from ..base import Encoded
from ..shared.calls import arguments_of
from ..shared.media.data import text_in
from ..shared.media.policy import MediaAdapter, MediaSupport, check_size
from ..shared.media.text import placeholder
from ..shared.media.types import is_text, normalize_type
from ..shared.requests import (
    CACHE_HINT,
    NO_SUMMARY,
    as_note,
    foreign_members,
    form_instruction,
    lose_summary,
    lose_thinking,
    split_head,
    whole_schema,
    with_listener,
)
from .bound_thinking import free_choice
from .shapes import NAME

PATH = "/v1/messages"
_MEDIA = MediaSupport(
    has_text_files=True,
    image_schemes=frozenset({"https"}),
    file_schemes=frozenset({"https"}),
    named_files=frozenset({"data", "url"}),
)
_TITLE = 500
_MOST_HINTS = 4
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
_LEAST_BUDGET = 1024
_LONGEST_USER = 256
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_THOUGHTS = ("thinking", "redacted_thinking")


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    writer = _Writer(profile, losses, MediaAdapter(request, profile, NAME, _MEDIA, losses))
    if is_own:
        body = dict(request.source)
        if "thinking" in body and request.thinking is not None and request.thinking.mode == "off":
            body["thinking"] = {"type": "disabled"}  # the ledger has turned it off (H075)
        if request.tool_choice is not None and profile.is_unforced(request.model):
            _free_choice(body, losses)
    else:
        body = members(request, profile, losses)
        foreign_members(request, NAME, losses)
    head, rest = split_head(request.messages if is_own else with_listener(request.messages, losses))
    if not is_own and (system := writer.system(head, _form(request))):
        body["system"] = system
    body["model"] = request.model
    body["messages"] = writer.messages(rest if not is_own else [m for m in request.messages if not m.is_head])
    if not is_own or request.has_new_tools:
        _offer(request, body, profile)
    if not is_own:
        _limit_hints(body, losses)
    encoded = encode(body)
    return Encoded(PATH, encoded if is_own else check_size(encoded, profile), tuple(losses))


class _Writer:
    """Messages with alternating roles; results come first in the user message after their calls."""

    def __init__(self, profile: Profile, losses: list[Loss], media: MediaAdapter) -> None:
        self._profile = profile
        self._losses = losses
        self._media = media
        self._out: list[JsonObject] = []
        self._made: list[JsonObject] = []
        self._grown: JsonObject | None = None  # the last message, if we made it and it may still grow

    def system(self, head: list[Message], form: str) -> str | list[JsonObject]:
        """form: an instruction about the output format, which comes last."""
        parts = [part for message in head for part in message.parts] + ([Text(text=form)] if form else [])
        blocks = self._blocks(parts, "system", "the system prompt holds text only")
        texts = [block for block in blocks if block["type"] == "text"]
        return str(texts[0]["text"]) if len(texts) == 1 and _is_plain(texts[0]) else texts

    def messages(self, messages: list[Message]) -> list[JsonObject]:
        for index, message in enumerate(messages):
            self._message(message, f"messages[{index}]")
        for made in self._made:  # once, however many pieces they grew from
            made["content"].sort(key=_place)
        return self._out

    def _message(self, message: Message, where: str) -> None:
        if message.source is not None and message.source.dialect == NAME and not message.is_head:
            self._out.append(message.source.value)
            self._grown = None
            return
        role = "assistant" if message.role == "assistant" else "user"
        only_text = "an assistant message holds text only" if role == "assistant" else ""
        blocks = self._blocks(message.parts, where, only_text)
        if message.role in ("system", "developer"):
            blocks = self._note(blocks, where)
        if not blocks:
            return
        if self._grown is None or self._grown["role"] != role:
            self._grown = {"role": role, "content": []}
            self._made.append(self._grown)
            self._out.append(self._grown)
        self._grown |= message.extra.get(NAME, {})
        self._grown["content"] += blocks

    def _note(self, blocks: list[JsonObject], where: str) -> list[JsonObject]:
        """Instructions in mid-conversation keep their position, as a labelled note (H141)."""
        if not blocks:
            return []
        text = "\n".join(str(block["text"]) for block in blocks if block["type"] == "text")
        return [{"type": "text", "text": as_note(text, where, self._losses)}, *_other_than_text(blocks)]

    def _blocks(self, parts: Iterable[Part], where: str, only_text: str = "") -> list[JsonObject]:
        pieces = self._media.adapt_all(parts, where, only_text)
        return [block for piece in pieces for block in self._block(piece, where)]

    def _block(self, part: Part, where: str) -> list[JsonObject]:
        own = part.extra.get(NAME, {})
        match part:
            case Text() | Refusal():
                return [{"type": "text", "text": part.text, **own}] if part.text.strip() else []
            case ToolCall():
                return [{"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part), **own}]
            case ToolResult():
                return self._result(part, where)
            case Media():
                return [_medium(part, where, self._losses) | own]
            case Reasoning(redacted=str(data)):
                return [{"type": "redacted_thinking", "data": data}]
            case Reasoning(signature=str(signature)):
                return [{"type": "thinking", "thinking": part.text, "signature": signature}]
            case Reasoning():
                lose_thinking(part, where, self._losses)
                return []
            case Opaque():  # those of other dialects are text by now
                return [part.value]
            case _:
                assert_never(part)

    def _result(self, result: ToolResult, where: str) -> list[JsonObject]:
        content, moved = self._blocks(result.parts, where), []
        if result.is_error and not self._media.is_own and (moved := _other_than_text(content)):
            content = [block for block in content if block["type"] == "text"]
            moved.insert(0, {"type": "text", "text": f"Attachment(s) of failed tool result {result.call_id}:"})
            self._losses.append(Loss("result.media", where, "moved after the results, a failed one contains text only"))
        value: JsonObject = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": content[0]["text"] if len(content) == 1 and _is_plain(content[0]) else content,
        }
        if result.is_error:
            value["is_error"] = True
        return [{**value, **result.extra.get(NAME, {})}, *moved]


def _form(request: Request) -> str:
    """JSON without a schema has no member in this dialect."""
    return form_instruction(request.output, has_tools=bool(request.tools)) if request.output.format == "json" else ""


def _place(block: JsonObject) -> int:
    """Results come first in a user message, calls last in an assistant message."""
    return {"tool_result": 0, "tool_use": 2}.get(block["type"], 1)


def _is_plain(block: JsonObject) -> bool:
    """Only text: it can be a string."""
    return block["type"] == "text" and len(block) == 2


def _other_than_text(blocks: list[JsonObject]) -> list[JsonObject]:
    return [block for block in blocks if block["type"] != "text"]


def _medium(media: Media, where: str, losses: list[Loss]) -> JsonObject:
    """A medium in the form of this dialect."""
    kind = "image" if media.kind == "image" else "document"
    named = {"title": media.name[:_TITLE]} if media.name and kind == "document" else {}
    if media.kind == "audio":
        return {"type": "text", "text": placeholder(media, where, losses, "this dialect has no audio")}
    if media.url is not None:
        return {"type": kind, "source": {"type": "url", "url": media.url}, **named}
    if media.file_id is not None:
        return {"type": kind, "source": {"type": "file", "file_id": media.file_id}, **named}
    if kind == "document" and is_text(normalize_type(media.mime)) and (text := text_in(media)) is not None:
        return {"type": kind, "source": {"type": "text", "media_type": "text/plain", "data": text}, **named}
    return {"type": kind, "source": {"type": "base64", "media_type": media.mime, "data": media.data}, **named}


def _limit_hints(body: JsonObject, losses: list[Loss]) -> None:
    """The API refuses a fifth cache hint (H143). Hints of tools and instructions take precedence, then the last ones of messages, because
    they also read what was cached for earlier ones."""
    fixed = _hinted(body.get("tools")) + _hinted(body.get("system"))
    moving = [block for message in body["messages"] for block in _hinted(message["content"])]
    excess = max(0, len(fixed) + len(moving) - _MOST_HINTS)
    for block in (moving + fixed[::-1])[:excess]:
        del block[CACHE_HINT]
    if excess:
        losses.append(Loss(f"part.{CACHE_HINT}", "messages", f"{_MOST_HINTS} are allowed, {excess} more were dropped"))


def _hinted(blocks: Json) -> list[JsonObject]:
    """Blocks with a cache hint, with those inside of results, in order."""
    found: list[JsonObject] = []
    for block in blocks if isinstance(blocks, list) else ():
        found += _hinted(block.get("content"))
        if CACHE_HINT in block:
            found.append(block)
    return found


def _offered(request: Request, profile: Profile) -> tuple[Tool, ...]:
    """A choice among some tools is expressed by offering only those, unless that would void the thinking of a bound model."""
    choice = request.tool_choice
    if request.origin == NAME or choice is None or choice.mode != "allowed" or profile.is_bound(request.model):
        return request.tools
    return tuple(tool for tool in request.tools if tool.name in choice.names)


def _offer(request: Request, body: JsonObject, profile: Profile) -> None:
    """Write the tools and the tool choice."""
    for key in ("tools", "tool_choice"):
        body.pop(key, None)
    if tools := _offered(request, profile):
        body["tools"] = _tools(tools)
        add_tool_choice(request, body, [], profile)  # its losses are recorded already


def _tools(tools: tuple[Tool, ...]) -> list[JsonObject]:
    written = []
    for tool in tools:
        if tool.source is not None and tool.source.dialect == NAME:
            written.append(tool.source.value)
            continue
        value: JsonObject = {"name": tool.name}
        if tool.description:
            value["description"] = tool.description
        value["input_schema"] = whole_schema(tool.schema)
        if tool.strict:
            value["strict"] = True
        written.append(value | tool.extra.get(NAME, {}))
    return written


def members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    body: JsonObject = {"model": request.model, "max_tokens": request.max_tokens or profile.default_max_tokens}
    body["messages"] = []
    _sampling(request, profile, body, losses)
    add_tool_choice(request, body, losses, profile)
    _thinking(request, profile, body, losses)
    if request.output.format == "schema":
        body["output_config"] = {
            **body.get("output_config", {}),
            "format": {"type": "json_schema", "schema": request.output.schema or {}},
        }
    elif request.output.format == "json":
        losses.append(Loss("output.json", "response_format", "requested by an instruction: only a schema has a member"))
    if request.output.description is not None:
        losses.append(Loss("output.description", "response_format", "not part of this dialect"))
    if request.output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", "not part of this dialect"))
    if request.user is not None:
        body["metadata"] = {"user_id": request.user[:_LONGEST_USER]}
        if len(request.user) > _LONGEST_USER:
            losses.append(Loss("user", "user", f"cut to {_LONGEST_USER} characters"))
    if request.stream:
        body["stream"] = True
    own = request.extra.get(NAME, {})
    return (
        body
        | own
        | {key: {**own[key], **body[key]} for key in ("thinking", "output_config") if key in body and key in own}
    )


def _sampling(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    sampling = request.sampling
    refuses = bool(profile.has_sampling_until) and profile.api_version >= profile.has_sampling_until
    for key in ("temperature", "top_p", "top_k"):
        if (value := getattr(sampling, key)) is None:
            continue
        if refuses:
            losses.append(Loss(f"sampling.{key}", key, f"refused by version {profile.api_version}"))
        elif key == "temperature" and value > 1:
            body[key] = 1
            losses.append(Loss("sampling.temperature", key, "1 is the highest here"))
        elif key == "top_p" and "temperature" in body:
            if value != 1:
                losses.append(Loss("sampling.top_p", key, "many models take it or the temperature, not both"))
        else:
            body[key] = value
    if stops := [stop for stop in sampling.stop if stop.strip()]:
        body["stop_sequences"] = stops
    if len(stops) < len(sampling.stop):
        losses.append(Loss("sampling.stop", "stop", "a stop sequence of white space is refused"))
    for key, idle in (("seed", None), ("frequency_penalty", 0), ("presence_penalty", 0)):
        if getattr(sampling, key) not in (None, idle):
            losses.append(Loss(f"sampling.{key}", key, "not part of this dialect"))
    if sampling.choices > 1:
        losses.append(Loss("sampling.n", "n", "this dialect gives one choice"))
    if sampling.logprobs or sampling.top_logprobs:
        losses.append(Loss("sampling.logprobs", "logprobs", "not part of this dialect"))


def add_tool_choice(request: Request, body: JsonObject, losses: list[Loss], profile: Profile) -> None:
    value = _choice(request.tool_choice, losses)
    if request.parallel_calls is False and request.tools and (value or {}).get("type") != "none":
        value = {**(value or {"type": "auto"}), "disable_parallel_tool_use": True}
    if value is None:
        return
    body["tool_choice"] = value
    if profile.is_unforced(request.model):
        _free_choice(body, losses)
    choice = request.tool_choice
    if choice is not None and choice.mode == "allowed" and profile.is_bound(request.model):
        why = "all tools stay in the list, because the model's thinking is bound to it; the gateway checks the calls"
        losses.append(Loss("tool_choice.allowed", "tool_choice", why))


def _free_choice(body: JsonObject, losses: list[Loss]) -> None:
    """For a model that refuses forced calls."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or (free := free_choice(choice)) is None:
        return
    body["tool_choice"] = free
    losses.append(
        Loss("tool_choice", "tool_choice", "this model accepts no forced calls; it is reminded if it makes none")
    )


def _choice(choice: ToolChoice | None, losses: list[Loss]) -> JsonObject | None:
    if choice is None:
        return None
    match choice.mode:
        case "auto" | "none":
            return {"type": choice.mode}
        case "required":
            return {"type": "any"}
        case "named":
            return {"type": "tool", "name": choice.names[0]}
        case "allowed":
            return {"type": "any" if choice.is_required else "auto"}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
            return None
        case _:
            assert_never(choice.mode)


def _thinking(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    """An effort or a budget, whichever the model accepts; thinking stays off where back ends are known to refuse it."""
    thinking = request.thinking
    if thinking is None or thinking.mode == "off" or thinking.effort == "none":
        return
    if not thinking.mode and thinking.effort is None and thinking.budget is None:
        lose_summary(thinking, losses)  # a summary of thinking that is not requested
        return
    if re.search(profile.adaptive_models, request.model):
        _adapt(thinking, body, losses)
    elif body.get("tool_choice", {}).get("type") in ("any", "tool"):
        losses.append(Loss("thinking", "thinking", "a forced tool call and thinking exclude each other (H085)"))
        return
    elif _is_mid_turn_unsigned(request):
        losses.append(Loss("thinking", "thinking", "the open turn holds calls without signed thinking (H075)"))
        return
    else:
        _budget(thinking, body, losses)
    for key in ("temperature", "top_p", "top_k"):
        if body.pop(key, 1) != 1:
            losses.append(Loss(f"sampling.{key}", key, "it cannot be set while the model thinks"))


def _adapt(thinking: Thinking, body: JsonObject, losses: list[Loss]) -> None:
    is_hidden = thinking.summary == NO_SUMMARY
    body["thinking"] = {"type": "adaptive", "display": "omitted" if is_hidden else "summarized"}
    effort = None if thinking.effort is None else _EFFORTS.get(thinking.effort, "high")
    if effort is None and thinking.budget is not None:
        effort = _effort_for(thinking.budget)
        losses.append(Loss("thinking.budget", "thinking", f"this model takes an effort; it is {effort}"))
    if effort is not None:
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}


def _budget(thinking: Thinking, body: JsonObject, losses: list[Loss]) -> None:
    """At most half of all tokens, so that there is room for an answer."""
    wanted = thinking.budget or _BUDGETS.get(thinking.effort or "", _BUDGETS["medium"])
    most = body["max_tokens"] = max(int(body["max_tokens"]), _LEAST_BUDGET * 2)
    budget = max(_LEAST_BUDGET, min(wanted, most // 2))
    if thinking.budget is not None and budget != thinking.budget:
        losses.append(Loss("thinking.budget", "thinking", f"{budget} in place of {thinking.budget} tokens"))
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if thinking.summary == NO_SUMMARY:
        body["thinking"]["display"] = "omitted"


def _effort_for(budget: int) -> str:
    """The lowest effort whose own budget is no smaller."""
    return next((effort for effort in ("low", "medium", "high") if budget <= _BUDGETS[effort]), "xhigh")


def _is_mid_turn_unsigned(request: Request) -> bool:
    """Whether the open turn, including the results of its calls, begins without signed reasoning."""
    is_open, messages = False, request.messages
    for number in reversed(range(len(messages))):
        message = messages[number]
        if message.role == "assistant":
            is_open = True
            first = message.parts[0] if message.parts else None
            is_first = number == 0 or messages[number - 1].role != "assistant"  # two of them in a row become one
            if is_first and isinstance(first, Reasoning) and (first.signature or first.redacted):
                return False
        elif message.role in ("user", "tool") and not all(isinstance(part, ToolResult) for part in message.parts):
            break
    return is_open


def without_thinking(body: bytes) -> bytes | None:
    """A request without the reasoning of earlier turns, for a back end that refuses it; None if there is none. This is always allowed except
    in a turn that waits for results: there thinking itself must be off (H075)."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    given = top.get("messages")
    if not isinstance(given, list):
        return None
    messages = [_without(message) for message in given]
    changed: JsonObject = {**top, "messages": messages}
    if messages and _is_waiting(messages[-1]):
        changed = _unthinking(changed)
    return encode(changed) if changed != top else None


def _without(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(content := message.get("content"), list):
        return message
    return {**message, "content": [block for block in content if not _is(block, *_THOUGHTS)]}


def _is(block: Any, *kinds: str) -> bool:
    return isinstance(block, dict) and block.get("type") in kinds


def _is_waiting(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(_is(block, "tool_result") for block in content)


def _unthinking(top: JsonObject) -> JsonObject:
    """Without thinking, and without the edit that clears it, which is refused if thinking is off."""
    kept = {key: value for key, value in top.items() if key != "thinking"}
    management = kept.get("context_management")
    if isinstance(management, dict) and isinstance(edits := management.get("edits"), list):
        kept["context_management"] = {**management, "edits": [edit for edit in edits if not _clears(edit)]}
    return kept


def _clears(edit: Any) -> bool:
    return isinstance(edit, dict) and str(edit.get("type")).startswith("clear_thinking")
