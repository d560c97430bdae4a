"""Requests in every dialect: the own dialect is preserved completely, calls, results and order also across dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.sourceless import without_sources
from tests.dialects.answers import JSON, WORDS
from tests.dialects.codec_harness import ALL, NAMES
from tests.thorough import examples
from toolwire.calls.tools.adapter import adapt_ids
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.profiles import ANTHROPIC, GEMINI_API, PLAIN_CHAT, RESPONSES
from toolwire.types import Media, Request, Text, ToolCall, ToolResult
from toolwire.wire.exact_json import object_of

PROFILES = {"chat": PLAIN_CHAT, "responses": RESPONSES, "messages": ANTHROPIC, "gemini": GEMINI_API}
CLIENTS = sorted((Path(__file__).parent.parent / "wire" / "clients").glob("*.json"))
quick = examples(80)
each_dialect = pytest.mark.parametrize("dialect", ALL)
each_pair = pytest.mark.parametrize(("left", "right"), [(left, right) for left in ALL for right in ALL])

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "x-hint": 1}}, "required": ["city"]}
RAW = '{"city": "Zürich", "id": 1234567890123456789012345}'
ARGS = {"city": "Zürich", "id": 1234567890123456789012345}
PNG = "iVBORw0KGgo="

RICH: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be terse.", "x_message": 1},
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": "Looking.",
                "reasoning_content": "hm",
                "x_message": 2,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": RAW}, "x_call": 3},
                    {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny", "x_message": 4},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: the tool call failed.\nno clock"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "x_tool": 5}},
            {"type": "function", "function": {"name": "now", "description": "The time."}},
        ],
        "tool_choice": "auto",
        "temperature": 0.7,
        "x_top": {"deep": [1, None]},
        "user": None,
    },
    "responses": {
        "model": "m",
        "instructions": "Be terse.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi", "x_part": 1}], "x_message": 1},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Looking.", "annotations": []}], "phase": "commentary"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": RAW, "x_call": 3},
            {"type": "function_call", "call_id": "call_2", "name": "now", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny", "x_result": 4},
            {"type": "function_call_output", "call_id": "call_2", "output": "no clock", "status": "incomplete"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [
            {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True, "x_tool": 5},
            {"type": "function", "name": "now", "parameters": None},
        ],
        "store": False,
        "x_top": {"deep": [1, None]},
        "include": ["reasoning.encrypted_content"],
    },
    "messages": {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}], "x_message": 1},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "b3BhcXVl"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGS, "x_call": 3},
                    {"type": "tool_use", "id": "call_2", "name": "now", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "x_result": 4,
                     "content": [{"type": "text", "text": "sunny", "cache_control": {"type": "ephemeral"}}]},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": "no clock", "is_error": True},
                    {"type": "image", "cache_control": {"type": "ephemeral"},
                     "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
        "tools": [
            {"name": "weather", "input_schema": SCHEMA, "x_tool": 5},
            {"name": "now", "description": "The time.", "input_schema": {"type": "object"}},
        ],
        "x_top": {"deep": [1, None]},
    },
    "gemini": {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be terse."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi", "x_part": 1}], "x_content": 1},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
                    {"text": "Looking."},
                    {"functionCall": {"id": "call_1", "name": "weather", "args": ARGS, "x_call": 3}, "x_part": 2},
                    {"functionCall": {"id": "call_2", "name": "now", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "sunny"}, "x_result": 4}},
                    {"functionResponse": {"id": "call_2", "name": "now", "response": {"error": "no clock"}}},
                    {"text": "Go on."},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "parametersJsonSchema": SCHEMA, "x_tool": 5},
                    {"name": "now", "description": "The time."},
                ]
            }
        ],
        "generationConfig": {"temperature": 0.7, "x_config": 6},
        "x_top": {"deep": [1, None]},
    },
}  # fmt: skip


def read(dialect: str, body: Any, headers: dict[str, str] | None = None) -> Request:
    return DIALECTS[dialect].decode_request(json.dumps(body).encode(), headers or {})


def written(dialect: str, request: Request) -> Any:
    """The body, with the model where it would stand in the path."""
    body = json.loads(DIALECTS[dialect].encode_request(request, PROFILES[dialect]).body)
    return {"model": request.model, **body} if dialect == "gemini" else body


def exchange(request: Request) -> list[Any]:
    """Calls, results and words, in order."""
    found: list[Any] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                found.append(("call", part.id, part.name, object_of(part.raw)))
            elif isinstance(part, ToolResult):
                words = "\n".join(one.text for one in part.parts if isinstance(one, Text))
                found.append(("result", part.call_id, words, part.is_error))
            elif isinstance(part, Text) and message.role in ("user", "assistant"):
                found.append((message.role, part.text))
    return found


EXCHANGE = [
    ("user", "Hi"),
    ("assistant", "Looking."),
    ("call", "call_1", "weather", ARGS),
    ("call", "call_2", "now", {}),
    ("result", "call_1", "sunny", False),
    ("result", "call_2", "no clock", True),
    ("user", "Go on."),
]


@each_dialect
def test_H078_a_dialect_encodes_what_it_decoded(dialect: str) -> None:
    request = read(dialect, RICH[dialect])
    assert exchange(request) == EXCHANGE
    assert written(dialect, request) == RICH[dialect]
    assert DIALECTS[dialect].encode_request(request, PROFILES[dialect]).losses == ()


@each_dialect
def test_unknown_members_stay_when_sources_are_dropped(dialect: str) -> None:
    body = written(dialect, without_sources(read(dialect, RICH[dialect])))
    assert body["x_top"] == {"deep": [1, None]}
    left, kept = json.dumps(body), set(members_of(RICH[dialect]))
    missing = {key for key in kept if key.startswith(("x_", "cache_")) and f'"{key}"' not in left}
    assert missing == set()
    counts = {key: json.dumps(RICH[dialect]).count(f'"{key}"') for key in kept if key.startswith(("x_", "cache_"))}
    assert {key: left.count(f'"{key}"') for key in counts} == counts
    assert exchange(read(dialect, body)) == EXCHANGE


def members_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for item in value.values() for name in members_of(item))]
    return [name for item in value for name in members_of(item)] if isinstance(value, list) else []


@each_pair
def test_H093_calls_results_and_order_survive(left: str, right: str) -> None:
    request = read(left, RICH[left])
    body = written(right, request)
    again = read(right, body)
    assert exchange(again) == EXCHANGE
    schema = next(tool.schema for tool in again.tools if tool.name == "weather")
    assert schema == SCHEMA
    assert [tool.name for tool in again.tools] == ["weather", "now"]
    system = [part for message in again.messages if message.role == "system" for part in message.parts]
    assert [part.text for part in system if isinstance(part, Text)] == ["Be terse."]
    assert again.sampling.temperature == request.sampling.temperature


@each_pair
def test_translating_twice_keeps_the_exchange_unchanged(left: str, right: str) -> None:
    request = read(left, RICH[left])
    assert exchange(read(left, written(left, read(right, written(right, request))))) == EXCHANGE


@each_pair
@pytest.mark.parametrize("call_id", ["functions.Bash:0", "x" * 83, "ü", "portkey-" + "0" * 36, "a b", "\ud800"])
def test_H043_H045_an_illegal_id_stays_one_pair(left: str, right: str, call_id: str) -> None:
    wire = json.dumps(RICH[left]).replace('"call_1"', json.dumps(call_id))
    request = DIALECTS[left].decode_request(wire.encode(), {})
    body = written(right, msgspec.structs.replace(request, messages=adapt_ids(request.messages, PROFILES[right].ids)))
    again = read(right, body)
    found = exchange(again)
    fitted = found[2][1]
    assert [entry[1] for entry in found if entry[0] == "result"] == [fitted, "call_2"]
    assert len(fitted) <= {"chat": 40, "responses": 64, "messages": 64, "gemini": 99}[right]
    if right == "messages":
        assert fitted.encode("ascii", "replace").decode().replace("_", "").replace("-", "").isalnum()
        assert "?" not in fitted.encode("ascii", "replace").decode()


@each_pair
def test_H098_an_image_in_a_result_reaches_the_other_side(left: str, right: str) -> None:
    picture = {
        "chat": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
        "responses": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}],
        "messages": [{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
    }  # fmt: skip
    wire = json.dumps(RICH[left])
    inline = json.dumps([{"inlineData": {"mimeType": "image/png", "data": PNG}}])
    wire = wire.replace('"response": {"output": "sunny"}', f'"response": {{"output": "see"}}, "parts": {inline}')
    listed = [{"type": "text", "text": "sunny", "cache_control": {"type": "ephemeral"}}]
    for said in (json.dumps(listed), '"sunny"'):
        wire = wire.replace(said, json.dumps(picture.get(left)))
    request = DIALECTS[left].decode_request(wire.replace(PNG, "cGljdHVyZQ==", 1).encode(), {})
    again = read(right, written(right, request))
    parts = [part for message in again.messages for part in message.parts]
    results = [part for part in parts if isinstance(part, ToolResult)]
    media = [part for part in (*parts, *results[0].parts) if isinstance(part, Media)]
    assert "cGljdHVyZQ==" in [medium.data for medium in media]
    assert [result.call_id for result in results] == ["call_1", "call_2"]


@pytest.mark.parametrize(("left", "right"), [(left, right) for left in NAMES for right in NAMES])
def test_H091_no_parallel_calls_is_sent_in_every_dialect(left: str, right: str) -> None:
    flag: dict[str, Any] = {"parallel_tool_calls": False}
    if left == "messages":
        flag = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    again = read(right, written(right, read(left, {**RICH[left], **flag})))
    assert again.parallel_calls is False


@each_pair
@pytest.mark.parametrize("mode", ["auto", "none", "required", "named"])
def test_H087_a_tool_choice_is_sent_in_every_dialect(left: str, right: str, mode: str) -> None:
    plain = {"auto": "auto", "none": "none", "required": "required"}
    said: dict[str, Any] = {
        "chat": plain.get(mode, {"type": "function", "function": {"name": "now"}}),
        "responses": plain.get(mode, {"type": "function", "name": "now"}),
        "messages": {
            "type": {"required": "any", "named": "tool"}.get(mode, mode),
            **({"name": "now"} if mode == "named" else {}),
        },
    }
    config: dict[str, Any] = {"mode": {"required": "ANY", "named": "ANY"}.get(mode, mode.upper())}
    config |= {"allowedFunctionNames": ["now"]} if mode == "named" else {}
    choice = {"toolConfig": {"functionCallingConfig": config}} if left == "gemini" else {"tool_choice": said[left]}
    again = read(right, written(right, read(left, {**RICH[left], **choice})))
    assert again.tool_choice is not None
    assert again.tool_choice.mode == mode
    assert again.tool_choice.names == (("now",) if mode == "named" else ())


@pytest.mark.parametrize("path", CLIENTS, ids=lambda path: path.stem)
def test_the_requests_of_real_clients(path: Path) -> None:
    recording = json.loads(path.read_text(encoding="utf-8"))
    assert recording["client"]
    assert path.stat().st_size < 20_000
    dialect = next(name for name in NAMES if path.stem.split(".")[1].startswith(name))
    headers = {"anthropic-beta": "mid-conversation-system"} if "beta=true" in recording.get("path", "") else {}
    request = read(dialect, recording["body"], headers)
    asks_for_usage = {"stream_options": {"include_usage": True}} if dialect == "chat" and request.stream else {}
    assert written(dialect, request) == recording["body"] | asks_for_usage
    for other in ALL:
        again = read(other, written(other, request))
        kept = [entry for entry in exchange(request) if entry[0] == "result"]
        found = [entry for entry in exchange(again) if entry[0] == "result"]
        assert [entry[1] for entry in found] == [entry[1] for entry in kept]
        assert [entry[3] for entry in found] == [entry[3] for entry in kept]
        calls = [entry[1:3] for entry in exchange(request) if entry[0] == "call"]
        assert [entry[1:3] for entry in exchange(again) if entry[0] == "call"] == calls


@each_dialect
@given(
    value=st.dictionaries(
        st.sampled_from(["model", "messages", "input", "tools", "max_tokens", "system", "contents"]), JSON
    )
)
@quick
def test_any_object_is_decoded_or_rejected(dialect: str, value: Any) -> None:
    read_or_refused(dialect, {"model": "m", "max_tokens": 5, **value})


SPOTS = st.one_of(
    st.sampled_from([None, True, 0, -1, 1.5, 1e300, "", "x", [], {}, [None], {"type": "x"}, {"type": None}, [[]]]),
    st.sampled_from(
        ["tool_result", "tool_use", "image", "document", "function_call", "reasoning", "input_file", "custom"]
    ),
    JSON,
)


def mutated(data: st.DataObject, value: Any) -> Any:
    if isinstance(value, dict) and value and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(value)))
        match data.draw(st.sampled_from(["inside", "inside", "inside", "gone", "new"])):
            case "gone":
                return {name: item for name, item in value.items() if name != key}
            case "new":
                return {**value, data.draw(WORDS | st.sampled_from(sorted(set(members_of(RICH))))): data.draw(SPOTS)}
        return {**value, key: mutated(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 4)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutated(data, value[place]), *value[place + 1 :]]
    return data.draw(SPOTS)


@each_dialect
@given(data=st.data())
@examples(150)
def test_a_request_with_one_error_is_decoded_or_rejected(dialect: str, data: st.DataObject) -> None:
    value = RICH[dialect]
    for _ in range(data.draw(st.integers(1, 2))):
        value = mutated(data, value)
    read_or_refused(dialect, value)


def tried(dialect: str, value: Any) -> Request | BadRequest:
    """Nothing but these two may come of a body, whatever it holds."""
    try:
        return read(dialect, value)
    except BadRequest as error:
        return error


def refusal(dialect: str, request: Request) -> BadRequest | None:
    try:
        DIALECTS[dialect].encode_request(request, PROFILES[dialect])
    except BadRequest as error:
        return error
    return None


def read_or_refused(dialect: str, value: Any) -> None:
    """What is refused names its field; what is read can be written for every back end."""
    request = tried(dialect, value)
    if isinstance(request, BadRequest):
        assert request.where or request.code == "invalid_json"
        assert len(request.sentence()) < 600
        return
    for other in ALL:
        for form in (request, without_sources(request)):
            refused = refusal(other, form)
            if refused is not None:  # media are looked into only on their way to another dialect
                assert (refused.code, bool(refused.where)) == ("invalid_media", True)
                assert other != dialect
    assert written(dialect, request)["model"] == request.model


@each_dialect
@given(body=st.binary(max_size=60))
@quick
def test_any_other_bytes_are_rejected(dialect: str, body: bytes) -> None:
    with pytest.raises(BadRequest):
        DIALECTS[dialect].decode_request(body, {})
