"""Interactions: requests in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.interactions.request_in import decode_request
from toolwire.errors import BadRequest
from toolwire.types import Request, Text, Thinking, ToolChoice

FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}


def request(**members: Any) -> Request:
    return decode_request(json.dumps({"model": "m", "input": "hi", **members}).encode(), {})


def config(**members: Any) -> Request:
    return request(tools=[FUNCTION], generation_config=members)


def test_instructions_and_input() -> None:
    head, message = request(system_instruction="be brief", model="models/m").messages
    assert (head.role, head.is_head, head.parts) == ("system", True, (Text(text="be brief"),))
    assert (message.role, message.parts) == ("user", (Text(text="hi"),))
    assert request(model="models/m").model == "m"


def test_an_interaction_is_stored_unless_refused() -> None:
    kept = request().state
    assert kept is not None
    assert (kept.is_kept, kept.is_leaning, kept.previous) == (True, False, "")
    assert request(store=False).state is None
    chained = request(previous_interaction_id="int_1", store=False).state
    assert chained is not None
    assert (chained.previous, chained.is_kept, chained.field) == ("int_1", False, "previous_interaction_id")
    behind = request(background=True).state
    assert behind is not None
    assert (behind.is_background, behind.is_leaning) == (True, True)
    assert request(previous_interaction_id="int_1", input=None).messages == ()


def test_the_configuration() -> None:
    found = config(
        temperature=0.5, top_p=1, seed=3, stop_sequences=["END"], max_output_tokens=9, thinking_level="low",
        thinking_summaries="none", image_config={"a": 1},
    )  # fmt: skip
    assert (str(found.sampling.temperature), found.sampling.top_p, found.sampling.seed) == ("0.5", 1, 3)
    assert (found.sampling.stop, found.max_tokens) == (("END",), 9)
    assert found.thinking == Thinking(effort="low", summary="none")
    assert found.extra == {"interactions": {"generation_config": {"image_config": {"a": 1}}}}


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, None), ("auto", ToolChoice(mode="auto")), ("validated", ToolChoice(mode="auto")),
        ("any", ToolChoice(mode="required")), ("none", ToolChoice(mode="none")),
        ({"allowed_tools": {"mode": "any", "tools": ["f"]}}, ToolChoice(mode="named", names=("f",))),
        ({"allowed_tools": {"mode": "any", "tools": ["f", "g"]}}, ToolChoice(mode="allowed", names=("f", "g"), is_required=True)),
        ({"allowed_tools": {"tools": ["f"]}}, ToolChoice(mode="allowed", names=("f",))),
    ],
)  # fmt: skip
def test_the_choice_of_a_tool(given: Any, choice: ToolChoice | None) -> None:
    assert config(tool_choice=given).tool_choice == choice


def test_tools() -> None:
    function, hosted = request(tools=[FUNCTION, {"type": "google_search"}]).tools
    assert (function.name, function.description, function.kind) == ("f", "d", "function")
    assert (hosted.name, hosted.kind) == ("google_search", "hosted")


def test_formats() -> None:
    schema = {"type": "object"}
    text = {"type": "text", "mime_type": "application/json", "schema": schema}
    assert request(response_format=text).output.schema == schema
    assert request(response_format=[text]).output.schema == schema
    assert request(response_mime_type="application/json").output.format == "json"
    assert request().output.format == "text"


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"agent": "deep-research"}, "agent"), ({"environment": "e"}, "environment"),
        ({"continuation_token": "t"}, "continuation_token"), ({"input": []}, "input"), ({"input": None}, "input"),
        ({"background": True, "store": False}, "store"), ({"model": ""}, "model"),
        ({"response_format": {"type": "image"}}, "response_format.type"), ({"tools": [{}]}, "tools[0].name"),
        ({"generation_config": {"stop_sequences": [1]}}, "generation_config.stop_sequences"),
        ({"tools": [FUNCTION], "generation_config": {"tool_choice": "some"}}, "generation_config.tool_choice"),
    ],
)  # fmt: skip
def test_wrong_members_are_named(members: dict[str, Any], where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        request(**members)
    assert caught.value.where == where
