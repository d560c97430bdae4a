"""One item, block or tool of the official SDKs' types inside a request, and what becomes of it at a back end of each dialect."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from msgspec.structs import replace

from tests.contract.request_members import BASES, MEMBERS
from tests.contract.sdk.samples import MARK, PNG, SCHEMA
from tests.pipeline.jobs import prepared
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.types import Loss

Body = dict[str, Any]
KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
MODELS = {"messages": "claude-opus-5", "gemini": "gemini-3-pro"}


def item(item: Body) -> Body:
    before, after = _PARTNERS.get(str(item.get("type")), ([], []))
    last = [] if item.get("type") == "compaction_trigger" else [{"role": "user", "content": "go"}]
    return {"input": [{"role": "user", "content": "hi"}, *before, item, *after, *last]}


_CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
_CUSTOM = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "x"}
_SHELL = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}}
_LOCAL = {
    "type": "local_shell_call",
    "id": "x_2",
    "call_id": "x_1",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
_PATCH = {"type": "apply_patch_call", "call_id": "call_1", "operation": {"type": "delete_file", "path": "a"}}
_SCREEN = {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "pending_safety_checks": [], "actions": []}
_SEARCH = {"type": "tool_search_call", "execution": "client", "call_id": "call_1", "arguments": {}}
_ASK = {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "f", "server_label": "s"}
_PROGRAM = {"type": "program", "id": "x_2", "call_id": "call_1", "code": "f()", "fingerprint": "p"}
_PIXEL = {"type": "computer_screenshot", "image_url": "https://host.example/a.png"}
_PARTNERS: dict[str, tuple[list[Body], list[Body]]] = {
    "function_call": ([], [{"type": "function_call_output", "call_id": "call_1", "output": "ok"}]),
    "function_call_output": ([_CALL], []),
    "custom_tool_call": ([], [{"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}]),
    "custom_tool_call_output": ([_CUSTOM], []),
    "computer_call": ([], [{"type": "computer_call_output", "call_id": "call_1", "output": _PIXEL}]),
    "computer_call_output": ([_SCREEN], []),
    "local_shell_call": ([], [{"type": "local_shell_call_output", "id": "call_1", "output": "ok"}]),
    "local_shell_call_output": ([_LOCAL], []),
    "shell_call": ([], [{"type": "shell_call_output", "call_id": "call_1", "output": []}]),
    "shell_call_output": ([_SHELL], []),
    "apply_patch_call": ([], [{"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"}]),
    "apply_patch_call_output": ([_PATCH], []),
    "tool_search_call": ([], [{"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": []}]),
    "tool_search_output": ([_SEARCH], []),
    "mcp_approval_response": ([_ASK], []),
    "program": (
        [],
        [{"type": "program_output", "id": "x_2", "call_id": "call_1", "result": "", "status": "completed"}],
    ),
    "program_output": ([_PROGRAM], []),
    "reasoning": ([], [{"role": "assistant", "content": "so"}]),
}


def response_tool(tool: Body) -> Body:
    more = [{"type": "function", "name": "deferred", "parameters": SCHEMA, "strict": False}]
    return {"tools": [*BASES["responses"]["tools"], tool, *(more if tool["type"] == "tool_search" else [])]}


def response_part(part: Body) -> Body:
    return {"input": [{"role": "user", "content": [part]}]}


_ASKED = ("image", "document", "search_result", "tool_result", "container_upload")
_CHANGES = ("tool_addition", "tool_removal")
_USES = {
    "web_search_tool_result": "web_search",
    "web_fetch_tool_result": "web_fetch",
    "advisor_tool_result": "advisor",
    "code_execution_tool_result": "code_execution",
    "bash_code_execution_tool_result": "bash_code_execution",
    "text_editor_code_execution_tool_result": "text_editor_code_execution",
    "tool_search_tool_result": "tool_search_tool_regex",
}


def block(block: Body) -> Body:
    kind = block["type"]
    user, go = {"role": "user", "content": "hi"}, {"role": "user", "content": "go"}
    if kind in _CHANGES:
        return {"messages": [user, {"role": "system", "content": [block]}]}
    if kind == "tool_result":
        call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
        return {"messages": [user, {"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]}
    if kind in _ASKED:
        return {"messages": [{"role": "user", "content": [block]}]}
    answer = [block]
    if kind in _USES:
        answer.insert(0, {"type": "server_tool_use", "id": "toolu_1", "name": _USES[kind], "input": {}})
    elif kind == "mcp_tool_result":
        answer.insert(0, {"type": "mcp_tool_use", "id": "toolu_1", "name": "f", "server_name": "s", "input": {}})
    elif kind == "server_tool_use":
        error = {"type": "tool_search_tool_result_error", "error_code": "unavailable"}
        answer.append({"type": "tool_search_tool_result", "tool_use_id": "toolu_1", "content": error})
    elif kind == "mcp_tool_use":
        answer.append({"type": "mcp_tool_result", "tool_use_id": "toolu_1", "is_error": False, "content": "ok"})
    elif kind == "tool_use":
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
        return {"messages": [user, {"role": "assistant", "content": answer}, {"role": "user", "content": [result]}]}
    if kind != "text":
        answer.append({"type": "text", "text": "so"})
    return {"messages": [user, {"role": "assistant", "content": answer}, go]}


def messages_tool(tool: Body) -> Body:
    return {"tools": [*BASES["messages"]["tools"], tool]}


def chat_message(message: Body) -> Body:
    user: Body = {"role": "user", "content": "hi"}
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    match message["role"]:
        case "tool":
            return {"messages": [user, {"role": "assistant", "content": None, "tool_calls": [call]}, message]}
        case "function":
            old = {"role": "assistant", "content": None, "function_call": {"name": message["name"], "arguments": "{}"}}
            return {
                "messages": [user, old, message],
                "tools": [],
                "functions": [{"name": message["name"], "parameters": SCHEMA}],
            }
        case "assistant" if "tool_calls" not in message and "function_call" not in message:
            said = {"content": "so", **message}
            return {"messages": [user, said, user]}
        case "assistant":
            return {"messages": [user, message, {"role": "tool", "tool_call_id": "call_1", "content": "ok"}]}
        case _:
            return {"messages": [message, user]}


def chat_part(part: Body) -> Body:
    return {"messages": [{"role": "user", "content": [part]}]}


def chat_tool(tool: Body) -> Body:
    return {"tools": [*BASES["chat"]["tools"], tool]}


_GEMINI_CALL = {"id": "call_1", "name": "weather", "args": {}}
_GEMINI_PARTS: dict[str, Body] = {
    "text": {"text": MARK},
    "inlineData": {"inlineData": {"mimeType": "image/png", "data": PNG}},
    "fileData": {"fileData": {"mimeType": "image/png", "fileUri": "https://host.example/mark_value.png"}},
    "functionCall": {"functionCall": {"id": "call_1", "name": MARK, "args": {}}},
    "functionResponse": {"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": MARK}}},
    "executableCode": {"executableCode": {"language": "PYTHON", "code": MARK}},
    "codeExecutionResult": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": MARK}},
    "thought": {"text": MARK, "thought": True, "thoughtSignature": PNG},
    "thoughtSignature": {"text": "hi", "thoughtSignature": MARK},
    "mediaResolution": {
        "inlineData": {"mimeType": "image/png", "data": PNG},
        "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
    },
    "videoMetadata": {
        "fileData": {"mimeType": "video/mp4", "fileUri": "https://host.example/a"},
        "videoMetadata": {"fps": 13},
    },
    "audioTranscription": {"text": "hi", "audioTranscription": {"text": MARK}},
    "speechMetadata": {"text": "hi", "speechMetadata": {"speaker": MARK}},
    "toolCall": {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"query": MARK}}},
    "toolResponse": {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"text": MARK}}},
}
_ANSWERED = ("thought", "thoughtSignature", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def gemini_part(part: Body) -> Body:
    """part: one member of a part, by its name."""
    (name,) = part
    given = _GEMINI_PARTS.get(name) or {"text": "hi", **part}
    user, go = {"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [{"text": "go"}]}
    result = {"functionResponse": {"id": "call_1", "name": MARK, "response": {"output": "ok"}}}
    if name == "functionCall":
        return {"contents": [user, {"role": "model", "parts": [given]}, {"role": "user", "parts": [result]}]}
    if name == "functionResponse":
        made = {"role": "model", "parts": [{"functionCall": _GEMINI_CALL}]}
        return {"contents": [user, made, {"role": "user", "parts": [given]}]}
    if name in _ANSWERED:
        return {"contents": [user, {"role": "model", "parts": [given, {"text": "so"}]}, go]}
    return {"contents": [{"role": "user", "parts": [given]}]}


def gemini_tool(tool: Body) -> Body:
    if "functionDeclarations" in tool:
        tool = {"functionDeclarations": [{"name": MARK, "parametersJsonSchema": SCHEMA}]}
    return {"tools": [*BASES["gemini"]["tools"], tool]}


class Sent(NamedTuple):
    body: str
    losses: frozenset[Loss]


OWN_HOSTS = {
    "chat": "https://api.openai.com",
    "responses": "https://api.openai.com",
    "messages": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}


def sent(dialect: str, members: Body, upstream: str) -> Sent:
    """Raises BadRequest."""
    body = {**BASES[dialect], **members}
    headers = {"anthropic-beta": "x"} if dialect == "messages" else {}
    request = DIALECTS[dialect].decode_request(json.dumps(body).encode(), headers)
    host = OWN_HOSTS[dialect] if upstream == dialect else "https://host.example"
    config = BackendConfig(name="b", kind=KINDS[upstream], base_url=host)  # type: ignore[arg-type] # one of them
    backend = HttpBackend(config, Transport())
    job = prepared(replace(request, model=MODELS.get(upstream, "m")), backend)
    encoded = DIALECTS[upstream].encode_request(job.request, backend.profile)
    return Sent(encoded.body.decode(), frozenset({*job.losses, *encoded.losses}))


def outcome(dialect: str, members: Body, upstream: str) -> str:
    """What becomes of these members: refused, translated, text (rendered, with a report), in part, lost, or silent."""
    try:
        found = sent(dialect, members, upstream)
    except BadRequest:
        return "refused"
    plain = sent(dialect, {}, upstream)
    losses = found.losses - plain.losses
    has_marks = MARK in json.dumps(members)
    has_arrived = MARK in found.body if has_marks else found.body != plain.body
    if not losses:
        return "translated" if has_arrived else "silent"
    if not has_arrived:
        return "lost"
    return "text" if any("rendered as text" in loss.why or "note" in loss.why for loss in losses) else "in part"


def member_outcome(dialect: str, name: str, upstream: str) -> str:
    """The same for a member of the request, or of its part that has a table."""
    return outcome(dialect, MEMBERS[dialect][name], upstream)
