"""Requests out: the same messages as the recorded clients sent, and what cannot be said is a loss."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.backends.codex.wire.conversations import IMAGE, WEATHER, message, request
from tests.backends.codex.wire.recorded import sent
from toolwire.backends.codex.wire.request_out import (
    UNREAD,
    initialize_params,
    losses_of,
    offered,
    opening,
    tool_answer,
    turn_members,
)
from toolwire.backends.codex.wire.settings import ThreadSetup
from toolwire.backends.codex.wire.versions import TIERS, Abilities, Tier, Version
from toolwire.types import Loss, Media, OutputFormat, Request, Sampling, Text, Thinking, Tool, ToolChoice, ToolResult

NEW, HELD, OLD = (Abilities(version) for version in (Version(0, 166), Version(0, 98), Version(0, 89)))
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = Tool(name="get_weather", description="weather by city", schema=SCHEMA)
SETUP = ThreadSetup(cwd="/home/gw/work", base_instructions="You are a model.")


def thread_start(
    asked: Request, tier: Tier, abilities: Abilities, setup: ThreadSetup
) -> tuple[dict[str, Any], list[Loss]]:
    """The params of a thread, and the losses that come with its tools."""
    made = opening(asked, tier, abilities, setup)
    params = {name: value for name, value in made.params.items() if name not in ("threadId", "history")}
    return params, [loss for loss in made.losses if loss.feature.startswith("tool.")]


def asking(*messages: Any, **members: Any) -> Request:
    return Request(model="", messages=messages or (message("user", "hi"),), **members)


def test_a_thread_with_tools_is_started_as_the_recorded_client_did() -> None:
    (recorded,) = sent("0.166.0", "54_dynamic_parallel_raw_events", "thread/start")
    asked = asking(message("system", "DEV"), message("user", "SC=dyn2"), tools=(TOOL,))
    assert thread_start(asked, TIERS["replay"], NEW, SETUP) == (recorded, [])


def test_an_old_thread_is_started_as_the_recorded_client_did() -> None:
    (recorded,) = sent("0.89.0", "02_plain_turn", "thread/start")
    asked = asking(message("system", "DEV"), message("user", "SC=plain"))
    params, losses = thread_start(asked, TIERS["sentinel"], OLD, SETUP)
    assert (params, losses) == (recorded | {"experimentalRawEvents": True}, [])


def test_a_replayed_conversation_is_opened_as_the_recorded_client_did() -> None:
    made = opening(asking(message("system", "DEV"), *WEATHER, tools=(TOOL,)), TIERS["replay"], NEW, SETUP)
    (started,) = sent("0.166.0", "50_inject_items_then_empty_turn", "thread/start")
    (injected,) = sent("0.166.0", "50_inject_items_then_empty_turn", "thread/inject_items")
    (turn,) = sent("0.166.0", "50_inject_items_then_empty_turn", "turn/start")
    thread = turn["threadId"]
    assert made.method == "thread/start"
    assert made.params == started | {"experimentalRawEvents": True}
    assert made.injection(thread)["threadId"] == injected["threadId"]
    assert [item["type"] for item in made.inject] == [item["type"] for item in injected["items"]]
    assert made.turn_of(thread) == turn
    assert "get_weather" in made.names


def test_an_image_is_given_to_an_old_turn_as_the_recorded_client_did() -> None:
    (turn,) = sent("0.89.0", "36_image_input", "turn/start")
    (text, image) = turn["input"]
    given = Media(kind="image", mime="image/png", data=image["url"].partition(",")[2])
    made = opening(asking(message("user", text["text"], given)), TIERS["sentinel"], OLD, SETUP)
    assert made.turn_of(turn["threadId"]) == turn
    assert (made.method, made.inject) == ("thread/start", [])


def test_a_schema_is_asked_for_as_the_recorded_client_did() -> None:
    (turn,) = sent("0.166.0", "35_output_schema", "turn/start")
    asked = asking(output=OutputFormat(format="schema", schema=turn["outputSchema"], strict=True))
    assert turn_members(asked, turn["input"]) | {"threadId": turn["threadId"]} == turn


def test_an_old_conversation_is_resumed_from_its_history() -> None:
    asked = asking(message("system", "DEV"), *WEATHER, message("user", "next SC=plain"))
    made = opening(asked, TIERS["sentinel"], OLD, SETUP)
    (recorded,) = sent("0.89.0", "50_resume_history_empty_turn", "thread/resume")
    assert made.method == "thread/resume"
    assert [item["type"] for item in made.params["history"]] == [item["type"] for item in recorded["history"]]
    assert (made.params["approvalPolicy"], made.params["sandbox"]) == ("never", "read-only")
    assert made.inject == []
    assert made.turn["input"] == [{"type": "text", "text": "next SC=plain", "text_elements": []}]


def test_a_thread_with_tools_that_takes_no_items_gets_the_conversation_as_text() -> None:
    made = opening(asking(*WEATHER, tools=(TOOL,)), TIERS["held"], HELD, SETUP)
    assert (made.method, made.inject) == ("thread/start", [])
    assert made.params["dynamicTools"][0]["name"] == "get_weather"
    assert "type" not in made.params["dynamicTools"][0]  # there were no kinds of them yet
    assert '"result_of":"call_x1"' in made.turn["input"][0]["text"]


def test_base_instructions_stay_unless_the_owner_says_otherwise() -> None:
    params, _ = thread_start(asking(), TIERS["replay"], NEW, ThreadSetup(cwd="/w"))
    assert "baseInstructions" not in params
    assert "developerInstructions" not in params
    assert (
        thread_start(asking(), TIERS["replay"], NEW, ThreadSetup(cwd="/w", base_instructions=""))[0]["baseInstructions"]
        == ""
    )


def test_initialize_asks_for_what_is_needed_and_not_for_what_is_unread() -> None:
    params = initialize_params("1.2.3")
    assert params["clientInfo"] == {"name": "toolwire", "title": "toolwire", "version": "1.2.3"}
    assert params["capabilities"] == {"experimentalApi": True, "optOutNotificationMethods": list(UNREAD)}
    assert not {"turn/started", "item/started", "item/completed", "turn/completed", "error"} & set(UNREAD)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["a", "b"]),
        (ToolChoice(mode="auto"), ["a", "b"]),
        (ToolChoice(mode="none"), []),
        (ToolChoice(mode="required"), ["a", "b"]),
        (ToolChoice(mode="named", names=("b",)), ["b"]),
        (ToolChoice(mode="allowed", names=("a",)), ["a"]),
    ],
)
def test_a_choice_is_kept_by_showing_no_other_tools(choice: ToolChoice | None, names: list[str]) -> None:
    tools = (Tool(name="a"), Tool(name="b"), Tool(name="web", kind="hosted"))
    assert [tool.name for tool in offered(asking(tools=tools, tool_choice=choice))] == names


@pytest.mark.parametrize(
    ("members", "features"),
    [
        (
            {"sampling": Sampling(temperature=Decimal("0.2"), top_p=1, top_k=3, seed=4)},
            ["temperature", "top_p", "top_k", "seed"],
        ),
        ({"sampling": Sampling(frequency_penalty=1, presence_penalty=1)}, ["frequency_penalty", "presence_penalty"]),
        ({"sampling": Sampling(choices=2, logprobs=True)}, ["n", "logprobs"]),
    ],
)
def test_sampling_cannot_be_passed(members: dict[str, Any], features: list[str]) -> None:
    assert [loss.feature for loss in losses_of(asking(**members))] == [f"sampling.{name}" for name in features]


@pytest.mark.parametrize(
    ("members", "features"),
    [
        ({}, []),
        ({"sampling": Sampling(stop=("END",))}, []),  # the gateway keeps to it
        ({"max_tokens": 5}, ["max_tokens"]),
        ({"tools": (TOOL,), "parallel_calls": False}, ["parallel_calls"]),
        ({"tools": (TOOL,), "parallel_calls": True}, []),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="none")}, []),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="required")}, ["tool_choice"]),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="named", names=("get_weather",))}, ["tool_choice"]),
        ({"tools": (TOOL,), "tool_choice": ToolChoice(mode="allowed", names=("get_weather",))}, []),
        ({"thinking": Thinking(budget=1000)}, ["thinking.budget"]),
        ({"thinking": Thinking(effort="enormous")}, ["thinking.effort"]),
        ({"output": OutputFormat(format="json")}, ["output.json"]),
        ({"output": OutputFormat(format="schema", schema={})}, ["output.strict"]),
        ({"output": OutputFormat(verbosity="chatty")}, ["output.verbosity"]),
        ({"user": "u"}, ["user"]),
        ({"extra": {"chat": {"logit_bias": {"1": 2}, "store": False}}}, ["request.logit_bias"]),
    ],
)
def test_what_codex_cannot_receive_is_a_loss(members: dict[str, Any], features: list[str]) -> None:
    assert [loss.feature for loss in losses_of(asking(**members))] == features


@pytest.mark.parametrize(
    ("thinking", "members"),
    [
        (None, {}),
        (Thinking(effort="high", summary="detailed"), {"effort": "high", "summary": "detailed"}),
        (Thinking(mode="off"), {"effort": "none"}),
        (Thinking(mode="on", budget=9), {"summary": "auto"}),
        (Thinking(mode="adaptive", effort="low"), {"effort": "low", "summary": "auto"}),
        (Thinking(effort="enormous", summary="odd"), {}),
    ],
)
def test_how_much_to_think(thinking: Thinking | None, members: dict[str, str]) -> None:
    assert turn_members(asking(thinking=thinking), []) == {"input": [], **members}


def test_the_model_and_how_much_it_says_are_passed() -> None:
    asked = replace(asking(output=OutputFormat(verbosity="low")), model="gpt")
    params, _ = thread_start(asked, TIERS["replay"], NEW, ThreadSetup(cwd="/w", settings={"a": {"b": 1}}))
    assert params["model"] == turn_members(asked, [])["model"] == "gpt"
    assert params["config"] == {"a.b": 1, "model_verbosity": "low"}
    own = ThreadSetup(cwd="/w", settings={"model_verbosity": "high"})
    assert thread_start(asked, TIERS["replay"], NEW, own)[0]["config"] == {"model_verbosity": "high"}


def test_strict_tools_are_checked_by_the_gateway() -> None:
    _, losses = thread_start(asking(tools=(replace(TOOL, strict=True),)), TIERS["replay"], NEW, SETUP)
    assert [(loss.feature, loss.where) for loss in losses] == [("tool.strict", "get_weather")]


def test_a_tool_without_a_schema_takes_an_object() -> None:
    params, _ = thread_start(asking(tools=(Tool(name="f"),)), TIERS["replay"], NEW, SETUP)
    assert params["dynamicTools"] == [
        {"type": "function", "name": "f", "description": "", "inputSchema": {"type": "object", "properties": {}}}
    ]


def test_where_built_in_tools_stay_none_of_them_hides_one_of_the_clients() -> None:
    tools = (Tool(name="update_plan"),)
    assert (
        thread_start(asking(tools=tools), TIERS["held"], HELD, SETUP)[0]["dynamicTools"][0]["name"]
        == "client_update_plan"
    )
    assert thread_start(asking(tools=tools), TIERS["replay"], NEW, SETUP)[0]["dynamicTools"][0]["name"] == "update_plan"


def result(*parts: Text | Media, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id="c", parts=parts, is_error=is_error)


def test_results_are_answered_as_the_recorded_client_did() -> None:
    assert tool_answer(result(Text(text="sunny")), NEW) == {
        "contentItems": [{"type": "inputText", "text": "sunny"}],
        "success": True,
    }


@pytest.mark.parametrize(
    ("given", "abilities", "answer"),
    [
        (
            result(Text(text="a"), Text(text="b")),
            HELD,
            {"contentItems": [{"type": "inputText", "text": "a\nb"}], "success": True},
        ),
        (result(Text(text="a")), Abilities(Version(0, 92)), {"output": "a", "success": True}),
        (
            result(Text(text="a"), IMAGE),
            Abilities(Version(0, 92)),
            {"output": "a\n[image not shown: image/png, 70 bytes]", "success": True},
        ),
        (result(), NEW, {"contentItems": [{"type": "inputText", "text": ""}], "success": True}),
        (
            result(Text(text="no"), is_error=True),
            NEW,
            {"contentItems": [{"type": "inputText", "text": "Error: the tool call failed.\nno"}], "success": False},
        ),
        (
            result(IMAGE),
            NEW,
            {
                "contentItems": [{"type": "inputImage", "imageUrl": f"data:image/png;base64,{IMAGE.data}"}],
                "success": True,
            },
        ),
    ],
)
def test_results_in_the_form_of_each_version(given: ToolResult, abilities: Abilities, answer: dict[str, Any]) -> None:
    assert tool_answer(given, abilities) == answer


def test_the_request_is_not_touched() -> None:
    asked = request(*WEATHER, tools=(TOOL,))
    before = repr(asked)
    opening(asked, TIERS["replay"], NEW, SETUP)
    assert repr(asked) == before


def test_old_versions_are_configured_for_reasoning_where_it_is_requested() -> None:
    def config(thinking: Thinking | None, abilities: Abilities) -> object:
        return thread_start(asking(thinking=thinking), TIERS["sentinel"], abilities, SETUP)[0].get("config")

    assert config(Thinking(effort="low"), OLD) == {"model_supports_reasoning_summaries": True}
    assert config(Thinking(effort="low"), NEW) is config(Thinking(mode="off"), OLD) is config(None, OLD) is None
