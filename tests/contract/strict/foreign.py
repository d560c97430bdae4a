"""One valid conversation in each client dialect, and the ways in which other programs write it.

A way changes members of the valid request, named by a path; words with a mark must reach the upstream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = f"data:image/png;base64,{PIXEL}"
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
_NAMES = ("Read", "Bash")
ARGS = ({"path": "wd4q"}, {"path": "wd5q"})


class _Gone:
    """In place of a value: the member is deleted."""


GONE = _Gone()


class Way(NamedTuple):
    client: str
    name: str
    changes: tuple[tuple[str, Any], ...]

    @property
    def body(self) -> dict[str, Any]:
        changed = deepcopy(VALID[self.client])
        for path, value in self.changes:
            change(changed, path, value)
        return changed


def change(body: Any, path: str, value: Any) -> None:
    """Sets, deletes or, at an index behind "+", inserts what the path names."""
    *parents, last = path.split(".")
    owner = body
    for key in parents:
        owner = owner[int(key) if isinstance(owner, list) else key]
    if last.startswith("+"):
        owner.insert(int(last[1:]), value)
    elif value is GONE:
        owner.pop(int(last) if isinstance(owner, list) else last, *([] if isinstance(owner, list) else [None]))
    else:
        owner[int(last) if isinstance(owner, list) else last] = deepcopy(value)


def _chat() -> dict[str, Any]:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(ARGS[n])}}
        for n, name in enumerate(_NAMES)
    ]
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief. wd1q"},
            {"role": "user", "content": "Look at wd2q"},
            {"role": "assistant", "content": "First wd3q", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_0", "content": "out wd6q"},
            {"role": "tool", "tool_call_id": "call_1", "content": "out wd7q"},
            {"role": "assistant", "content": "So wd8q"},
            {"role": "user", "content": "Go on wd9q"},
        ],
        "tools": [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in _NAMES],
    }


def _responses() -> dict[str, Any]:
    def said(role: str, text: str, kind: str = "input_text") -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    calls = [
        {"type": "function_call", "call_id": f"call_{n}", "name": name, "arguments": json.dumps(ARGS[n])}
        for n, name in enumerate(_NAMES)
    ]
    return {
        "model": "m",
        "store": False,
        "input": [
            said("developer", "Be brief. wd1q"),
            said("user", "Look at wd2q"),
            {**said("assistant", "First wd3q", "output_text"), "id": "msg_3"},
            {**calls[0], "id": "fc_4"},
            {**calls[1], "id": "fc_5"},
            {"type": "function_call_output", "call_id": "call_0", "output": "out wd6q"},
            {"type": "function_call_output", "call_id": "call_1", "output": "out wd7q"},
            said("assistant", "So wd8q", "output_text"),
            said("user", "Go on wd9q"),
        ],
        "tools": [{"type": "function", "name": name, "parameters": _SCHEMA, "strict": False} for name in _NAMES],
    }


def _messages() -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "Be brief. wd1q"}],
        "messages": [
            {"role": "user", "content": "Look at wd2q"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "First wd3q"},
                    *(
                        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": ARGS[n]}
                        for n, name in enumerate(_NAMES)
                    ),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_0", "content": "out wd6q"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "out wd7q"}],
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "So wd8q"}]},
            {"role": "user", "content": "Go on wd9q"},
        ],
        "tools": [{"name": name, "input_schema": _SCHEMA} for name in _NAMES],
    }


def _gemini() -> dict[str, Any]:
    def answer(n: int) -> dict[str, Any]:
        return {"functionResponse": {"name": _NAMES[n], "response": {"output": f"out wd{6 + n}q"}}}

    return {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be brief. wd1q"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look at wd2q"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "First wd3q"},
                    *({"functionCall": {"name": name, "args": ARGS[n]}} for n, name in enumerate(_NAMES)),
                ],
            },
            {"role": "user", "parts": [answer(0), answer(1)]},
            {"role": "model", "parts": [{"text": "So wd8q"}]},
            {"role": "user", "parts": [{"text": "Go on wd9q"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": name, "parameters": _SCHEMA} for name in _NAMES]}],
    }


VALID: dict[str, dict[str, Any]] = {
    "chat": _chat(),
    "responses": _responses(),
    "messages": _messages(),
    "gemini": _gemini(),
}
_VALUES: dict[str, Any] = {
    "absent": GONE,
    "null": None,
    "empty text": "",
    "number": 12,
    "boolean": True,
    "list": ["wd40q", 1],
    "empty list": [],
    "object": {"path": "wd41q"},
    "empty object": {},
}
_MARKLESS = _VALUES | {"list": ["a", 1], "object": {"a": "b"}}  # for members that say nothing
_ARGUMENTS = _VALUES | {
    "text": '{"path": "wd42q"}',
    "broken": '{"path": "wd43q',
    "encoded twice": json.dumps('{"path": "wd44q"}'),
    "two objects": '{"path": "wd45q"}{"path": 1}',
    "single quotes": "{'path': 'wd46q'}",
    "words": "wd47q",
    "list as text": '["wd48q"]',
    "null as text": "null",
}
_OUTPUTS = _VALUES | {
    "text part": {"type": "text", "text": "wd50q"},
    "list of objects": [{"path": "wd51q"}, {"path": "b"}],
    "list of texts": ["wd52q", "wd53q"],
    "MCP resource": [{"type": "resource", "resource": {"uri": "file:///a", "text": "wd54q"}}],
    "AI SDK output": {"type": "json", "value": {"n": "wd55q"}},
    "AI SDK text": {"type": "text", "value": "wd56q"},
    "mixed list": [{"type": "text", "text": "wd57q"}, {"rows": "wd58q"}, None, 5],
    "other dialect's text": [{"type": "output_text", "text": "wd59q"}],
    "part without text": [{"type": "text"}, {"type": "text", "text": "wd60q"}],
    "part with null": [{"type": "text", "text": None}, {"type": "text", "text": "wd61q"}],
}
_CONTENTS = _VALUES | {
    "text part": {"type": "text", "text": "wd70q"},
    "list of texts": ["wd71q", "wd72q"],
    "part without type": [{"text": "wd73q"}],
    "part without text": [{"type": "text"}, {"type": "text", "text": "wd74q"}],
    "part with null": [{"type": "text", "text": None}, {"type": "text", "text": "wd75q"}],
    "part with number": [{"type": "text", "text": 5}, {"type": "text", "text": "wd76q"}],
    "null part": [None, {"type": "text", "text": "wd77q"}],
    "input_text": [{"type": "input_text", "text": "wd78q"}],
    "output_text": [{"type": "output_text", "text": "wd79q", "annotations": []}],
    "text": [{"type": "text", "text": "wd80q"}],
    "unknown type with text": [{"type": "markdown", "text": "wd81q"}],
    "unknown type": [{"type": "mystery", "data": {"of": "wd69q"}}],
    "unknown type with content": [{"type": "text", "text": "wd82q"}, {"type": 5, "content": "wd83q"}],
    "Gemini parts": [{"text": "wd84q"}, {"text": "wd85q"}],
    "nested list": [["wd86q"]],
    "image_url": [{"type": "image_url", "image_url": {"url": URL}}, {"type": "text", "text": "wd87q"}],
    "input_image": [{"type": "input_image", "image_url": URL}, {"type": "text", "text": "wd88q"}],
    "Messages image": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "text", "text": "wd89q"},
    ],
    "image without data": [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "wd90q"}],
}
_GEMINI = _CONTENTS | {"object": {"text": "wd68q"}}  # other objects are parts that only the provider knows
_ROLES = ("human", "ai", "model", "bot", "developer", "system", "tool", "function", "User", "narrator", "")
_CALL_PARTS = {
    "tool_use": {"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"path": "wd91q"}},
    "AI SDK call": {"type": "tool-call", "toolCallId": "c9", "toolName": "Read", "input": {"path": "wd92q"}},
    "LangChain call": {"type": "tool_call", "id": "c9", "name": "Read", "args": {"path": "wd93q"}},
    "function_call": {"type": "function_call", "call_id": "c9", "name": "Read", "arguments": '{"path": "wd94q"}'},
    "functionCall": {"functionCall": {"name": "Read", "args": {"path": "wd95q"}}},
    "toolUse": {"toolUse": {"toolUseId": "c9", "name": "Read", "input": {"path": "wd96q"}}},
}
_RESULT_PARTS = {
    "tool_result": {"type": "tool_result", "tool_use_id": "{id}", "content": "wd97q"},
    "AI SDK result": {"type": "tool-result", "toolCallId": "{id}", "toolName": "Read", "output": "wd98q"},
    "function_call_output": {"type": "function_call_output", "call_id": "{id}", "output": "wd99q"},
    "functionResponse": {"functionResponse": {"name": "Read", "response": {"output": "wd100q"}}},
    "toolResult": {"toolResult": {"toolUseId": "{id}", "content": [{"text": "wd101q"}]}},
}
_THOUGHTS = {
    "thinking without signature": {"type": "thinking", "thinking": "th1"},
    "thinking with null signature": {"type": "thinking", "thinking": "th1", "signature": None},
    "thinking without text": {"type": "thinking", "signature": "s"},
    "null thinking": {"type": "thinking", "thinking": None, "signature": ""},
    "redacted without data": {"type": "redacted_thinking"},
    "redacted with null": {"type": "redacted_thinking", "data": None},
    "reasoning part": {"type": "reasoning", "text": "th1"},
}
_LONG = "call_" + "x" * 90
_ODD_NAMES = {
    "dots": "functions.Read",
    "spaces": "Read a file!",
    "long": "Read" * 40,
    "letters": "lire_é_文",
    "path": "a/b:c",
}
_CALLED_TWICE = {"id": "c9", "type": "function", "function": {"name": "Read", "arguments": '{"path": "wd31q"}'}}
_LEFTOVERS = {"id": "chatcmpl-1", "object": "x", "model": "m", "stop_reason": "end_turn", "usage": {"input_tokens": 1}}


def _each(client: str, title: str, path: str, values: dict[str, Any]) -> Iterator[Way]:
    for name, value in values.items():
        yield Way(client, f"{title}: {name}", ((path, value),))


def _without(image: str) -> dict[str, Any]:
    """Contents without an image in the form of the dialect: within one dialect media are the back end's matter."""
    return {name: value for name, value in _CONTENTS.items() if name != image}


def _in_chat() -> Iterator[Way]:
    one = "messages.2.tool_calls.0"
    yield from _each("chat", "arguments", f"{one}.function.arguments", _ARGUMENTS)
    yield from _each("chat", "result", "messages.3.content", _OUTPUTS)
    yield from _each("chat", "user content", "messages.1.content", _CONTENTS)
    texts = _without("image_url")
    yield from _each("chat", "assistant content", "messages.2.content", texts)
    yield from _each("chat", "last answer", "messages.5.content", texts)
    yield from _each("chat", "system content", "messages.0.content", texts)
    yield from _each("chat", "call type", f"{one}.type", {**_MARKLESS, "tool_use": "tool_use", "unknown": "x"})
    yield from _each("chat", "call id", f"{one}.id", {**_MARKLESS, "long": _LONG})
    yield from _each("chat", "call function", f"{one}.function", {**_VALUES, "name alone": "Read"})
    yield from _each("chat", "call name", f"{one}.function.name", _MARKLESS | _ODD_NAMES)
    yield from _each("chat", "calls in another list", "messages.2.tool_calls", {
        "JSON text": json.dumps([_CALLED_TWICE]),
        "object by index": {"0": _CALLED_TWICE},
        "one call": _CALLED_TWICE,
        "with null": [None, _CALLED_TWICE],
        "twice": [_CALLED_TWICE, _CALLED_TWICE],
    })  # fmt: skip
    yield from _each("chat", "call of the user", "messages.1.tool_calls", {"one": [_CALLED_TWICE]})
    yield from _each("chat", "call of a result", "messages.3.tool_calls", {"null": None, "one": [_CALLED_TWICE]})
    yield from _each("chat", "reasoning", "messages.5.reasoning_content", _MARKLESS)
    yield from _each("chat", "call", one, _VALUES)
    yield from _each("chat", "calls", "messages.2.tool_calls", _VALUES)
    yield from _each(
        "chat", "calls of the last answer", "messages.5.tool_calls", {"null": None, "empty": [], "object": {}}
    )
    yield from _each("chat", "result id", "messages.3.tool_call_id", {**_MARKLESS, "long": _LONG})
    yield from _each("chat", "role", "messages.1.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS)
    yield from _each("chat", "role of an answer", "messages.5.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS)
    yield from _each("chat", "call in content", "messages.5.content", {k: [v] for k, v in _CALL_PARTS.items()})
    yield from _each("chat", "thought", "messages.5.content", {k: [v, {"type": "text", "text": "wd8q"}] for k, v in _THOUGHTS.items()})  # fmt: skip
    yield from _each("chat", "message", "messages.+3", {"null": None, "text": "wd30q", "empty": {}, "list": []})
    yield from _each("chat", "choice", "tool_choice", {"auto": "auto", "none": "none", "required": "required"})
    for name, value in _RESULT_PARTS.items():
        part = json.loads(json.dumps(value).replace("{id}", "call_0"))
        yield Way("chat", f"result in content: {name}", (("messages.3", {"role": "user", "content": [part]}),))
        yield Way("chat", f"result in a tool message: {name}", (("messages.3", {"role": "tool", "content": [part]}),))
    for name in ("auto", "none", "required", {"type": "function", "function": {"name": "Read"}}):
        yield Way("chat", f"choice without tools: {name}", (("tools", GONE), ("tool_choice", name)))
        yield Way("chat", f"choice with empty tools: {name}", (("tools", []), ("tool_choice", name)))
    yield Way("chat", "parallel calls without tools", (("tools", GONE), ("parallel_tool_calls", True)))
    yield Way("chat", "no ids at all", tuple((f"messages.{p}", GONE) for p in ("2.tool_calls.0.id", "2.tool_calls.1.id", "3.tool_call_id", "4.tool_call_id")))  # fmt: skip
    yield Way("chat", "results without ids", tuple((f"messages.{n}.tool_call_id", GONE) for n in (3, 4)))
    yield Way("chat", "calls without ids", tuple((f"messages.2.tool_calls.{n}.id", GONE) for n in (0, 1)))
    yield Way("chat", "flat calls", tuple((f"messages.2.tool_calls.{n}", {"id": f"call_{n}", "type": "function", "name": _NAMES[n], "arguments": ARGS[n]}) for n in (0, 1)))  # fmt: skip
    yield Way(
        "chat", "members of an answer", (("messages.5", {"role": "assistant", "content": "So wd8q", **_LEFTOVERS}),)
    )
    yield Way("chat", "null members", (("messages.5", {"role": "assistant", "content": "So wd8q", "name": None, "tool_calls": None, "function_call": None, "refusal": None, "audio": None}),))  # fmt: skip
    yield Way("chat", "one message", (("messages", {"role": "user", "content": "wd2q"}),))
    yield Way("chat", "text as messages", (("messages", "wd2q"),))
    yield Way("chat", "refusal", (("messages.5", {"role": "assistant", "content": None, "refusal": "No wd8q"}),))
    image = [{"type": "text", "text": "wd6q"}, {"type": "image_url", "image_url": {"url": URL}}]
    yield Way("chat", "image in a result", (("messages.3.content", image),))
    yield Way("chat", "images in both results", (("messages.3.content", image), ("messages.4.content", image)))
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "Read", "arguments": '{"path": "wd4q"}'}}
    told = {"role": "function", "name": "Read", "content": "wd6q"}
    yield Way("chat", "legacy call", (("messages.2", legacy), ("messages.3", told), ("messages.4", GONE)))
    again = [legacy, told, {**legacy, "function_call": {"name": "Read", "arguments": '{"path": "wd5q"}'}}, {**told, "content": "wd7q"}]  # fmt: skip
    for name, items in {
        "legacy calls of one function": again,
        "legacy call, tool call": [legacy, told, *VALID["chat"]["messages"][2:5]],
        "legacy call without a result": [legacy],
        "legacy call with an object": [{**legacy, "function_call": {"name": "Read", "arguments": ARGS[0]}}, told],
        "legacy result alone": [told],
        "legacy results of tool calls": [
            VALID["chat"]["messages"][2],
            told,
            {**told, "name": "Bash", "content": "wd7q"},
        ],
    }.items():
        user = {"role": "user", "content": "wd2q"}
        yield Way("chat", name, (("messages", [user, *items, {"role": "user", "content": "wd9q"}]),))


def _in_responses() -> Iterator[Way]:
    yield from _each("responses", "arguments", "input.3.arguments", _ARGUMENTS)
    yield from _each("responses", "result", "input.5.output", _OUTPUTS)
    yield from _each("responses", "user content", "input.1.content", _CONTENTS)
    yield from _each("responses", "assistant content", "input.2.content", _without("input_image"))
    yield from _each("responses", "developer content", "input.0.content", _CONTENTS)
    ids = {
        "toolu": "toolu_01abc",
        "call": "call_0",
        "long": "fc_" + "x" * 90,
        "item": "item_1",
        "dots": "fc.1",
        **_MARKLESS,
    }
    yield from _each("responses", "item id of a call", "input.3.id", ids)
    yield from _each("responses", "item id of a message", "input.2.id", {**ids, "chat": "chatcmpl-123"})
    yield from _each(
        "responses", "item id of a result", "input.5.id", {"toolu": "toolu_1", "long": "x" * 90, **_MARKLESS}
    )
    yield from _each("responses", "call id", "input.3.call_id", {**_MARKLESS, "long": _LONG})
    yield from _each("responses", "result id", "input.5.call_id", {**_MARKLESS, "long": _LONG})
    yield from _each("responses", "call name", "input.3.name", _MARKLESS | _ODD_NAMES)
    yield from _each("responses", "status", "input.3.status", _MARKLESS | {"unknown": "done"})
    yield from _each("responses", "type of a message", "input.1.type", {"absent": GONE, "null": None, "user": "user"})
    yield from _each("responses", "type of a call", "input.3.type", {"tool_use": "tool_use", "tool_call": "tool_call"})
    yield from _each("responses", "role", "input.1.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS)
    yield from _each("responses", "item", "input.+3", {"null": None, "text": "wd30q", "empty": {}, "list": []})
    yield from _each("responses", "thought", "input.+2", {
        "foreign id": {"type": "reasoning", "id": "item_1", "summary": [], "encrypted_content": "x"},
        "no id": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "th1"}]},
        "null summary": {"type": "reasoning", "id": "rs_1", "summary": None},
        **_THOUGHTS,
    })  # fmt: skip
    chat = VALID["chat"]["messages"]
    yield Way("responses", "chat messages", (("input", chat),))
    yield Way("responses", "Messages messages", (("input", VALID["messages"]["messages"]),))
    yield Way("responses", "Gemini contents", (("input", VALID["gemini"]["contents"]),))
    yield Way("responses", "one item", (("input", {"role": "user", "content": "wd2q"}),))
    yield Way("responses", "instructions alone", (("input", []), ("instructions", "wd1q")))
    yield Way("responses", "instructions without input", (("input", GONE), ("instructions", "wd1q")))
    yield Way("responses", "instructions as object", (("instructions", {"type": "text", "text": "wd1q"}),))
    yield Way("responses", "members of an answer", (("input.7", {**VALID["responses"]["input"][7], **_LEFTOVERS, "id": "msg_1"}),))  # fmt: skip
    for name, value in _CALL_PARTS.items():
        yield Way("responses", f"call as an item: {name}", (("input.3", value),))
        yield Way("responses", f"call in content: {name}", (("input.2.content", [value]),))
    for name, value in _RESULT_PARTS.items():
        part = json.loads(json.dumps(value).replace("{id}", "call_0"))
        yield Way("responses", f"result as an item: {name}", (("input.5", part),))
        yield Way("responses", f"result in content: {name}", (("input.5", {"role": "user", "content": [part]}),))
    for choice in ("auto", "none", "required"):
        yield Way("responses", f"choice without tools: {choice}", (("tools", GONE), ("tool_choice", choice)))
    yield Way("responses", "results before calls", (("input.3", VALID["responses"]["input"][5]), ("input.5", VALID["responses"]["input"][3])))  # fmt: skip


def _in_messages() -> Iterator[Way]:
    yield from _each("messages", "input", "messages.1.content.1.input", _ARGUMENTS)
    yield from _each("messages", "result", "messages.2.content.0.content", _OUTPUTS)
    yield from _each("messages", "user content", "messages.0.content", _CONTENTS)
    yield from _each("messages", "assistant content", "messages.3.content", _CONTENTS)
    yield from _each("messages", "system", "system", _without("Messages image"))
    yield from _each("messages", "call id", "messages.1.content.1.id", {**_MARKLESS, "long": _LONG, "dots": "call.0"})
    yield from _each("messages", "result id", "messages.2.content.0.tool_use_id", {**_MARKLESS, "long": _LONG})
    yield from _each("messages", "call name", "messages.1.content.1.name", _MARKLESS | _ODD_NAMES)
    yield from _each("messages", "member of a call", "messages.1.content.1.partial_json", {"text": "", "null": None})
    yield from _each("messages", "citations", "messages.3.content.0.citations", {"null": None, "empty": []})
    yield from _each(
        "messages", "is_error", "messages.2.content.0.is_error", {"null": None, "text": "true", "number": 1}
    )
    yield from _each("messages", "role", "messages.0.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS)
    yield from _each(
        "messages", "role of an answer", "messages.3.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS
    )
    yield from _each("messages", "thought", "messages.1.content.+0", _THOUGHTS)
    yield from _each("messages", "message", "messages.+3", {"null": None, "text": "wd30q", "empty": {}, "list": []})
    yield Way("messages", "chat messages", (("messages", VALID["chat"]["messages"]),))
    yield Way("messages", "Responses items", (("messages", VALID["responses"]["input"]),))
    yield Way("messages", "Gemini contents", (("messages", VALID["gemini"]["contents"]),))
    yield Way("messages", "system alone", (("messages", []),))
    yield Way("messages", "members of an answer", (("messages.3", {**VALID["messages"]["messages"][3], **_LEFTOVERS}),))
    for name, value in _CALL_PARTS.items():
        yield Way("messages", f"call: {name}", (("messages.1.content.+3", value),))
        yield Way("messages", f"call of the user: {name}", (("messages.0.content", [value]),))
    for name, value in _RESULT_PARTS.items():
        part = json.loads(json.dumps(value).replace("{id}", "toolu_0"))
        yield Way("messages", f"result: {name}", (("messages.2.content.0", part),))
    for choice in ({"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "tool", "name": "Read"}):
        yield Way("messages", f"choice without tools: {choice['type']}", (("tools", GONE), ("tool_choice", choice)))


def _in_gemini() -> Iterator[Way]:
    yield from _each("gemini", "args", "contents.1.parts.1.functionCall.args", _ARGUMENTS)
    yield from _each("gemini", "response", "contents.2.parts.0.functionResponse.response", _OUTPUTS)
    yield from _each("gemini", "parts", "contents.0.parts", _GEMINI)
    yield from _each("gemini", "parts of an answer", "contents.3.parts", _GEMINI)
    yield from _each("gemini", "system", "systemInstruction", _CONTENTS)
    yield from _each("gemini", "text", "contents.0.parts.0.text", _VALUES)
    yield from _each("gemini", "call name", "contents.1.parts.1.functionCall.name", _MARKLESS | _ODD_NAMES)
    yield from _each(
        "gemini", "call id", "contents.1.parts.1.functionCall.id", {**_MARKLESS, "absent": None, "long": _LONG}
    )
    yield from _each("gemini", "response name", "contents.2.parts.0.functionResponse.name", _MARKLESS)
    yield from _each("gemini", "role", "contents.0.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS)
    yield from _each(
        "gemini", "role of an answer", "contents.3.role", dict(zip(_ROLES, _ROLES, strict=True)) | _MARKLESS
    )
    yield from _each("gemini", "content", "contents.+3", {"null": None, "text": "wd30q", "empty": {}, "list": []})
    yield Way("gemini", "chat messages", (("contents", VALID["chat"]["messages"]),))
    yield Way("gemini", "Messages messages", (("contents", VALID["messages"]["messages"]),))
    yield Way("gemini", "Responses items", (("contents", VALID["responses"]["input"]),))
    yield Way("gemini", "system alone", (("contents", []),))
    for name, value in _CALL_PARTS.items():
        yield Way("gemini", f"call: {name}", (("contents.1.parts.+3", value),))
    for name, value in _RESULT_PARTS.items():
        yield Way("gemini", f"result: {name}", (("contents.2.parts.0", value),))
    for mode in ("AUTO", "ANY", "NONE"):
        config = {"functionCallingConfig": {"mode": mode}}
        yield Way("gemini", f"choice without tools: {mode}", (("tools", GONE), ("toolConfig", config)))


WAYS = tuple(way for make in (_in_chat, _in_responses, _in_messages, _in_gemini) for way in make())
