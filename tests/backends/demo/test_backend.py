"""The demo model: it calls the tool whose words fit with arguments that are valid, and is honest about itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import answer_of, assistant, result, user
from tests.calls.schemas.schema_family import is_valid, objects, schemas
from tests.thorough import examples
from toolwire.backends.demo.backend import Demo
from toolwire.dialects import DIALECTS
from toolwire.types import (
    Media,
    Message,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
    "required": ["city"],
    "additionalProperties": False,
}
PAIR = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
WEATHER = Tool(name="get_weather", description="The weather in a city", schema=CITY)
ADD = Tool(name="add_numbers", description="Add two numbers", schema=PAIR)
TOOLS = (WEATHER, ADD)


def parts_for(*messages: Message, **more: Any) -> tuple[Part, ...]:
    request = Request(model="echo-tools", messages=messages, **more)
    return asyncio.run(answer_of(Demo(), request)).parts_of(0)


def calls_for(prompt: str, **more: Any) -> list[tuple[str, Any]]:
    parts = parts_for(user(prompt), **{"tools": TOOLS, **more})
    return [(part.name, part.args) for part in parts if isinstance(part, ToolCall)]


def text_for(*messages: Message, **more: Any) -> str:
    (part,) = parts_for(*messages, **more)
    assert isinstance(part, Text)
    return part.text


def called(call_id: str, name: str) -> Message:
    return Message(role="assistant", parts=(ToolCall(id=call_id, name=name, raw="{}"),))


def test_its_name_and_model() -> None:
    (model,) = asyncio.run(Demo().models())
    assert (Demo().name, Demo().dialect, model.id, model.owner) == ("demo", "", "echo-tools", "toolwire")
    asyncio.run(Demo().close())


def test_without_tools_it_says_what_it_is() -> None:
    text = text_for(user("x" * 500))
    assert text.startswith("I am toolwire's built-in demo model")
    assert "x" * 200 + "..." in text
    assert "x" * 201 not in text


def test_words_pick_the_tool_and_fill_it() -> None:
    assert calls_for("What is the weather in Paris?") == [("get_weather", {"city": "Paris"})]
    assert calls_for("weather for Oslo in fahrenheit") == [("get_weather", {"city": "Oslo", "unit": "fahrenheit"})]
    assert calls_for("add 2 and 3.5 as numbers") == [("add_numbers", {"a": 2, "b": 3.5})]
    assert calls_for("Good morning!") == []


def test_raw_is_plain_json_and_ids_are_the_same_again() -> None:
    def call_after(*before: Message) -> ToolCall:
        (call,) = parts_for(*before, user("weather in Zürich"), tools=TOOLS)
        assert isinstance(call, ToolCall)
        return call

    call = call_after()
    assert call.raw == '{"city": "Zürich"}'
    assert call.args == json.loads(call.raw)
    assert call_after() == call
    assert call_after(user("a"), assistant("b")).id != call.id


def test_tool_choice_is_obeyed() -> None:
    weather = "the weather in Paris"
    assert calls_for(weather, tool_choice=ToolChoice(mode="none")) == []
    assert len(calls_for("hello", tool_choice=ToolChoice(mode="required"))) == 1
    assert calls_for(weather, tool_choice=ToolChoice(mode="named", names=("add_numbers",)))[0][0] == "add_numbers"
    only_add = ToolChoice(mode="allowed", names=("add_numbers",))
    assert calls_for(weather, tool_choice=only_add) == []
    must_add = ToolChoice(mode="allowed", names=("add_numbers",), is_required=True)
    assert [name for name, _ in calls_for(weather, tool_choice=must_add)] == ["add_numbers"]
    assert calls_for(weather, tool_choice=ToolChoice(mode="named", names=("missing",))) == []


def test_several_tools_only_by_name_and_in_parallel() -> None:
    both = "use get_weather for Oslo, then add_numbers with 1 and 2"
    assert [name for name, _ in calls_for(both)] == ["get_weather", "add_numbers"]
    assert [name for name, _ in calls_for(both, parallel_calls=False)] == ["get_weather"]
    assert len(calls_for("add numbers about the weather in a city")) == 1


def test_only_functions_are_called() -> None:
    assert calls_for("patch", tools=(Tool(name="patch", kind="custom"), Tool(name="patch", kind="hosted"))) == []


def test_results_are_reported() -> None:
    asked = (user("weather?"), called("call_1", "get_weather"))
    assert text_for(*asked, result("call_1", "18 C, rain"), tools=TOOLS) == "get_weather said: 18 C, rain."
    failed = text_for(*asked, result("call_1", "no such city!", is_error=True), tools=TOOLS)
    assert failed == "get_weather failed: no such city!"
    assert text_for(*asked, result("call_9", ""), tools=TOOLS) == "The tool said: nothing."
    image = ToolResult(call_id="call_1", parts=(Media(kind="image", url="https://example.com/a.png"),))
    assert text_for(*asked, Message(role="user", parts=(image,))) == "get_weather said: [image]."


def test_results_are_bounded() -> None:
    asked = (user("weather?"), called("call_1", "get_weather"))
    assert len(text_for(*asked, *[result("call_1", "x" * 9000)] * 50)) < 12_000


def test_old_results_are_history() -> None:
    messages = (
        user("a"),
        called("call_1", "get_weather"),
        result("call_1", "rain"),
        assistant("It rains."),
        user("thanks"),
    )
    assert "thanks" in text_for(*messages)


def test_the_last_text_of_the_prompt_counts() -> None:
    parts = parts_for(user("a note about numbers to add", "weather in Rome"), tools=TOOLS)
    assert [part.name for part in parts if isinstance(part, ToolCall)] == ["get_weather"]


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("read the file README.md", "read_file", {"filePath": "/home/me/project/README.md"}),
        ("Use `read_file` to read the file README.md", "read_file", {"filePath": "/home/me/project/README.md"}),
        ("read lines 3 to 9 of README.md", "read_file", {"startLine": 3, "endLine": 9}),
        ("list the files here", "list_dir", {"path": "/home/me/project"}),
        ("list the folder docs", "list_dir", {"path": "/home/me/project/docs"}),
        (
            'create a file notes/todo.txt with the content "buy milk"',
            "create_file",
            {"filePath": "/home/me/project/notes/todo.txt", "content": "buy milk"},
        ),
    ],
)
def test_an_agents_prompt_with_notes_and_many_tools(prompt: str, name: str, arguments: dict[str, Any]) -> None:
    """The request that VS Code's agent sent (Copilot Chat 0.67), with its notes about "...existing code..."."""
    sent = json.loads(Path(__file__).with_name("copilot_agent_request.json").read_text(encoding="utf-8"))
    last = sent["messages"][-1]
    assert "read the file README.md" in last["content"]
    last["content"] = last["content"].replace("read the file README.md", prompt)
    request = DIALECTS["chat"].decode_request(json.dumps(sent).encode(), {})
    (call,) = asyncio.run(answer_of(Demo(), request)).parts_of(0)
    assert isinstance(call, ToolCall)
    assert call.name == name
    assert isinstance(call.args, dict)
    assert arguments.items() <= call.args.items()


def test_a_path_is_called_whole() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    read, write = Tool(name="read", schema=schema), Tool(name="write_file", description="Write a file", schema=schema)
    assert calls_for("read the file README.md", tools=(write, read)) == [("read", {"path": "README.md"})]
    assert calls_for("show the file README.md", tools=(write,)) == []


@pytest.mark.parametrize(
    ("thinking", "is_shown"),
    [
        (None, False),
        (Thinking(), False),
        (Thinking(mode="off", effort="high"), False),
        (Thinking(effort="none"), False),
        (Thinking(effort="low"), True),
        (Thinking(mode="on", budget=1024), True),
    ],
)
def test_it_thinks_when_asked(thinking: Thinking | None, is_shown: bool) -> None:
    parts = parts_for(user("hello"), thinking=thinking)
    thought = Reasoning(text="The demo model picks a tool by words.")
    assert (parts[0] == thought) is is_shown
    assert len(parts) == 1 + is_shown


def test_json_is_answered_where_asked_for() -> None:
    assert "demo model" in json.loads(text_for(user("hi"), output=OutputFormat(format="json")))["message"]
    text = text_for(user("the weather in Oslo"), output=OutputFormat(format="schema", schema=CITY))
    assert json.loads(text) == {"city": "Oslo"}
    assert text_for(user("hi"), output=OutputFormat(format="schema", schema={"not": {}})) == "{}"


def test_choices_finish_and_usage() -> None:
    request = Request(
        model="echo-tools", messages=(user("weather in Rome"),), tools=TOOLS, sampling=Sampling(choices=2)
    )
    answer = asyncio.run(answer_of(Demo(), request))
    assert [(choice.index, choice.reason) for choice in answer.finished.choices] == [
        (0, "tool_calls"),
        (1, "tool_calls"),
    ]
    assert len({part.part.id for part in answer.parts if isinstance(part.part, ToolCall)}) == 2
    assert answer.finished.usage is not None
    assert answer.finished.usage.input == 3
    assert answer.started.model == "echo-tools"


@pytest.mark.parametrize(
    "schema", [None, {"not": {}}, {"type": "string"}, {"$ref": "http://127.0.0.1:1/"}, {"type": 5}]
)
def test_a_schema_without_a_value_still_gets_a_call(schema: Any) -> None:
    tools = (Tool(name="look", schema=schema),)
    assert calls_for("look", tools=tools) == [("look", {})]


@examples(100)
@given(objects(schemas), st.sampled_from(["", "run with city: Oslo, 3 items and a note", 'run "x" on 2025-01-02']))
def test_calls_are_valid_by_the_tools_schema(schema: Any, prompt: str) -> None:
    choice = ToolChoice(mode="required")
    ((name, arguments),) = calls_for(prompt, tools=(Tool(name="run", schema=schema),), tool_choice=choice)
    assert name == "run"
    assert is_valid(schema, arguments)
