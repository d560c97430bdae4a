"""What the APIs refuse with 400 in a history, each by its own rules, the strictest that any provider of the dialect is known for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST = {"chat": 40, "responses": 64, "messages": 64}
_INSTRUCTIONS = ("system", "developer")
_OUTPUTS = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
    "tool_search_call": ("tool_search_output",),
}


def refusals(dialect: str, body: bytes, *, checks_ids: bool = True) -> list[str]:
    """Every fault of the request, as a provider would word it. Ids of other providers are not the ledger's to judge."""
    value = json.loads(body)
    check = {"chat": _chat, "responses": _responses, "messages": _messages}[dialect]
    return list(check(value, checks_ids))


def _ids(dialect: str, ids: list[str], checks_ids: bool) -> Iterator[str]:
    if len(set(ids)) != len(ids):
        yield f"ids of calls must be unique: {sorted(ids)}"
    for call_id in ids:
        if not call_id:
            yield "the id of a call is empty"
        if checks_ids and len(call_id) > _LONGEST[dialect]:
            yield f"string too long: {call_id}"
        if checks_ids and dialect == "messages" and not _LEGAL.fullmatch(call_id):
            yield f"{call_id} should match ^[a-zA-Z0-9_-]+$"


def _object(text: Any, where: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        yield f"{where}: arguments must be a JSON object: {str(text)[:60]}"


def _text(content: Any, where: str) -> Iterator[str]:
    """Content of somebody who speaks: not nothing, and no text of it blank."""
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}: content must not be empty"
        return
    if not content:
        yield f"{where}: content must not be empty"
    for part in content or ():
        if isinstance(part, dict) and isinstance(part.get("text"), str) and not part["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"


def _frame(roles: list[str]) -> Iterator[str]:
    spoken = [role for role in roles if role not in _INSTRUCTIONS]
    if not spoken:
        yield "at least one message is required"
    elif spoken[0] != "user":
        yield f"the first message must use the user role, not {spoken[0]}"


def _chat(body: Any, checks_ids: bool) -> Iterator[str]:
    messages = body["messages"]
    yield from _frame([message["role"] for message in messages])
    due: list[str] = []
    ids: list[str] = []
    for number, message in enumerate(messages):
        where, role = f"messages[{number}]", message["role"]
        if role == "tool":
            if not due:
                yield f"{where}: a tool message must be a response to a preceding message with tool_calls"
            elif message["tool_call_id"] != due.pop(0):
                yield f"{where}: {message['tool_call_id']} is not the result that must come next"
            if not isinstance(message["content"], str | list):
                yield f"{where}: a tool message needs content"
            continue
        if due:
            yield f"{where}: tool_call_ids did not have response messages: {due}"
            due = []
        if role == "assistant":
            calls = message.get("tool_calls") or []
            due = [call["id"] for call in calls]
            ids += due
            yield from _chat_assistant(message, calls, where)
        elif role == "user" or any(before["role"] not in _INSTRUCTIONS for before in messages[:number]):
            yield from _text(message["content"], where)
    if due:
        yield f"the last tool_call_ids did not have response messages: {due}"
    yield from _ids("chat", ids, checks_ids)


def _chat_assistant(message: Any, calls: list[Any], where: str) -> Iterator[str]:
    if not (calls or message.get("refusal") or message.get("content")):
        yield f"{where}: content must not be empty"
    if message.get("tool_calls") == []:
        yield f"{where}: [] is too short - tool_calls"
    for call in calls:
        if call["type"] == "function":
            yield from _object(call["function"]["arguments"], where)
        elif not isinstance(call["custom"]["input"], str):
            yield f"{where}: input must be a string"


def _messages(body: Any, checks_ids: bool) -> Iterator[str]:
    yield from _frame([message["role"] for message in body["messages"]])
    due: list[str] = []
    ids: list[str] = []
    turns = list(_combined(body["messages"]))
    for number, (role, blocks) in enumerate(turns):
        where = f"messages[{number}]"
        if role == "assistant":
            yield from _messages_assistant(blocks, where)
            due = [block["id"] for block in blocks if block["type"] == "tool_use"]
            ids += due
            continue
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        first = [block["type"] for block in blocks[: len(answered)]]
        if answered != due:
            yield f"{where}: tool_use ids {due} were found with tool_result blocks {answered} immediately after"
        if first.count("tool_result") != len(answered):
            yield f"{where}: tool_result blocks must come first"
        if role == "user":
            yield from _text(blocks, where)
        due = []
    if due:
        yield f"the last tool_use ids have no tool_result blocks: {due}"
    yield from _ids("messages", ids, checks_ids)
    yield from _served(turns)


def _combined(messages: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Neighbours of one role are one turn."""
    before: tuple[str, list[Any]] | None = None
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if before is not None and before[0] == message["role"]:
            before[1].extend(blocks)
            continue
        if before is not None:
            yield before
        before = (message["role"], list(blocks))
    if before is not None:
        yield before


def _messages_assistant(blocks: list[Any], where: str) -> Iterator[str]:
    kinds = [block["type"] for block in blocks]
    if any(block["type"] == "text" and not block["text"] for block in blocks):
        yield f"{where}: text content blocks must be non-empty"
    if all(block["type"] == "text" and not block["text"].strip() for block in blocks):
        yield f"{where}: text content blocks must contain non-whitespace text"
    if kinds and kinds[-1] in ("thinking", "redacted_thinking"):
        yield f"{where}: The final block in an assistant message cannot be `thinking`."
    calls = kinds.count("tool_use")
    if calls and kinds[-calls:] != ["tool_use"] * calls:
        yield f"{where}: tool_use blocks must be last: {kinds}"
    if "tool_result" in kinds:
        yield f"{where}: tool_result blocks can only be in user messages"
    for block in blocks:
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            yield f"{where}: tool_use.input: Input should be a valid dictionary"


def _served(turns: list[tuple[str, list[Any]]]) -> Iterator[str]:
    last = max((number for number, (role, _) in enumerate(turns) if role == "assistant"), default=-1)
    used: dict[str, int] = {}
    for number, (_, blocks) in enumerate(turns):
        for block in blocks:
            if block["type"] == "server_tool_use":
                used[block["id"]] = number
            elif block["type"] == "web_search_tool_result" and used.pop(block["tool_use_id"], None) is None:
                yield f"messages[{number}]: web_search_tool_result without server_tool_use {block['tool_use_id']}"
    for server_id, number in used.items():
        if number != last:
            yield f"messages[{number}]: {server_id} was found without a corresponding web_search_tool_result"


def _responses(body: Any, checks_ids: bool) -> Iterator[str]:
    if isinstance(body["input"], str):
        yield from _text(body["input"], "input")
        return
    due: list[Any] = []
    calls: list[Any] = []
    has_answered, is_thinking, has_sent = False, False, False
    yield from _frame([item["role"] for item in body["input"] if item.get("type", "message") == "message"])
    for number, item in enumerate(body["input"]):
        where, kind = f"input[{number}]", item.get("type", "message")
        if is_thinking and not (kind in _OUTPUTS or kind == "reasoning" or item.get("role") == "assistant"):
            yield f"{where}: the reasoning item before it was provided without its required following item"
        is_thinking = kind == "reasoning"
        if kind in _OUTPUTS:
            if has_answered and due:
                yield f"{where}: No tool output found for {due[0]['call_id']}"
            due, has_answered = ([] if has_answered else due), False
            due.append(item)
            calls.append(item)
            if kind == "function_call":
                yield from _object(item["arguments"], where)
        elif kind.endswith("_output"):
            has_answered = True
            if not due or (call := due.pop(0))["call_id"] != item["call_id"]:
                yield f"{where}: No tool call found for function call output with call_id {item['call_id']}"
            elif kind not in _OUTPUTS[call["type"]]:
                yield f"{where}: {kind} answers a {call['type']}"
        elif kind == "message":
            if due and item["role"] != "assistant":
                yield f"{where}: No tool output found for {due[0]['call_id']}"
                due = []
            has_sent = has_sent or item["role"] not in _INSTRUCTIONS
            is_lenient = item["role"] == "assistant" and item["content"]  # its own white space an API takes back (H140)
            if has_sent and not is_lenient:
                yield from _text(item["content"], where)
    if due or is_thinking:
        yield f"the last items have no outputs: {due}"
    yield from _ids("responses", [call["call_id"] for call in calls], checks_ids)
    own = [call["id"] for call in calls if call.get("id")]
    if len(set(own)) != len(own):
        yield f"Duplicate item found: {own}"
