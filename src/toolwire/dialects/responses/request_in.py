"""OpenAI Responses: requests in."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import Extra, JsonObject, Message, Output, Request, Sampling, Source, State, Text, Thinking
from ...wire.exact_json import encode
from ...wire.fields import (
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_list,
    need_name,
    number_or_none,
    object_or_none,
    text_or_none,
    unread,
    wrong,
)
from ..shared.instructions import body_object
from ..shared.sealed_reasoning import WIRE_MARK
from .items_in import is_reference, message_in
from .shapes import NAME
from .tools_in import choice_in, tools_in, without_chat_shapes

_KNOWN = frozenset(
    [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "reasoning",
        "text",
        "stream",
        "user",
        "metadata",
    ]
)
_TEXT = frozenset({"format", "verbosity"})
_MAX_REFERENCES = 1000


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    given = body_object(body)
    top = without_chat_shapes(given)
    body = body if top is given else encode(top)
    include = list_or_none(top, "include") or []
    if not all(isinstance(item, str) for item in include):
        raise wrong("include", include, "an array of strings")
    return Request(
        model=need_name(top, "model", ""),
        messages=(*_instructions(top), *_input(top)),
        tools=tools_in(top),
        tool_choice=choice_in(top.get("tool_choice")),
        parallel_calls=flag_or_none(top, "parallel_tool_calls"),
        max_tokens=count_or_none(top, "max_output_tokens", least=1),
        sampling=Sampling(
            temperature=number_or_none(top, "temperature"),
            top_p=number_or_none(top, "top_p"),
            logprobs="message.output_text.logprobs" in include,
            top_logprobs=count_or_none(top, "top_logprobs"),
        ),
        thinking=_thinking(top),
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(top, "user") or text_or_none(top, "safety_identifier"),
        metadata=object_or_none(top, "metadata"),
        state=_state(top),
        extra=_extra(top),
        origin=NAME,
        source=top,
        wire=body if WIRE_MARK not in body else b"",  # seals are ours: the back end must not see them
        headers=dict(headers),
    )


def _extra(top: JsonObject) -> Extra:
    """Members that are not read; the identifier of the user is, unless the request has another one."""
    found = {key: value for key, value in top.items() if key not in _KNOWN}
    if not top.get("user"):
        found.pop("safety_identifier", None)
    found |= unread(top, "reasoning", frozenset({"effort", "summary"})) | unread(top, "text", _TEXT)
    return {NAME: found} if found else {}


def _instructions(top: JsonObject) -> tuple[Message, ...]:
    given = top.get("instructions")
    if given is None or given == "":
        return ()
    if isinstance(given, str):
        return (Message(role="system", parts=(Text(text=given),), is_head=True, source=Source(NAME, given)),)
    items = need_list(top, "instructions", "")
    messages = [message_in(item, f"instructions[{index}]") for index, item in enumerate(items)]
    return tuple(replace(message, is_head=True) for message in messages)


def _input(top: JsonObject) -> tuple[Message, ...]:
    given = top.get("input")
    if isinstance(given, str):
        return (Message(role="user", parts=(Text(text=given),), source=None),)
    leans = top.get("previous_response_id") or top.get("conversation")
    if given is None and not leans:
        raise missing("input", "a string or an array of items")
    given = [] if given is None else given
    if not isinstance(given, list):
        raise wrong("input", given, "a string or an array of items")
    if not given and not leans:
        raise BadRequest("it is empty; expected at least one item.", where="input")
    return tuple(message_in(item, f"input[{index}]") for index, item in enumerate(given))


def _state(top: JsonObject) -> State | None:
    """Members that ask for what an earlier request left on the server, or leave something there."""
    previous, conversation = text_or_none(top, "previous_response_id") or "", _conversation(top)
    given = top.get("input")
    references = {
        index: need_name(item, "id", f"input[{index}]")
        for index, item in enumerate(given if isinstance(given, list) else ())
        if is_reference(item)
    }
    is_background, is_kept = flag_or_none(top, "background") or False, flag_or_none(top, "store") is not False
    if len(references) > _MAX_REFERENCES:
        raise BadRequest(f"found {len(references)} references; expected at most {_MAX_REFERENCES}.", where="input")
    if previous and conversation:
        raise BadRequest("found it together with conversation; expected one of the two.", where="previous_response_id")
    if is_background and not is_kept:
        raise BadRequest(
            "found true with store false; a response in the background must be stored.", where="background"
        )
    field, why = "", ""
    if previous or conversation or top.get("prompt"):
        field = "previous_response_id" if previous else "conversation" if conversation else "prompt"
        why = "this back end keeps no earlier responses; send the whole input"
    elif is_background:
        field, why = "background", "this back end does not run requests in the background"
    elif references:
        field = f"input[{next(iter(references))}]"
        why = "this back end keeps no earlier items; send the item itself"
    if not field and not is_kept:
        return None
    return State(
        field=field,
        why=why,
        previous=previous,
        conversation=conversation,
        references=tuple(references.values()),
        is_leaning=bool(previous or conversation or references or is_background),
        is_kept=is_kept,
        is_background=is_background,
        is_upstreams=bool(top.get("prompt")),
    )


def _conversation(top: JsonObject) -> str:
    given = top.get("conversation")
    if isinstance(given, dict):
        return need_name(given, "id", "conversation")
    return text_or_none(top, "conversation") or ""


def _thinking(top: JsonObject) -> Thinking | None:
    given = object_or_none(top, "reasoning")
    if not given:
        return None
    effort = text_or_none(given, "effort", "reasoning")
    summary = text_or_none(given, "summary", "reasoning")
    return Thinking(effort=effort, summary=summary, mode="off" if effort == "none" else "")


def _output(top: JsonObject) -> Output:
    given = object_or_none(top, "text") or {}
    verbosity = text_or_none(given, "verbosity", "text")
    form = object_or_none(given, "format", "text")
    match form:
        case None | {"type": "text"}:
            return Output(verbosity=verbosity)
        case {"type": "json_object"}:
            return Output(format="json", verbosity=verbosity)
        case {"type": "json_schema"}:
            return Output(
                format="schema",
                name=text_or_none(form, "name", "text.format") or "answer",
                description=text_or_none(form, "description", "text.format"),
                schema=object_or_none(form, "schema", "text.format"),
                strict=flag_or_none(form, "strict", "text.format"),
                verbosity=verbosity,
            )
        case _:
            raise wrong("text.format.type", form.get("type"), "text, json_object or json_schema")
