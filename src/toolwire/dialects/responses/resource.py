"""OpenAI Responses: the complete response object, with every member of the current schema, null if there is no value.

It repeats members of its request. A request is decoded tolerantly, but clients validate the answer strictly, so each member is checked by
itself: a value that the schema does not allow is replaced by the default or dropped, and a tool without a required member is not repeated. Of
hosted tools only plain members are repeated: no headers and no tokens of an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ...errors import GatewayError
from ...events import Started
from ...types import (
    Citation,
    Json,
    JsonObject,
    Part,
    Reasoning,
    RecurringTools,
    Refusal,
    Request,
    Text,
    ToolCall,
    Usage,
)
from ...wire.exact_json import encode
from ..base import AnswerContext
from ..shared.sealed_reasoning import seal
from .shapes import NAME

_Flag: TypeAlias = bool | None
_Text: TypeAlias = str | None
_Count: TypeAlias = int | None
_Object: TypeAlias = dict[str, Any] | None
_Level: TypeAlias = Literal["low", "medium", "high"] | None
_Summary: TypeAlias = Literal["auto", "concise", "detailed"] | None
_Callers: TypeAlias = list[Literal["direct", "programmatic"]] | None
_COUNTS = ("max_output_tokens", "max_tool_calls", "top_logprobs")
_MOST = 10**12
_TOP: dict[str, Any] = {
    "max_tool_calls": _Count,
    "prompt_cache_key": _Text,
    "safety_identifier": _Text,
    "service_tier": Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None,
    "truncation": Literal["auto", "disabled"] | None,
}
_FUNCTION = {
    "name": str,
    "description": _Text,
    "allowed_callers": _Callers,
    "async": _Flag,
    "defer_loading": _Flag,
}
_SEARCH = {"search_context_size": _Level}
_HOSTED_CHOICES = (
    "apply_patch code_interpreter computer computer_use computer_use_preview file_search image_generation "
    "programmatic_tool_calling shell web_search_preview web_search_preview_2025_03_11"
)
_DEFAULTS: JsonObject = {
    "background": False,
    "error": None,
    "frequency_penalty": 0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
}
_ERROR_CODES = frozenset({"server_error", "rate_limit_exceeded", "invalid_prompt", "context_length_exceeded"})


class _Shape(Struct, frozen=True):
    """Members with their types, as msgspec checks them. is_open: others are repeated too, as they came."""

    members: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    is_open: bool = False


_REASONING = _Shape(
    {
        "context": Literal["auto", "current_turn", "all_turns"] | None,
        "effort": Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        "generate_summary": _Summary,
        "mode": _Text,
        "summary": _Summary,
    },
    is_open=True,
)
_FORMATS = {
    "text": _Shape(),
    "json_object": _Shape(),
    "json_schema": _Shape(
        {"name": str, "schema": dict[str, Any], "description": _Text, "strict": _Flag}, ("name", "schema")
    ),
}
_INPUTS = {
    "text": _Shape(),
    "grammar": _Shape({"definition": str, "syntax": Literal["lark", "regex"]}, ("definition", "syntax")),
}
_TOOLS = {
    "function": _Shape(
        {**_FUNCTION, "parameters": _Object, "strict": _Flag, "output_schema": _Object}, ("name",), is_open=True
    ),
    "custom": _Shape({**_FUNCTION, "format": dict[str, Any]}, ("name",), is_open=True),
    "namespace": _Shape({"name": str, "description": str, "tools": list[Any]}, ("name", "tools"), is_open=True),
    "web_search": _Shape({**_SEARCH, "external_web_access": _Flag}),
    "web_search_2025_08_26": _Shape({**_SEARCH, "external_web_access": _Flag}),
    "web_search_preview": _Shape(_SEARCH),
    "web_search_preview_2025_03_11": _Shape(_SEARCH),
    "file_search": _Shape({"vector_store_ids": list[str], "max_num_results": _Count}, ("vector_store_ids",)),
    "computer": _Shape(),
    "computer_use_preview": _Shape(
        {
            "display_height": int,
            "display_width": int,
            "environment": Literal["windows", "mac", "linux", "ubuntu", "browser"],
        },
        ("display_height", "display_width", "environment"),
    ),
    "mcp": _Shape(
        {
            "server_label": str,
            "server_description": _Text,
            "server_url": _Text,
            "allowed_tools": list[str] | None,
            "require_approval": Literal["always", "never"] | None,
        },
        ("server_label",),
    ),
    "code_interpreter": _Shape({"container": str}, ("container",)),
    "programmatic_tool_calling": _Shape(),
    "image_generation": _Shape({"model": _Text, "size": _Text}),
    "local_shell": _Shape(),
    "shell": _Shape({"allowed_callers": _Callers}),
    "tool_search": _Shape(
        {"description": _Text, "execution": Literal["server", "client"] | None, "parameters": _Object}
    ),
    "apply_patch": _Shape({"allowed_callers": _Callers}),
}
_CHOICES = {
    **dict.fromkeys(_HOSTED_CHOICES.split(), _Shape()),
    "function": _Shape({"name": str}, ("name",)),
    "custom": _Shape({"name": str}, ("name",)),
    "mcp": _Shape({"server_label": str, "name": _Text}, ("server_label",)),
    "allowed_tools": _Shape({"mode": Literal["auto", "required"], "tools": list[dict[str, Any]]}, ("mode", "tools")),
}


def echo(asked: JsonObject, defaults: JsonObject, tools: list[JsonObject] | None = None) -> JsonObject:
    """The members named in defaults, and those for tools, text and reasoning. tools: the echo of its tools, if it is known."""
    value = {key: default if asked.get(key) is None else asked[key] for key, default in defaults.items()}
    value |= {key: int(value[key]) for key in _COUNTS if _is_whole(value[key])}
    value |= {key: defaults[key] for key, kind in _TOP.items() if not _fits(value[key], kind)}
    value["metadata"] = metadata_echo(asked.get("metadata"))
    value["instructions"] = _instructions(asked.get("instructions"))
    value["tool_choice"] = choice_echo(asked.get("tool_choice"))
    value["tools"] = tools_echo(asked.get("tools")) if tools is None else tools
    text, reasoning = asked.get("text") or {}, asked.get("reasoning") or {}
    value["text"] = {"format": _format(text.get("format")), **_verbosity(text)}
    value["reasoning"] = {"effort": None, "summary": None, **(_conformed(reasoning, _REASONING) or {})}
    if isinstance(asked.get("user"), str):
        value["user"] = asked["user"]
    return value


def metadata_echo(given: Json) -> JsonObject:
    """Values are texts in this dialect; others are written as JSON."""
    if not isinstance(given, dict):
        return {}
    return {key: item if isinstance(item, str) else encode(item).decode() for key, item in given.items()}


def tools_echo(given: Json) -> list[JsonObject]:
    found = [_tool(tool) for tool in given] if isinstance(given, list) else []
    return [tool for tool in found if tool is not None]


def choice_echo(given: Json) -> Json:
    if given in ("auto", "none", "required"):
        return given
    if not isinstance(given, dict):
        return "auto"
    if isinstance(inner := given.get("function"), dict):  # as clients of Chat Completions write it
        given = {"type": given.get("type"), "name": inner.get("name")}
    return _by_type(given, _CHOICES) or "auto"


def _tool(tool: Json) -> JsonObject | None:
    """A function has all its members here, null where the request has none."""
    value = _by_type(tool, _TOOLS)
    if value is None:
        return None
    if value["type"] == "function":
        return {"description": None, "parameters": None, "strict": None, **value}
    if value["type"] == "namespace":
        inner = [one for one in tools_echo(value["tools"]) if one["type"] in ("function", "custom")]
        return {"description": "", **value, "tools": inner}
    if value["type"] == "custom" and "format" in value:
        form = _by_type(value.pop("format"), _INPUTS)
        if form is not None:
            value["format"] = form
    return value


def _format(given: Json) -> JsonObject:
    named = {"name": "answer", "schema": {}, **given} if isinstance(given, dict) else None
    return _by_type(named, _FORMATS) or {"type": "text"}


def _verbosity(text: JsonObject) -> JsonObject:
    given = text.get("verbosity")
    return {"verbosity": given} if given is not None and _fits(given, _Level) else {}


def _instructions(given: Json) -> Json:
    """Items that are more than messages of texts are not repeated."""
    if isinstance(given, str) or given is None:
        return given
    return given if isinstance(given, list) and all(map(_is_message, given)) else None


def _is_message(item: Json) -> bool:
    content = item.get("content") if isinstance(item, dict) and item.get("type") in (None, "message") else None
    return isinstance(content, str) or (
        isinstance(content, list)
        and item.get("role") != "assistant"
        and all(isinstance(part, dict) and part.get("type") == "input_text" for part in content)
    )


def _by_type(value: Json, shapes: Mapping[str, _Shape]) -> JsonObject | None:
    """None for a type that the schema does not know, or that lacks what it requires."""
    kind = value.get("type") if isinstance(value, dict) else None
    shape = shapes.get(kind) if isinstance(kind, str) else None
    if shape is None or (found := _conformed(value, shape)) is None:
        return None
    return {"type": kind, **found}


def _conformed(value: JsonObject, shape: _Shape) -> JsonObject | None:
    found = {
        key: item
        for key, item in value.items()
        if (_fits(item, shape.members[key]) if key in shape.members else shape.is_open)
    }
    return found if all(key in found for key in shape.required) else None


def _is_whole(value: Json) -> bool:
    """Written as 5.0, which is read as a count."""
    return isinstance(value, Decimal) and abs(value) < _MOST and value == value.to_integral_value()


def _fits(value: Json, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeError):  # the last for half a character
        return False
    return True


def resource(context: AnswerContext, started: Started) -> JsonObject:
    """The object at the start of the answer: members of the request, then those of the back end."""
    asked = context.request.source
    is_own = NAME in started.extra
    value: JsonObject = {
        "id": context.answer_id or (is_own and started.id) or context.mint("resp_"),
        "object": "response",
        "created_at": started.created or context.now,
        "completed_at": None,
        "status": "in_progress",
        "model": (is_own and not context.is_renamed and started.model) or context.request.model,
        "output": [],
        "usage": None,
        "store": False,
    }
    value |= echo(asked, _DEFAULTS, _known_tools(context.request))
    value |= {key: item for key, item in started.extra.get(NAME, {}).items() if item is not None or key not in value}
    return value | memory_echo(context)


def _known_tools(request: Request) -> list[JsonObject] | None:
    """The echo of tools that recur, made once; None for others."""
    tools = request.tools
    if not isinstance(tools, RecurringTools):
        return None
    known: list[JsonObject] | None = tools.facts.get(tools_echo)
    if known is None:
        known = tools_echo(request.source.get("tools"))
        tools.remember(tools_echo, known)
    return known


def memory_echo(context: AnswerContext) -> JsonObject:
    """Members that the back end cannot know if the gateway stores the answer."""
    if not context.is_kept:
        return {}
    asked = context.request.source
    echo: JsonObject = {
        "store": asked.get("store") is not False,
        "background": bool(asked.get("background")),
        "previous_response_id": asked.get("previous_response_id") or None,
    }
    if given := asked.get("conversation"):
        echo["conversation"] = {"id": given["id"] if isinstance(given, dict) else given}
    return echo


def failed(error: GatewayError) -> JsonObject:
    """The error of a failed response, with a code that clients know: by context_length_exceeded Codex compacts (H146)."""
    given = error.details.get("code")
    code = given if isinstance(given, str) and given in _ERROR_CODES else error.code
    if code not in _ERROR_CODES:
        code = "rate_limit_exceeded" if error.status == 429 else "server_error"
        if 400 <= error.status < 500 and error.status != 429:
            code = "invalid_prompt"
    return {"code": code, "message": error.sentence()}


def text_part(part: Text | Refusal) -> JsonObject:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    cited = [value for citation in part.citations if (value := citation_out(citation)) is not None]
    return {"type": "output_text", "text": part.text, "annotations": cited, "logprobs": logprobs_out(part.logprobs)}


def logprobs_out(entries: tuple[Any, ...] | None) -> list[Any]:
    return [{"bytes": [], "top_logprobs": [], **entry} for entry in entries or () if isinstance(entry, dict)]


def call_item(call: ToolCall, item_id: str, status: str) -> JsonObject:
    """The same complete item in added, done and the final object; only arguments and status move (H006)."""
    own = call.extra.get(NAME, {})
    name: JsonObject = {"name": call.name}
    if call.namespace:
        name["namespace"] = call.namespace
    if call.kind == "custom":
        return {"type": "custom_tool_call", "id": item_id, "call_id": call.id, **name, "input": call.raw, **own}
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call.id,
        **name,
        "arguments": call.raw,
        "status": status,
        **own,
    }


def reasoning_item(item_id: str, parts: list[Reasoning]) -> JsonObject:
    value: JsonObject = {"type": "reasoning", "id": item_id, "summary": []}
    for part in parts:
        if is_plain_thought(part):
            value.setdefault("content", []).append({"type": "reasoning_text", "text": part.text})
        elif part.text:
            value["summary"].append({"type": "summary_text", "text": part.text})
        if part.encrypted is not None:
            value["encrypted_content"] = part.encrypted
    # Another dialect's proof: without it the back end would not take them back.
    if any(part.signature or part.redacted or (part.encrypted and _is_foreign(part)) for part in parts):
        value["encrypted_content"] = seal(parts)
    return value


def _is_foreign(part: Reasoning) -> bool:
    return bool(part.extra) and NAME not in part.extra


def is_plain_thought(part: Part) -> bool:
    """Raw reasoning of this dialect; reasoning of other dialects is sent as a summary, which every client shows."""
    return isinstance(part, Reasoning) and NAME in part.extra and not part.is_summary


def citation_out(citation: Citation) -> JsonObject | None:
    own = citation.extra.get(NAME)
    if own is not None or not citation.url:
        return own
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }


def usage_out(usage: Usage) -> JsonObject:
    own = usage.extra.get(NAME, {})
    details, produced = own.get("input_tokens_details"), own.get("output_tokens_details")
    return {
        **own,
        "input_tokens": usage.input,
        "input_tokens_details": {
            **(details if isinstance(details, dict) else {}),
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {
            **(produced if isinstance(produced, dict) else {}),
            "reasoning_tokens": usage.reasoning,
        },
        "total_tokens": usage.input + usage.output,
    }
