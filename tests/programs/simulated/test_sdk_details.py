"""The vendors' SDKs in detail, on a model without tools: parallel calls, tool choices, streaming arguments, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from anthropic import Anthropic, beta_tool
from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel

from tests.programs.simulated.stage import Setting, requests_of
from tests.programs.stage import KEY, Stage, Task, calling, prompt

pytestmark = pytest.mark.slow


class Weather(BaseModel):
    """The weather at a place."""

    place: str
    days: int = 1


TOOL = pydantic_function_tool(Weather, name="get_weather")
FLAT: Any = {"type": "function", **TOOL["function"]}
LOOSE: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}},
}
LONG = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch, Wales"


def asks(task: Task, *places: str) -> str:
    """A prompt for that many calls in one turn. The folder in the script identifies the requests."""
    calls = [{"name": "get_weather", "arguments": {"place": place, "days": 2}} for place in places]
    told = " and ".join(f"{{{{result:{number}}}}}" for number in range(len(places)))
    return prompt({"text": "Let me look.", "calls": calls, "for": str(task.project)}, {"text": f"It is {told}."})


@pytest.fixture
def client(stage: Stage) -> Iterator[OpenAI]:
    with OpenAI(base_url=stage.openai_url, api_key=KEY, max_retries=0, timeout=20) as opened:
        yield opened


PLAIN = pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
GROWING = pytest.mark.parametrize("stage", [Setting("plain", more='guard = "check"')], indirect=True)


@PLAIN
def test_calls_side_by_side_have_ids_and_results_of_their_own(client: OpenAI, task: Task) -> None:
    messages: list[Any] = [{"role": "user", "content": asks(task, "Oslo", "Rome")}]
    first = client.chat.completions.create(model="m", messages=messages, tools=[TOOL]).choices[0]
    assert (first.finish_reason, (first.message.content or "").rstrip()) == ("tool_calls", "Let me look.")
    calls: Any = first.message.tool_calls
    assert [json.loads(call.function.arguments)["place"] for call in calls] == ["Oslo", "Rome"]
    assert len({call.id for call in calls}) == 2
    messages.append(first.message.to_dict())
    # Results may come in another order than the calls.
    answers = {"Oslo": "cold", "Rome": "warm"}
    for call in reversed(calls):
        place = json.loads(call.function.arguments)["place"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": answers[place]})
    last = client.chat.completions.create(model="m", messages=messages, tools=[TOOL]).choices[0]
    assert (last.finish_reason, last.message.content) == ("stop", "It is cold and warm.")


@PLAIN
def test_chat_stream_helper_parses_what_was_written(client: OpenAI, task: Task) -> None:
    asked: Any = [{"role": "user", "content": asks(task, "Oslo")}]
    with client.chat.completions.stream(model="m", messages=asked, tools=[TOOL]) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_completion().choices[0]
    assert {"content.delta", "content.done", "tool_calls.function.arguments.done"} <= kinds
    assert first.message.tool_calls is not None
    assert first.message.tool_calls[0].function.parsed_arguments == Weather(place="Oslo", days=2)


@PLAIN
def test_responses_stream_helper_gets_every_event_in_order(client: OpenAI, task: Task) -> None:
    with client.responses.stream(model="m", input=asks(task, "Oslo", "Rome"), tools=[FLAT], store=False) as stream:
        events = list(stream)
        whole = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [item.type for item in whole.output] == ["message", "function_call", "function_call"]
    items: Any = whole.output[1:]
    assert [json.loads(item.arguments) for item in items] == [{"place": place, "days": 2} for place in ("Oslo", "Rome")]
    for item in items:
        deltas = [
            event.delta
            for event in events
            if event.type == "response.function_call_arguments.delta" and event.item_id == item.id
        ]
        assert "".join(deltas) == item.arguments


@GROWING
def test_arguments_grow_where_no_check_holds_them(client: OpenAI, task: Task) -> None:
    """A strict tool would be held until it is valid."""
    asked: Any = [{"role": "user", "content": asks(task, LONG)}]
    pieces, names = [], []
    for chunk in client.chat.completions.create(model="m", messages=asked, tools=[LOOSE], stream=True):
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                names += [call.function.name] if call.function.name else []
                pieces += [call.function.arguments] if call.function.arguments else []
    assert names == ["get_weather"]
    assert json.loads("".join(pieces)) == {"place": LONG, "days": 2}
    assert len(pieces) >= 5


@PLAIN
def test_the_prompt_names_the_tool_to_call(client: OpenAI, task: Task) -> None:
    """The choice is a note at the end; the instructions are the same for every choice."""
    asked: Any = [{"role": "user", "content": asks(task, "Oslo")}]
    named: Any = {"type": "function", "function": {"name": "get_weather"}}
    for choice in ("auto", "required", named):
        answer = client.chat.completions.create(model="m", messages=asked, tools=[TOOL], tool_choice=choice).choices[0]
        assert answer.finish_reason == "tool_calls"
    told = [line["body"]["messages"] for line in requests_of(task.stage, task.project)]
    assert len({messages[0]["content"] for messages in told}) == 1
    assert len({messages[-1]["content"] for messages in told}) == 3
    none = client.chat.completions.create(model="m", messages=asked, tools=[TOOL], tool_choice="none").choices[0]
    assert (none.finish_reason, none.message.tool_calls) == ("stop", None)


@PLAIN
def test_the_example_in_the_instruction_is_a_call_that_could_be_made(client: OpenAI, task: Task) -> None:
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": asks(task, "Oslo")}], tools=[TOOL])
    (line,) = requests_of(task.stage, task.project)
    form, example = re.findall(
        r"^<tool_call>\n(.*)\n</tool_call>$", line["body"]["messages"][0]["content"], re.MULTILINE
    )
    assert json.loads(form).keys() == {"name", "arguments"}
    call = json.loads(example)
    assert call["name"] == "get_weather"
    assert Weather.model_validate(call["arguments"], strict=True)


@PLAIN
def test_the_instruction_is_the_same_in_every_turn(client: OpenAI, task: Task) -> None:
    """So that prompt caches work."""
    messages: list[Any] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": asks(task, "Oslo")}]
    first = client.chat.completions.create(model="m", messages=messages, tools=[TOOL]).choices[0].message
    assert first.tool_calls
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "cold"}
    messages += [first.to_dict(), result]
    client.chat.completions.create(model="m", messages=messages, tools=[TOOL])
    one, two = [line["body"]["messages"] for line in requests_of(task.stage, task.project)]
    assert two[: len(one)] == one


@pytest.mark.parametrize(
    "stage", [Setting("sloppy", more='max_corrections = 0\npolicy = "error"')], indirect=True, ids=["error"]
)
def test_a_call_that_stays_wrong_is_an_error_where_the_owner_wants_one(client: OpenAI) -> None:
    asked: Any = [{"role": "user", "content": prompt(calling("get_weather", arguments={"place": "Oslo"}))}]
    with pytest.raises(openai.APIStatusError, match="look_into_the_file"):
        client.chat.completions.create(model="m", messages=asked, tools=[LOOSE])
    with pytest.raises(openai.APIError, match="look_into_the_file"):
        list(client.chat.completions.create(model="m", messages=asked, tools=[LOOSE], stream=True))


@PLAIN
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_anthropic_tool_runner(stage: Stage, task: Task, stream: bool) -> None:
    seen: list[str] = []

    @beta_tool
    def get_weather(place: str, days: int = 1) -> str:
        """The weather at a place."""
        seen.append(f"{place} {days}")
        return "cold" if place == "Oslo" else "warm"

    with Anthropic(base_url=stage.address, api_key=KEY, max_retries=0, timeout=20) as client:
        runner: Any = client.beta.messages.tool_runner(
            model="m",
            max_tokens=500,
            tools=[get_weather],
            messages=[{"role": "user", "content": asks(task, "Oslo", "Rome")}],
            stream=stream,
        )
        turns = [turn.get_final_message() if stream else turn for turn in runner]
    assert seen == ["Oslo 2", "Rome 2"]
    assert [turn.stop_reason for turn in turns] == ["tool_use", "end_turn"]
    assert [block.type for block in turns[0].content] == ["text", "tool_use", "tool_use"]
    assert turns[-1].content[0].text == "It is cold and warm."
    assert turns[-1].usage.output_tokens > 0
