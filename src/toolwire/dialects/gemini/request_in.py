"""Gemini: requests in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import BadRequest
from ...types import Extra, JsonObject, OutputFormat, Request, Sampling, Source, Thinking, Tool, ToolChoice
from ...wire.exact_json import encode
from ...wire.fields import (
    body_object,
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_name,
    need_object,
    number_or_none,
    object_or_none,
    rest,
    text_or_none,
    unread,
    wrong,
)
from ..shared.requests import NO_SUMMARY
from .contents_in import contents_in, history_reader, system_in
from .shapes import NAME, camel, plain_name

_KNOWN = frozenset(["contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "labels"])
_ASKED = ("model", "stream")  # members of the path that some clients put into the body
_SEALED = b'"dHcxL'  # as a seal begins in a request
_CONFIG = "generationConfig"
_READ = frozenset(
    [
        "temperature",
        "topP",
        "topK",
        "candidateCount",
        "maxOutputTokens",
        "stopSequences",
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
        "responseLogprobs",
        "logprobs",
        "thinkingConfig",
    ]
)
_THINKING = frozenset({"thinkingBudget", "thinkingLevel", "includeThoughts"})
_CALLING = frozenset({"mode", "allowedFunctionNames"})
_DECLARATION = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
_CALLING_CONFIG = "toolConfig.functionCallingConfig"
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """A body that contains the model and whether to stream, for callers without a path."""
    top = body_object(body)
    model = need_name(top, "model", "")
    return _request(top, b"", headers, plain_name(model), flag_or_none(top, "stream") or False)


def decode_call(body: bytes, headers: Mapping[str, str], *, model: str, is_stream: bool) -> Request:
    """A body, with the model and the kind of request from its path."""
    return _request(body_object(body), body, headers, model, is_stream)


def decode_count_request(body: bytes, headers: Mapping[str, str], *, model: str) -> Request:
    """A request to count tokens has only contents, or a whole request. That names its model again, which the back
    end may know by another name, so only its contents are counted."""
    top = camel(body_object(body))
    inner = object_or_none(top, "generateContentRequest")
    return _request(top if inner is None else {"contents": camel(inner).get("contents")}, b"", headers, model, False)


def _request(given: JsonObject, body: bytes, headers: Mapping[str, str], model: str, is_stream: bool) -> Request:
    source = {key: value for key, value in given.items() if key not in _ASKED}
    if isinstance(listed := source.get("tools"), list) and (empty := [item for item in listed if _is_empty(item)]):
        source["tools"] = [item for item in listed if item not in empty]
        body = b""
        if not source["tools"]:
            del source["tools"]
    if not body or len(source) < len(given):
        body = encode(source)
    if not model:
        raise missing("model", "a model's name in the path")
    top = camel(source)
    if "contents" not in top:
        raise missing("contents", "an array of contents")
    config = camel(object_or_none(top, _CONFIG) or {})
    reader = history_reader()
    try:
        head = system_in(top.get("systemInstruction"), "systemInstruction")
    except BadRequest:
        source = {key: value for key, value in source.items() if key not in ("systemInstruction", "system_instruction")}
        source["systemInstruction"] = {
            "parts": [{"text": reader.head_text(top["systemInstruction"], "systemInstruction")}]
        }
        top = camel(source)
        head = system_in(top["systemInstruction"], "systemInstruction")
    contents, tools = contents_in(top["contents"], reader), tools_in(top)
    if not contents:
        if not head:
            raise BadRequest("it is empty; expected at least one content.", where="contents")
        contents = (reader.opening("contents"),)
    chosen = object_or_none(top, "toolConfig")
    if chosen is not None and not tools and object_or_none(camel(chosen), "functionCallingConfig"):
        reader.note("tool_choice", "toolConfig", "it was dropped, because the request has no tools")
        source = {key: value for key, value in source.items() if key not in ("toolConfig", "tool_config")}
        top, chosen = camel(source), None
    return Request(
        model=model,
        messages=(*head, *contents),
        tools=tools,
        tool_choice=choice_in(None if chosen is None else camel(chosen)),
        max_tokens=count_or_none(config, "maxOutputTokens", _CONFIG, least=1),
        sampling=_sampling(config),
        thinking=_thinking(config),
        output=_output(config),
        stream=is_stream,
        stream_usage=True,
        metadata=object_or_none(top, "labels"),
        repaired=tuple(reader.losses),
        extra=_extra(top, config, chosen),
        origin=NAME,
        source=source,
        wire=b"" if _SEALED in body else body,  # seals are ours: the back end must not see them
        headers=dict(headers),
    )


def _is_empty(tool: Any) -> bool:
    """A list of no functions, which the API refuses (H063)."""
    return isinstance(tool, dict) and len(tool) == 1 and next(iter(camel(tool).items())) == ("functionDeclarations", [])


def _extra(top: JsonObject, config: JsonObject, chosen: JsonObject | None) -> Extra:
    """Members that are not read, those of the two configs under their names."""
    found = rest(top, _KNOWN, NAME).get(NAME, {})
    more = {key: value for key, value in config.items() if key not in _READ}
    thinking = config.get("thinkingConfig")
    if isinstance(thinking, dict):
        more |= unread({"thinkingConfig": camel(thinking)}, "thinkingConfig", _THINKING)
    if more:
        found = {**found, _CONFIG: more}
    choice = {} if chosen is None else camel(chosen)
    more = {key: value for key, value in choice.items() if key != "functionCallingConfig"}
    calling = choice.get("functionCallingConfig")
    if isinstance(calling, dict):
        more |= unread({"functionCallingConfig": camel(calling)}, "functionCallingConfig", _CALLING)
    if more:
        found = {**found, "toolConfig": more}
    return {NAME: found} if found else {}


def _sampling(config: JsonObject) -> Sampling:
    stops = list_or_none(config, "stopSequences", _CONFIG) or []
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong(f"{_CONFIG}.stopSequences", stops, "an array of strings")
    return Sampling(
        temperature=number_or_none(config, "temperature", _CONFIG),
        top_p=number_or_none(config, "topP", _CONFIG),
        top_k=number_or_none(config, "topK", _CONFIG),
        seed=number_or_none(config, "seed", _CONFIG),
        frequency_penalty=number_or_none(config, "frequencyPenalty", _CONFIG),
        presence_penalty=number_or_none(config, "presencePenalty", _CONFIG),
        stop=tuple(stops),
        choices=count_or_none(config, "candidateCount", _CONFIG, least=1) or 1,
        logprobs=flag_or_none(config, "responseLogprobs", _CONFIG) or False,
        top_logprobs=count_or_none(config, "logprobs", _CONFIG),
    )


def _thinking(config: JsonObject) -> Thinking | None:
    """A budget of 0 is none, and one of -1 as much as the model likes."""
    given = object_or_none(config, "thinkingConfig", _CONFIG)
    if given is None:
        return None
    where = f"{_CONFIG}.thinkingConfig"
    value = camel(given)
    level = (text_or_none(value, "thinkingLevel", where) or "").lower()
    budget = number_or_none(value, "thinkingBudget", where)
    effort = level if level not in ("", "thinking_level_unspecified") else None
    shown = flag_or_none(value, "includeThoughts", where)
    summary = None if shown is None else "auto" if shown else NO_SUMMARY
    if budget is not None and budget <= 0:
        return Thinking(mode="off" if budget == 0 else "adaptive", effort=effort, summary=summary)
    count = int(budget) if budget else None
    return Thinking(mode="on" if budget else "", effort=effort, budget=count, summary=summary)


def _output(config: JsonObject) -> OutputFormat:
    mime = text_or_none(config, "responseMimeType", _CONFIG) or ""
    schema: Any = config.get("responseJsonSchema")
    if schema is None and config.get("responseSchema") is not None:
        where = f"{_CONFIG}.responseSchema"
        schema = schema_of(need_object(config["responseSchema"], where), where)
    if schema is not None:
        return OutputFormat(format="schema", name="answer", schema=need_object(schema, f"{_CONFIG}.responseJsonSchema"))
    return OutputFormat(format="json") if mime == "application/json" else OutputFormat()


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """One entry may declare functions and name tools of the provider as well."""
    found: list[Tool] = []
    listed = top.get("tools")
    for index, given in enumerate([listed] if isinstance(listed, dict) else list_or_none(top, "tools") or []):
        where = f"tools[{index}]"
        item = camel(need_object(given, where))
        for number, declared in enumerate(list_or_none(item, "functionDeclarations", where) or []):
            found.append(_function(declared, f"{where}.functionDeclarations[{number}]"))
        found += [
            Tool(name=key, kind="hosted", source=Source(NAME, {key: value}))
            for key, value in item.items()
            if key != "functionDeclarations" and value is not None
        ]
    return tuple(found)


def choice_in(config: JsonObject | None) -> ToolChoice | None:
    """config is the tool config, its members named as in answers."""
    if config is None or (given := object_or_none(config, "functionCallingConfig", "toolConfig")) is None:
        return None
    calling = camel(given)
    mode = (text_or_none(calling, "mode", _CALLING_CONFIG) or "AUTO").upper()
    names = tuple(list_or_none(calling, "allowedFunctionNames", _CALLING_CONFIG) or ())
    if not all(isinstance(name, str) and name for name in names):
        raise wrong(f"{_CONFIG}.allowedFunctionNames", list(names), "an array of names")
    source = Source(NAME, given)
    match mode:
        case "NONE":
            return ToolChoice(mode="none", source=source)
        case "ANY" if len(names) == 1:
            return ToolChoice(mode="named", names=names, source=source)
        case "ANY" if names:
            return ToolChoice(mode="allowed", names=names, is_required=True, source=source)
        case "ANY":
            return ToolChoice(mode="required", source=source)
        case "VALIDATED" if names:
            return ToolChoice(mode="allowed", names=names, source=source)
        case "AUTO" | "VALIDATED" | "MODE_UNSPECIFIED":
            return ToolChoice(mode="auto", source=source)
        case _:
            raise wrong(f"{_CONFIG}.mode", mode, "one of AUTO, ANY, NONE, VALIDATED")


def schema_of(value: JsonObject, where: str) -> JsonObject:
    """A schema in the API's own form as JSON Schema: types in small letters, null among the types, numbers as numbers."""
    try:
        schema: JsonObject = _schema(value)
    except RecursionError:
        raise BadRequest("it nests too deep; expected a schema that people could read.", where=where) from None
    return schema


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = camel(value)
    written: JsonObject = {}
    for key, item in value.items():
        if key == "properties" and isinstance(item, dict):
            written[key] = {name: _schema(inner) for name, inner in item.items()}
        elif key in ("items", "anyOf", "additionalProperties", "prefixItems"):
            written[key] = _schema(item)
        elif key == "type" and isinstance(item, str):
            written[key] = item.lower()
        elif key in _COUNTS and isinstance(item, str) and item.isascii() and item.isdigit() and len(item) < 16:
            written[key] = int(item)
        elif key == "example":
            written["examples"] = [item]
        elif key not in ("nullable", "propertyOrdering"):
            written[key] = item
    return _nullable(written) if value.get("nullable") is True else written


def _nullable(schema: JsonObject) -> JsonObject:
    if isinstance(kind := schema.get("type"), str):
        schema = {**schema, "type": [kind, "null"]}
        if isinstance(allowed := schema.get("enum"), list) and None not in allowed:
            schema["enum"] = [*allowed, None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _function(given: Any, where: str) -> Tool:
    item = camel(need_object(given, where))
    schema = object_or_none(item, "parametersJsonSchema", where)
    own = object_or_none(item, "parameters", where)
    if schema is None:
        schema = {"type": "object", "properties": {}} if own is None else schema_of(own, f"{where}.parameters")
    return Tool(
        name=need_name(item, "name", where),
        description=text_or_none(item, "description", where),
        schema=schema,
        extra=rest(item, _DECLARATION, NAME),
        source=Source(NAME, given),
    )
