"""Requests out: the first message of a run to the byte, what it is asked, what it is offered, and what is lost."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.cursor.wire.request.test_history import ANYTHING, IMAGE, PIXEL, call, message, result
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.request.request_out import Opening, Setup, losses_of, offered, opening
from toolwire.errors import BadRequest
from toolwire.types import Media, Message, Output, Request, Sampling, Thinking, Tool, ToolCall, ToolChoice
from toolwire.wire.exact_json import decode

SETUP = Setup(conversation_id="c0", run_id="r0", message_id="m0")
BASH, READ = Tool(name="bash", description="runs", schema={"type": "object"}), Tool(name="read")


def asked(*messages: Message, **members: Any) -> Request:
    return Request(model="auto", messages=messages or (message("user", "hi"),), **members)


def run_of(made: Opening) -> agent.AgentRunRequest:
    return agent.AgentClientMessage.FromString(made.message).run_request


def field(number: int, data: bytes) -> bytes:
    return bytes([*varint(number << 3 | 2), *varint(len(data))]) + data


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, *varint(value >> 7)])


PLAIN = replace(SETUP, has_context=False, schemas="json", results="resume")


def test_the_first_message_is_the_one_encoded_by_hand() -> None:
    tool = field(1, b"bash") + field(2, b"runs") + field(4, b"tw") + field(5, b"bash") + field(6, b'{"type":"object"}')
    spoken = field(1, b"hi") + field(2, b"m0") + b"\x20\x01"
    run = [
        b"\x0a\x00",
        field(2, field(1, field(1, spoken))),
        field(3, field(1, b"default")),
        field(4, field(1, tool)),
        field(5, b"c0"),
        field(9, field(1, b"default")),
        field(25, b"r0"),
    ]
    assert opening(asked(tools=(BASH,)), PLAIN).message == field(1, b"".join(run))


def test_the_context_goes_with_the_first_message_unless_it_is_to_be_asked_for() -> None:
    results = (message("user", "go"), message("assistant", call("a")), message("tool", result("a", "A")))
    for setup, messages in ((SETUP, ()), (SETUP, results), (replace(SETUP, results="resume"), results)):
        made = opening(asked(*messages, tools=(BASH,)), setup)
        action = run_of(made).action
        assert getattr(action, action.WhichOneof("action") or "").request_context == made.context
        without = run_of(opening(asked(*messages, tools=(BASH,)), replace(setup, has_context=False))).action
        assert not getattr(without, without.WhichOneof("action") or "").HasField("request_context")


def test_an_empty_conversation_state_is_there() -> None:
    made = opening(asked(), SETUP)
    assert made.message[:2] == b"\x0a" + varint(len(made.message) - 2)
    assert made.message[2:4] == b"\x0a\x00"
    assert made.blobs == {}


def test_history_is_given_by_ids_and_the_last_words_are_asked() -> None:
    made = opening(asked(message("user", "one"), message("assistant", "two"), message("user", "three", IMAGE)), SETUP)
    run = run_of(made)
    roots = list(run.conversation_state.root_prompt_messages_json)
    assert [decode(made.blobs[root])["role"] for root in roots] == ["user", "assistant"]
    assert all(sha256(made.blobs[root]).digest() == root for root in roots)
    said = run.action.user_message_action.user_message
    (image,) = said.selected_context.selected_images
    assert (said.text, said.message_id, image.mime_type, image.path) == ("three", "m0", "image/png", "image-1.png")
    assert image.data.startswith(b"\x89PNG")


def test_a_conversation_that_ends_with_results_is_resumed() -> None:
    messages = (message("user", "go"), message("assistant", call("a")), message("tool", result("a", "A", IMAGE)))
    made = opening(asked(*messages, message("user", " ")), replace(SETUP, results="resume"))
    run = run_of(made)
    assert run.action.WhichOneof("action") == "resume_action"
    other = opening(asked(*messages, message("user", " ")), SETUP)
    assert run_of(other).action.user_message_action.user_message.text == "Go on with the results of the tools above."
    assert run_of(other).conversation_state == run.conversation_state
    roles = [decode(made.blobs[root])["role"] for root in run.conversation_state.root_prompt_messages_json]
    assert roles == ["user", "assistant", "tool", "user"]


def test_a_conversation_that_ends_with_the_assistant_goes_on_with_a_loss() -> None:
    made = opening(asked(message("user", "count"), message("assistant", "1, 2,")), SETUP)
    assert run_of(made).action.user_message_action.user_message.text == "Go on from where your last message stops."
    assert [loss.feature for loss in made.losses] == ["prefill"]


def test_an_image_alone_has_words_beside_it() -> None:
    made = opening(asked(message("user", IMAGE)), SETUP)
    assert run_of(made).action.user_message_action.user_message.text == "See what is attached."


@pytest.mark.parametrize("messages", [(message("user", " "),), (message("user"), message("assistant", ""))])
def test_nobody_is_asked_nothing(messages: tuple[Message, ...]) -> None:
    with pytest.raises(BadRequest, match="expected a message of the user"):
        opening(asked(*messages), SETUP)
    with pytest.raises(BadRequest):
        opening(Request(model="auto", messages=()), SETUP)


def test_instructions_are_rules_and_not_part_of_what_is_asked() -> None:
    made = opening(asked(message("system", "be kind"), message("user", "hi")), PLAIN)
    assert [rule.content for rule in made.context.rules] == ["be kind"]
    assert b"be kind" not in made.message + b"".join(made.blobs.values())


def test_an_instruction_alone_is_asked_as_the_users() -> None:
    made = opening(asked(message("system", "one"), message("system", "two")), SETUP)
    assert [rule.content for rule in made.context.rules] == ["one"]
    assert run_of(made).action.user_message_action.user_message.text == "two"
    assert [loss.feature for loss in made.losses] == ["role.system"]


def test_tools_are_told_in_both_places() -> None:
    made = opening(asked(tools=(BASH, READ)), SETUP)
    assert [tool.tool_name for tool in run_of(made).mcp_tools.mcp_tools] == ["bash", "client_read"]
    assert list(run_of(made).mcp_tools.mcp_tools) == list(made.context.tools)
    assert made.tools == (BASH, READ)
    assert made.names.client("mcp_tw_client_read") == "read"


@pytest.mark.parametrize(
    ("choice", "names", "losses"),
    [
        (None, ["bash", "read"], []),
        (ToolChoice(mode="auto"), ["bash", "read"], []),
        (ToolChoice(mode="none"), [], []),
        (ToolChoice(mode="required"), ["bash", "read"], ["tool_choice"]),
        (ToolChoice(mode="named", names=("read",)), ["read"], ["tool_choice"]),
        (ToolChoice(mode="allowed", names=("read", "gone")), ["read"], []),
        (ToolChoice(mode="allowed", names=("read",), is_required=True), ["read"], ["tool_choice"]),
        (ToolChoice(mode="named", names=("gone",)), ["bash", "read"], ["tool_choice"]),
    ],
)
def test_a_choice_is_kept_by_what_is_offered(choice: ToolChoice | None, names: list[str], losses: list[str]) -> None:
    request = asked(tools=(BASH, READ), tool_choice=choice)
    assert [tool.name for tool in offered(request)] == names
    assert [loss.feature for loss in losses_of(request)] == losses


def test_a_choice_does_not_change_the_words_of_the_history() -> None:
    messages = (message("user", "go"), message("assistant", call("a", "read")), message("tool", result("a", "A")))
    free = opening(asked(*messages, tools=(BASH, READ)), SETUP)
    none = opening(asked(*messages, tools=(BASH, READ), tool_choice=ToolChoice(mode="none")), SETUP)
    assert free.blobs == none.blobs
    assert none.tools == ()


def test_what_there_is_no_member_for_is_lost() -> None:
    request = asked(
        tools=(replace(BASH, strict=True), Tool(name="id", schema={"const": 2**60})),
        max_tokens=10,
        parallel_calls=False,
        sampling=Sampling(temperature=Decimal("0.5"), top_p=1, seed=7, stop=("END",), choices=2, logprobs=True),
        output=Output(format="json", verbosity="low"),
        user="me",
        thinking=Thinking(budget=100),
        extra={"chat": {"logit_bias": {"1": 2}, "store": False}},
    )
    assert [loss.feature for loss in opening(request, SETUP).losses] == [
        "thinking.budget",
        "sampling.temperature",
        "sampling.top_p",
        "sampling.seed",
        "sampling.n",
        "sampling.logprobs",
        "max_tokens",
        "output.json",
        "output.verbosity",
        "user",
        "request.logit_bias",
        "tool.strict",
        "tool.integer",
    ]


def test_stop_sequences_and_single_calls_are_kept_elsewhere() -> None:
    assert losses_of(asked(parallel_calls=False, tools=(BASH,), sampling=Sampling(stop=("END",)))) == []


def test_the_model_and_its_parameters_are_asked_for() -> None:
    setup = replace(SETUP, max_mode=True, parameters={"reasoning": "low", "context": "300k"})
    run = run_of(opening(replace(asked(), model="gpt-5.1-codex-high"), setup))
    wanted = run.requested_model
    assert (wanted.model_id, wanted.max_mode, run.model_details.max_mode) == ("gpt-5.1-codex", True, True)
    assert {one.id: one.value for one in wanted.parameters} == {"reasoning": "low", "context": "300k"}
    assert run.model_details.model_id == "gpt-5.1-codex"


def test_a_flat_history_is_one_text_without_blobs() -> None:
    messages = (message("user", "go", IMAGE), message("assistant", call("a")), message("tool", result("a", "A")))
    made = opening(asked(message("system", "be kind"), *messages), replace(SETUP, history="flat"))
    run = run_of(made)
    said = run.action.user_message_action.user_message
    assert (made.blobs, len(run.conversation_state.root_prompt_messages_json)) == ({}, 0)
    assert len(said.text.splitlines()) == 5
    assert [image.data[:4] for image in said.selected_context.selected_images] == [b"\x89PNG"]
    assert [rule.content for rule in made.context.rules] == ["be kind"]


def test_what_no_frame_holds_is_refused() -> None:
    large = "x" * (16 * 1024 * 1024)
    for messages in ((message("user", large),), (message("assistant", large), message("user", "hi"))):
        with pytest.raises(BadRequest, match="bytes") as caught:
            opening(asked(*messages), SETUP)
        assert caught.value.status == 413


def test_what_cannot_be_written_is_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="deep"):
        opening(asked(tools=(Tool(name="deep", schema=deep),)), SETUP)
    with pytest.raises(BadRequest, match="deep"):
        opening(asked(message("assistant", ToolCall(id="a", name="b", raw="{}", args=deep))), SETUP)


@settings(max_examples=60)
@given(ANYTHING, st.sampled_from(["native", "flat"]))
def test_whatever_comes_is_asked_the_same_way_twice_or_refused(messages: list[Message], history: Any) -> None:
    setup = replace(SETUP, history=history)
    try:
        made = opening(asked(*messages, tools=(READ,)), setup)
    except BadRequest:
        return
    again = opening(asked(*messages, tools=(READ,)), setup)
    assert (made.message, made.blobs, made.losses) == (again.message, again.blobs, again.losses)
    action = run_of(made).action
    said = action.user_message_action.user_message
    assert action.WhichOneof("action") == "resume_action" or said.text.strip()
    assert set(run_of(made).conversation_state.root_prompt_messages_json) == set(made.blobs)


def test_the_same_image_is_the_same_in_the_next_turn() -> None:
    first, second = (
        run_of(opening(asked(message("user", text, Media(kind="image", data=PIXEL))), SETUP)) for text in ("a", "b")
    )
    images = [
        run.action.user_message_action.user_message.selected_context.selected_images[0] for run in (first, second)
    ]
    assert images[0].uuid == images[1].uuid
