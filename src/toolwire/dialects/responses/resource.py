"""OpenAI Responses: the response object, complete: every member of today's schema is there, null where there is nothing to say."""

from __future__ import annotations

from typing import Any

from ...errors import GatewayError
from ...events import Started
from ...types import JsonObject, Part, Reasoning, Refusal, Text, ToolCall
from ..base import Context
from ..shared.sealed_reasoning import seal
from .echo import echo
from .shapes import NAME, citation_out

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


def resource(context: Context, started: Started) -> JsonObject:
    """The object as it is when the answer begins: what the request asked for, then what the back end says of itself."""
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
    value |= echo(asked, _DEFAULTS)
    value |= {key: item for key, item in started.extra.get(NAME, {}).items() if item is not None or key not in value}
    return value | memory_echo(context)


def memory_echo(context: Context) -> JsonObject:
    """What the back end cannot know where the gateway is the one that remembers."""
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
    """Raw reasoning of this dialect; what other dialects call thinking is told as a summary, which every client shows."""
    return isinstance(part, Reasoning) and NAME in part.extra and not part.is_summary
