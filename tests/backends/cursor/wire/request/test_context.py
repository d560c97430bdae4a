"""What is told beside the conversation: rules, tools, the environment, and demands in words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.cursor.wire.request.test_history import IMAGE, message
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.request.context import (
    Setup,
    context_of,
    definition,
    demands_of,
    inexact,
    instructions_of,
)
from toolwire.backends.cursor.wire.request.names import Names
from toolwire.backends.cursor.wire.values import from_value
from toolwire.types import Loss, Output, Request, Tool, ToolChoice
from toolwire.wire.exact_json import decode

SETUP = Setup(conversation_id="c", run_id="r", message_id="m")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9007199254740993}}}


def demands(choice: ToolChoice | None = None, tools: tuple[Tool, ...] = (), **members: Any) -> list[str]:
    asked = Request(model="m", messages=(), tools=tools, tool_choice=choice, **members)
    return demands_of(asked, tools, Names.of(tools))


def test_a_context_says_all_that_is_known() -> None:
    setup = Setup(
        conversation_id="c",
        run_id="r",
        message_id="m",
        workspace="/w",
        os="linux 6",
        shell="bash",
        timezone="Europe/Rome",
    )
    tools = (Tool(name="bash"),)
    made = context_of(setup, tools, Names.of(tools), ["be kind"])
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
    made = context_of(SETUP, (), Names(), [])
    assert (len(made.rules), len(made.tools), len(made.env.workspace_paths)) == (0, 0, 0)
    assert not made.env_info_complete


def test_a_context_names_the_repositories_that_are_worked_on() -> None:
    made = context_of(replace(SETUP, workspace="/w", branches={"/w": "main"}), (), Names(), [])
    assert [(repository.path, repository.branch_name) for repository in made.git_repos] == [("/w", "main")]


def test_a_tool_is_defined_with_its_schema_as_the_owner_wants_it() -> None:
    plain = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}
    tool = Tool(name="add", description="adds \ud800", schema=plain)
    text = definition(tool, Names.of([tool]), "json")
    assert (text.name, text.tool_name, text.provider_identifier) == ("add", "add", "tw")
    assert text.description == "adds \ufffd"
    assert (decode(text.input_schema_json), text.HasField("input_schema")) == (plain, False)
    value = definition(tool, Names.of([tool]))
    assert (from_value(value.input_schema), value.HasField("input_schema_json")) == (plain, False)
    both = definition(tool, Names.of([tool]), "both")
    assert (from_value(both.input_schema), decode(both.input_schema_json)) == (plain, plain)


def test_a_schema_that_a_value_cannot_hold_goes_as_text_too() -> None:
    made = definition(Tool(name="add", schema=SCHEMA), Names(["add"]))
    assert made.HasField("input_schema")
    assert decode(made.input_schema_json) == SCHEMA


@pytest.mark.parametrize("schema", [None, {}, {"properties": {}}])
def test_an_empty_schema_is_still_that_of_an_object(schema: Any) -> None:
    made = definition(Tool(name="now", schema=schema), Names(["now"]), "both")
    assert decode(made.input_schema_json) == {"type": "object", "properties": {}}
    assert made.input_schema.WhichOneof("kind") == "struct_value"
    assert from_value(made.input_schema) == {"type": "object", "properties": {}}


def test_a_tool_by_another_name_says_what_it_is_called_elsewhere() -> None:
    made = definition(Tool(name="Read", description="reads"), Names(["Read"]))
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
    assert [(index, said.role) for index, said in rest] == [(2, "user")]
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
    (form,) = demands(output=Output(format="schema", schema={"type": "string"}))
    assert form == 'Your answer must be JSON, and nothing else, by this schema: {"type":"string"}'
    (form,) = demands(tools=(Tool(name="bash"),), output=Output(format="json"))
    assert form == "An answer that calls no tool must be one JSON object, and nothing else."


def test_H072_integers_that_would_lose_digits_are_noticed() -> None:
    assert inexact(Tool(name="add", schema=SCHEMA))
    assert inexact(Tool(name="add", schema={"enum": [1, [-(2**53) - 1]]}))
    assert not inexact(Tool(name="add", schema={"maximum": 2**53, "default": True}))
    assert not inexact(Tool(name="add"))
