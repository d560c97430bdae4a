"""The model's name in an answer's bytes: only there, whatever else looks like it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.shared.model_field import Renamer, model_places
from toolwire.wire.sse import Frame, parse_block

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["model", "up", '"model":"up"', '\\"model\\": "up', "{["]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "response", "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def frame_of(block: bytes) -> Frame:
    frame = parse_block(block)
    assert frame is not None
    return frame


def named(value: dict[str, Any], name: str, parent: str) -> dict[str, Any]:
    """What renaming means, said by values: the member of the answer's own object, if it is text."""
    holder = value.get(parent) if parent else value
    if isinstance(holder, dict) and isinstance(holder.get("model"), str):
        changed = {**holder, "model": name}
        return {**value, parent: changed} if parent else changed
    return value


@given(st.dictionaries(st.sampled_from(["model", "response", "a", "b"]), JSON, max_size=4), st.booleans())
def test_only_the_answers_own_member_changes(value: dict[str, Any], is_spaced: bool) -> None:
    for dialect, parent in (("chat", ""), ("responses", "response")):
        data = json.dumps(value, separators=None if is_spaced else (",", ":")).encode()
        renamer = Renamer(dialect, 'new "é"')
        for _ in range(2):
            frame = renamer.frame(Frame("", data, b"data: " + data))
            assert json.loads(frame.data) == named(value, 'new "é"', parent)
            assert frame.block == b"data: " + frame.data
    assert json.loads(Renamer("chat", "n").body(data)) == named(value, "n", "")


@given(st.text(max_size=30), st.text(max_size=30))
def test_text_is_never_taken_for_the_name(before: str, after: str) -> None:
    """Quotes in a string are escaped, so `"model":"up"` cannot stand in one."""
    text = f'{before}"model":"up", "model": "up"\\"model\\":\\"up\\"{after}'
    value = {"id": "1", "choices": [{"delta": {"content": text}}], "model": "up", "x": text}
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    frame = Renamer("chat", "mine").frame(Frame("", data, b"data: " + data))
    assert frame.data == data.replace(b',"model":"up",', b',"model":"mine",')
    assert frame.data.count(b"mine") == 1


@pytest.mark.parametrize("blank", [b"", b" ", b"\t  "])
def test_every_chunk_of_a_stream(blank: bytes) -> None:
    renamer = Renamer("chat", "mine")
    for text in ("a", '"model":"up"', "b"):
        start = b'data: {"id":"x","model":' + blank
        rest = b',"choices":[{"delta":{"content":' + json.dumps(text).encode() + b"}}]}"
        frame = renamer.frame(frame_of(start + b'"up"' + rest))
        assert frame.block == start + b'"mine"' + rest
        assert frame.data == frame.block[6:]
        assert renamer.begun(start + b'"up"' + rest + b"\n\n") == start + b'"mine"' + rest + b"\n\n"
        assert renamer.frame(frame_of(start + b'"mine"' + rest)).block == start + b'"mine"' + rest


@pytest.mark.parametrize("blank", [b"", b" "])
def test_chunks_that_end_alike(blank: bytes) -> None:
    """Servers that sort their members name the model behind the text."""
    renamer = Renamer("chat", "mine")
    for text in ("a", '"model":"up","object":"x"}', '"model": "up"', "b"):
        start = b'data: {"choices":[{"delta":{"content":' + json.dumps(text).encode() + b'}}],"model":' + blank
        rest = b',"object":"x"}'
        for _ in range(2):
            frame = renamer.frame(frame_of(start + b'"up"' + rest))
            assert frame.block == start + b'"mine"' + rest
            assert frame.data == frame.block[6:]
            assert renamer.begun(start + b'"up"' + rest + b"\n\n") == start + b'"mine"' + rest + b"\n\n"
            assert renamer.frame(frame_of(start + b'"mine"' + rest)).block == start + b'"mine"' + rest
    inner = b'{"choices":[],"model":"other","x":{"model":"up","object":"x"}}'
    assert json.loads(renamer.frame(frame_of(b"data: " + inner)).data) == {**json.loads(inner), "model": "mine"}


def test_a_chunk_that_begins_differently_is_parsed_again() -> None:
    renamer = Renamer("chat", "mine")
    for start, name in (("a", "up"), ("b", "up"), ("b", ""), ("b", "up-2")):
        data = json.dumps({"id": start, "model": name, "choices": []}).encode()
        assert json.loads(renamer.frame(Frame("", data, b"data: " + data)).data)["model"] == "mine"


def test_a_chunk_without_a_name_stays() -> None:
    for data in (
        b'{"choices":[]}',
        b'{"model":null,"x":"y"}',
        b'{"model":{"model":"up"}}',
        b"[DONE]",
        b'{"a":"model"}',
    ):
        frame = Frame("", data, b"data: " + data)
        assert Renamer("chat", "mine").frame(frame).data == data


def test_other_lines_of_a_frame_stay() -> None:
    block = b'id: 7\nevent: message_start\n: "a comment {\ndata: {"type":"message_start",\ndata:  "message":{"model":"up"}}\nretry: 1'
    frame = Renamer("messages", "mine").frame(frame_of(block))
    again = frame_of(frame.block)
    assert json.loads(again.data) == {"type": "message_start", "message": {"model": "mine"}}
    assert again.data == frame.data
    assert frame.block.startswith(b'id: 7\nevent: message_start\n: "a comment {\nretry: 1\ndata: ')


def test_data_over_several_lines_is_not_renamed_by_its_beginning_alone() -> None:
    renamer = Renamer("chat", "mine")
    renamer.frame(frame_of(b'data: {"model":"up","a":1}'))
    frame = renamer.frame(frame_of(b'data: {"model":"up",\ndata: "a":1}'))
    assert json.loads(frame.data) == json.loads(frame_of(frame.block).data) == {"model": "mine", "a": 1}


def test_tools_and_metadata_of_a_response_stay() -> None:
    response = {"metadata": {"model": "up"}, "tools": [{"type": "image_generation", "model": "up"}], "model": "up"}
    data = json.dumps({"type": "response.created", "item": {"model": "up"}, "response": response}).encode()
    frame = Renamer("responses", "mine").frame(
        Frame("response.created", data, b"event: response.created\ndata: " + data)
    )
    assert json.loads(frame.data)["response"] == response | {"model": "mine"}
    assert json.loads(frame.data)["item"] == {"model": "up"}
    assert frame.block == b"event: response.created\ndata: " + frame.data


def test_the_input_of_a_call_stays() -> None:
    body = {"content": [{"type": "tool_use", "input": {"model": "up"}}], "model": "up"}
    assert json.loads(Renamer("messages", "mine").body(json.dumps(body).encode())) == body | {"model": "mine"}


@pytest.mark.parametrize("piece", [b'"\\"', b'{"model"', b'"model":', b"[", b'"model":"\\', b'"'])
def test_work_is_linear_whatever_comes(piece: bytes) -> None:
    before = time.process_time()
    model_places(b'{"model"' + piece * 50_000)
    assert time.process_time() - before < 1
