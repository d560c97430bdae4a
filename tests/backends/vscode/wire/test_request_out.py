"""Requests out: one chat frame that VS Code and Copilot take, and a loss for whatever they have no member for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.vscode.wire.agreed import MODEL, from_gateway, objects
from tests.backends.vscode.wire.conversations import MESSAGES, assistant, call, prepare, result, user, words
from tests.backends.vscode.wire.pictures import PNG, image
from tests.thorough import examples
from toolwire.backends.vscode.wire.request_out import ChatRequest, chat_request
from toolwire.errors import BadRequest
from toolwire.types import Loss, Message, OutputFormat, Request, Role, Sampling, Text, Thinking, Tool, ToolChoice

HI = (user("Hi"),)
A, B = Tool(name="a", description="does a", schema={"type": "object"}), Tool(name="b")


def sent(messages: tuple[Message, ...] = HI, **members: Any) -> ChatRequest:
    """By the schema."""
    made = chat_request(prepare(Request(model="m", messages=messages, **members)), MODEL, id="r1")
    from_gateway(made.chat)
    return made


def features(made: ChatRequest) -> list[str]:
    return [loss.feature for loss in made.losses]


def instruction(text: str, role: Role = "system") -> Message:
    return Message(role=role, parts=(Text(text=text),))


def test_a_plain_request() -> None:
    made = sent(tools=(A, B))
    assert (made.chat.id, made.chat.model, made.chat.required) == ("r1", "copilot/gpt-5", False)
    assert [words(message) for message in made.chat.messages] == [["user", "Hi"]]
    assert [(tool.name, tool.description, tool.schema) for tool in made.chat.tools] == [
        ("a", "does a", {"type": "object"}),
        ("b", "", {"type": "object", "properties": {}}),
    ]
    assert made.losses == ()
    assert made.chat.justification


def test_H141_instructions_stand_in_the_first_message() -> None:
    made = sent((instruction("Be kind."), instruction("Be short.", "developer"), user("Hi"), assistant("Yes?")))
    assert [words(message) for message in made.chat.messages] == [
        ["user", "<system>\nBe kind.\n\nBe short.\n</system>", "Hi"],
        ["assistant", "Yes?"],
        ["user", "Go on from where your last message stops."],
    ]
    assert features(made) == ["role.system", "prefill"]


def test_H112_instructions_before_an_assistant_and_later_ones() -> None:
    made = sent((instruction("Be kind."), assistant(call("1")), instruction("Now."), user(result("1"), "Go")))
    assert [words(message) for message in made.chat.messages] == [
        ["user", "<system>\nBe kind.\n</system>", "(The conversation begins here.)"],
        ["assistant", "call 1 f {}"],
        ["user", "result 1 ok", "<system>\nNow.\n</system>", "Go"],
    ]
    assert features(made) == ["role.system", "role.system"]


def test_instructions_alone_are_the_users_words() -> None:
    made = sent((instruction("Say hi."),))
    assert [words(message) for message in made.chat.messages] == [["user", "Say hi."]]
    described = sent((Message(role="system", parts=(Text(text="See"), image("image/png", PNG))), user("Hi")))
    assert "[image not shown: image/png" in words(described.chat.messages[0])[1]


@pytest.mark.parametrize("messages", [(), (user(""),), (assistant(" "),)], ids=["none", "empty", "blank"])
def test_a_conversation_without_text_ends_with_the_user(messages: tuple[Message, ...]) -> None:
    made = sent(messages, tools=(A, B), tool_choice=ToolChoice(mode="required"))
    assert made.chat.messages[-1].role == "user"


@pytest.mark.parametrize(
    ("choice", "tools", "names", "is_required", "demand", "losses"),
    [
        (None, (A, B), ["a", "b"], False, "", []),
        (ToolChoice(mode="none"), (A, B), [], False, "", []),
        (ToolChoice(mode="required"), (A,), ["a"], True, "", []),
        (ToolChoice(mode="required"), (A, B), ["a", "b"], False, "at least one", ["tool_choice"]),
        (ToolChoice(mode="named", names=("b",)), (A, B), ["b"], True, "", []),
        (ToolChoice(mode="named", names=("c",)), (A, B), ["a", "b"], False, "", ["tool_choice"]),
        (ToolChoice(mode="allowed", names=("a",)), (A, B), ["a"], False, "", []),
        (ToolChoice(mode="allowed", names=("a",), is_required=True), (A, B), ["a"], True, "", []),
        (
            ToolChoice(mode="allowed", names=("a", "b"), is_required=True),
            (A, B),
            ["a", "b"],
            False,
            "at least",
            ["tool_choice"],
        ),
        (ToolChoice(mode="hosted"), (A,), ["a"], False, "", ["tool_choice"]),
        (ToolChoice(mode="required"), (), [], False, "", []),
    ],
)
def test_choices(
    choice: ToolChoice | None,
    tools: tuple[Tool, ...],
    names: list[str],
    is_required: bool,
    demand: str,
    losses: list[str],
) -> None:
    made = sent(tools=tools, tool_choice=choice)
    assert [tool.name for tool in made.chat.tools] == names
    assert made.chat.required is is_required
    said = words(made.chat.messages[-1])[2:]
    assert bool(said) == bool(demand)
    assert demand in "".join(said)
    assert features(made) == losses


def test_one_call_at_a_time_is_asked_for_in_words() -> None:
    made = sent(tools=(A, B), parallel_calls=False)
    assert words(made.chat.messages[0])[2] == "[Note on this answer: Call at most one tool now.]"
    assert features(made) == ["parallel_calls"]
    must = sent(tools=(A, B), parallel_calls=False, tool_choice=ToolChoice(mode="required"))
    assert "exactly one" in words(must.chat.messages[0])[2]
    assert (
        "once"
        in words(sent(tools=(A,), parallel_calls=False, tool_choice=ToolChoice(mode="required")).chat.messages[0])[2]
    )


def test_H147_no_more_tools_than_vs_code_takes() -> None:
    tools = tuple(Tool(name=f"t{number}") for number in range(131))
    made = sent(tools=tools)
    assert len(made.chat.tools) == 128
    assert [loss.where for loss in made.losses if loss.feature == "tool.number"] == ["t128", "t129", "t130"]


def test_H052_names_are_made_to_fit() -> None:
    made = sent((user("Hi"), assistant(call("1", "a.b")), user(result("1"))), tools=(Tool(name="a.b"),))
    (tool,) = made.chat.tools
    assert tool.name != "a.b"
    assert words(made.chat.messages[1])[1] == f"call 1 {tool.name} {{}}"


def test_options_are_those_that_copilot_takes() -> None:
    sampling = Sampling(
        temperature=Decimal("0.5"),
        frequency_penalty=1,
        presence_penalty=0,
        stop=("", "END", "FIN"),
        top_p=1,
        seed=3,
        top_k=4,
    )
    made = sent(sampling=sampling, max_tokens=50)
    assert made.chat.options == {
        "temperature": Decimal("0.5"),
        "frequency_penalty": 1,
        "presence_penalty": 0,
        "max_tokens": 50,
        "stop": "END",
    }
    assert features(made) == ["sampling.top_p", "sampling.top_k", "sampling.seed"]


def test_all_else_is_a_loss() -> None:
    made = sent(
        sampling=Sampling(choices=2, logprobs=True),
        thinking=Thinking(effort="high"),
        output=OutputFormat(format="schema", schema={"type": "object"}, verbosity="low"),
        user="me",
        extra={"chat": {"logit_bias": {"1": 1}, "store": False}},
    )
    assert features(made) == [
        "sampling.n",
        "sampling.logprobs",
        "thinking",
        "output.schema",
        "output.verbosity",
        "user",
        "request.logit_bias",
    ]
    assert words(made.chat.messages[0])[2].endswith(
        'must be JSON, and nothing else, by this schema: {"type":"object"}]'
    )
    plain = sent(output=OutputFormat(format="json"), tools=(A,))
    assert "An answer that calls no tool must be one JSON object" in words(plain.chat.messages[0])[2]


def test_H072_tools_that_speak_of_long_integers_are_a_loss() -> None:
    tool = Tool(name="a", schema={"type": "object", "properties": {"id": {"minimum": 2**60}}}, strict=True)
    made = sent(tools=(tool, B))
    assert [(loss.feature, loss.where) for loss in made.losses] == [("tool.strict", "a"), ("tool.integer", "a")]


def test_a_model_that_sees_no_images_gets_none() -> None:
    request = Request(model="m", messages=(user("look", image("image/png", PNG)),))
    blind = chat_request(request, replace(MODEL, can_see_images=False), id="r1")
    assert Loss("media.image", "messages[0]", "this model sees no images") in blind.losses
    seeing = chat_request(request, MODEL, id="r1")
    assert words(seeing.chat.messages[0])[2] == "data image/png"


def test_a_model_that_calls_no_tools_is_a_loss_where_there_are_some() -> None:
    request = Request(model="m", messages=HI, tools=(A,))
    (loss,) = chat_request(request, replace(MODEL, can_call_tools=False), id="r1").losses
    assert loss.feature == "tools"
    assert 'tools = "simulate"' in loss.why
    for quiet, told in ((Request(model="m", messages=HI), False), (request, True), (request, None)):
        assert chat_request(quiet, replace(MODEL, can_call_tools=told), id="r1").losses == ()


def test_what_cannot_be_written_is_the_clients_fault() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadRequest):
        sent(output=OutputFormat(format="schema", schema=deep))


CHOICES = st.none() | st.builds(
    ToolChoice,
    mode=st.sampled_from(["auto", "none", "required", "named", "allowed", "hosted"]),
    names=st.lists(st.sampled_from(["a", "b.c", "z"]), max_size=2).map(tuple),
    is_required=st.booleans(),
)
TOOLS = st.lists(
    st.builds(Tool, name=st.sampled_from(["a", "b.c", "d" * 70, ""]), schema=st.none() | objects), max_size=3
)
INSTRUCTIONS = st.builds(instruction, st.sampled_from(["", "Be kind."]), st.sampled_from(["system", "developer"]))


@examples(80)
@given(st.lists(MESSAGES | INSTRUCTIONS, max_size=6), TOOLS, CHOICES)
def test_any_request_is_a_frame(messages: list[Message], tools: list[Tool], choice: ToolChoice | None) -> None:
    request = prepare(Request(model="m", messages=tuple(messages), tools=tuple(tools), tool_choice=choice))
    made = chat_request(request, MODEL, id="r1")
    from_gateway(made.chat)
    assert made.chat.messages[-1].role == "user"
    assert not made.chat.required or len(made.chat.tools) == 1
    assert {tool.name for tool in made.chat.tools} <= {tool.name for tool in request.tools}
