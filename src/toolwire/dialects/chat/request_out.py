"""Chat Completions: requests out. What this dialect cannot say is reworded or left out, and recorded as a loss."""

from __future__ import annotations

from typing import assert_never

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
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact import encode
from ..base import Encoded
from ..failures import with_failure
from ..foreign import foreign_members, lose_thinking, lost_tools
from ..ids import fit_id
from ..media import data_url, opaque_text, placeholder, text_of
from .answer_out import call_out
from .shapes import MAX_ID, NAME

PATH = "/chat/completions"


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    body = dict(request.source) if is_own else _members(request, profile, losses)
    body["model"] = request.model
    body["messages"] = _Writer(profile, losses).messages(request.messages)
    if tools := _tools(request.tools, losses):
        body["tools"] = tools
    elif not is_own:
        body.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    if request.stream and profile.asks_for_usage:
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    return Encoded(PATH, encode(body), tuple(losses))


class _Writer:
    """Messages one after the other; consecutive assistant messages of other dialects become one."""

    def __init__(self, profile: Profile, losses: list[Loss]) -> None:
        self._profile = profile
        self._losses = losses
        self._out: list[JsonObject] = []
        self._open: JsonObject | None = None  # an assistant message that may still grow
        self._media: list[Part] = []  # what tool messages cannot carry, for a user message behind them (H098)

    def messages(self, messages: tuple[Message, ...]) -> list[JsonObject]:
        for index, message in enumerate(messages):
            self._message(message, f"messages[{index}]")
        self._flush_media()
        return self._out

    def _message(self, message: Message, where: str) -> None:
        if message.role == "assistant":
            self._flush_media()
            self._assistant(message, where)
            return
        self._open = None
        if message.source is not None and message.source.dialect == NAME:
            if message.role != "tool":
                self._flush_media()
            self._out.append(message.source.value)
            return
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._result(part, where, _own(message))
            else:
                others.append(part)
        if others or not message.parts:
            self._flush_media()
            self._out.append({"role": self._role(message), "content": self._content(others, where), **_own(message)})

    def _role(self, message: Message) -> str:
        if message.role == "developer" and not self._profile.has_developer_role:
            return "system"
        return "user" if message.role == "tool" else message.role

    def _assistant(self, message: Message, where: str) -> None:
        if message.source is not None and message.source.dialect == NAME:
            self._open = None
            self._out.append(message.source.value)
            return
        if self._open is None:
            self._open = {"role": "assistant", "content": None, **_own(message)}
            self._out.append(self._open)
        for part in message.parts:
            self._assistant_part(self._open, part, where)

    def _assistant_part(self, target: JsonObject, part: Part, where: str) -> None:
        match part:
            case Text():
                target["content"] = (target["content"] or "") + part.text
            case Refusal():
                target["refusal"] = (target.get("refusal") or "") + part.text
            case ToolCall():
                target.setdefault("tool_calls", []).append(_call(part, where, self._losses))
            case Reasoning():
                field = self._profile.reasoning_field
                if field and part.text:
                    target[field] = target.get(field, "") + part.text
                else:
                    lose_thinking(part, where, self._losses)
            case Media():
                target["content"] = (target["content"] or "") + placeholder(
                    part, where, self._losses, "an assistant message holds text only"
                )
            case Opaque():
                if part.dialect == NAME:
                    target.update(part.value)
                else:
                    kind = str(part.value.get("type", "part"))
                    self._losses.append(Loss(f"part.{kind}", where, "another dialect's own part"))
            case ToolResult():
                self._result(part, where, {})
            case _:
                assert_never(part)

    def _result(self, result: ToolResult, where: str, own: JsonObject) -> None:
        text = text_of(result.parts, where, self._losses)
        media = [part for part in result.parts if isinstance(part, Media)]
        if media:
            note = f"[{len(media)} attachment(s) of this result follow in the next user message]"
            text = f"{text}\n{note}" if text else note
            self._media += [Text(text=f"Attachment(s) of tool result {result.call_id}:"), *media]
            self._losses.append(Loss("result.media", where, "moved to a user message behind the results"))
        content = with_failure(text) if result.is_error else text
        self._out.append({"role": "tool", "tool_call_id": _fitted(result.call_id), "content": content, **own})

    def _flush_media(self) -> None:
        if self._media:
            parts, self._media = self._media, []
            self._out.append({"role": "user", "content": self._content(parts, "messages")})

    def _content(self, parts: list[Part], where: str) -> str | list[JsonObject]:
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], Text) and NAME not in parts[0].extra:
            return parts[0].text
        return [self._content_part(part, where) for part in parts]

    def _content_part(self, part: Part, where: str) -> JsonObject:
        match part:
            case Text():
                return {"type": "text", "text": part.text, **part.extra.get(NAME, {})}
            case Media():
                return _media(part, where, self._losses)
            case Opaque():
                if part.dialect == NAME:
                    return part.value
                return {"type": "text", "text": opaque_text(part, where, self._losses)}
            case Refusal():
                return {"type": "refusal", "refusal": part.text}
            case _:
                kind = type(part).__name__
                self._losses.append(Loss(f"part.{kind}", where, "it does not belong in this message"))
                return {"type": "text", "text": f"[{kind}]"}


def _own(message: Message) -> JsonObject:
    return message.extra.get(NAME, {})


def _call(call: ToolCall, where: str, losses: list[Loss]) -> JsonObject:
    """A freeform call becomes a function call with its text in one member, so that its result keeps its pair."""
    if call.kind == "custom":
        losses.append(Loss("call.custom", where, "written as a function call"))
        raw = encode({"input": call.raw}).decode()
        return {"id": _fitted(call.id), "type": "function", "function": {"name": call.name, "arguments": raw}}
    return call_out(call) | {"id": _fitted(call.id)} | call.extra.get(NAME, {})


def _fitted(call_id: str) -> str:
    """Any character may stand in an id here, but not more than so many (H045)."""
    return call_id if len(call_id) <= MAX_ID else fit_id(call_id, MAX_ID)


def _media(media: Media, where: str, losses: list[Loss]) -> JsonObject:
    url = data_url(media)
    if media.kind == "image" and url is not None:
        inner: JsonObject = {"url": url}
        if media.detail is not None:
            inner["detail"] = media.detail
        return {"type": "image_url", "image_url": inner}
    if media.kind == "audio" and media.data is not None:
        return {
            "type": "input_audio",
            "input_audio": {"data": media.data, "format": media.mime.rpartition("/")[2] or "wav"},
        }
    if media.kind == "file" and media.data is not None:
        return {"type": "file", "file": {"filename": media.name or "file", "file_data": url}}
    if media.kind == "file" and media.file_id is not None:
        return {"type": "file", "file": {"file_id": media.file_id}}
    return {"type": "text", "text": placeholder(media, where, losses, "no place for it in a chat message")}


def _tools(tools: tuple[Tool, ...], losses: list[Loss]) -> list[JsonObject]:
    written = []
    for tool in tools:
        if tool.source is not None and tool.source.dialect == NAME:
            written.append(tool.source.value)
        elif tool.kind == "function":
            function: JsonObject = {"name": tool.name}
            if tool.description is not None:
                function["description"] = tool.description
            function["parameters"] = tool.schema or {"type": "object", "properties": {}}
            if tool.strict is not None:
                function["strict"] = tool.strict
            written.append({"type": "function", "function": function | tool.extra.get(NAME, {})})
        else:
            losses.append(lost_tools(tool))
    return written


def _members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    """Everything but model, messages and tools, for a request that came in another dialect."""
    body: JsonObject = {"model": request.model, "messages": [], **request.extra.get(NAME, {})}
    if request.max_tokens is not None:
        body[profile.max_tokens_field] = request.max_tokens
    _sampling(request.sampling, body, losses)
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
    foreign_members(request, NAME, losses)
    return body


def _sampling(sampling: Sampling, body: JsonObject, losses: list[Loss]) -> None:
    for key in ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"):
        if (value := getattr(sampling, key)) is not None:
            body[key] = value
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.top_k is not None:
        losses.append(Loss("sampling.top_k", "top_k", "not part of this dialect"))
    if sampling.choices > 1:
        body["n"] = sampling.choices
    if sampling.logprobs:
        body["logprobs"] = True
        if sampling.top_logprobs is not None:
            body["top_logprobs"] = sampling.top_logprobs


def _tool_choice(choice: ToolChoice, body: JsonObject, losses: list[Loss]) -> None:
    match choice.mode:
        case "auto" | "none" | "required":
            body["tool_choice"] = choice.mode
        case "named":
            body["tool_choice"] = {"type": "function", "function": {"name": choice.names[0]}}
        case "allowed":
            tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
            mode = "required" if choice.is_required else "auto"
            body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
        case _:
            assert_never(choice.mode)


def _thinking(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    thinking = request.thinking
    if thinking is None:
        return
    if thinking.effort is not None and profile.has_effort:
        body["reasoning_effort"] = thinking.effort
    elif thinking.budget is not None:
        losses.append(Loss("thinking.budget", "thinking", "this dialect counts reasoning by effort only"))


def _output(request: Request, body: JsonObject) -> None:
    output = request.output
    if output.format == "json":
        body["response_format"] = {"type": "json_object"}
    elif output.format == "schema":
        inner: JsonObject = {"name": output.name or "answer", "schema": output.schema or {}}
        if output.description is not None:
            inner["description"] = output.description
        if output.strict is not None:
            inner["strict"] = output.strict
        body["response_format"] = {"type": "json_schema", "json_schema": inner}
    if output.verbosity is not None:
        body["verbosity"] = output.verbosity
