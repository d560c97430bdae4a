"""The one schema that both sides of the bridge are tested against, and frames made at random."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.frames import encode
from toolwire.wire.exact_json import decode

SCHEMA = Path(__file__).parents[4] / "vscode" / "protocol.schema.json"

MODEL = bridge.ListedModel(
    key="copilot/gpt-5",
    id="gpt-5",
    vendor="copilot",
    family="gpt-5",
    version="1",
    name="GPT-5",
    max_input_tokens=128_000,
)

texts = st.text(max_size=8)
base64s = st.binary(max_size=9).map(lambda data: b64encode(data).decode())
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=2) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
text_parts = st.builds(bridge.TextPart, text=texts)
data_parts = st.builds(
    bridge.DataPart, mime=st.sampled_from(["usage", "image/png", "stateful_marker", "text/plain"]), data=base64s
)
thinking_parts = st.builds(
    bridge.ThinkingPart, text=texts, id=st.sampled_from(["", "a", "b"]), meta=st.just({}) | objects
)
call_parts = st.builds(bridge.CallPart, id=st.sampled_from(["", "1", "2"]), name=texts, input=objects | values)
result_parts = st.builds(
    bridge.ResultPart,
    id=st.sampled_from(["", "1", "2"]),
    parts=st.lists(text_parts | data_parts, max_size=3).map(tuple),
)
answer_parts = text_parts | data_parts | thinking_parts | call_parts
tools = st.builds(bridge.OfferedTool, name=texts, description=texts, schema=st.none() | objects)
ask_messages = st.builds(
    bridge.AskMessage,
    role=st.sampled_from(["user", "assistant", "system"]),
    parts=st.lists(answer_parts | result_parts, max_size=4).map(tuple),
    name=texts,
)
asks = st.builds(
    bridge.Ask,
    id=st.just("r1"),
    model=texts,
    messages=st.lists(ask_messages, max_size=4).map(tuple),
    tools=st.lists(tools, max_size=3).map(tuple),
    required=st.booleans(),
    options=objects,
)


@cache
def _validator(kind: str) -> Draft202012Validator:
    definitions = decode(SCHEMA.read_bytes())["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions})


def faults(kind: str, value: Any) -> list[str]:
    """What a definition of the schema says against a value."""
    return [error.message[:200] for error in _validator(kind).iter_errors(value)]


def from_window(frame: bridge.FromWindow) -> str:
    """The frame as it is sent, after the schema agreed."""
    text = encode(frame)
    assert faults("FromWindow", decode(text)) == []
    return text


def from_gateway(frame: bridge.FromGateway) -> str:
    text = encode(frame)
    assert faults("FromGateway", decode(text)) == []
    return text
