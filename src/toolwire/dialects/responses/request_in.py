"""OpenAI Responses: requests in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import (
    Extra,
    Json,
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
from ...wire.exact_json import encode
from ...wire.fields import (
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_list,
    need_name,
    need_object,
    need_text,
    numbers,
    object_or_none,
    rest,
    text_or_none,
    unread,
    wrong,
)
from ..shared.foreign_history import HistoryReader, without_choice
from ..shared.requests import is_direct
from ..shared.sealed_reasoning import WIRE_MARK
from ..shared.tool_lists import TOOL_LISTS
from .compaction import compaction_in
from .items_in import history_reader, is_reference, message_in, messages_in
from .shapes import NAME
from .typed_tools import TYPED, flat, is_client_run

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
_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict", "defer_loading"})
_CUSTOM = frozenset({"type", "name", "description", "format", "defer_loading"})
_UPDATE = "configuration_update"
_DECLARING = ("additional_tools", "tool_search_output")


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    given = TOOL_LISTS.decode(body)
    top = without_chat_shapes(given)
    body = body if top is given else encode(top)
    include = list_or_none(top, "include") or []
    if not all(isinstance(item, str) for item in include):
        raise wrong("include", include, "an array of strings")
    model = need_name(top, "model", "")
    reader = history_reader()
    if not isinstance(top.get("instructions"), str | list | None):
        top = {**top, "instructions": reader.head_text(top["instructions"], "instructions")}
    messages, tools = (*_instructions(top), *_input(top, reader)), tools_in(top)
    if not tools and not (top.get("previous_response_id") or top.get("conversation") or top.get("prompt")):
        top = without_choice(top, reader)
    thinking, output = settings_in(top, messages)
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice_in(top.get("tool_choice")),
        parallel_calls=flag_or_none(top, "parallel_tool_calls"),
        max_tokens=count_or_none(top, "max_output_tokens", least=1),
        sampling=Sampling(
            **numbers(top, "temperature", "top_p"),
            logprobs="message.output_text.logprobs" in include,
            top_logprobs=count_or_none(top, "top_logprobs"),
        ),
        thinking=thinking,
        output=output,
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(top, "user") or text_or_none(top, "safety_identifier"),
        metadata=object_or_none(top, "metadata"),
        state=_state(top),
        compaction=compaction_in(top, body),
        repaired=tuple(reader.losses),
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


def _input(top: JsonObject, reader: HistoryReader) -> tuple[Message, ...]:
    given = top.get("input")
    if isinstance(given, str):
        return (Message(role="user", parts=(Text(text=given),), source=None),)
    is_complete = not (top.get("previous_response_id") or top.get("conversation"))
    if given is None and is_complete and not top.get("instructions"):
        raise missing("input", "a string or an array of items")
    found = (
        []
        if given is None
        else list(messages_in(given if isinstance(given, list) else reader.listed(top, "input"), reader))
    )
    if not found and is_complete:
        if not top.get("instructions"):
            raise BadRequest("it is empty; expected at least one item.", where="input")
        found.append(reader.opening("input"))
    return tuple(found)


def _state(top: JsonObject) -> State | None:
    """Members that refer to stored answers, or request that the answer is stored."""
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


def settings_in(top: JsonObject, messages: Iterable[Message]) -> tuple[Thinking | None, OutputFormat]:
    """How much to think, and the form of the answer. An item of the input may change either, for the rest of the conversation."""
    for message in messages:
        if message.declares_tools and message.source is not None and message.source.value.get("type") == _UPDATE:
            for name in ("reasoning", "text"):
                if change := object_or_none(message.source.value, name, _UPDATE):
                    top = {**top, name: {**(object_or_none(top, name) or {}), **change}}
    return _thinking(top), _output(top)


def _thinking(top: JsonObject) -> Thinking | None:
    given = object_or_none(top, "reasoning")
    if not given:
        return None
    effort = text_or_none(given, "effort", "reasoning")
    summary = text_or_none(given, "summary", "reasoning")
    return Thinking(effort=effort, summary=summary, mode="off" if effort == "none" else "")


def _output(top: JsonObject) -> OutputFormat:
    given = object_or_none(top, "text") or {}
    verbosity = text_or_none(given, "verbosity", "text")
    form = object_or_none(given, "format", "text")
    match form:
        case None | {"type": "text"}:
            return OutputFormat(verbosity=verbosity)
        case {"type": "json_object"}:
            return OutputFormat(format="json", verbosity=verbosity)
        case {"type": "json_schema"}:
            return OutputFormat(
                format="schema",
                name=text_or_none(form, "name", "text.format") or "answer",
                description=text_or_none(form, "description", "text.format"),
                schema=object_or_none(form, "schema", "text.format"),
                strict=flag_or_none(form, "strict", "text.format"),
                verbosity=verbosity,
            )
        case _:
            raise wrong("text.format.type", form.get("type"), "text, json_object or json_schema")


def without_chat_shapes(top: JsonObject) -> JsonObject:
    """The same body with the tools and the choice as this dialect writes them, where a client wrote them as Chat Completions
    does: {"type": "function", "function": {...}}. The same object where nothing has to change."""
    changed: JsonObject = {}
    tools, choice = top.get("tools"), top.get("tool_choice")
    if isinstance(tools, list) and any(map(_has_chat_shape, tools)):
        changed["tools"] = [_flat_shape(tool) if _has_chat_shape(tool) else tool for tool in tools]
    if isinstance(choice, dict) and _has_chat_shape(choice):
        changed["tool_choice"] = _flat_shape(choice)
    return {**top, **changed} if changed else top


def _has_chat_shape(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind in ("function", "custom") and "name" not in value and isinstance(value.get(kind), dict)


def _flat_shape(value: JsonObject) -> JsonObject:
    kind = value["type"]
    inner = dict(value[kind])
    form = inner.get("format")
    if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
        inner["format"] = {"type": form.get("type", "grammar"), **form["grammar"]}
    return {"type": kind, **inner, **{key: item for key, item in value.items() if key not in ("type", kind)}}


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """Flattened, and each once: what an item declares later replaces what was declared before."""
    listed = TOOL_LISTS.tools(list_or_none(top, "tools") or [], NAME, _listed)
    found: dict[tuple[str, str, str], Tool] = {}
    given = top.get("input")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if isinstance(item, dict) and item.get("type") in _DECLARING:
            where = f"input[{index}].tools"
            for tool in _flattened(list_or_none(item, "tools", f"input[{index}]") or [], where, is_searching=False):
                found[_identity(tool)] = tool
    return tuple(({_identity(tool): tool for tool in listed} | found).values()) if found else listed


def _listed(items: list[Any]) -> tuple[Tool, ...]:
    is_searching = any(isinstance(tool, dict) and _is_search(tool) for tool in items)
    return tuple({_identity(tool): tool for tool in _flattened(items, "tools", is_searching)}.values())


def _identity(tool: Tool) -> tuple[str, str, str]:
    """A typed tool may coexist with a function of the same name: their calls are items of different types."""
    return (tool.kind if tool.kind in ("hosted", "typed") else "", tool.namespace, tool.name)


def declares(items: list[Any]) -> bool:
    """Whether any of these items brings tools with it."""
    return any(item.get("type") in _DECLARING for item in items)


def _is_search(tool: JsonObject) -> bool:
    """The client finds tools itself: those it defers wait until it has."""
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def _flattened(tools: list[Any], listed: str, is_searching: bool) -> Iterator[Tool]:
    for index, item in enumerate(tools):
        place = f"{listed}[{index}]"
        need_object(item, place)
        if need_text(item, "type", place) != "namespace":
            yield _tool(item, place, "", is_searching)
            continue
        name, about = need_name(item, "name", place), text_or_none(item, "description", place) or ""
        for number, inner in enumerate(need_list(item, "tools", place)):
            where = f"{place}.tools[{number}]"
            tool = _tool(need_object(inner, where), where, name, is_searching)
            yield replace(tool, namespace_description=about) if about and tool.namespace else tool


def _tool(item: JsonObject, where: str, namespace: str, is_searching: bool) -> Tool:
    kind = need_text(item, "type", where)
    if kind not in ("function", "custom"):
        return _builtin(item, kind)
    name = need_name(item, "name", where)
    description = text_or_none(item, "description", where)
    is_deferred = is_searching and (flag_or_none(item, "defer_loading", where) or False)
    label = flat(namespace, name) if namespace else name
    if kind == "custom":
        return Tool(
            name=name,
            description=description,
            kind="custom",
            namespace=namespace,
            label=label,
            grammar=_grammar(item.get("format")),
            is_deferred=is_deferred,
            is_direct=is_direct(item),
            extra=rest(item, _CUSTOM, NAME),
            source=Source(NAME, item),
        )
    return Tool(
        name=name,
        description=description,
        schema=object_or_none(item, "parameters", where),
        strict=flag_or_none(item, "strict", where),
        namespace=namespace,
        label=label,
        is_deferred=is_deferred,
        is_direct=is_direct(item),
        extra=rest(item, _FUNCTION, NAME),
        source=Source(NAME, item),
    )


def _builtin(item: JsonObject, kind: str) -> Tool:
    if not is_client_run(item):
        return Tool(name=kind, kind="hosted", source=Source(NAME, item))
    typed, is_search = TYPED[kind], kind == "tool_search"  # its arguments are the client's own matter
    given = item.get("parameters") if is_search else None
    description = item.get("description")
    return Tool(
        name=kind,
        description=description if isinstance(description, str) and description else typed.description,
        schema=given if isinstance(given, dict) else typed.schema,
        strict=not is_search,
        kind="typed",
        label=typed.label,
        is_direct=is_direct(item),
        source=Source(NAME, item),
    )


def _grammar(form: Json) -> str:
    """The grammar of the text, in any of its forms."""
    if not isinstance(form, dict):
        return ""
    definition, syntax = form.get("definition"), form.get("syntax")
    if not isinstance(definition, str) or not definition.strip():
        return ""
    return f"({syntax}) {definition.strip()}" if isinstance(syntax, str) else definition.strip()


def choice_in(value: Any) -> ToolChoice | None:
    source = Source(NAME, value)
    match value:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(mode=value, source=source)
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice(mode="named", names=(_full(value, name),), source=source)
        case {"type": "allowed_tools"}:
            names = []
            for index, tool in enumerate(need_list(value, "tools", "tool_choice")):
                need_object(tool, f"tool_choice.tools[{index}]")
                names.append(_full(tool, str(tool.get("name") or tool.get("type") or "")))
            is_required = value.get("mode") == "required"
            return ToolChoice(mode="allowed", names=tuple(names), is_required=is_required, source=source)
        case {"type": str(kind)} if kind not in ("function", "custom"):
            return ToolChoice(mode="hosted", names=(kind,), source=source)
    raise wrong("tool_choice", value, '"auto", "none", "required", or an object that names a tool')


def _full(tool: JsonObject, name: str) -> str:
    namespace = tool.get("namespace")
    return flat(namespace, name) if isinstance(namespace, str) else name
