"""Typed output: the model gives the answer by a call, and the program gets a value of its type."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pytest

from tests.agent_harness import IN_PROCESS, MODEL, Weather, calls, pairs, script
from toolwire import Agent, CompleteEvent, ConfigError, Conversation, Decision, Terms, UpstreamError


@dataclass
class City:
    name: str
    people: int = 0


class Trip(TypedDict):
    cities: list[City]
    mode: Literal["train", "boat"]


def answer(arguments: Any) -> dict[str, Any]:
    return calls(("final_answer", arguments))


def agent(output_type: Any, **more: Any) -> Agent[Any]:
    return Agent(MODEL, Weather().tools, output_type=output_type, config=IN_PROCESS, **more)


def test_a_dataclass_after_other_tools() -> None:
    prompt = script(calls(("weather", {"city": "Rome"})), answer({"name": "Rome", "people": 3}))
    result = agent(City).run_sync(prompt)
    assert result.output == City("Rome", 3)
    assert (result.text, result.reason) == ('{"name":"Rome","people":3}', "done")
    assert len(pairs(result.conversation.messages)) == 2


def test_a_typed_dict_with_members_of_a_class() -> None:
    result = agent(Trip).run_sync(script(answer({"cities": [{"name": "Oslo"}], "mode": "boat"})))
    assert result.output == {"cities": [City("Oslo")], "mode": "boat"}


@pytest.mark.parametrize(("kind", "value"), [(list[int], [1, 2]), (int, 3), (bool, True)])
def test_types_that_are_no_objects(kind: Any, value: Any) -> None:
    assert agent(kind).run_sync(script(answer({"value": value}))).output == value


def test_a_pydantic_model_with_a_validator_that_the_model_must_satisfy() -> None:
    if importlib.util.find_spec("pydantic") is None:
        pytest.skip("pydantic is not installed")
    from pydantic import BaseModel, field_validator

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("expected an even number")
            return number

    result = agent(Even).run_sync(script(answer({"number": 3}), answer({"number": 4}), strict=False))
    assert result.output == Even(number=4)
    (_, first), _ = pairs(result.conversation.messages)
    assert "expected an even number" in first


def test_the_guard_repairs_arguments_before_they_are_converted() -> None:
    result = agent(City).run_sync(script(answer('{"name": "Bern", "people": "12",}'), strict=False))
    assert result.output == City("Bern", 12)


def test_invalid_arguments_go_back_to_the_model() -> None:
    prompt = script(answer({"people": 1}), answer({"name": "Bern"}), strict=False)
    assert agent(City).run_sync(prompt).output == City("Bern")


def test_json_as_text_counts_as_the_answer() -> None:
    result = agent(City).run_sync(script({"text": '```json\n{"name": "Lima"}\n```'}))
    assert (result.output, result.iterations) == (City("Lima"), 1)


def test_text_is_answered_with_a_reminder() -> None:
    result = agent(City).run_sync(script({"text": "It is Lima."}, answer({"name": "Lima"}), strict=False))
    assert result.output == City("Lima")


def test_a_model_that_never_gives_it() -> None:
    stored: list[Conversation] = []
    with pytest.raises(UpstreamError, match="output type") as raised:
        agent(City).run_sync(script(*[{"text": "No."}] * 5, strict=False), None, stored.append)
    assert raised.value.code == "no_output"
    assert len(stored[0].messages) == 6


def test_the_last_request_offers_only_the_answer() -> None:
    looks = [calls(("weather", {"city": f"C{number}"})) for number in range(2)]
    result = agent(City, terms=Terms(max_iterations=2)).run_sync(script(*looks, answer({"name": "Lima"})))
    assert (result.output, result.reason) == (City("Lima"), "max_iterations")


def test_the_answer_needs_no_approval() -> None:
    result = agent(City, approve=lambda call, tool: Decision(is_allowed=False)).run_sync(script(answer({"name": "A"})))
    assert result.output == City("A")


def test_a_stream_ends_with_it() -> None:
    *_, last = agent(City).stream_sync(script(answer({"name": "A"})))
    assert isinstance(last, CompleteEvent)
    assert last.output == City("A")


def test_without_other_tools_the_demo_model_must_give_it() -> None:
    assert Agent("demo/echo-tools", output_type=City).run_sync("Describe a city").output.people >= 0


def test_a_type_without_a_form_in_json() -> None:
    with pytest.raises(ConfigError, match="output type"):
        agent(Weather)


def test_a_tool_of_the_same_name() -> None:
    def final_answer() -> str:
        return ""

    with pytest.raises(ConfigError, match="several tools"):
        Agent(MODEL, [final_answer], output_type=City, config=IN_PROCESS).run_sync("hi")
