"""Encode the items of a conversation as a request body, in each dialect, as carelessly as clients do."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.contract.strict.conversation import PREFIX, Item
from tests.contract.strict.proofs import encrypted_of, redacted_of, signature_of

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_MEMBER = {"local_shell": "action", "shell": "action", "apply_patch": "operation", "computer": "action"}


class Chat:
    """Calls and text of one answer share a message, unless they are split."""

    def __init__(self, random: Random, parting: float) -> None:
        self._random = random
        self._parting = parting

    def messages(self, items: list[Item]) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        current: dict[str, Any] | None = None
        for item in items:
            if item.kind in ("use", "outcome", "approval", "permit"):
                continue
            if not item.is_answer or item.kind == "result" or item.place == "user":
                current = None
                out.append(self._other(item))
                continue
            if current is None or self._random.random() < self._parting or (item.kind == "say" and current["content"]):
                current = {"role": "assistant", "content": None}
                out.append(current)
            self._grow(current, item)
        return out

    def _other(self, item: Item) -> dict[str, Any]:
        if item.kind == "result":
            content: Any = item.text
            if item.has_image:
                content = [{"type": "text", "text": item.text or "see"}, _chat_image()]
            failed = "Error: the tool call failed.\n" if item.is_error and isinstance(content, str) else ""
            return {"role": "tool", "tool_call_id": item.id, "content": failed + content if failed else content}
        role = item.kind if item.kind in ("system", "developer") else "user"
        if item.kind == "call":
            return {"role": "user", "content": f"I called {item.name} with {item.text}"}
        if item.has_image and role == "user":
            return {"role": role, "content": [{"type": "text", "text": item.text}, _chat_image()]}
        if self._random.random() < 0.2:
            return {"role": role, "content": [{"type": "text", "text": item.text}]}
        return {"role": role, "content": item.text}

    def _grow(self, message: dict[str, Any], item: Item) -> None:
        match item.kind:
            case "say":
                message["content"] = item.text
            case "think":
                message["reasoning_content"] = item.text
            case "call" if item.form == "custom":
                custom = {"name": item.name, "input": item.text}
                message.setdefault("tool_calls", []).append({"id": item.id, "type": "custom", "custom": custom})
            case "call":
                function = {"name": item.name, "arguments": item.text}
                message.setdefault("tool_calls", []).append({"id": item.id, "type": "function", "function": function})


def _chat_image() -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


class Messages:
    """Blocks of one role share a message, unless they are split; the first instructions are the system prompt."""

    def __init__(self, random: Random, parting: float) -> None:
        self._random = random
        self._parting = parting

    def messages(self, items: list[Item]) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        for item in items:
            if item.kind in ("approval", "permit") or (item.kind in ("system", "developer") and not out):
                continue
            is_own = item.kind == "summary" and item.form == "own"
            role = "assistant" if (item.is_answer and item.place != "user") or is_own else "user"
            role = "system" if item.kind in ("system", "developer") else role
            if not out or out[-1]["role"] != role or role == "system" or self._random.random() < self._parting:
                out.append({"role": role, "content": []})
            out[-1]["content"] += self._blocks(item)
        return [self._plain(message) for message in out]

    def system(self, items: list[Item]) -> str:
        first = next((n for n, item in enumerate(items) if item.kind not in ("system", "developer")), len(items))
        return "\n".join(item.text for item in items[:first]).strip()

    def _plain(self, message: dict[str, Any]) -> dict[str, Any]:
        """Some clients write a string instead of a single text block."""
        content = message["content"]
        if len(content) == 1 and content[0].keys() == {"type", "text"} and self._random.random() < 0.4:
            return {"role": message["role"], "content": content[0]["text"]}
        return message

    def _blocks(self, item: Item) -> list[dict[str, Any]]:
        match item.kind:
            case "call":
                return [{"type": "tool_use", "id": item.id, "name": item.name, "input": _object(item.text)}]
            case "result":
                return [self._result(item)]
            case "think" if item.form == "redacted":
                return [{"type": "redacted_thinking", "data": redacted_of(len(item.text))}]
            case "think":
                block = {"type": "thinking", "thinking": item.text, "signature": signature_of(item.text)}
                if item.proof == "empty":
                    block["signature"] = ""
                elif item.proof == "none":
                    del block["signature"]
                return [block]
            case "use" if item.form == "mcp":
                head = {"type": "mcp_tool_use", "id": item.id, "name": "find", "server_name": "files"}
                return [{**head, "input": {"query": item.text}}]
            case "use":
                return [{"type": "server_tool_use", "id": item.id, "name": "web_search", "input": {"query": item.text}}]
            case "outcome" if item.form == "mcp":
                content = [{"type": "text", "text": item.text}]
                return [{"type": "mcp_tool_result", "tool_use_id": item.id, "is_error": False, "content": content}]
            case "outcome":
                return [{"type": "web_search_tool_result", "tool_use_id": item.id, "content": []}]
            case "summary" if item.form == "own":
                return [{"type": "compaction", "content": item.text}]
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        return [{"type": "text", "text": item.text}, *([image] if item.has_image else [])]

    def _result(self, item: Item) -> dict[str, Any]:
        content: Any = item.text
        if item.has_image or self._random.random() < 0.3:
            content = [{"type": "text", "text": item.text}]
        if item.has_image:
            content.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
        value = {"type": "tool_result", "tool_use_id": item.id, "content": content}
        return value | {"is_error": True} if item.is_error else value


def _object(text: str) -> Any:
    """Arguments that were truncated or no object become an object in this dialect."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return {"input": text} if text else {}
    return value if isinstance(value, dict) else {"value": value}


class Gemini:
    """Parts of one role share a content, unless they are split. Some clients send ids, some do not."""

    def __init__(self, random: Random, parting: float) -> None:
        self._random = random
        self._parting = parting
        self._has_ids = random.random() < 0.7

    def contents(self, items: list[Item]) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        was_result = False
        for item in items:
            if item.kind in ("approval", "permit") or (item.kind in ("system", "developer") and not out):
                continue
            role = "model" if item.is_answer and item.place != "user" else "user"
            is_result = item.kind == "result"
            is_new = not out or out[-1]["role"] != role or (role == "user" and is_result != was_result)
            if is_new or self._random.random() < self._parting:
                out.append({"role": role, "parts": []})
            out[-1]["parts"] += self._parts(item)
            was_result = is_result
        return out

    def _parts(self, item: Item) -> list[dict[str, Any]]:
        own = {"id": item.id} if self._has_ids else {}
        match item.kind:
            case "call":
                return [{"functionCall": {**own, "name": item.name, "args": _object(item.text)}}]
            case "result":
                given = {"error" if item.is_error else self._random.choice(("output", "result")): item.text}
                response = {**own, "name": item.name, "response": given}
                if item.has_image:
                    response["parts"] = [_blob()]
                return [{"functionResponse": response}]
            case "think":
                thought: dict[str, Any] = {"text": item.text, "thought": True}
                return [thought | ({"thoughtSignature": encrypted_of(item.text)} if item.proof == "right" else {})]
            case "use":
                return [{"executableCode": {"language": "PYTHON", "code": f"print('{item.text}')"}}]
            case "outcome":
                return [{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": item.text}}]
        return [{"text": item.text}, *([_blob()] if item.has_image else [])]


def _blob() -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/png", "data": PIXEL}}


class Responses:
    """Every item separately; item ids are present or not, depending on the client."""

    def __init__(self, random: Random, has_ids: bool) -> None:
        self._random = random
        self._has_ids = has_ids

    def items(self, items: list[Item]) -> list[dict[str, Any]]:
        return [value for item in items for value in self._item(item)]

    def _item(self, item: Item) -> list[dict[str, Any]]:
        is_named = self._has_ids or item.form in ("local_shell", "computer")
        item_id = item.item_id or f"{PREFIX.get(item.form, 'msg')}_again{len(item.text)}"
        own: dict[str, Any] = {"id": item_id} if is_named and (item.item_id or item.kind == "call") else {}
        match item.kind:
            case "call":
                return [{**own, **_call(item)}]
            case "result":
                return [_output(item)]
            case "think":
                value: dict[str, Any] = {"type": "reasoning", "id": item.item_id, "summary": []}
                if item.form != "redacted":
                    value["summary"] = [{"type": "summary_text", "text": item.text}]
                if item.proof != "none":
                    value["encrypted_content"] = encrypted_of(item.item_id) if item.proof == "right" else None
                return [value]
            case "use" if item.form == "mcp":
                name = {"server_label": "files", "name": "find", "arguments": "{}"}
                return [{"type": "mcp_call", "id": f"mcp_{item.id}", **name, "output": item.text}]
            case "use":
                action = {"type": "search", "query": item.text}
                return [{"type": "web_search_call", "id": f"ws_{item.id}", "status": "completed", "action": action}]
            case "outcome":
                return []
            case "approval":
                return [
                    {"type": "mcp_approval_request", "id": item.id, "server_label": "f", "name": "x", "arguments": "{}"}
                ]
            case "permit":
                return [{"type": "mcp_approval_response", "approval_request_id": item.id, "approve": True}]
            case "summary" if item.form == "own":
                return [{"type": "compaction", "encrypted_content": f"gAAAA{item.text}"}]
        return [{**own, **self._message(item)}]

    def _message(self, item: Item) -> dict[str, Any]:
        role = "assistant" if item.kind == "say" else "user" if item.kind == "summary" else item.kind
        if role == "assistant":
            piece: dict[str, Any] = {"type": "output_text", "text": item.text}
        else:
            piece = {"type": "input_text", "text": item.text}
        content: Any = [piece]
        if item.has_image and role == "user":
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"})
        elif self._random.random() < 0.3:
            content = item.text
        return {"type": "message", "role": role, "content": content}


def _call(item: Item) -> dict[str, Any]:
    match item.form:
        case "function":
            return {"type": "function_call", "call_id": item.id, "name": item.name, "arguments": item.text}
        case "custom":
            return {"type": "custom_tool_call", "call_id": item.id, "name": item.name, "input": item.text}
        case "tool_search":
            head = {"type": "tool_search_call", "call_id": item.id, "execution": "client", "status": "completed"}
            return {**head, "arguments": _object(item.text)}
    value = {"type": f"{item.form}_call", "call_id": item.id, "status": "completed"}
    value[_MEMBER[item.form]] = _object(item.text)
    return value | ({"pending_safety_checks": []} if item.form == "computer" else {})


def _output(item: Item) -> dict[str, Any]:
    text: Any = item.text
    match item.form:
        case "function" | "custom":
            if item.has_image:
                image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
                text = [{"type": "input_text", "text": item.text}, image]
            kind = "function_call_output" if item.form == "function" else "custom_tool_call_output"
            value = {"type": kind, "call_id": item.id, "output": text}
            return value | {"status": "incomplete"} if item.is_error else value
        case "tool_search":
            found = [{"type": "function", "name": f"found_{item.text.split()[-1] if item.text.split() else 'x'}"}]
            head = {"type": "tool_search_output", "call_id": item.id, "execution": "client", "status": "completed"}
            return {**head, "tools": found}
        case "shell":
            text = [{"stdout": item.text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
        case "computer":
            text = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
    return {"type": f"{item.form}_call_output", "call_id": item.id, "output": text}
