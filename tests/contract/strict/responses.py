"""What the Responses API rejects, with its own messages: written from the API's known answers, not from the gateway."""

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
from tests.contract.strict.proofs import encrypted_of
from tests.contract.strict.refusals import Refused, names

_TOP = names(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens temperature top_p top_logprobs "
    "reasoning text stream stream_options user metadata store include previous_response_id conversation background "
    "truncation service_tier prompt prompt_cache_key prompt_cache_retention safety_identifier max_tool_calls "
    "context_management"
)
_ITEMS: dict[str, frozenset[str]] = {
    "message": names("type id role content status phase"),
    "reasoning": names("type id summary content encrypted_content status"),
    "function_call": names("type id call_id name namespace arguments status"),
    "function_call_output": names("type id call_id output status"),
    "custom_tool_call": names("type id call_id name namespace input status"),
    "custom_tool_call_output": names("type id call_id output status"),
    "local_shell_call": names("type id call_id action status"),
    "local_shell_call_output": names("type id call_id output status"),
    "shell_call": names("type id call_id action status environment"),
    "shell_call_output": names("type id call_id output status max_output_length"),
    "apply_patch_call": names("type id call_id operation status"),
    "apply_patch_call_output": names("type id call_id output status"),
    "computer_call": names("type id call_id action actions pending_safety_checks status"),
    "computer_call_output": names("type id call_id output acknowledged_safety_checks status"),
    "tool_search_call": names("type id call_id execution arguments status"),
    "tool_search_output": names("type id call_id execution tools status"),
    "web_search_call": names("type id action status"),
    "mcp_call": names("type id server_label name arguments output error status approval_request_id"),
    "mcp_list_tools": names("type id server_label tools error"),
    "mcp_approval_request": names("type id server_label name arguments"),
    "mcp_approval_response": names("type id approval_request_id approve reason"),
    "additional_tools": names("type role tools id"),
    "compaction": names("type id encrypted_content"),
}
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
    "tool_search_call": "tsc",
    "web_search_call": "ws",
    "mcp_call": "mcp",
}
# The output type of each kind of call, and the names of both in the API's errors.
_ANSWERS = {
    "function_call": ("function_call_output", "function call"),
    "custom_tool_call": ("custom_tool_call_output", "custom tool call"),
    "local_shell_call": ("local_shell_call_output", "local shell call"),
    "shell_call": ("shell_call_output", "shell call"),
    "apply_patch_call": ("apply_patch_call_output", "apply patch call"),
    "computer_call": ("computer_call_output", "computer call"),
    "tool_search_call": ("tool_search_output", "tool search call"),
}
_CALL_OF = {answer: call for call, (answer, _) in _ANSWERS.items()}
_PRODUCED = frozenset({*_ANSWERS, "web_search_call", "mcp_call", "mcp_list_tools", "mcp_approval_request"})
_CONTENT = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
}
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_THOUGHT_OUT = re.compile(r"[a-z]+_r(\d+)x")  # the id of an item that followed a reasoning item contains that number
_LONGEST_ID = 64
_LEAST_TOKENS = 16


def check(body: dict[str, Any], *, knows_typed: bool = True) -> None:
    """knows_typed: it supports tools with their own item types, as OpenAI does."""
    for name in body:
        if name not in _TOP:
            raise Refused(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    check_temperature(body)
    most = body.get("max_output_tokens")
    if most is not None and most < _LEAST_TOKENS:
        raise Refused(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_LEAST_TOKENS}, but got {most} "
            "instead.",
            "max_output_tokens",
            "integer_below_min_value",
        )
    _tools(body)
    given = body.get("input")
    if isinstance(given, str):
        items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": given}]
    elif isinstance(given, list) and given:
        items = [_typed(item) for item in given]
    else:
        raise Refused("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    for index, item in enumerate(items):
        _item(item, f"input[{index}]", knows_typed)
    _no_copies(items)
    _pairs(items)
    _approvals(items)
    _thoughts(items, body.get("store") is not False)


def _typed(item: dict[str, Any]) -> dict[str, Any]:
    return item if item.get("type") else {"type": "message", **item}


def _tools(body: dict[str, Any]) -> None:
    tools = body.get("tools")
    functions = [tool for tool in tools or () if tool.get("type") in ("function", "custom")]
    functions = [{"strict": tool["type"] == "function", **tool} for tool in functions]
    known = check_functions(functions, len(tools) if tools else None, "tools[{index}]")
    check_choice(body.get("tool_choice"), known or ["" for _ in tools or ()])


def _item(item: dict[str, Any], where: str, knows_typed: bool) -> None:
    kind = item["type"]
    if kind not in _ITEMS:
        raise Refused(f"Invalid value: '{kind}'.", f"{where}.type", "invalid_value")
    if not knows_typed and (_CALL_OF.get(kind, kind) in _ANSWERS) and "function" not in kind:
        raise Refused(
            f"Invalid value: '{kind}'. Supported values are: 'function_call'.", f"{where}.type", "invalid_value"
        )
    for name in item:
        if name not in _ITEMS[kind]:
            raise Refused(f"Unknown parameter: '{where}.{name}'.", f"{where}.{name}", "unknown_parameter")
    if item.get("id") is None and kind in (
        "local_shell_call",
        "computer_call",
        "reasoning",
        "web_search_call",
        "mcp_call",
    ):
        raise Refused(f"Missing required parameter: '{where}.id'.", f"{where}.id", "missing_required_parameter")
    if item.get("id") is not None:
        _id(item["id"], kind, f"{where}.id")
    if kind in _ANSWERS or kind in _CALL_OF:
        check_length(item.get("call_id"), _LONGEST_ID, f"{where}.call_id")
    match kind:
        case "message":
            _message(item, where)
        case "function_call":
            check_name(item.get("name"), f"{where}.name")
            check_arguments(item.get("arguments"), f"{where}.arguments")
        case "custom_tool_call":
            check_name(item.get("name"), f"{where}.name")
        case "function_call_output" | "custom_tool_call_output":
            _output(item.get("output"), f"{where}.output")


def _id(name: Any, kind: str, where: str) -> None:
    check_length(name, _LONGEST_ID, where)
    prefix = _PREFIXES.get(kind, "")
    if not name.startswith(prefix):
        raise Refused(
            f"Invalid '{where}': '{name}'. Expected an ID that begins with '{prefix}'.", where, "invalid_value"
        )
    if not _ID.match(name):
        raise Refused(
            f"Invalid '{where}': '{name}'. Expected an ID that contains letters, numbers, underscores, or dashes, but this "
            "value contained additional characters.",
            where,
            "invalid_value",
        )


def _message(item: dict[str, Any], where: str) -> None:
    role, content = item.get("role"), item.get("content")
    if role not in _CONTENT:
        raise Refused(
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            f"{where}.role",
            "invalid_value",
        )
    if isinstance(content, str):
        content = [{"type": _CONTENT[role][0], "text": content}]
    if not isinstance(content, list):
        raise Refused(
            f"Missing required parameter: '{where}.content'.", f"{where}.content", "missing_required_parameter"
        )
    has_words = False
    for number, part in enumerate(content):
        kind, place = part.get("type"), f"{where}.content[{number}]"
        if kind not in _CONTENT[role]:
            raise Refused(f"Invalid value: '{kind}'. Supported values are: {_CONTENT[role]}.", place, "invalid_value")
        if kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            raise Refused(f"Missing required parameter: '{place}.text'.", place, "missing_required_parameter")
        has_words = has_words or part.get("text", "x") != ""
    if not has_words and role in ("user", "assistant"):
        raise Refused(f"Invalid request: the message at '{where}' with role '{role}' must not be empty", where)


def _output(output: Any, where: str) -> None:
    if isinstance(output, str):
        return
    if not isinstance(output, list):
        raise Refused(f"Invalid type for '{where}': expected a string or an array.", where, "invalid_type")
    for number, part in enumerate(output):
        if part.get("type") not in ("input_text", "input_image", "input_file"):
            raise Refused(f"Invalid value: '{part.get('type')}'.", f"{where}[{number}].type", "invalid_value")


def _no_copies(items: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for item in items:
        name = item.get("id")
        if name is not None and name in seen:
            raise Refused(
                f"Duplicate item found with id {name}. Remove duplicate items from your input and try again.", "input"
            )
        if name is not None:
            seen.add(name)


def _pairs(items: list[dict[str, Any]]) -> None:
    """Outputs follow the calls that they answer, in order, as the strictest server of this API requires."""
    called: set[str] = set()
    due: list[tuple[str, str]] = []
    is_calling = True
    for index, item in enumerate(items):
        kind, name = item["type"], item.get("call_id", "")
        if kind in _CALL_OF:
            is_calling = False
            _answered(kind, name, due, index)
        elif _is_model_output(item):
            if due and not is_calling:
                raise _unanswered(due[0])
            is_calling = True
            if kind in _ANSWERS:
                if name in called:
                    raise Refused(f"Duplicate call_id found in input: {name}", f"input[{index}].call_id")
                called.add(name)
                due.append((kind, name))
        elif due:
            raise _unanswered(due[0])
    if due:
        raise _unanswered(due[0])


def _is_model_output(item: dict[str, Any]) -> bool:
    return item["type"] in _PRODUCED or item["type"] == "reasoning" or item.get("role") == "assistant"


def _answered(kind: str, name: str, due: list[tuple[str, str]], index: int) -> None:
    call = _CALL_OF[kind]
    if kind == "function_call_output" and ("local_shell_call", name) in due:  # as Codex answers them
        call = "local_shell_call"
    if name not in [one for known, one in due if known == call]:
        raise Refused(f"No tool call found for {_ANSWERS[call][1]} output with call_id {name}.", "input")
    if due[0] != (call, name):
        raise Refused("outputs must be in the order of their calls", f"input[{index}]")
    due.pop(0)


def _unanswered(call: tuple[str, str]) -> Refused:
    return Refused(f"No tool output found for {_ANSWERS[call[0]][1]} {call[1]}.", "input")


def _approvals(items: list[dict[str, Any]]) -> None:
    asked: set[str] = set()
    for item in items:
        if item["type"] == "mcp_approval_request":
            asked.add(item["id"])
        elif item["type"] == "mcp_approval_response" and item.get("approval_request_id") not in asked:
            name = item.get("approval_request_id")
            raise Refused(f"No approval request found for approval response with approval_request_id {name}.", "input")


def _thoughts(items: list[dict[str, Any]], is_stored: bool) -> None:
    thought: set[str] = set()
    for index, item in enumerate(items):
        if item["type"] != "reasoning":
            _with_its_thought(item, thought)
            continue
        name, proof = item.get("id", ""), item.get("encrypted_content")
        if proof and proof != encrypted_of(name):
            raise Refused(
                f"The encrypted content for item {name} could not be verified. Reason: Encrypted content could not be "
                "decrypted or parsed.",
                None,
                "invalid_encrypted_content",
            )
        if not proof and not is_stored:
            raise Refused(
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try again with "
                "`store` set to true, or remove this item from your input.",
                "input",
            )
        following = items[index + 1] if index + 1 < len(items) else {"type": ""}
        if following["type"] not in ("reasoning", "compaction") and not _is_model_output(following):
            raise Refused(
                f"Item '{name}' of type 'reasoning' was provided without its required following item.", "input"
            )
        if found := _THOUGHT_OUT.match(name):
            thought.add(found.group(1))


def _with_its_thought(item: dict[str, Any], thought: set[str]) -> None:
    found = _THOUGHT_OUT.match(str(item.get("id") or ""))
    if found and found.group(1) not in thought:
        raise Refused(
            f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' item: "
            f"'rs_r{found.group(1)}x'.",
            "input",
        )
