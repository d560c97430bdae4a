"""A request with tools as one without: what is said where, what is wanted of the answer, and no trace of tools on any wire."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from toolwire.calls.ledger.repair import repair_history
from toolwire.calls.schemas import Schemas
from toolwire.calls.tools.kinds import to_functions
from toolwire.calls.written.request import CallDemand, _known, call_demand, reminder, to_text_request, tool_rules
from toolwire.dialects import DIALECTS
from toolwire.profiles import Profile
from toolwire.types import Media, Message, OutputFormat, Request, Sampling, Text, Tool, ToolCall, ToolChoice, ToolResult
from toolwire.wire.exact_json import decode

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (Tool(name="read", schema=SCHEMA), Tool(name="write", schema=SCHEMA), Tool(name="tool_call", schema=SCHEMA))
READ = {"name": "read", "arguments": {"path": "a"}}
FORBIDDEN = "[Note on this answer: No tool may be called now: answer in plain text.]"
RULES = tool_rules(TOOLS)
CALL = ToolCall(id="c1", name="read", raw='{"path":"a"}', args={"path": "a"})
TURN = (
    Message(role="assistant", parts=(CALL,)),
    Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text="hello"),)),)),
)


def say(role: Any, text: str, **members: Any) -> Message:
    return Message(role=role, parts=(Text(text=text),), **members)


def ask(*messages: Message, **members: Any) -> Request:
    return Request(model="m", messages=messages or (say("user", "hi"),), **{"tools": TOOLS, **members})


def last_text(request: Request) -> str:
    part = to_text_request(request).request.messages[-1].parts[-1]
    assert isinstance(part, Text)
    return part.text


def choose(mode: Any, *names: str, **members: Any) -> ToolChoice:
    return ToolChoice(mode=mode, names=names, **members)


def test_a_request_without_tools_stays_the_same_object() -> None:
    request = ask(tools=(), output=OutputFormat(format="json"), wire=b"{}", source={"model": "m"})
    assert to_text_request(request).request is request
    assert to_text_request(request).losses == ()


@pytest.mark.parametrize(
    "members", [{"tool_choice": choose("auto")}, {"parallel_calls": True}, {"source": {"tools": []}}]
)
def test_what_is_said_of_tools_that_are_not_there_goes_too(members: Any) -> None:
    request = to_text_request(ask(tools=(), **members)).request
    assert (request.tool_choice, request.parallel_calls, request.source, request.has_new_tools) == (
        None,
        None,
        {},
        True,
    )
    assert request.messages == ask().messages


def test_the_rules_stand_behind_the_first_instruction() -> None:
    head = say("developer", "Be brief.", is_head=True)
    first = to_text_request(ask(head, say("system", "More."), say("user", "hi"))).request.messages
    assert first[0] == say("developer", f"Be brief.\n\n{RULES}", is_head=True)
    assert first[1:] == (say("system", "More."), say("user", "hi"))


def test_without_an_instruction_the_rules_are_one() -> None:
    assert to_text_request(ask()).request.messages == (say("system", RULES, is_head=True), say("user", "hi"))


def test_an_instruction_that_comes_later_does_not_move_the_rules() -> None:
    before = to_text_request(ask()).request.messages
    after = to_text_request(ask(say("user", "hi"), say("system", "Be brief."), say("user", "so?"))).request.messages
    assert after[: len(before)] == before


def test_nothing_of_the_tools_is_left_beside_the_words() -> None:
    request = to_text_request(ask(say("user", "hi"), *TURN, wire=b"x", source={"tools": [1]}, origin="chat")).request
    assert (request.tools, request.tool_choice, request.parallel_calls) == ((), None, None)
    assert (request.has_new_tools, request.wire, request.source, request.origin) == (True, b"", {}, "chat")
    assert not [p for m in request.messages for p in m.parts if isinstance(p, ToolCall | ToolResult)]


def test_H121_none_forbids_calls_at_the_end() -> None:
    request = ask(say("user", "hi"), *TURN, tool_choice=choose("none"))
    texts = [part.text for m in to_text_request(request).request.messages for part in m.parts if isinstance(part, Text)]
    assert '"output":"hello"' in texts[-1]
    assert texts[-1].endswith(f"\n\n{FORBIDDEN}")
    assert call_demand(request) == CallDemand(names=frozenset())
    assert to_text_request(ask(tools=(), tool_choice=choose("none"))).request.messages == ask().messages


@pytest.mark.parametrize("turn", [(), TURN])
def test_where_none_may_be_called_all_but_the_note_at_the_end_is_the_same(turn: tuple[Message, ...]) -> None:
    auto, none = (
        to_text_request(
            ask(say("system", "Be brief."), say("user", "hi"), *turn, tool_choice=choose(mode))
        ).request.messages
        for mode in ("auto", "none")
    )
    assert none[:-1] == auto[:-1]
    [before], [after] = auto[-1].parts, none[-1].parts
    assert isinstance(before, Text)
    assert after == Text(text=f"{before.text}\n\n{FORBIDDEN}")


def test_a_history_with_calls_is_sent_as_such_also_without_tools() -> None:
    messages = to_text_request(ask(say("user", "hi"), *TURN, tools=())).request.messages
    assert messages[0] == say("user", "hi")
    assert str(messages[-1].parts[-1]).count(FORBIDDEN) == 1


def test_where_none_may_be_called_the_back_end_itself_keeps_to_a_form() -> None:
    output = OutputFormat(format="schema", schema={"type": "object"})
    found = to_text_request(ask(tool_choice=choose("none"), output=output))
    assert (found.request.output, found.losses) == (output, ())


@pytest.mark.parametrize(
    ("choice", "parallel", "wanted", "note"),
    [
        (None, None, CallDemand(), ""),
        (choose("auto"), True, CallDemand(), ""),
        (None, False, CallDemand(is_single=True), "Call at most one tool now."),
        (
            choose("required"),
            None,
            CallDemand(must_call=True),
            "You must call at least one tool now, as a <tool_call> block.",
        ),
        (
            choose("required"),
            False,
            CallDemand(must_call=True, is_single=True),
            "You must call exactly one tool now, as a <tool_call> block.",
        ),
        (
            choose("named", "read"),
            None,
            CallDemand(must_call=True, names=frozenset({"read"})),
            'You must call the tool "read" now, as a <tool_call> block, and no other tool.',
        ),
        (
            choose("named", "tool_call"),
            False,
            CallDemand(must_call=True, names=frozenset({"tool_call"}), is_single=True),
            'You must call the tool "tool_call" once now, as a <tool_call> block, and no other tool.',
        ),
        (
            choose("allowed", "write", "read", "gone"),
            False,
            CallDemand(names=frozenset({"read", "write"}), is_single=True),
            'Of the tools only these may be called now: "read", "write". Call at most one tool now.',
        ),
        (
            choose("allowed", "write", "read", is_required=True),
            None,
            CallDemand(must_call=True, names=frozenset({"read", "write"})),
            'You must call at least one of these tools now, as a <tool_call> block, and no other tool: "read", "write".',
        ),
    ],
)
def test_a_choice_is_said_at_the_very_end(choice: Any, parallel: Any, wanted: CallDemand, note: str) -> None:
    request = ask(tool_choice=choice, parallel_calls=parallel)
    assert call_demand(request) == wanted
    assert last_text(request) == (f"hi\n\n[Note on this answer: {note}]" if note else "hi")
    assert to_text_request(request).request.messages[0] == say("system", RULES, is_head=True)
    assert to_text_request(request).losses == ()


@pytest.mark.parametrize("choice", [choose("named", "gone"), choose("allowed"), choose("hosted", "web_search")])
def test_a_choice_of_nothing_that_is_offered_is_a_loss(choice: ToolChoice) -> None:
    assert call_demand(ask(tool_choice=choice)) == CallDemand()
    assert [loss.feature for loss in to_text_request(ask(tool_choice=choice)).losses] == ["tool_choice"]
    assert last_text(ask(tool_choice=choice)) == "hi"


def test_a_missing_tool_cannot_be_required() -> None:
    assert call_demand(ask(tools=(), tool_choice=choose("required"))) == CallDemand(names=frozenset())


def test_the_note_stands_behind_results_and_behind_an_assistants_last_words() -> None:
    forced = choose("required")
    assert last_text(ask(say("user", "hi"), *TURN, tool_choice=forced)).startswith("<tool_result>")
    begun = to_text_request(ask(say("user", "hi"), say("assistant", "So"), tool_choice=forced)).request.messages
    assert [message.role for message in begun] == ["system", "user", "assistant", "user"]
    assert begun[2] == say("assistant", "So")
    image = Message(role="user", parts=(Media(kind="image", data="aGk="),))
    assert last_text(ask(image, tool_choice=forced)).startswith("[Note on this answer: You must")


def test_a_reminder_says_what_was_wanted() -> None:
    words = reminder(call_demand(ask(tool_choice=choose("named", "read"))))
    assert words == (
        'You have answered without calling a tool. You must call the tool "read" now, as a <tool_call> block, '
        "and no other tool. Write the call and nothing else."
    )
    words = reminder(call_demand(ask(tool_choice=choose("named", "read"))), is_native=True)
    assert words == 'You have answered without calling a tool. You must call the tool "read" now, and no other tool.'


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (OutputFormat(format="json"), "one JSON object"),
        (OutputFormat(format="schema", schema={"type": "array"}), '{"type":"array"}'),
    ],
)
def test_a_form_that_calls_would_break_is_asked_for_in_words(output: OutputFormat, words: str) -> None:
    result = to_text_request(ask(output=replace(output, verbosity="low")))
    assert result.request.output == OutputFormat(verbosity="low")
    assert [loss.feature for loss in result.losses] == [f"output.{output.format}"]
    assert words in last_text(ask(output=output))
    assert to_text_request(ask(output=output, tool_choice=choose("none"))).request.output == output


CHOICES = st.sampled_from(
    [None, choose("auto"), choose("required"), choose("named", "read"), choose("allowed", "write")]
)


@pytest.mark.parametrize(
    ("members", "note", "right", "wrong"),
    [
        ({}, "To answer without a call", [{"text": "hi"}, {"calls": [READ, READ]}], [{"calls": []}]),
        ({"parallel_calls": False}, "a list of one object", [{"calls": [READ]}], [{"calls": [READ, READ]}]),
        (
            {"tool_choice": choose("required")},
            "You must call at least one tool now.",
            [{"calls": [READ]}],
            [{"text": ""}],
        ),
        (
            {"tool_choice": choose("named", "write")},
            'the tool "write" now, and no other tool.',
            [{"calls": [{**READ, "name": "write"}]}],
            [{"text": ""}, {"calls": [READ]}],
        ),
        (
            {"tool_choice": choose("allowed", "read")},
            'only these may be called now: "read".',
            [{"text": "hi"}, {"calls": [READ]}],
            [{"calls": [{**READ, "name": "write"}]}],
        ),
        (
            {"output": OutputFormat(format="schema", schema={"type": "object", "required": ["a"]})},
            'its only member is "json"',
            [{"json": {"a": 1}}, {"calls": [READ]}],
            [{"json": {}}, {"text": "hi"}],
        ),
        ({"output": OutputFormat(format="json")}, 'its only member is "json"', [{"json": {}}], [{"json": 1}]),
    ],
)
def test_a_server_that_constrains_its_output_gets_the_choice_as_a_schema(
    members: Any, note: str, right: list[Any], wrong: list[Any]
) -> None:
    request = ask(**members)
    made = to_text_request(request, may_constrain=True)
    assert made.is_constrained
    assert made.losses == ()
    sent = made.request
    assert sent.messages[:-1] == to_text_request(request).request.messages[:-1]
    assert note in str(sent.messages[-1])
    assert "<tool_call>" not in str(sent.messages[-1])
    assert sent.output.schema is not None
    allows = jsonschema_rs.Draft202012Validator(sent.output.schema).is_valid
    assert [allows(value) for value in right] == [True] * len(right)
    assert [allows(value) for value in wrong] == [False] * len(wrong)


def test_where_no_tool_may_be_called_nothing_is_constrained() -> None:
    for request in (ask(tool_choice=choose("none")), ask(*TURN, tools=()), ask(tools=())):
        made = to_text_request(request, may_constrain=True)
        assert not made.is_constrained
        assert made.request == to_text_request(request).request


def test_stop_sequences_and_logprobs_of_text_do_not_apply_to_json() -> None:
    made = to_text_request(ask(sampling=Sampling(stop=("}",), logprobs=True, top_logprobs=2)), may_constrain=True)
    assert made.request.sampling == Sampling()
    assert [loss.feature for loss in made.losses] == ["logprobs"]


@given(CHOICES, st.sampled_from([None, True, False]), st.integers(1, 4))
def test_all_but_the_last_message_is_the_same_whatever_is_chosen(choice: Any, parallel: Any, turns: int) -> None:
    messages = (say("user", "hi"), *[m for _ in range(turns) for m in (*TURN, say("user", "on"))])
    chosen = to_text_request(ask(*messages, tool_choice=choice, parallel_calls=parallel)).request.messages
    plain = to_text_request(ask(*messages, *TURN)).request.messages
    assert chosen[:-1] == plain[: len(chosen) - 1]
    assert isinstance(chosen[-1].parts[-1], Text)
    assert isinstance(said := plain[len(chosen) - 1].parts[-1], Text)
    assert chosen[-1].parts[-1].text.startswith(said.text)


SAID = "an answer"
BODIES: dict[str, Any] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "read", "content": SAID},
        ],
        "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA, "strict": True}}],
        "functions": [{"name": "old", "parameters": SCHEMA}],
        "tool_choice": {"type": "function", "function": {"name": "read"}},
        "function_call": "auto",
        "parallel_tool_calls": False,
        "temperature": 1,
    },
    "responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}],
            },
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a"}'},
            {"type": "function_call_output", "call_id": "c1", "output": SAID},
        ],
        "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": None}],
        "tool_choice": {"type": "function", "name": "read"},
        "parallel_tool_calls": False,
        "temperature": 1,
    },
    "messages": {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": SAID}]},
        ],
        "tools": [{"name": "read", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "read", "disable_parallel_tool_use": True},
        "temperature": 1,
    },
    "gemini": {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"path": "a"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": SAID}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read", "parameters": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        "generationConfig": {"temperature": 1},
    },
}
TRACES = ("tool", "function")  # every member and every type that speaks of tools has one of these words


def names_in(value: Any) -> set[str]:
    """Names of members, and values of the members that say what something is."""
    match value:
        case dict():
            named = {str(item) for key, item in value.items() if key in ("type", "role")}
            return {*value, *named}.union(*map(names_in, value.values()))
        case list():
            return set().union(*map(names_in, value))
        case _:
            return set()


@pytest.mark.parametrize("back", sorted(BODIES))
@pytest.mark.parametrize("front", sorted(BODIES))
def test_no_wire_shows_a_trace_of_tools(front: str, back: str) -> None:
    decoded = DIALECTS[front].decode_request(json.dumps(BODIES[front]).encode(), {})
    request = to_text_request(to_functions(repair_history(decoded).request).request).request
    body = json.loads(DIALECTS[back].encode_request(request, Profile()).body)
    names = names_in(body)
    assert "temperature" in names
    assert not [name for name in names for trace in TRACES if trace in name.lower()]
    text = json.dumps(body)
    assert text.count("# Tools") == 1
    for said in ("Be brief.", "hi", json.dumps(json.dumps(SAID))[1:-1], "You must call the tool"):
        assert said in text, said
    assert json.dumps('{"name":"read","arguments":{"path":"a"}}')[1:-1] in text.replace(": ", ":")


def test_a_chat_message_of_words_is_a_plain_string() -> None:
    """Templates of text-only servers take nothing else."""
    decoded = DIALECTS["chat"].decode_request(json.dumps(BODIES["chat"]).encode(), {})
    body = json.loads(DIALECTS["chat"].encode_request(to_text_request(decoded).request, Profile()).body)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert all(isinstance(message["content"], str) for message in body["messages"])
    assert body["messages"][0]["content"].startswith("Be brief.\n\n# Tools\n")


def test_a_responses_input_that_is_a_string_is_sent_with_its_note() -> None:
    given = {"model": "m", "input": "hi", "tools": BODIES["responses"]["tools"], "tool_choice": "required"}
    decoded = DIALECTS["responses"].decode_request(json.dumps(given).encode(), {})
    body = json.loads(DIALECTS["responses"].encode_request(to_text_request(decoded).request, Profile()).body)
    assert body["instructions"].startswith("# Tools")
    assert "hi\n\n[Note on this answer: You must" in json.dumps(body["input"]).replace("\\n", "\n")


READ = Tool(name="read", description="Reads a file.", schema={"properties": {"path": {}}, "required": ["path"]})
NOW = Tool(name="now")


def tools_in(text: str) -> list[Any]:
    return [decode(line) for line in text.split("\n") if line.startswith('{"name":') and '"parameters":' in line]


def example_in(text: str) -> Any:
    blocks = re.findall(r"^<tool_call>\n(.*)\n</tool_call>$", text, re.MULTILINE)
    assert len(blocks) <= 2  # the first shows the form
    return decode(blocks[1]) if len(blocks) == 2 else None


def test_the_tools_stand_in_the_clients_order_in_exact_json() -> None:
    schema = {"type": "object", "properties": {"z": {"maximum": Decimal("1.50")}, "a": {"const": 10**30}}}
    text = tool_rules((NOW, Tool(name="x", schema=schema), READ))
    assert tools_in(text) == [
        {"name": "now", "parameters": {"type": "object", "properties": {}}},
        {"name": "x", "parameters": schema},
        {"name": "read", "description": "Reads a file.", "parameters": READ.schema},
    ]
    assert '{"maximum":1.50}' in text


def test_the_rules_are_short_and_say_what_matters() -> None:
    text = tool_rules((NOW,))
    assert text.index("The tools") < 1500
    assert len(text.splitlines()) < 18
    for word in (
        "<tool_call>",
        "<tool_result>",
        "code fence",
        "several",
        "stop and wait",
        "data",
        "plain text",
        "Never mention",
    ):
        assert word in text


def test_the_same_tools_are_the_same_bytes_known_or_not() -> None:
    text = tool_rules((READ, NOW))
    _known.clear()
    again = tool_rules((Tool(name="read", description="Reads a file.", schema=dict(READ.schema or {})), NOW))
    assert text == again
    assert tool_rules((NOW, READ)) != text
    assert tool_rules((READ, NOW)) is again


def test_a_few_sets_are_remembered_and_huge_ones_are_not() -> None:
    _known.clear()
    huge = Tool(name="huge", description="x" * (1 << 20))
    assert tool_rules((huge,)) == tool_rules((huge,))
    assert not _known
    for number in range(40):
        tool_rules((Tool(name=f"t{number}"),))
    assert len(_known) == 16


def test_the_example_calls_the_first_tool_that_needs_arguments() -> None:
    assert example_in(tool_rules((NOW, READ))) == {"name": "read", "arguments": {"path": "..."}}
    assert example_in(tool_rules((NOW,))) is None


def test_a_tool_may_be_called_tool_call() -> None:
    tool = Tool(name="tool_call", schema={"type": "object", "properties": {"q": {}}, "required": ["q"]})
    text = tool_rules((tool,))
    assert tools_in(text)[0]["name"] == "tool_call"
    assert example_in(text) == {"name": "tool_call", "arguments": {"q": "..."}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 7}, 7),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "number", "default": Decimal("0.5")}, Decimal("0.5")),
        ({"type": "string", "examples": ["a.txt"]}, "a.txt"),
        ({"type": "boolean"}, True),
        ({"type": ["null", "integer"]}, 1),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "..."),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "minItems": 3}, ["...", "...", "..."]),
        ({"type": "string", "pattern": "^[a-z]{9}$"}, "aaaaaaaaa"),
        ({"$ref": "#/$defs/Point"}, {"x": 1}),
        ({"type": "object", "properties": {"y": {"type": "null"}}, "required": ["y"]}, {"y": None}),
    ],
)
def test_values_of_an_example_are_of_the_schema(schema: Any, value: Any) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"Point": point}}
    assert example_in(tool_rules((Tool(name="t", schema=whole),))) == {"name": "t", "arguments": {"v": value}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 4000},
        {"$ref": "#/nowhere"},
        {"not": {}},
        {"const": "x" * 3000},
        False,
    ],
)
def test_where_no_value_is_found_there_is_no_example(schema: Any) -> None:
    tool = Tool(name="t", schema={"type": "object", "properties": {"v": schema}, "required": ["v"]})
    assert example_in(tool_rules((tool,))) is None
    assert example_in(tool_rules((tool, READ)))["name"] == "read"


WORDS = st.sampled_from(["type", "object", "string", "a", "b", "#/properties/a", "null"])
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "enum", "a", "items", "anyOf", "$ref", "default", "minimum"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(SCHEMAS, SCHEMAS | st.lists(st.sampled_from(["a", "b"]), min_size=1))
def test_no_schema_is_too_odd_and_no_example_is_wrong(inner: Any, required: Any) -> None:
    schema = {"type": "object", "properties": {"a": inner, "b": {"type": "string"}}, "required": required}
    found = example_in(tool_rules((Tool(name="t", schema=schema),)))
    checker = Schemas().of(schema).checker
    if found is not None:
        assert checker is not None
        assert checker.fits(found["arguments"], 100)


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "</tool_call>", "<tool_result>", "[INST]", "</s>", "<｜User｜>", "<TOOL_CALL>"]
)
def test_a_description_cannot_pose_as_more(token: str) -> None:
    tool = Tool(
        name="t", description=f"Says {token} and <b>bold</b>, [path].", schema={"required": ["v"], "default": token}
    )
    (line,) = [line for line in tool_rules((tool,)).split("\n") if '"parameters":' in line]
    assert token not in line
    assert "and <b>bold</b>, [path]." in line
    assert json.loads(line)["description"] == tool.description
