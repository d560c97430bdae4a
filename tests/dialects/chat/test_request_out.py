"""Chat requests out: another dialect's request in words that chat servers accept, with every loss on record."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.dialects.codec_harness import message_of
from toolwire.dialects.chat.request_out import encode_request
from toolwire.profiles import DEEPSEEK, OPENAI_CHAT, PLAIN_CHAT, Profile
from toolwire.types import (
    Citation,
    Loss,
    Media,
    Message,
    Opaque,
    OutputFormat,
    Part,
    Reasoning,
    Refusal,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

HI = Message(role="user", parts=(Text(text="hi"),))
CALL = ToolCall(id="c", name="f", raw='{"a": 1}')


def write(*messages: Message, profile: Profile = PLAIN_CHAT, **members: Any) -> tuple[dict[str, Any], list[Loss]]:
    encoded = encode_request(Request(model="m", messages=messages or (HI,), origin="messages", **members), profile)
    assert encoded.path == "/chat/completions"
    return json.loads(encoded.body), list(encoded.losses)


def messages_of(*messages: Message, profile: Profile = PLAIN_CHAT) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = write(*messages, profile=profile)[0]["messages"]
    return found


def test_a_turn_with_calls_and_results() -> None:
    found = messages_of(HI, message_of("assistant", Text(text="a"), CALL), message_of("assistant", Text(text="b")), message_of("user", ToolResult(call_id="c", parts=(Text(text="r"),)), Text(text="go")))  # fmt: skip
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert found == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a\n\nb", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "user", "content": "go"},
    ]


def test_H093_a_failed_result_begins_with_the_fixed_line() -> None:
    (_, result) = messages_of(
        HI, message_of("tool", ToolResult(call_id="c", parts=(Text(text="no file"),), is_error=True))
    )
    assert result["content"] == "Error: the tool call failed.\nno file"


def test_H098_H099_images_of_results_follow_in_a_user_message_and_results_are_strings() -> None:
    image = Media(kind="image", mime="image/png", data="aGk=")
    results = [message_of("tool", ToolResult(call_id=name, parts=(Text(text="see"), image))) for name in ("a", "b")]
    found = messages_of(HI, *results, message_of("user", Text(text="go")))
    assert [one["role"] for one in found] == ["user", "tool", "tool", "user"]
    assert found[1]["content"] == "see\n[image: attachment 1 of this result, in the next user message]"
    assert [part["type"] for part in found[3]["content"]] == ["text", "image_url", "text", "image_url", "text"]
    assert found[3]["content"][2]["text"] == "Attachment(s) of tool result b:"
    assert write(HI, *results)[1][0].feature == "result.media"


def test_H099_texts_of_a_result_stay_apart_only_where_parts_are_taken() -> None:
    result = message_of("tool", ToolResult(call_id="c", parts=(Text(text="a"), Text(text="b")), is_error=True))
    assert messages_of(HI, result)[1]["content"] == "Error: the tool call failed.\na\nb"
    first, second = messages_of(HI, result, profile=OPENAI_CHAT)[1]["content"]
    assert (first["text"], second["text"]) == ("Error: the tool call failed.\na", "b")


def test_H098_nothing_stands_between_the_results_of_one_turn() -> None:
    image = Media(kind="image", mime="image/png", data="aGk=")
    unknown = Opaque(dialect="responses", value={"type": "new_output", "text": "words"})
    results = [message_of("tool", ToolResult(call_id="a", parts=(image,))), message_of("tool", unknown)]
    found = messages_of(HI, *results, message_of("tool", ToolResult(call_id="b", parts=(Text(text="r"),))))
    assert [one["role"] for one in found] == ["user", "tool", "tool", "user"]
    assert [part["type"] for part in found[3]["content"]] == ["text", "image_url", "text"]
    later = messages_of(HI, results[0], message_of("system", Text(text="s")), message_of("assistant", Text(text="a")))
    assert [one["role"] for one in later] == ["user", "tool", "user", "assistant"]
    assert [part["type"] for part in later[2]["content"]] == ["text", "image_url", "text"]


def test_H141_the_developer_becomes_system_where_it_is_unknown() -> None:
    developer = message_of("developer", Text(text="d"))
    assert messages_of(developer, HI)[0]["role"] == "system"
    assert messages_of(developer, HI, profile=OPENAI_CHAT)[0]["role"] == "developer"


def test_H111_an_assistant_that_only_calls_has_empty_text_where_templates_read_it() -> None:
    turn = (HI, message_of("assistant", CALL), message_of("tool", ToolResult(call_id="c", parts=(Text(text="r"),))))
    assert messages_of(*turn)[1]["content"] == ""
    assert messages_of(*turn, profile=OPENAI_CHAT)[1]["content"] is None
    assert messages_of(HI, message_of("assistant", Text(text="a"), CALL))[1]["content"] == "a"
    (only,) = messages_of(HI, message_of("assistant", Reasoning(text="hm")))
    assert only["role"] == "user"


def test_H112_instructions_stand_first_and_once_where_templates_want_that() -> None:
    turn = (
        message_of("system", Text(text="a")),
        message_of("developer", Text(text="b")),
        HI,
        message_of("assistant", Text(text="x")),
    )
    later = message_of("system", Text(text="c"))
    body, losses = write(*turn, later, message_of("user", Text(text="go")))
    assert [one["role"] for one in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][0]["content"] == "a\n\nb"
    assert [part["text"] for part in body["messages"][3]["content"]] == ["<system>\nc\n</system>", "go"]
    assert [loss.feature for loss in losses] == ["role.system"]
    assert messages_of(*turn, later)[3] == {"role": "user", "content": "<system>\nc\n</system>"}
    anywhere = messages_of(*turn, later, profile=OPENAI_CHAT)
    assert [one["role"] for one in anywhere] == ["system", "developer", "user", "assistant", "system"]


def test_H096_H112_a_late_instruction_becomes_the_user_message() -> None:
    body, losses = write(message_of("system", Text(text="a")), message_of("developer", Text(text="b")))
    assert body["messages"] == [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert [loss.feature for loss in losses] == ["role.system"]


def test_H082_thoughts_go_back_only_where_the_back_end_wants_them() -> None:
    thought = message_of("assistant", Reasoning(text="hm", signature="s"), Text(text="a"))
    body, losses = write(thought)
    assert body["messages"] == [{"role": "assistant", "content": "a"}]
    assert losses[0].feature == "reasoning"
    assert messages_of(thought, profile=DEEPSEEK)[0]["reasoning_content"] == "hm"


def test_a_freeform_call_is_written_as_a_custom_call_of_chat() -> None:
    call = ToolCall(id="c", name="patch", raw='***"x"', kind="custom")
    body, _ = write(message_of("assistant", call))
    assert body["messages"][0]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": '***"x"'}}
    ]


def test_media_in_the_forms_that_chat_has() -> None:
    parts: list[Part] = [
        Media(kind="image", url="https://a", detail="low"),
        Media(kind="audio", mime="audio/mp3", data="aGk="),
        Media(kind="file", mime="application/pdf", data="aGk=", name="a.pdf"),
        Media(kind="file", file_id="f"),
        Media(kind="file", url="https://b/c.pdf"),
        Opaque(dialect="messages", value={"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "body"}]}),
        Opaque(dialect="chat", value={"type": "video_url"}),
        Refusal(text="no"),
    ]  # fmt: skip
    body, losses = write(message_of("user", *parts), profile=OPENAI_CHAT)
    kinds = [part["type"] for part in body["messages"][0]["content"]]
    assert kinds == ["image_url", "input_audio", "file", "text", "text", "text", "video_url", "refusal"]
    assert body["messages"][0]["content"][3]["text"] == "[file not shown: f]"
    assert body["messages"][0]["content"][4]["text"] == "[file not shown: https://b/c.pdf, application/pdf]"
    assert body["messages"][0]["content"][5]["text"] == "T\nS\nbody"
    assert [loss.feature for loss in losses] == ["media.file", "media.file", "part.search_result"]
    plain, losses = write(message_of("user", parts[2], Text(text="t")))
    assert plain["messages"][0]["content"][0]["text"] == "[file not shown: a.pdf, application/pdf, 2 bytes]"
    assert losses == [Loss("media.file", "messages[0]", "this back end takes no files")]


def test_H066_H068_a_tool_without_a_schema_gets_an_object() -> None:
    body, _ = write(tools=(Tool(name="f"), Tool(name="g", schema={"type": "object"}, strict=True)))
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert body["tools"][1]["function"]["strict"] is True


def test_no_tools_no_choice() -> None:
    body, _ = write(tool_choice=ToolChoice(mode="auto"), parallel_calls=True)
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(body)


def test_the_members_beside_the_messages() -> None:
    body, losses = write(
        tools=(Tool(name="f"),),
        tool_choice=ToolChoice(mode="allowed", names=("f",), is_required=True),
        max_tokens=9,
        sampling=Sampling(temperature=Decimal("0.70"), top_k=5, stop=("x",), choices=2, logprobs=True, top_logprobs=3),
        thinking=Thinking(effort="high"),
        output=OutputFormat(format="schema", schema={"type": "object"}, strict=True, description="d", verbosity="low"),
        user="u" * 65,
        stream=True,
        extra={"messages": {"container": "c", "service_tier": "auto"}},
    )
    assert body["tool_choice"]["allowed_tools"]["mode"] == "required"
    assert body["max_tokens"] == 9
    assert (body["n"], body["stop"], body["logprobs"], body["top_logprobs"]) == (2, ["x"], True, 3)
    assert body["reasoning_effort"] == "high"
    assert body["response_format"]["json_schema"] == {
        "name": "answer",
        "schema": {"type": "object"},
        "description": "d",
        "strict": True,
    }
    assert body["stream_options"] == {"include_usage": True}
    assert [loss.feature for loss in losses] == ["sampling.top_k", "user", "request.container"]
    assert "max_completion_tokens" in write(max_tokens=9, profile=OPENAI_CHAT)[0]


def test_a_budget_of_thoughts_is_a_loss() -> None:
    assert write(thinking=Thinking(mode="on", budget=9))[1][0].feature == "thinking.budget"
    assert write(tools=(Tool(name="f"),), tool_choice=ToolChoice(mode="hosted"))[1][0].feature == "tool_choice"


def test_an_assistant_holds_text_only() -> None:
    body, losses = write(
        message_of(
            "assistant",
            Media(kind="image", url="https://a"),
            Refusal(text="no"),
            Opaque(dialect="responses", value={"type": "web_search_call"}),
        )
    )
    assert body["messages"][0] == {"role": "assistant", "content": "[image not shown: https://a]", "refusal": "no"}
    assert [loss.feature for loss in losses] == ["media.image", "part.web_search_call"]


def test_an_empty_assistant_message_is_dropped() -> None:
    hosted = Opaque(dialect="responses", value={"type": "web_search_call", "id": "ws_1"})
    body, losses = write(HI, message_of("assistant", hosted), message_of("assistant", Reasoning(text="t")), HI)
    assert [one["role"] for one in body["messages"]] == ["user", "user"]
    assert [loss.feature for loss in losses] == ["part.web_search_call", "reasoning"]
    assert messages_of(HI, message_of("assistant", Text(text="")))[1] == {"role": "assistant", "content": ""}


def test_pieces_of_one_message_are_joined_in_order() -> None:
    image = Media(kind="image", mime="image/bmp", data="Qk0=")
    [_, message] = messages_of(
        HI, message_of("assistant", Text(text="a"), image, Text(text="b")), message_of("assistant", CALL)
    )
    assert message["content"] == "a\n[image not shown: image/bmp, 2 bytes]\n\nb"
    assert len(message["tool_calls"]) == 1


def test_texts_of_one_message_stay_apart_in_the_one_string() -> None:
    cited = Text(text="blue", citations=(Citation(url="https://a"),))
    parts = (Text(text="I look."), CALL, Text(text="It is "), cited, Text(text=", I think."), Text(text="Done."))
    [_, message] = messages_of(HI, message_of("assistant", *parts))
    assert message["content"] == "I look.\n\nIt is blue, I think.\n\nDone."


def test_messages_that_become_one_stay_apart_in_it() -> None:
    [_, message] = messages_of(
        HI, message_of("assistant", Text(text="a")), message_of("assistant", Text(text="b"), CALL)
    )
    assert message["content"] == "a\n\nb"


def test_a_schema_without_a_type_is_an_object() -> None:
    body, _ = write(tools=(Tool(name="f", schema={"properties": {}}),))
    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}
