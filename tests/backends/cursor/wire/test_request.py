"""Requests out: the first message of a run to the byte, what it is asked, what it is offered, and what is lost."""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.cursor.wire.conversation import ANYTHING, IMAGE, PIXEL, call, message, result
from tests.thorough import examples
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.names import WireNames
from toolwire.backends.cursor.wire.request import (
    RunOpening,
    RunSetup,
    context_of,
    definition,
    demands_of,
    has_large_integers,
    instructions_of,
    losses_of,
    offered,
    opening,
)
from toolwire.backends.cursor.wire.values import from_value
from toolwire.errors import BadRequest
from toolwire.types import Loss, Media, Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolCall, ToolChoice
from toolwire.wire.exact_json import decode

SETUP = RunSetup(conversation_id="c0", run_id="r0", message_id="m0")
BASH, READ = Tool(name="bash", description="runs", schema={"type": "object"}), Tool(name="read")


def request_with(*messages: Message, **members: Any) -> Request:
    return Request(model="auto", messages=messages or (message("user", "hi"),), **members)


def run_of(made: RunOpening) -> agent.AgentRunRequest:
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
    assert opening(request_with(tools=(BASH,)), PLAIN).message == field(1, b"".join(run))


def test_the_context_goes_with_the_first_message_unless_it_is_to_be_asked_for() -> None:
    results = (message("user", "go"), message("assistant", call("a")), message("tool", result("a", "A")))
    for setup, messages in ((SETUP, ()), (SETUP, results), (replace(SETUP, results="resume"), results)):
        made = opening(request_with(*messages, tools=(BASH,)), setup)
        action = run_of(made).action
        assert getattr(action, action.WhichOneof("action") or "").request_context == made.context
        without = run_of(opening(request_with(*messages, tools=(BASH,)), replace(setup, has_context=False))).action
        assert not getattr(without, without.WhichOneof("action") or "").HasField("request_context")


def test_an_empty_conversation_state_is_there() -> None:
    made = opening(request_with(), SETUP)
    assert made.message[:2] == b"\x0a" + varint(len(made.message) - 2)
    assert made.message[2:4] == b"\x0a\x00"
    assert made.blobs == {}


def test_history_is_given_by_ids_and_the_last_words_are_asked() -> None:
    made = opening(
        request_with(message("user", "one"), message("assistant", "two"), message("user", "three", IMAGE)), SETUP
    )
    run = run_of(made)
    roots = list(run.conversation_state.root_prompt_messages_json)
    assert [decode(made.blobs[root])["role"] for root in roots] == ["user", "assistant"]
    assert all(sha256(made.blobs[root]).digest() == root for root in roots)
    user_input = run.action.user_message_action.user_message
    (image,) = user_input.selected_context.selected_images
    assert (user_input.text, user_input.message_id, image.mime_type, image.path) == (
        "three",
        "m0",
        "image/png",
        "image-1.png",
    )
    assert image.data.startswith(b"\x89PNG")


def test_a_conversation_that_ends_with_results_is_resumed() -> None:
    messages = (message("user", "go"), message("assistant", call("a")), message("tool", result("a", "A", IMAGE)))
    made = opening(request_with(*messages, message("user", " ")), replace(SETUP, results="resume"))
    run = run_of(made)
    assert run.action.WhichOneof("action") == "resume_action"
    other = opening(request_with(*messages, message("user", " ")), SETUP)
    assert run_of(other).action.user_message_action.user_message.text == "Go on with the results of the tools above."
    assert run_of(other).conversation_state == run.conversation_state
    roles = [decode(made.blobs[root])["role"] for root in run.conversation_state.root_prompt_messages_json]
    assert roles == ["user", "assistant", "tool", "user"]


def test_a_conversation_that_ends_with_the_assistant_goes_on_with_a_loss() -> None:
    made = opening(request_with(message("user", "count"), message("assistant", "1, 2,")), SETUP)
    assert run_of(made).action.user_message_action.user_message.text == "Go on from where your last message stops."
    assert [loss.feature for loss in made.losses] == ["prefill"]


def test_an_image_alone_has_words_beside_it() -> None:
    made = opening(request_with(message("user", IMAGE)), SETUP)
    assert run_of(made).action.user_message_action.user_message.text == "See what is attached."


@pytest.mark.parametrize("messages", [(message("user", " "),), (message("user"), message("assistant", ""))])
def test_no_request_is_empty(messages: tuple[Message, ...]) -> None:
    with pytest.raises(BadRequest, match="expected a message of the user"):
        opening(request_with(*messages), SETUP)
    with pytest.raises(BadRequest):
        opening(Request(model="auto", messages=()), SETUP)


def test_instructions_are_rules_and_not_part_of_what_is_asked() -> None:
    made = opening(request_with(message("system", "be kind"), message("user", "hi")), PLAIN)
    assert [rule.content for rule in made.context.rules] == ["be kind"]
    assert b"be kind" not in made.message + b"".join(made.blobs.values())


def test_an_instruction_alone_is_asked_as_the_users() -> None:
    made = opening(request_with(message("system", "one"), message("system", "two")), SETUP)
    assert [rule.content for rule in made.context.rules] == ["one"]
    assert run_of(made).action.user_message_action.user_message.text == "two"
    assert [loss.feature for loss in made.losses] == ["role.system"]


def test_tools_are_sent_in_both_places() -> None:
    made = opening(request_with(tools=(BASH, READ)), SETUP)
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
    request = request_with(tools=(BASH, READ), tool_choice=choice)
    assert [tool.name for tool in offered(request)] == names
    assert [loss.feature for loss in losses_of(request)] == losses


def test_a_choice_does_not_change_the_words_of_the_history() -> None:
    messages = (message("user", "go"), message("assistant", call("a", "read")), message("tool", result("a", "A")))
    free = opening(request_with(*messages, tools=(BASH, READ)), SETUP)
    none = opening(request_with(*messages, tools=(BASH, READ), tool_choice=ToolChoice(mode="none")), SETUP)
    assert free.blobs == none.blobs
    assert none.tools == ()


def test_what_there_is_no_member_for_is_lost() -> None:
    request = request_with(
        tools=(replace(BASH, strict=True), Tool(name="id", schema={"const": 2**60})),
        max_tokens=10,
        parallel_calls=False,
        sampling=Sampling(temperature=Decimal("0.5"), top_p=1, seed=7, stop=("END",), choices=2, logprobs=True),
        output=OutputFormat(format="json", verbosity="low"),
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
    assert losses_of(request_with(parallel_calls=False, tools=(BASH,), sampling=Sampling(stop=("END",)))) == []


def test_the_model_and_its_parameters_are_asked_for() -> None:
    run = run_of(opening(replace(request_with(), model="gpt-5.1-codex-high[1m]"), SETUP))
    wanted = run.requested_model
    assert (wanted.model_id, wanted.max_mode, run.model_details.max_mode) == ("gpt-5.1-codex", True, True)
    assert {one.id: one.value for one in wanted.parameters} == {"reasoning": "high"}
    assert run.model_details.model_id == "gpt-5.1-codex"


def test_a_flat_history_is_one_text_without_blobs() -> None:
    messages = (message("user", "go", IMAGE), message("assistant", call("a")), message("tool", result("a", "A")))
    made = opening(request_with(message("system", "be kind"), *messages), replace(SETUP, history="flat"))
    run = run_of(made)
    user_input = run.action.user_message_action.user_message
    assert (made.blobs, len(run.conversation_state.root_prompt_messages_json)) == ({}, 0)
    assert len(user_input.text.splitlines()) == 5
    assert [image.data[:4] for image in user_input.selected_context.selected_images] == [b"\x89PNG"]
    assert [rule.content for rule in made.context.rules] == ["be kind"]


def test_what_no_frame_holds_is_refused() -> None:
    large = "x" * (16 * 1024 * 1024)
    for messages in ((message("user", large),), (message("assistant", large), message("user", "hi"))):
        with pytest.raises(BadRequest, match="bytes") as caught:
            opening(request_with(*messages), SETUP)
        assert caught.value.status == 413


def test_what_cannot_be_written_is_refused() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="deep"):
        opening(request_with(tools=(Tool(name="deep", schema=deep),)), SETUP)
    with pytest.raises(BadRequest, match="deep"):
        opening(request_with(message("assistant", ToolCall(id="a", name="b", raw="{}", args=deep))), SETUP)


@examples(60)
@given(ANYTHING, st.sampled_from(["native", "flat"]))
def test_whatever_comes_is_asked_the_same_way_twice_or_refused(messages: list[Message], history: Any) -> None:
    setup = replace(SETUP, history=history)
    try:
        made = opening(request_with(*messages, tools=(READ,)), setup)
    except BadRequest:
        return
    again = opening(request_with(*messages, tools=(READ,)), setup)
    assert (made.message, made.blobs, made.losses) == (again.message, again.blobs, again.losses)
    action = run_of(made).action
    user_input = action.user_message_action.user_message
    assert action.WhichOneof("action") == "resume_action" or user_input.text.strip()
    assert set(run_of(made).conversation_state.root_prompt_messages_json) == set(made.blobs)


def test_the_same_image_is_the_same_in_the_next_turn() -> None:
    first, second = (
        run_of(opening(request_with(message("user", text, Media(kind="image", data=PIXEL))), SETUP))
        for text in ("a", "b")
    )
    images = [
        run.action.user_message_action.user_message.selected_context.selected_images[0] for run in (first, second)
    ]
    assert images[0].uuid == images[1].uuid


CONTEXT_SETUP = RunSetup(conversation_id="c", run_id="r", message_id="m")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9007199254740993}}}


def demands(choice: ToolChoice | None = None, tools: tuple[Tool, ...] = (), **members: Any) -> list[str]:
    request_with = Request(model="m", messages=(), tools=tools, tool_choice=choice, **members)
    return demands_of(request_with, tools, WireNames.of(tools))


def test_a_context_says_all_that_is_known() -> None:
    setup = RunSetup(
        conversation_id="c",
        run_id="r",
        message_id="m",
        workspace="/w",
        os="linux 6",
        shell="bash",
        timezone="Europe/Rome",
    )
    tools = (Tool(name="bash"),)
    made = context_of(setup, tools, WireNames.of(tools), ["be kind"])
    context = agent.RequestContext.FromString(made.SerializeToString())
    assert list(context.env.workspace_paths) == ["/w"]
    assert (context.env.os_version, context.env.shell, context.env.time_zone) == ("linux 6", "bash", "Europe/Rome")
    (rule,) = context.rules
    assert (rule.content, rule.source, rule.type.WhichOneof("type")) == ("be kind", 2, "global")
    assert [tool.tool_name for tool in context.tools] == ["bash"]
    complete = [field.name for field, _ in context.ListFields() if field.name.endswith("_complete")]
    assert len(complete) == 9
    assert all(getattr(context, name) for name in complete)
    assert (context.web_search_enabled, context.web_fetch_enabled) == (False, False)


def test_a_context_of_nothing_has_no_rules_and_no_complete_environment() -> None:
    made = context_of(CONTEXT_SETUP, (), WireNames(), [])
    assert (len(made.rules), len(made.tools), len(made.env.workspace_paths)) == (0, 0, 0)
    assert not made.env_info_complete


def test_a_context_names_the_repositories_that_are_worked_on() -> None:
    made = context_of(replace(CONTEXT_SETUP, workspace="/w", branches={"/w": "main"}), (), WireNames(), [])
    assert [(repository.path, repository.branch_name) for repository in made.git_repos] == [("/w", "main")]


def test_a_tool_is_defined_with_its_schema_as_the_owner_wants_it() -> None:
    plain = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}
    tool = Tool(name="add", description="adds \ud800", schema=plain)
    text = definition(tool, WireNames.of([tool]), "json")
    assert (text.name, text.tool_name, text.provider_identifier) == ("add", "add", "tw")
    assert text.description == "adds \ufffd"
    assert (decode(text.input_schema_json), text.HasField("input_schema")) == (plain, False)
    value = definition(tool, WireNames.of([tool]))
    assert (from_value(value.input_schema), value.HasField("input_schema_json")) == (plain, False)
    both = definition(tool, WireNames.of([tool]), "both")
    assert (from_value(both.input_schema), decode(both.input_schema_json)) == (plain, plain)


def test_a_schema_that_a_value_cannot_hold_goes_as_text_too() -> None:
    made = definition(Tool(name="add", schema=SCHEMA), WireNames(["add"]))
    assert made.HasField("input_schema")
    assert decode(made.input_schema_json) == SCHEMA


@pytest.mark.parametrize("schema", [None, {}, {"properties": {}}])
def test_an_empty_schema_is_still_that_of_an_object(schema: Any) -> None:
    made = definition(Tool(name="now", schema=schema), WireNames(["now"]), "both")
    assert decode(made.input_schema_json) == {"type": "object", "properties": {}}
    assert made.input_schema.WhichOneof("kind") == "struct_value"
    assert from_value(made.input_schema) == {"type": "object", "properties": {}}


def test_a_tool_by_another_name_says_what_it_is_called_elsewhere() -> None:
    made = definition(Tool(name="Read", description="reads"), WireNames(["Read"]))
    assert made.tool_name == "client_Read"
    assert made.description == 'reads\nElsewhere this tool is called "Read".'


def test_instructions_become_rules_and_later_ones_follow() -> None:
    losses: list[Loss] = []
    messages = (
        message("system", "one"),
        message("developer", "two", IMAGE),
        message("user", "hi"),
        message("developer", "three"),
        message("system", " "),
    )
    rules, rest = instructions_of(messages, losses)
    assert rules[0].startswith("one\n\ntwo\n[image not shown")
    assert rules[1:] == ["three"]
    assert [(index, user_input.role) for index, user_input in rest] == [(2, "user")]
    assert [(loss.feature, loss.where) for loss in losses] == [
        ("media.image", "messages[1]"),
        ("role.system", "messages[3]"),
        ("role.system", "messages[4]"),
    ]


def test_a_call_is_demanded_by_the_names_that_the_model_reads() -> None:
    tools = (Tool(name="read"), Tool(name="bash"))
    (any_tool,) = demands(ToolChoice(mode="required"), tools)
    assert "at least one tool" in any_tool
    (one,) = demands(ToolChoice(mode="named", names=("read",)), tools[:1], parallel_calls=False)
    assert "exactly one" in one
    assert one.endswith("client_read.")
    (some,) = demands(ToolChoice(mode="allowed", names=("read", "bash"), is_required=True), tools)
    assert some.endswith("client_read, bash.")


@pytest.mark.parametrize(
    "choice", [None, ToolChoice(mode="auto"), ToolChoice(mode="allowed", names=("read",)), ToolChoice(mode="none")]
)
def test_nothing_is_demanded_where_the_model_may_choose(choice: ToolChoice | None) -> None:
    assert demands(choice, (Tool(name="read"),)) == []
    assert demands(ToolChoice(mode="required")) == []


def test_a_form_is_asked_for_in_words() -> None:
    (form,) = demands(output=OutputFormat(format="schema", schema={"type": "string"}))
    assert form == 'Your answer must be JSON, and nothing else, by this schema: {"type":"string"}'
    (form,) = demands(tools=(Tool(name="bash"),), output=OutputFormat(format="json"))
    assert form == "An answer that calls no tool must be one JSON object, and nothing else."


def test_H072_integers_that_would_lose_digits_are_noticed() -> None:
    assert has_large_integers(Tool(name="add", schema=SCHEMA))
    assert has_large_integers(Tool(name="add", schema={"enum": [1, [-(2**53) - 1]]}))
    assert not has_large_integers(Tool(name="add", schema={"maximum": 2**53, "default": True}))
    assert not has_large_integers(Tool(name="add"))
