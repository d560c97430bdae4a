"""OpenAI Responses: requests out. What this dialect cannot express is reworded or dropped, and recorded as a loss."""

from __future__ import annotations

import re
from typing import Any, assert_never

from ...profiles import Profile
from ...types import (
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
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import encode, object_of
from ..base import Encoded
from ..shared.media.data import data_url, file_name
from ..shared.media.policy import MediaAdapter, MediaSupport, check_size
from ..shared.media.text import text_of
from ..shared.media.types import OFFICE, PDF
from ..shared.requests import (
    foreign_members,
    lose_amount,
    lose_summary,
    lose_thinking,
    shared_members,
    split_head,
    whole_schema,
    with_failure,
    with_failure_first,
)
from .items_in import is_reference
from .resource import reasoning_item
from .shapes import NAME, PHASE, phase_of

PATH = "/responses"
COMPACT_PATH = "/responses/compact"
_LEAST_TOKENS = 16  # the API refuses less
_MEDIA = MediaSupport(
    file_types=OFFICE | {PDF},
    has_text_files=True,
    file_schemes=frozenset({"http", "https"}),
    has_any_url=True,
    has_detail=True,
    named_files=frozenset({"data"}),
)
_REASONING_ID = "rs_"
_PROOF = "reasoning.encrypted_content"


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    encoded = encode(body_of(request, profile, losses))
    return Encoded(path_of(request), encoded if is_own else check_size(encoded, profile), tuple(losses))


def path_of(request: Request) -> str:
    return COMPACT_PATH if request.compaction is not None and request.compaction.is_endpoint else PATH


def body_of(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    """The body as an object, for callers that embed it in a message of their own."""
    writer = _Writer(profile, losses, MediaAdapter(request, profile, NAME, _MEDIA, losses))
    is_own = request.origin == NAME and bool(request.source)
    if is_own:
        body = dict(request.source)
        rest = [message for message in request.messages if not message.is_head]
        if not (isinstance(body.get("input"), str) and len(rest) == 1):  # the gateway may have added rounds
            body["input"] = writer.items(rest)
        tools = _own_tools(request, body)
    else:
        head, rest = split_head(request.messages)
        if not rest:  # there are only instructions, and an input needs one item
            head, rest = [], list(request.messages)
        if any(isinstance(part, Media) for message in head for part in message.parts):
            head, rest = [], list(request.messages)  # instructions are text, messages of this role are not
        body = _members(request, profile, losses)
        if head:
            body["instructions"] = "\n\n".join(text_of(message.parts, "instructions", losses) for message in head)
        body["input"] = writer.items(rest)
        tools = _tools(request.tools)
        if not tools:
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
    body["model"] = request.model
    if tools:
        body["tools"] = tools
    return body


class _Writer:
    """Each message becomes one item or more, in order."""

    def __init__(self, profile: Profile, losses: list[Loss], media: MediaAdapter) -> None:
        self._profile = profile
        self._losses = losses
        self._media = media

    def items(self, messages: list[Message]) -> list[JsonObject]:
        items: list[JsonObject] = []
        for index, message in enumerate(messages):
            if message.source is not None and message.source.dialect == NAME:
                items.append(message.source.value)
            else:
                items += self._message(message, f"messages[{index}]")
        return items

    def _message(self, message: Message, where: str) -> list[JsonObject]:
        """Results and calls are items of their own; texts between them stay together, in place."""
        items: list[JsonObject] = []
        content: list[JsonObject] = []
        role = "user" if message.role == "tool" else message.role
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        items += [self._result(part, where) for part in results]
        thoughts, own = _thoughts(message), phase_of(message.parts) | message.extra.get(NAME, {})
        for part in message.parts:
            if isinstance(part, ToolResult):
                continue
            if isinstance(part, ToolCall | Reasoning) or _is_item(part):
                items += _gathered(role, content, own)
                content = []
                items += self._item(part, thoughts, where)
            else:
                only_text = "an assistant message holds text only" if role == "assistant" else ""
                for piece in self._media.adapt(part, where, only_text):
                    content += self._content(piece, role, where)
        return items + _gathered(role, content, own)

    def _item(self, part: Part, thoughts: dict[str, list[Reasoning]], where: str) -> list[JsonObject]:
        match part:
            case ToolCall():
                return [_call(part)]
            case Opaque():
                return [part.value]
            case Reasoning() if NAME in part.extra:
                return self._thought(thoughts.pop(part.item_id, []), where)
            case Reasoning():
                lose_thinking(part, where, self._losses)
                return []
            case _:
                return []

    def _thought(self, parts: list[Reasoning], where: str) -> list[JsonObject]:
        """One item, at the position of its first part. The back end was requested not to store it, and accepts it
        back only with its proof."""
        if parts and self._profile.keeps_state and not any(part.encrypted for part in parts):
            lose_thinking(parts[0], where, self._losses)
            return []
        return [reasoning_item(parts[0].item_id, parts)] if parts else []

    def _result(self, result: ToolResult, where: str) -> JsonObject:
        parts = self._media.adapt_all(result.parts, where)
        kind = "custom_tool_call_output" if result.kind == "custom" else "function_call_output"
        value: JsonObject = {"type": kind, "call_id": result.call_id}
        if any(isinstance(part, Media) for part in parts):
            parts = with_failure_first(parts) if result.is_error else parts
            value["output"] = [piece for part in parts for piece in self._content(part, "user", where)]
        else:
            text = text_of(tuple(parts), where, self._losses)
            value["output"] = with_failure(text) if result.is_error else text
        if result.is_error:
            value["status"] = "incomplete"  # the dialect has no error member (H094)
        return value | result.extra.get(NAME, {})

    def _content(self, part: Part, role: str, where: str) -> list[JsonObject]:
        is_answer = role == "assistant"
        match part:
            case Text():
                if not part.text:
                    return []
                said = (
                    {"type": "output_text", "text": part.text, "annotations": []}
                    if is_answer
                    else _input_text(part.text)
                )
                own = part.extra.get(NAME, {})
                return [said | {key: value for key, value in own.items() if key != PHASE}]
            case Refusal():
                return [{"type": "refusal", "refusal": part.text} if is_answer else _input_text(part.text)]
            case Media():
                return [_medium(part)]
            case Opaque():  # those of other dialects are text by now
                return [part.value]
            case ToolCall() | ToolResult() | Reasoning():
                return []
            case _:
                assert_never(part)


def _thoughts(message: Message) -> dict[str, list[Reasoning]]:
    """Reasoning of this dialect by the item it belongs to."""
    found: dict[str, list[Reasoning]] = {}
    for part in message.parts:
        if isinstance(part, Reasoning) and NAME in part.extra:
            found.setdefault(part.item_id, []).append(part)
    return found


def _is_item(part: Part) -> bool:
    """An opaque part of this dialect that is an item, not inside a message."""
    if not isinstance(part, Opaque) or part.dialect != NAME:
        return False
    kind = str(part.value.get("type", ""))
    return not kind.startswith(("input_", "output_"))


def _gathered(role: str, content: list[JsonObject], own: JsonObject) -> list[JsonObject]:
    return [{"type": "message", "role": role, "content": content, **own}] if content else []


def _call(call: ToolCall) -> JsonObject:
    """With the item's own id and namespace, if it came from this dialect."""
    value: JsonObject = {"type": "function_call", "call_id": call.id, "name": call.name}
    if call.kind == "custom":
        value |= {"type": "custom_tool_call", "input": call.raw}
    else:
        value["arguments"] = call.raw or "{}"
    for key, known in (("id", call.item_id), ("namespace", call.namespace)):
        if known:
            value[key] = known
    return value | call.extra.get(NAME, {})


def _input_text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _medium(media: Media) -> JsonObject:
    """A medium in the form of this dialect."""
    own = media.extra.get(NAME, {})
    url = data_url(media)
    if media.kind == "image":
        place = {"image_url": url} if url is not None else {"file_id": media.file_id}
        return {"type": "input_image", "detail": media.detail or "auto", **place, **own}
    if media.kind == "file":
        if media.url is not None:
            return {"type": "input_file", "file_url": media.url, **own}
        if media.data is not None:
            return {"type": "input_file", "filename": file_name(media), "file_data": url, **own}
        return {"type": "input_file", "file_id": media.file_id, **own}
    # Only clients of this dialect can have sent it, and only servers beside its vendor's take it.
    form = media.mime.rpartition("/")[2] or "wav"
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}, **own}


def _own_tools(request: Request, body: JsonObject) -> list[JsonObject]:
    """As they came, unless they were translated to functions; then the tool choice is written again, too."""
    if not request.has_new_tools:
        return []
    body.pop("tools", None)
    body.pop("tool_choice", None)
    if request.thinking is not None and request.thinking.effort is not None:  # an item may have changed it
        body["reasoning"] = {**(body.get("reasoning") or {}), "effort": request.thinking.effort}
    if not request.tools:
        body.pop("parallel_tool_calls", None)
    elif request.tool_choice is not None:
        _tool_choice(request.tool_choice, body, [])
    return _tools(request.tools)


def _tools(tools: tuple[Tool, ...]) -> list[JsonObject]:
    written = []
    for tool in tools:
        if tool.source is not None and tool.source.dialect == NAME:
            written.append(tool.source.value)
            continue
        value: JsonObject = {"type": "function", "name": tool.name}
        if tool.description is not None:
            value["description"] = tool.description
        value["parameters"] = whole_schema(tool.schema)
        value["strict"] = tool.strict or False  # absent would mean true here (H065)
        written.append(value | tool.extra.get(NAME, {}))
    return written


def _members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    shared = shared_members(request, NAME, profile)
    if request.metadata and "metadata" in profile.shared_members:
        shared["metadata"] = request.metadata
    body: JsonObject = {
        "model": request.model,
        "input": [],
        "store": False,
        **shared,
        **request.extra.get(NAME, {}),
    }
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(request.max_tokens, _LEAST_TOKENS)
        if request.max_tokens < _LEAST_TOKENS:
            losses.append(Loss("max_tokens", "max_tokens", f"{_LEAST_TOKENS} is the least here"))
    _sampling(request, body, losses)
    if request.tool_choice is not None:
        _tool_choice(request.tool_choice, body, losses)
    if request.parallel_calls is not None:
        body["parallel_tool_calls"] = request.parallel_calls
    _thinking(request, profile, body, losses)
    _output(request, body)
    if request.user is not None:
        if len(request.user) <= 64:
            body["user"] = request.user
        else:
            losses.append(Loss("user", "user", "longer than 64 characters"))
    if request.stream:
        body["stream"] = True
    foreign_members(request, NAME, losses, shared)
    return body


def _sampling(request: Request, body: JsonObject, losses: list[Loss]) -> None:
    sampling = request.sampling
    for key in ("temperature", "top_p"):
        if (value := getattr(sampling, key)) is not None:
            body[key] = value
    for key, idle in (("top_k", None), ("seed", None), ("frequency_penalty", 0), ("presence_penalty", 0)):
        if getattr(sampling, key) not in (None, idle):
            losses.append(Loss(f"sampling.{key}", key, "not part of this dialect"))
    if sampling.stop:
        losses.append(Loss("sampling.stop", "stop", "not part of this dialect"))
    if sampling.choices > 1:
        losses.append(Loss("sampling.n", "n", "this dialect gives one choice"))
    if sampling.logprobs:
        body["include"] = [*body.get("include", ()), "message.output_text.logprobs"]
        if sampling.top_logprobs is not None:
            body["top_logprobs"] = sampling.top_logprobs
    elif sampling.top_logprobs:
        losses.append(Loss("sampling.top_logprobs", "top_logprobs", "log probabilities are not requested"))


def _tool_choice(choice: ToolChoice, body: JsonObject, losses: list[Loss]) -> None:
    match choice.mode:
        case "auto" | "none" | "required":
            body["tool_choice"] = choice.mode
        case "named":
            body["tool_choice"] = {"type": "function", "name": choice.names[0]}
        case "allowed":
            tools = [{"type": "function", "name": name} for name in choice.names]
            mode = "required" if choice.is_required else "auto"
            body["tool_choice"] = {"type": "allowed_tools", "mode": mode, "tools": tools}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
        case _:
            assert_never(choice.mode)


def _thinking(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    """If the model reasons, request its reasoning in the encrypted form that can be sent back (H083)."""
    thinking = request.thinking
    effort = None if thinking is None else thinking.effort
    thinks = bool(profile.reasoning_models) and re.match(profile.reasoning_models, request.model) is not None
    if effort != "none" and (effort is not None or thinks):
        body["include"] = list(dict.fromkeys([*body.get("include", ()), "reasoning.encrypted_content"]))
    if thinking is None:
        return
    if effort is not None:
        body["reasoning"] = {**body.get("reasoning", {}), "effort": effort}
    else:
        lose_amount(thinking, losses)
    # Summaries are not requested: accounts that are not verified are refused for it.
    lose_summary(thinking, losses)


def _output(request: Request, body: JsonObject) -> None:
    output, text = request.output, {}
    if output.format == "json":
        text["format"] = {"type": "json_object"}
    elif output.format == "schema":
        form: JsonObject = {"type": "json_schema", "name": output.name or "answer", "schema": output.schema or {}}
        if output.description is not None:
            form["description"] = output.description
        if output.strict is not None:
            form["strict"] = output.strict
        text["format"] = form
    if output.verbosity is not None:
        text["verbosity"] = output.verbosity  # type: ignore[assignment] # the dict holds both kinds
    if text:
        body["text"] = {**body.get("text", {}), **text}


def without_reasoning(body: bytes) -> bytes | None:
    """A request without the reasoning of earlier turns, for a back end that refuses it; None if there is none. Ids of other items are removed,
    too: the back end would look for the reasoning that belongs to them."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    items = top.get("input")
    if not isinstance(items, list):
        return None
    kept = [_without_id(item) for item in items if not _is_reasoning(item)]
    return encode({**top, "input": kept}) if len(kept) < len(items) else None


def without_proof(body: bytes) -> bytes | None:
    """The same body without the request for encrypted reasoning; None if there is none."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    include = top.get("include")
    if not isinstance(include, list) or _PROOF not in include:
        return None
    return encode({**top, "include": [one for one in include if one != _PROOF]})


def _is_reasoning(item: Any) -> bool:
    if is_reference(item):
        return str(item.get("id")).startswith(_REASONING_ID)
    return isinstance(item, dict) and item.get("type") == "reasoning"


def _without_id(item: Any) -> Any:
    if not isinstance(item, dict) or is_reference(item):
        return item
    rest: JsonObject = {key: value for key, value in item.items() if key != "id"}
    return rest
