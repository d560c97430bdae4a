"""Chat Completions: requests out. What this dialect cannot express is reworded or dropped, and recorded as a loss."""

from __future__ import annotations

from typing import assert_never

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
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import encode
from ..base import Encoded
from ..shared.answer_out import Words, separator
from ..shared.media.data import data_url, file_name
from ..shared.media.policy import MediaAdapter, MediaSupport, check_size, has_result_media
from ..shared.media.text import placeholder, text_of
from ..shared.requests import (
    as_note,
    foreign_members,
    lose_amount,
    lose_summary,
    lose_thinking,
    shared_members,
    whole_schema,
    with_failure_first,
    with_listener,
    with_one_head,
)
from .answer_out import call_out
from .reasoning_details import MEMBER, joined
from .shapes import NAME

PATH = "/chat/completions"
_MEDIA = MediaSupport(
    audio_types=frozenset({"audio/wav", "audio/mp3"}), has_detail=True, named_files=frozenset({"data"})
)


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    body = dict(request.source) if is_own else _members(request, profile, losses)
    body["model"] = request.model
    media = MediaAdapter(request, profile, NAME, _MEDIA, losses)
    messages = request.messages
    if not is_own and not profile.has_system_messages:
        messages = with_one_head(with_listener(messages, losses))
    body["messages"] = _Writer(profile, losses, media).messages(messages)
    if not is_own or request.has_new_tools:
        _offer(request, body, losses)
    if request.stream and profile.asks_for_usage:
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    encoded = encode(body)
    return Encoded(PATH, encoded if is_own else check_size(encoded, profile), tuple(losses))


class _Writer:
    """Messages one after the other; consecutive assistant messages of other dialects become one."""

    def __init__(self, profile: Profile, losses: list[Loss], media: MediaAdapter) -> None:
        self._profile = profile
        self._losses = losses
        self._media = media
        self._out: list[JsonObject] = []
        self._open: _Growing | None = None  # an assistant message that may still grow
        self._waiting: list[
            Part
        ] = []  # parts that are not allowed in their position, for the next user message (H098, H112)

    def messages(self, messages: tuple[Message, ...]) -> list[JsonObject]:
        for index, message in enumerate(messages):
            self._message(message, f"messages[{index}]")
        self._close()
        self._flush()
        return self._out

    def _message(self, message: Message, where: str) -> None:
        if message.role == "assistant":
            self._flush()
            self._assistant(message, where)
            return
        self._close()
        if message.source is not None and message.source.dialect == NAME and not has_result_media(message):
            if message.role != "tool":
                self._flush()
            self._out.append(message.source.value)
            return
        others: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._result(part, where, _own(message))
            else:
                others.append(part)
        if message.role == "tool":  # a message between two tool messages would part a turn from its results
            self._waiting += self._media.adapt_all(others, where)
        elif others or not message.parts:
            self._say(message, others, where)

    def _say(self, message: Message, parts: list[Part], where: str) -> None:
        role = self._role(message)
        if role == "user":  # with what was held back, because some templates refuse two user messages in a row
            parts = [*self._waiting, *self._media.adapt_all(parts, where)]
            self._waiting = []
        else:
            parts = self._media.adapt_all(parts, where, "a system message holds text only")
            if self._out and not self._profile.has_system_messages:  # it waits for the next user message (H112)
                self._waiting.append(
                    Text(text=as_note(text_of(tuple(parts), where, self._losses), where, self._losses))
                )
                return
            self._flush()
        self._out.append({"role": role, "content": self._content(parts, where), **_own(message)})

    def _role(self, message: Message) -> str:
        if message.role == "developer" and not self._profile.has_developer_role:
            return "system"
        return "user" if message.role == "tool" else message.role

    def _assistant(self, message: Message, where: str) -> None:
        if message.source is not None and message.source.dialect == NAME:
            self._close()
            self._out.append(message.source.value)
            return
        if self._open is None:
            self._open = _Growing({"role": "assistant", "content": None, **_own(message)}, len(self._out))
            self._out.append(self._open.value)
        for part in message.parts:
            self._assistant_part(self._open, part, where)

    def _close(self) -> None:
        """End the open message; drop it if it has nothing that this dialect can express."""
        growing, self._open = self._open, None
        if growing is None:
            return
        if not growing.write_texts():
            del self._out[growing.place]
        elif growing.value["content"] is None and not self._profile.has_null_content:
            growing.value["content"] = ""

    def _assistant_part(self, target: _Growing, part: Part, where: str) -> None:
        match part:
            case Text():
                target.say("content", part)
            case Refusal():
                target.say("refusal", part)
            case ToolCall():
                target.value.setdefault("tool_calls", []).append(_call(part))
            case Reasoning():
                field, own = self._profile.reasoning_field, part.extra.get(NAME)
                if field and part.text:
                    target.say(field, part)
                elif not own:
                    lose_thinking(part, where, self._losses)
                if own:  # what proves it to who made it
                    target.prove(own)
            case Media():
                pieces = self._media.adapt(part, where, "an assistant message holds text only")
                if isinstance(pieces[0], Media):  # our own dialect's, and its provider's matter
                    pieces = [Text(text=placeholder(part, where, self._losses, "an assistant message holds text only"))]
                target.add("content", text_of(tuple(pieces), where, self._losses))
            case Opaque():
                if part.dialect == NAME:
                    target.value.update(part.value)
                elif isinstance(part.value.get("content"), str) or "type" not in part.value:  # a summary, or any value
                    target.add("content", text_of((part,), where, self._losses))
                else:
                    kind = str(part.value.get("type", "part"))
                    self._losses.append(Loss(f"part.{kind}", where, "another dialect's own part"))
            case ToolResult():
                self._result(part, where, {})
            case _:
                assert_never(part)

    def _result(self, result: ToolResult, where: str, own: JsonObject) -> None:
        parts = self._without_media(self._media.adapt_all(result.parts, where), result.call_id, where)
        if result.is_error:
            parts = with_failure_first(parts)
        has_parts = self._media.is_own or self._profile.result_content == "parts"
        content = self._content(parts, where) if has_parts else text_of(tuple(parts), where, self._losses)
        named = {"name": result.name} if self._media.is_own and result.name else {}
        self._out.append({"role": "tool", "tool_call_id": result.call_id, **named, "content": content, **own})

    def _without_media(self, parts: list[Part], call_id: str, where: str) -> list[Part]:
        """Tool messages contain text only: media are replaced by notes and follow in a user message (H098)."""
        kept: list[Part] = []
        moved: list[Part] = []
        for part in parts:
            if isinstance(part, Media):
                moved.append(part)
                part = Text(text=f"[{part.kind}: attachment {len(moved)} of this result, in the next user message]")
            kept.append(part)
        if moved:
            self._waiting += [Text(text=f"Attachment(s) of tool result {call_id}:"), *moved]
            self._losses.append(Loss("result.media", where, "moved to a user message after the results"))
        return kept

    def _flush(self) -> None:
        if self._waiting:
            parts, self._waiting = self._waiting, []
            self._out.append({"role": "user", "content": self._content(parts, "messages")})

    def _content(self, parts: list[Part], where: str) -> str | list[JsonObject]:
        if (
            not self._media.is_own and len(parts) > 1
        ):  # an empty text next to other parts has no meaning, and some back ends refuse it
            parts = [part for part in parts if not isinstance(part, Text) or part.text]
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
            case Opaque():  # those of other dialects are text by now
                return part.value
            case Refusal():
                return {"type": "refusal", "refusal": part.text}
            case _:
                kind = type(part).__name__
                self._losses.append(Loss(f"part.{kind}", where, "it does not belong in this message"))
                return {"type": "text", "text": f"[{kind}]"}


class _Growing:
    """An assistant message under construction, and its place; its texts are joined once, when it is whole."""

    def __init__(self, value: JsonObject, place: int) -> None:
        self.value = value
        self.place = place
        self._texts: dict[str, list[str]] = {}
        self._last: dict[str, Words] = {}  # the last text of each field
        self._details: list[list[Json]] = []

    def say(self, field: str, part: Words) -> None:
        """Append a text; the field is one string, so a seam goes between two texts."""
        pieces, before = self._texts.setdefault(field, []), self._last.get(field)
        pieces += [part.text] if before is None else [separator(before, part, part.text), part.text]
        if part.text:
            self._last[field] = part

    def add(self, field: str, text: str) -> None:
        """Append a placeholder on a line of its own."""
        pieces = self._texts.setdefault(field, [])
        pieces += ["\n", text] if any(pieces) else [text]
        self._last[field] = Text(text=text)

    def prove(self, own: JsonObject) -> None:
        self.value |= own
        if isinstance(details := own.get(MEMBER), list):
            self._details.append(details)

    def write_texts(self) -> bool:
        """Write the texts; False if the message is empty."""
        if self._details:
            self.value[MEMBER] = joined(self._details)
        self.value |= {field: "".join(pieces) for field, pieces in self._texts.items()}
        return any(value is not None for field, value in self.value.items() if field != "role")


def _own(message: Message) -> JsonObject:
    return message.extra.get(NAME, {})


def _call(call: ToolCall) -> JsonObject:
    return call_out(call) | call.extra.get(NAME, {})


def _media(media: Media, where: str, losses: list[Loss]) -> JsonObject:
    """A medium in the form of this dialect."""
    own = media.extra.get(NAME, {})
    url = data_url(media)
    if media.kind == "image" and url is not None:
        inner: JsonObject = {"url": url}
        if media.detail is not None:
            inner["detail"] = media.detail
        return {"type": "image_url", "image_url": inner, **own}
    if media.kind == "audio" and media.data is not None:
        form = media.mime.rpartition("/")[2] or "wav"
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}, **own}
    if media.kind == "file" and url is not None:
        return {"type": "file", "file": {"filename": file_name(media), "file_data": url}, **own}
    if media.kind == "file":
        return {"type": "file", "file": {"file_id": media.file_id}, **own}
    return {"type": "text", "text": placeholder(media, where, losses, "no place for it in a chat message")}


def _offer(request: Request, body: JsonObject, losses: list[Loss]) -> None:
    """Write the tools and the tool choice."""
    for key in ("tools", "tool_choice", "functions", "function_call"):
        body.pop(key, None)
    if not request.tools:
        body.pop("parallel_tool_calls", None)
        return
    body["tools"] = _tools(request.tools)
    if request.tool_choice is not None:
        _tool_choice(request.tool_choice, body, losses)


def _tools(tools: tuple[Tool, ...]) -> list[JsonObject]:
    written = []
    for tool in tools:
        if tool.source is not None and tool.source.dialect == NAME:
            written.append(tool.source.value)
            continue
        function: JsonObject = {"name": tool.name}
        if tool.description is not None:
            function["description"] = tool.description
        function["parameters"] = whole_schema(tool.schema)
        if tool.strict is not None:
            function["strict"] = tool.strict
        written.append({"type": "function", "function": function | tool.extra.get(NAME, {})})
    return written


def _members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    """Everything but model, messages and tools, for a request that came in another dialect."""
    shared = shared_members(request, NAME, profile)
    body: JsonObject = {"model": request.model, "messages": [], **shared, **request.extra.get(NAME, {})}
    if request.max_tokens is not None:
        body[profile.max_tokens_field] = request.max_tokens
    _sampling(request.sampling, body, losses)
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
    for name in sorted(profile.refused & body.keys()):
        del body[name]
        losses.append(Loss(name, name, f"the back end ({profile.name}) refuses requests that contain it"))
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
    elif sampling.top_logprobs:
        losses.append(Loss("sampling.top_logprobs", "top_logprobs", "log probabilities are not requested"))


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
    else:
        lose_amount(thinking, losses)
    lose_summary(thinking, losses)


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
