"""Gemini Interactions: requests in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import BadRequest
from ...types import (
    Extra,
    JsonObject,
    Message,
    OutputFormat,
    Request,
    Sampling,
    Source,
    State,
    Text,
    Thinking,
    Tool,
    ToolChoice,
)
from ...wire.fields import (
    body_object,
    count_or_none,
    flag_or_none,
    list_or_none,
    need_name,
    need_object,
    number_or_none,
    object_or_none,
    rest,
    text_or_none,
    wrong,
)
from ..shared.foreign_history import HistoryReader
from ..shared.requests import NO_SUMMARY
from .shapes import NAME
from .steps_in import history_reader, messages_in, steps_of

_KNOWN = frozenset(
    [
        "model",
        "input",
        "system_instruction",
        "tools",
        "generation_config",
        "response_format",
        "response_mime_type",
        "previous_interaction_id",
        "store",
        "stream",
        "background",
        "labels",
    ]
)
_CONFIG = "generation_config"
_READ = frozenset(
    [
        "temperature",
        "top_p",
        "seed",
        "stop_sequences",
        "max_output_tokens",
        "thinking_level",
        "thinking_summaries",
        "tool_choice",
    ]
)
_FUNCTION = frozenset({"type", "name", "description", "parameters"})
_JSON = "application/json"


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    top = body_object(body)
    for name, why in _REFUSED.items():
        if top.get(name) is not None:
            raise BadRequest(f"{why}; expected a request without it.", where=name, code="unsupported_value")
    model = need_name(top, "model", "").removeprefix("models/")
    config = object_or_none(top, _CONFIG) or {}
    reader = history_reader()
    state = _state(top)
    tools = _tools(top)
    return Request(
        model=model,
        messages=_messages(top, state, reader),
        tools=tools,
        tool_choice=_choice(config) if tools else None,
        max_tokens=count_or_none(config, "max_output_tokens", _CONFIG, least=1),
        sampling=_sampling(config),
        thinking=_thinking(config),
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        metadata=object_or_none(top, "labels"),
        state=state,
        repaired=tuple(reader.losses),
        extra=_extra(top, config),
        origin=NAME,
        source=top,
        wire=body,
        headers=dict(headers),
    )


_REFUSED = {
    "agent": "agents run only at their provider",
    "environment": "environments exist only at their provider",
    "continuation_token": "the gateway issues no such token",
}


def _messages(top: JsonObject, state: State | None, reader: HistoryReader) -> tuple[Message, ...]:
    instruction = text_or_none(top, "system_instruction")
    head = (Message(role="system", parts=(Text(text=instruction),), is_head=True),) if instruction else ()
    messages = messages_in(steps_of(top.get("input")), reader)
    if not messages and (state is None or not state.previous):
        raise BadRequest("it is missing or empty; expected text, contents or steps.", where="input")
    return (*head, *messages)


def _state(top: JsonObject) -> State | None:
    """An interaction is stored unless the client refuses it."""
    previous = text_or_none(top, "previous_interaction_id") or ""
    is_background = flag_or_none(top, "background") or False
    is_kept = flag_or_none(top, "store") is not False
    if is_background and not is_kept:
        raise BadRequest("an interaction in the background must be stored; expected store true.", where="store")
    if not previous and not is_kept:
        return None
    return State(
        field="previous_interaction_id" if previous else "background" if is_background else "",
        why="this gateway stores no interactions",
        previous=previous,
        is_leaning=bool(previous or is_background),
        is_kept=is_kept,
        is_background=is_background,
    )


def _extra(top: JsonObject, config: JsonObject) -> Extra:
    """Members that are not read, those of the configuration under its name."""
    found = rest(top, _KNOWN, NAME).get(NAME, {})
    more = {key: value for key, value in config.items() if key not in _READ}
    if more:
        found = {**found, _CONFIG: more}
    return {NAME: found} if found else {}


def _sampling(config: JsonObject) -> Sampling:
    stops = list_or_none(config, "stop_sequences", _CONFIG) or []
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong(f"{_CONFIG}.stop_sequences", stops, "an array of strings")
    return Sampling(
        temperature=number_or_none(config, "temperature", _CONFIG),
        top_p=number_or_none(config, "top_p", _CONFIG),
        seed=number_or_none(config, "seed", _CONFIG),
        stop=tuple(stops),
    )


def _thinking(config: JsonObject) -> Thinking | None:
    level = text_or_none(config, "thinking_level", _CONFIG)
    shown = text_or_none(config, "thinking_summaries", _CONFIG)
    if not level and not shown:
        return None
    return Thinking(effort=level or None, summary=NO_SUMMARY if shown == "none" else shown)


def _output(top: JsonObject) -> OutputFormat:
    """A list has one format for each kind of output; only text can be requested."""
    given = top.get("response_format")
    formats = given if isinstance(given, list) else [] if given is None else [given]
    mime = text_or_none(top, "response_mime_type") or ""
    schema: JsonObject | None = None
    for index, item in enumerate(formats):
        where = f"response_format[{index}]" if isinstance(given, list) else "response_format"
        kind = need_object(item, where).get("type", "text")
        if kind != "text":
            raise wrong(f"{where}.type", kind, '"text"')
        mime = text_or_none(item, "mime_type", where) or mime
        schema = object_or_none(item, "schema", where) or schema
    if schema is not None:
        return OutputFormat(format="schema", name="answer", schema=schema)
    return OutputFormat(format="json") if mime == _JSON else OutputFormat()


def _tools(top: JsonObject) -> tuple[Tool, ...]:
    found: list[Tool] = []
    for index, given in enumerate(list_or_none(top, "tools") or ()):
        where = f"tools[{index}]"
        item = need_object(given, where)
        kind = text_or_none(item, "type", where) or "function"
        if kind != "function":
            found.append(Tool(name=kind, kind="hosted", source=Source(NAME, item)))
            continue
        found.append(
            Tool(
                name=need_name(item, "name", where),
                description=text_or_none(item, "description", where),
                schema=object_or_none(item, "parameters", where) or {"type": "object", "properties": {}},
                extra=rest(item, _FUNCTION, NAME),
                source=Source(NAME, item),
            )
        )
    return tuple(found)


def _choice(config: JsonObject) -> ToolChoice | None:
    given: Any = config.get("tool_choice")
    if given is None:
        return None
    where, mode = f"{_CONFIG}.tool_choice", given
    names: tuple[Any, ...] = ()
    if isinstance(given, dict):
        where = f"{where}.allowed_tools"
        allowed = need_object(given.get("allowed_tools"), where)
        mode, names = allowed.get("mode") or "auto", tuple(list_or_none(allowed, "tools", where) or ())
        if not all(isinstance(name, str) and name for name in names):
            raise wrong(f"{where}.tools", list(names), "an array of names")
    match mode:
        case "none":
            return ToolChoice(mode="none")
        case "any" if len(names) == 1:
            return ToolChoice(mode="named", names=names)
        case "any" if names:
            return ToolChoice(mode="allowed", names=names, is_required=True)
        case "any":
            return ToolChoice(mode="required")
        case "auto" | "validated":
            return ToolChoice(mode="allowed", names=names) if names else ToolChoice(mode="auto")
        case _:
            raise wrong(where, mode, "one of auto, any, none, validated")
