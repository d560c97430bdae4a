"""What Chat Completions servers reject: OpenAI's own messages, and those of stricter compatible servers."""

from __future__ import annotations

import re
from typing import Any

from tests.contract.strict.openai import (
    check_arguments,
    check_choice,
    check_functions,
    check_length,
    check_name,
    check_temperature,
)
from tests.contract.strict.refusals import Refused, names

_TOP = names(
    "model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens temperature top_p seed "
    "frequency_penalty presence_penalty stop n logprobs top_logprobs reasoning_effort response_format verbosity stream "
    "stream_options user metadata store service_tier prediction modalities audio prompt_cache_key safety_identifier "
    "logit_bias web_search_options"
)
_MEMBERS = {
    "system": names("role content name"),
    "developer": names("role content name"),
    "user": names("role content name"),
    "assistant": names("role content name tool_calls refusal audio function_call reasoning_content"),
    "tool": names("role content tool_call_id name"),
}
_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}\Z")
_LONGEST_ID = 40


def check(body: dict[str, Any], *, has_developer: bool = True, has_pictures: bool = False, ids: str = "openai") -> None:
    """has_developer: the role is supported; has_pictures: results may contain images, as on some servers; ids: the rules for ids,
    openai or mistral."""
    for name in body:
        if name not in _TOP:
            raise Refused(f"Unrecognized request argument supplied: {name}", name)
    check_temperature(body)
    _tools(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages", "empty_array"
        )
    for index, message in enumerate(messages):
        _message(message, index, has_developer, has_pictures)
    _pairs(messages, ids)
    roles = {message["role"] for message in messages}
    if "user" not in roles and roles & {"assistant", "tool"}:
        raise Refused("No user query found in messages.", "messages")


def _tools(body: dict[str, Any]) -> None:
    tools = body.get("tools")
    functions = [tool.get("function") or tool.get("custom") or {} for tool in tools or ()]
    known = check_functions(functions, None if tools is None else len(tools), "tools[{index}].function")
    check_choice(body.get("tool_choice"), known)
    if body.get("parallel_tool_calls") is not None and not known:
        raise Refused(
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
            "parallel_tool_calls",
        )


def _message(message: dict[str, Any], index: int, has_developer: bool, has_pictures: bool) -> None:
    where, role = f"messages[{index}]", message.get("role")
    if role not in _MEMBERS or (role == "developer" and not has_developer):
        raise Refused(
            f"unknown variant `{role}`, expected one of `system`, `user`, `assistant`, `tool`", f"{where}.role"
        )
    for name in message:
        if name not in _MEMBERS[role]:
            raise Refused(f"Additional properties are not allowed ('{name}' was unexpected) - '{where}'", where)
    content = message.get("content")
    if content is None:
        if role != "assistant":
            raise Refused("Invalid value for 'content': expected a string, got null.", f"{where}.content")
    elif isinstance(content, list):
        _parts(content, "user" if role == "tool" and has_pictures else role, f"{where}.content")
    elif not isinstance(content, str):
        raise Refused(f"Invalid type for '{where}.content': expected a string or an array.", f"{where}.content")
    _check_content(message, role, index)


def _parts(content: list[dict[str, Any]], role: str, where: str) -> None:
    if not content:
        raise Refused(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            where,
            "empty_array",
        )
    for number, part in enumerate(content):
        kind = part.get("type")
        if kind not in _PARTS[role]:
            raise Refused(
                f"Invalid value: '{kind}'. Supported values are: {_PARTS[role]}.",
                f"{where}[{number}].type",
                "invalid_value",
            )
        if kind == "text" and not part.get("text") and role not in ("system", "developer"):
            raise Refused("text content blocks must be non-empty", f"{where}[{number}].text")


def _check_content(message: dict[str, Any], role: str, index: int) -> None:
    """The rules of Moonshot and Mistral; OpenAI accepts some of it."""
    content = message.get("content")
    is_blank = not content or (isinstance(content, str) and not content.strip())
    if role == "user" and is_blank:
        raise Refused(f"Invalid request: the message at position {index} with role 'user' must not be empty")
    if role == "assistant":
        calls = message.get("tool_calls")
        if calls is not None and not calls:
            raise Refused(
                f"Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum length 1, but got an "
                "empty array instead.",
                f"messages[{index}].tool_calls",
                "empty_array",
            )
        said = not is_blank or message.get("refusal") or message.get("audio") or message.get("function_call")
        if not calls and not said:
            raise Refused(f"Invalid request: the message at position {index} with role 'assistant' must not be empty")


def _pairs(messages: list[dict[str, Any]], ids: str) -> None:
    seen: set[str] = set()
    due: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _answered(message.get("tool_call_id"), due, f"messages[{index}]")
            continue
        if due:
            raise _unanswered(due, index)
        for number, call in enumerate(message.get("tool_calls") or ()):
            _call(call, seen, f"messages[{index}].tool_calls[{number}]", ids)
            due.append(call["id"])
    if due:
        raise _unanswered(due, len(messages))


def _answered(name: Any, due: list[str], where: str) -> None:
    check_length(name, _LONGEST_ID, f"{where}.tool_call_id")
    if name not in due:
        raise Refused(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            f"{where}.role",
        )
    if due[0] != name:
        raise Refused(
            "Please ensure that the function responses are in the order of the function calls of the function call turn.",
            where,
        )
    due.pop(0)


def _call(call: dict[str, Any], seen: set[str], where: str, ids: str) -> None:
    check_length(call.get("id"), _LONGEST_ID, f"{where}.id")
    name = call["id"]
    if ids == "mistral" and not _MISTRAL_ID.match(name):
        raise Refused(f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.", None, "3280")
    if name in seen:
        raise Refused(f"Duplicate value for 'tool_call_id' of '{name}'", where)
    seen.add(name)
    if call.get("type") == "custom":
        check_name(call.get("custom", {}).get("name"), f"{where}.custom.name")
        return
    if call.get("type") != "function" or not isinstance(call.get("function"), dict):
        raise Refused(f"Missing required parameter: '{where}.type'.", f"{where}.type", "missing_required_parameter")
    check_name(call["function"].get("name"), f"{where}.function.name")
    check_arguments(call["function"].get("arguments"), f"{where}.function.arguments")


def _unanswered(due: list[str], index: int) -> Refused:
    return Refused(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
        f"following tool_call_ids did not have response messages: {', '.join(due)}",
        f"messages.[{index}].role",
    )
