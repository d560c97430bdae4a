"""Input items: each one message, whatever its kind."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.responses.items_in import is_reference, message_in
from toolwire.errors import BadRequest
from toolwire.types import Media, Message, Opaque, Reasoning, Refusal, Source, Text, ToolCall, ToolResult


def read(item: Any) -> Message:
    message = message_in(item, "input[0]")
    assert message.source == Source("responses", item)
    return message


def test_texts_of_the_assistant() -> None:
    content = [{"type": "output_text", "text": "b", "annotations": []}]
    assert read({"role": "assistant", "content": content, "id": "msg_1"}).parts == (Text(text="b", item_id="msg_1"),)


def test_contents_of_every_kind() -> None:
    content = [
        {"type": "input_text", "text": "a", "x": 1},
        {"type": "refusal", "refusal": "no"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"},
        {"type": "input_image", "image_url": {"url": "https://a"}},
        {"type": "input_image", "file_id": "f"},
        {"type": "input_file", "file_url": "https://b", "filename": "b"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "computer_screenshot"},
    ]
    assert read({"role": "user", "content": content, "id": "msg_1"}).parts == (
        Text(text="a", item_id="msg_1", extra={"responses": {"x": 1}}),
        Refusal(text="no", item_id="msg_1"),
        Media(kind="image", mime="image/png", data="aGk=", detail="high"),
        Media(kind="image", url="https://a"),
        Media(kind="image", file_id="f"),
        Media(kind="file", url="https://b", name="b"),
        Media(kind="file", mime="application/pdf", data="aGk="),
        Media(kind="audio", mime="audio/mp3", data="aGk="),
        Opaque(dialect="responses", value={"type": "computer_screenshot"}),
    )


def test_calls_keep_both_ids_and_their_namespace() -> None:
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": '{"a":1}',
        "namespace": "mcp",
        "x": 1,
    }
    assert read(item).parts == (
        ToolCall(
            id="c",
            name="f",
            raw='{"a":1}',
            args={"a": 1},
            item_id="fc_1",
            namespace="mcp",
            extra={"responses": {"x": 1}},
        ),
    )
    (custom,) = read({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "free"}).parts
    assert custom == ToolCall(id="c", name="f", raw="free", kind="custom")


@pytest.mark.parametrize(
    ("members", "is_error", "text"),
    [
        ({"output": "fine"}, False, "fine"),
        ({"output": "bad", "status": "incomplete"}, True, "bad"),
        ({"output": "Error: the tool call failed.\nbad"}, True, "bad"),
        ({"output": "Error: the tool call failed."}, True, ""),
        ({"output": "Error: the tool call failed.\n\nbad", "status": "incomplete"}, True, "\nbad"),
        ({"output": "Error: the tool call failed. No."}, False, "Error: the tool call failed. No."),
        (
            {
                "output": [
                    {"type": "input_text", "text": "Error: the tool call failed."},
                    {"type": "input_text", "text": "bad"},
                ]
            },
            True,
            "bad",
        ),
    ],
)
def test_H094_a_failed_result_is_known_by_either_sign(members: dict[str, Any], is_error: bool, text: str) -> None:
    (result,) = read({"type": "function_call_output", "call_id": "c", **members}).parts
    assert result == ToolResult(call_id="c", parts=(Text(text=text),), is_error=is_error)


def test_reasoning_keeps_what_is_encrypted() -> None:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "a"}],
        "encrypted_content": "ZW5j",
    }
    assert read(item).parts == (
        Reasoning(text="a", encrypted="ZW5j", item_id="rs", is_summary=True, extra={"responses": {}}),
    )


@pytest.mark.parametrize("odd", [5, "x", {}, [5], None])
def test_odd_reasoning_does_no_harm(odd: Any) -> None:
    assert (
        read({"type": "reasoning", "id": "rs", "summary": [odd], "content": odd, "encrypted_content": odd}).role
        == "assistant"
    )


@pytest.mark.parametrize("summary", [None, "x", {}])
def test_reasoning_without_a_list_as_summary_is_left_to_the_reader_of_foreign_histories(summary: Any) -> None:
    with pytest.raises(BadRequest, match="array of texts"):
        read({"type": "reasoning", "id": "rs", "summary": summary})


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("web_search_call", "assistant"),
        ("mcp_call_output", "tool"),
        ("compaction", "user"),
        ("item_reference", "user"),
    ],
)
def test_unknown_items_are_carried_in_their_place(kind: str, role: str) -> None:
    message = read({"type": kind, "id": "x"})
    assert (message.role, message.parts) == (role, (Opaque(dialect="responses", value={"type": kind, "id": "x"}),))


def test_references() -> None:
    assert is_reference({"type": "item_reference", "id": "x"})
    assert not is_reference({"type": "message"})
    assert not is_reference("item_reference")


def test_what_is_no_item_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        message_in(["x"], "input[7]")
    assert caught.value.where == "input[7]"
