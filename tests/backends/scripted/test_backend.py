"""The scripted back end: each member of a turn does what it says, and the events keep the contract."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import answer_of, assistant, check_events, collect, result, user
from tests.thorough import examples
from toolwire.backends.scripted.backend import Scripted
from toolwire.errors import BadRequest, ConfigError, UpstreamError
from toolwire.events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded
from toolwire.types import Citation, Message, Reasoning, Refusal, Request, Sampling, Text, Tool, ToolCall, Usage


def asking(script: Any, *later: Message, **more: Any) -> Request:
    encoded = base64.b64encode(json.dumps(script).encode()).decode()
    return Request(model="m", messages=(user(f"[[script:{encoded}]]"), *later), **more)


def play(request: Request, path: Path | None = None) -> FoldedAnswer:
    return asyncio.run(answer_of(Scripted("scripted", path), request))


def events_of(request: Request) -> list[Event]:
    return asyncio.run(collect(Scripted("scripted"), request))


def test_a_turn_in_its_order() -> None:
    turn = {"reasoning": "hm", "signature": "s", "text": "hello", "calls": [{"name": "look", "arguments": {"a": [1]}}]}
    answer = play(asking(turn))
    reasoning, text, call = answer.parts_of(0)
    assert reasoning == Reasoning(text="hm", signature="s")
    assert text == Text(text="hello")
    assert isinstance(call, ToolCall)
    assert (call.name, call.raw, call.args) == ("look", '{"a":[1]}', {"a": [1]})
    assert call.id.startswith("call_")
    assert len(call.id) == 29
    assert answer.finished.choices[0].reason == "tool_calls"
    assert answer.started.id.startswith("gen_")
    assert answer.started.model == "m"


def test_explicit_parts_in_any_order() -> None:
    parts = [{"call": {"name": "look", "id": "call_7"}}, {"text": "a"}, {"reasoning": "b"}, {"text": "c"}]
    told = play(asking({"parts": parts})).parts_of(0)
    assert told == (
        ToolCall(id="call_7", name="look", raw="{}", args={}),
        Text(text="a"),
        Reasoning(text="b"),
        Text(text="c"),
    )


def test_broken_arguments_stay_as_written() -> None:
    (call,) = play(asking({"calls": [{"name": "look", "arguments": '{"a": '}]})).parts_of(0)
    assert isinstance(call, ToolCall)
    assert (call.raw, call.args) == ('{"a": ', None)


def test_a_custom_tool_is_called_with_free_text() -> None:
    request = asking({"calls": [{"name": "patch", "arguments": "{}"}]}, tools=(Tool(name="patch", kind="custom"),))
    (call,) = play(request).parts_of(0)
    assert isinstance(call, ToolCall)
    assert (call.kind, call.raw, call.args) == ("custom", "{}", None)


def test_free_text_for_a_function_is_its_input() -> None:
    turn = {"turns": [{}, {"calls": [{"name": "patch", "input": 'say "{{result:0}}"\n'}]}]}
    past = (assistant("a"), result("1", "one"))
    (call,) = play(asking(turn, *past, tools=(Tool(name="patch"),))).parts_of(0)
    assert isinstance(call, ToolCall)
    assert (call.kind, call.args) == ("function", {"input": 'say "one"\n'})
    (call,) = play(asking(turn, *past, tools=(Tool(name="patch", kind="custom"),))).parts_of(0)
    assert isinstance(call, ToolCall)
    assert (call.kind, call.raw) == ("custom", 'say "one"\n')


def test_a_tool_is_called_by_the_name_it_is_offered_under() -> None:
    tools = (Tool(name="server__look"), Tool(name="look_up"))
    (call,) = play(asking({"calls": [{"name": "server.look"}]}, tools=tools)).parts_of(0)
    assert isinstance(call, ToolCall)
    assert call.name == "server__look"


STRICT = {
    "strict": True,
    "turns": [
        {"text": "a", "calls": [{"name": "look", "arguments": {"at": "x"}}]},
        {"calls": [{"name": "write", "input": "is {{result:0}}"}]},
        {"text": "done {{result:1}}"},
    ],
}
TOOLS = (Tool(name="look"), Tool(name="write"))


def past(looked: str = '{ "at":"x" }', written: str = '{"input":"is one"}') -> list[Message]:
    look = ToolCall(id="1", name="look", raw=looked, args=json.loads(looked))
    write = ToolCall(id="2", name="write", raw=written, args=json.loads(written))
    return [
        Message(role="assistant", parts=(Text(text="a"), look)),
        result("1", "one"),
        Message(role="assistant", parts=(write,)),
        result("2", "ok"),
    ]


def said(*later: Message, tools: tuple[Tool, ...] = TOOLS) -> str:
    text = play(asking(STRICT, *later, tools=tools)).parts_of(0)[0]
    assert isinstance(text, Text)
    return text.text


def test_a_strict_script_continues_when_all_comes_back_as_it_was_sent() -> None:
    assert said() == "a"
    assert said(*past()) == "done ok"


def test_a_strict_script_says_what_was_altered() -> None:
    assert said(*past(looked='{"at":"y"}')).startswith("HISTORY-ALTERED: answer 0 has look")
    assert said(*past(written='{"input":"is two"}')).startswith("HISTORY-ALTERED: answer 1 has write")
    assert said(*past()[:-1]) == "HISTORY-ALTERED: no result for the call of write."
    assert said(assistant("a"), user("go on")) == "HISTORY-ALTERED: answer 0 has 0 calls; expected 1."


def test_a_strict_script_calls_only_what_is_offered() -> None:
    assert said(tools=TOOLS[1:]) == "TOOL-NOT-OFFERED: look; offered: write"
    assert said(tools=()) == "TOOL-NOT-OFFERED: look; offered: none"


def test_refusal_and_finish() -> None:
    answer = play(asking({"refusal": "no"}))
    assert answer.parts_of(0) == (Refusal(text="no"),)
    assert answer.finished.choices[0].reason == "refused"
    assert play(asking({"text": "cut sh", "finish": "length"})).finished.choices[0].reason == "length"
    assert play(asking({})).parts == ()


def test_chunk_sets_the_size_of_deltas() -> None:
    for chunk, sizes in ((5, [5, 5, 2]), (0, [12]), (1, [1] * 12)):
        events = events_of(asking({"text": "abcdefghijkl", "chunk": chunk}))
        assert [len(event.text) for event in events if isinstance(event, PartDelta)] == sizes


def test_usage_is_given_or_estimated() -> None:
    counts: dict[str, Any] = {"input": 1, "output": 2, "cached": 3, "cache_written": 4, "reasoning": 5}
    assert play(asking({"usage": counts})).finished.usage == Usage(**counts)
    estimate = play(asking({"text": "x" * 40, "usage": {"input": 9}})).finished.usage
    assert estimate == Usage(input=9, output=10)


def test_an_error_at_once_refuses_the_request() -> None:
    with pytest.raises(UpstreamError) as caught:
        events_of(asking({"error": {"status": 429, "message": "slow down", "code": "rate_limit"}}))
    error = caught.value
    assert (error.status, error.message, error.code, error.retryable) == (429, "slow down", "rate_limit", True)


@pytest.mark.parametrize(("after", "deltas"), [(2, 2), (99, 3)])
def test_an_error_in_mid_stream_fails_the_answer(after: int, deltas: int) -> None:
    events = events_of(asking({"text": "abc", "chunk": 1, "error": {"status": 503, "after": after}}))
    check_events(events)
    assert sum(isinstance(event, PartDelta) for event in events) == deltas
    assert isinstance(events[-1], Failed)
    assert events[-1].error.status == 503


@pytest.mark.parametrize(("cut", "deltas", "ends"), [(0, 0, 0), (2, 2, 0), (99, 3, 1)])
def test_a_cut_stream_just_ends(cut: int, deltas: int, ends: int) -> None:
    events = events_of(asking({"text": "abc", "chunk": 1, "cut": cut}))
    check_events(events, is_cut=True)
    assert sum(isinstance(event, PartDelta) for event in events) == deltas
    assert sum(isinstance(event, PartEnded) for event in events) == ends


def test_logprobs_and_citations_come_with_the_text() -> None:
    turn = {"text": "ab", "chunk": 1, "logprobs": True, "citations": [{"url": "https://example.com", "title": "T"}]}
    events = events_of(asking(turn))
    check_events(events)
    (ended,) = [event for event in events if isinstance(event, PartEnded)]
    citation = Citation(url="https://example.com", title="T")
    assert isinstance(ended.part, Text)
    assert ended.part.citations == (citation,)
    assert [entry["token"] for entry in ended.part.logprobs or ()] == ["a", "b"]
    assert Noted(note=citation, index=0) in events


def test_echo_returns_what_arrived() -> None:
    call = Message(role="assistant", parts=(ToolCall(id="call_1", name="look", raw='{"a":1}'),))
    request = asking({"turns": [{}, {"echo": True}]}, call, result("call_1", "bad", is_error=True))
    (text,) = play(request).parts_of(0)
    assert isinstance(text, Text)
    assert json.loads(text.text)[1:] == [
        {"role": "assistant", "parts": [{"kind": "tool_call", "id": "call_1", "name": "look", "raw": '{"a":1}'}]},
        {
            "role": "tool",
            "parts": [
                {
                    "kind": "tool_result",
                    "call_id": "call_1",
                    "is_error": True,
                    "parts": [{"kind": "text", "text": "bad"}],
                }
            ],
        },
    ]


def test_results_are_filled_in() -> None:
    turn = {
        "text": "{{result:0}} and {{result:1:[0-9]{2}}}",
        "calls": [
            {"name": "a", "arguments": {"deep": [{"x": "<{{result:0}}>"}]}},
            {"name": "b", "arguments": '{"x":{{result:1:[0-9]+}}}'},
            {"name": "c", "arguments": '{"x":{{result:2}}}'},
        ],
    }
    request = asking(turn, assistant("a"), result("1", "one"), result("2", "is 123"), result("3", "[]"))
    text, first, second, third = play(request).parts_of(0)
    assert text == Text(text="one and 12")
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert isinstance(third, ToolCall)
    assert first.args == {"deep": [{"x": "<one>"}]}
    assert second.args == {"x": 123}
    assert third.args == {"x": []}


@pytest.mark.parametrize(
    ("text", "said"),
    [("{{result:1}}", "has 1"), ("{{result:0:(}}", "no regular expression"), ("{{result:0:z}}", "matches nothing")],
)
def test_a_result_that_is_not_there_is_said(text: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        play(asking({"text": text}, assistant("a"), result("1", "one")))


def test_only_the_start_of_a_result_is_searched() -> None:
    with pytest.raises(BadRequest, match="matches nothing"):
        play(asking({"text": "{{result:0:z}}"}, assistant("a"), result("1", "a" * 200_000 + "z")))


@pytest.mark.slow
def test_an_expression_that_backtracks_for_ever_stops_neither_the_loop_nor_itself() -> None:
    request = asking({"text": "{{result:0:(a+)+$}}"}, assistant("a"), result("1", "a" * 60 + "!"))

    async def main() -> int:
        opening = asyncio.create_task(Scripted("s").open(request, is_verbatim=False))
        turns = 0
        while not opening.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(BadRequest, match="takes longer than"):
            await opening
        return turns

    assert asyncio.run(main()) > 10


@pytest.mark.slow
def test_the_number_of_expressions_is_bounded() -> None:
    text = "".join(f"{{{{result:0:a{{{number}}}}}}}" for number in range(66))
    with pytest.raises(BadRequest, match="more than 64"):
        play(asking({"text": text}, assistant("a"), result("1", "a" * 100)))


def test_every_choice_plays_the_same_turn() -> None:
    answer = play(asking({"text": "a", "calls": [{"name": "look"}]}, sampling=Sampling(choices=3)))
    assert [choice.index for choice in answer.finished.choices] == [0, 1, 2]
    ids = {part.id for index in range(3) for part in answer.parts_of(index) if isinstance(part, ToolCall)}
    assert len(ids) == 3


def test_without_a_script_the_prompt_is_named() -> None:
    (text,) = play(Request(model="m", messages=(user("x" * 500),))).parts_of(0)
    assert text == Text(text="No script was given; the last user message was: " + "x" * 200)


def test_delay_and_pace_take_their_time() -> None:
    begun = time.monotonic()
    play(asking({"text": "abc", "chunk": 1, "delay": 0.04, "pace": 0.02}))
    assert time.monotonic() - begun >= 0.075


def test_a_file_by_model(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"models": {"m": {"turns": [{"text": "one"}, {"text": "two"}]}}}))
    request = Request(model="m", messages=(user("a"), assistant("one"), user("b")))
    assert play(request, path).parts_of(0) == (Text(text="two"),)
    assert play(asking({"text": "from the prompt"}), path).parts_of(0) == (Text(text="from the prompt"),)
    assert [model.id for model in asyncio.run(Scripted("s", path).models())] == ["m"]
    with pytest.raises(UpstreamError, match="no-such") as caught:
        play(Request(model="no-such", messages=()), path)
    assert caught.value.status == 404


def test_a_bad_file_is_the_owners_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Scripted("s", tmp_path / "missing.json")
    path = tmp_path / "bad.json"
    path.write_text("{")
    with pytest.raises(ConfigError) as caught:
        Scripted("s", path)
    assert caught.value.where == str(path)


def test_its_name_and_models() -> None:
    backend = Scripted("fake")
    assert (backend.name, backend.dialect) == ("fake", "")
    assert [model.id for model in asyncio.run(backend.models())] == ["scripted"]
    asyncio.run(backend.close())


turns = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=40),
        "reasoning": st.text(max_size=40),
        "refusal": st.text(max_size=10),
        "calls": st.lists(
            st.fixed_dictionaries({"name": st.just("look"), "arguments": st.text(max_size=30)}), max_size=3
        ),
        "chunk": st.integers(0, 8),
        "logprobs": st.booleans(),
        "error": st.fixed_dictionaries({"after": st.integers(1, 9)}),
    },
)


@examples(60)
@given(turns, st.integers(1, 2))
def test_any_turn_keeps_the_contract(turn: dict[str, Any], choices: int) -> None:
    events = events_of(asking(turn, sampling=Sampling(choices=choices)))
    check_events(events)
    assert isinstance(events[-1], Failed if "error" in turn else Finished)
