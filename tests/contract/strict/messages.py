"""What the Messages API rejects, with its own messages: written from the API's known answers, not from the gateway."""

from __future__ import annotations

import re
from typing import Any

from tests.contract.strict.proofs import is_redacted, signature_of
from tests.contract.strict.refusals import Refused, names

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_TOP = names(
    "model messages system tools tool_choice max_tokens temperature top_p top_k stop_sequences stream metadata thinking "
    "output_config service_tier cache_control container context_management mcp_servers"
)
_BLOCKS: dict[str, frozenset[str]] = {
    "text": names("type text cache_control citations"),
    "image": names("type source cache_control"),
    "document": names("type source title context citations cache_control"),
    "tool_use": names("type id name input cache_control caller"),
    "tool_result": names("type tool_use_id content is_error cache_control"),
    "thinking": names("type thinking signature"),
    "redacted_thinking": names("type data"),
    "server_tool_use": names("type id name input cache_control caller"),
    "web_search_tool_result": names("type tool_use_id content cache_control caller"),
    "mcp_tool_use": names("type id name server_name input cache_control"),
    "mcp_tool_result": names("type tool_use_id content is_error cache_control"),
    "compaction": names("type content cache_control"),
}
_OWN_USES = {"server_tool_use": "web_search_tool_result", "mcp_tool_use": "mcp_tool_result"}
_ANSWERS = {outcome: use for use, outcome in _OWN_USES.items()}
_ASSISTANT_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking", *_OWN_USES, *_ANSWERS})


def check(body: dict[str, Any], *, has_system: bool = False, needs_tools: bool = True) -> None:
    """has_system: system messages are allowed in the conversation, as in newer versions of the API; needs_tools: a history
    with calls is rejected without tools, as in older versions and Bedrock."""
    for name in body:
        if name not in _TOP:
            raise Refused("Extra inputs are not permitted", name)
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise Refused("Field required", "max_tokens")
    _sampling(body)
    tools = _tools(body)
    _system(body.get("system"))
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        raise Refused("at least one message is required", "messages")
    turns = [_message(message, index, has_system) for index, message in enumerate(given)]
    _calls_and_results(turns)
    turns = [turn for turn in turns if turn[0] != "system"]
    if not turns or turns[0][0] != "user":
        raise Refused('first message must use the "user" role', "messages")
    _check_last_text(turns)
    _provider_tools(turns)
    _thoughts(turns, body)
    has_calls = any(block["type"] in ("tool_use", "tool_result") for _, blocks in turns for block in blocks)
    if has_calls and needs_tools and not tools:
        raise Refused(
            "Requests which have `tool_use` or `tool_result` blocks in their messages must define tools.", "messages"
        )
    marks = _marks(body)
    if marks > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def _sampling(body: dict[str, Any]) -> None:
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        raise Refused("range: 0..1", "temperature")
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        if thinking.get("budget_tokens", 0) < 1024:
            raise Refused("Input should be greater than or equal to 1024", "thinking.enabled.budget_tokens")
        if thinking["budget_tokens"] >= body["max_tokens"]:
            raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if temperature not in (None, 1):
            raise Refused("`temperature` may only be set to 1 when thinking is enabled.")
        if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
            raise Refused("Thinking may not be enabled when tool_choice forces tool use.")


def _tools(body: dict[str, Any]) -> list[str]:
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    known = []
    for index, tool in enumerate(tools):
        known.append(tool.get("name", ""))
        if tool.get("type") not in (None, "custom"):
            continue
        where = f"tools.{index}.custom"
        if not _NAME.match(known[-1]):
            raise Refused("String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", f"{where}.name")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or "type" not in schema:
            raise Refused("Field required", f"{where}.input_schema.type")
        if schema["type"] != "object":
            raise Refused("Input should be 'object'", f"{where}.input_schema.type")
        if {"oneOf", "allOf", "anyOf"} & schema.keys():
            raise Refused(
                "input_schema does not support oneOf, allOf, or anyOf at the top level", f"{where}.input_schema"
            )
    if len(set(known)) != len(known):
        raise Refused("Tool names must be unique.", "tools")
    if choice is not None and not known:
        raise Refused("tool_choice may only be specified while providing tools.")
    if choice is not None and choice.get("type") == "tool" and choice.get("name") not in known:
        raise Refused(f"Tool '{choice.get('name')}' not found in provided tools")
    return known


def _system(system: Any) -> None:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) and system else system or []
    for index, block in enumerate(blocks):
        if block.get("type") != "text":
            raise Refused("Input should be 'text'", f"system.{index}.type")
        if not block["text"]:
            raise Refused("text content blocks must be non-empty", "system")
        if not block["text"].strip():
            raise Refused("text content blocks must contain non-whitespace text", "system")


def _message(message: dict[str, Any], index: int, has_system: bool) -> tuple[str, list[dict[str, Any]]]:
    where = f"messages.{index}"
    role = message.get("role")
    if role not in ("user", "assistant") and not (role == "system" and has_system):
        if role == "system":
            raise Refused(
                'Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an '
                "input message role.",
                "messages",
            )
        raise Refused("Input should be 'user' or 'assistant'", f"{where}.role")
    for name in message:
        if name not in ("role", "content"):
            raise Refused("Extra inputs are not permitted", f"{where}.{name}")
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
    if not blocks:
        if role == "user":
            raise Refused("user messages must have non-empty content", where)
        raise Refused("all messages must have non-empty content except for the optional final assistant message", where)
    for number, block in enumerate(blocks):
        _block(block, role, f"{where}.content.{number}")
    _texts(blocks, role, where)
    return role, blocks


def _texts(blocks: list[dict[str, Any]], role: str, where: str) -> None:
    """White space is only allowed beside other content in an answer; an empty text never."""
    has_more = any(block["type"] not in ("text", "thinking") or block.get("text", "").strip() for block in blocks)
    for block in blocks:
        if block["type"] != "text":
            continue
        if not block["text"]:
            raise Refused("text content blocks must be non-empty", "messages")
        if not block["text"].strip() and not (role == "assistant" and has_more):
            raise Refused("text content blocks must contain non-whitespace text", "messages")


def _block(block: dict[str, Any], role: str, where: str) -> None:
    kind = block.get("type")
    if kind not in _BLOCKS:
        raise Refused(f"Input tag '{kind}' found using 'type' does not match any of the expected tags", where)
    for name in block:
        if name not in _BLOCKS[kind]:
            raise Refused("Extra inputs are not permitted", f"{where}.{kind}.{name}")
    place = where.partition(".content")[0]
    if kind in _ASSISTANT_ONLY and role != "assistant":
        raise Refused(f"`{kind}` blocks can only be in `assistant` messages", place)
    if kind == "tool_result" and role != "user":
        raise Refused("`tool_result` blocks can only be in `user` messages", place)
    match kind:
        case "tool_use" | "server_tool_use":
            pattern = _ID if kind == "tool_use" else _SERVER_ID
            if not isinstance(block.get("id"), str) or not pattern.match(block["id"]):
                raise Refused(f"String should match pattern '^{pattern.pattern[:-2]}$'", f"{where}.{kind}.id")
            if not _NAME.match(block.get("name", "")):
                raise Refused("String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", f"{where}.{kind}.name")
            if not isinstance(block.get("input"), dict):
                raise Refused("Input should be a valid dictionary", f"{where}.{kind}.input")
        case "tool_result":
            _result(block, f"{where}.tool_result")
        case "image" | "document":
            if not isinstance(block.get("source"), dict) or "type" not in block["source"]:
                raise Refused("Field required", f"{where}.{kind}.source")


def _result(block: dict[str, Any], where: str) -> None:
    if not isinstance(block.get("tool_use_id"), str) or not _ID.match(block["tool_use_id"]):
        raise Refused("String should match pattern '^[a-zA-Z0-9_-]+$'", f"{where}.tool_use_id")
    content = block.get("content")
    if content is not None and not isinstance(content, str | list):
        raise Refused("Input should be a valid list", f"{where}.content")
    for piece in content if isinstance(content, list) else ():
        if piece.get("type") not in ("text", "image", "document", "search_result", "tool_reference"):
            raise Refused(f"Input tag '{piece.get('type')}' found using 'type' does not match", f"{where}.content")
        if block.get("is_error") and piece["type"] != "text":
            raise Refused("all content must be type `text` if `is_error` is true", f"{where}.content")


def _check_last_text(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    role, blocks = turns[-1]
    text = blocks[-1].get("text") if blocks[-1]["type"] == "text" else None
    if role == "assistant" and isinstance(text, str) and text != text.rstrip():
        raise Refused("final assistant content cannot end with trailing whitespace", "messages")


def _calls_and_results(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    seen: set[str] = set()
    due: list[str] = []
    for index, (role, blocks) in enumerate(turns):
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = _leading(blocks) if role == "user" else []
        for name in answered:
            if name not in due:
                raise Refused(
                    f"unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` block must have "
                    "a corresponding `tool_use` block in the previous message.",
                    f"messages.{index}.content",
                )
        if len(set(answered)) != len(answered):
            raise Refused(
                f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {answered[0]}",
                f"messages.{index}.content",
            )
        if missing := [name for name in due if name not in leading]:
            raise _unanswered(index - 1, missing)
        if leading != due:
            raise Refused("the results of a turn must be in the order of its calls", f"messages.{index}")
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if seen & set(due) or len(set(due)) != len(due):
            raise Refused("`tool_use` ids must be unique", "messages")
        seen.update(due)
        _calls_last(blocks, index)
    if due:
        raise _unanswered(len(turns) - 1, due)


def _leading(blocks: list[dict[str, Any]]) -> list[str]:
    found = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


def _unanswered(index: int, missing: list[str]) -> Refused:
    return Refused(
        f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
        f"messages.{index}",
    )


def _calls_last(blocks: list[dict[str, Any]], index: int) -> None:
    has_called = False
    for block in blocks:
        if has_called and block["type"] != "tool_use":
            raise Refused(f"`tool_use` blocks cannot be followed by `{block['type']}` blocks", f"messages.{index}")
        has_called = has_called or block["type"] == "tool_use"


def _provider_tools(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """A use and its outcome are in one turn; only in the last turn the outcome may be missing."""
    waiting: dict[str, str] = {}
    used: set[str] = set()
    for index, (role, blocks) in enumerate(turns):
        if role == "user" and any(block["type"] != "tool_result" for block in blocks):
            _no_waiting(waiting, index)
        for number, block in enumerate(blocks):
            kind = block["type"]
            if kind in _OWN_USES:
                if block["id"] in used:
                    raise Refused("`tool_use` ids must be unique", "messages")
                used.add(block["id"])
                waiting[block["id"]] = kind
            elif kind in _ANSWERS and waiting.pop(block["tool_use_id"], "") != _ANSWERS[kind]:
                raise Refused(
                    f"unexpected `tool_use_id` found in `{kind}` blocks: {block['tool_use_id']}. Each `{kind}` block must "
                    f"have a corresponding `{_ANSWERS[kind]}` block before it.",
                    f"messages.{index}.content.{number}",
                )


def _no_waiting(waiting: dict[str, str], index: int) -> None:
    for name, kind in waiting.items():
        raise Refused(
            f"`{kind}` block with id {name} was found without a corresponding `{_OWN_USES[kind]}` block",
            f"messages.{index - 1}",
        )


def _thoughts(turns: list[tuple[str, list[dict[str, Any]]]], body: dict[str, Any]) -> None:
    for index, (_, blocks) in enumerate(turns):
        for number, block in enumerate(blocks):
            where = f"messages.{index}.content.{number}"
            if block["type"] == "thinking":
                if not block.get("signature"):
                    raise Refused("Field required", f"{where}.thinking.signature")
                if block["signature"] != signature_of(block.get("thinking", "")):
                    raise Refused("Invalid `signature` in `thinking` block", where)
            elif block["type"] == "redacted_thinking" and not is_redacted(block.get("data", "")):
                raise Refused("Invalid `data` in `redacted_thinking` block", where)
        if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            raise Refused("The final block in an assistant message cannot be `thinking`.", f"messages.{index}")
    if (body.get("thinking") or {}).get("type") == "enabled":
        _begins_with_a_thought(turns)


def _begins_with_a_thought(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """For the last assistant turn, unless a user message follows."""
    index = max((number for number, (role, _) in enumerate(turns) if role == "assistant"), default=-1)
    if index < 0 or any(block["type"] != "tool_result" for _, blocks in turns[index + 1 :] for block in blocks):
        return
    index = _first_of_turn(turns, index)
    first = turns[index][1][0]["type"]
    if first not in ("thinking", "redacted_thinking"):
        raise Refused(
            f"Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks).",
            f"messages.{index}.content.0.type",
        )


def _first_of_turn(turns: list[tuple[str, list[dict[str, Any]]]], index: int) -> int:
    """The message with which the turn begins, or continues with thinking: only results are between its messages."""
    while index > 0 and turns[index][1][0]["type"] not in ("thinking", "redacted_thinking"):
        before = index - 1
        while before >= 0 and turns[before][0] == "user":
            if any(block["type"] != "tool_result" for block in turns[before][1]):
                return index
            before -= 1
        if before < 0:
            return index
        index = before
    return index


def _marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(_marks(item) for item in value.values())
    return sum(_marks(item) for item in value) if isinstance(value, list) else 0
