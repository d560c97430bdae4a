"""Large results by handle, and the function that reads them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from tests.pipeline.jobs import job_of
from toolwire.config.policy import Policy
from toolwire.pipeline.large_results import LargeResults, wants_handles
from toolwire.pipeline.prepare import Preparation
from toolwire.types import Media, Message, Request, Sampling, Text, Tool, ToolCall, ToolResult

TEXT = "".join(f"line {number}\n" for number in range(500))
IMAGE = Media(kind="image", data="aGk=")


def request(*texts: str, **more: Any) -> Request:
    results = [ToolResult(call_id=str(place), parts=(Text(text=text), IMAGE)) for place, text in enumerate(texts)]
    messages = (
        Message(role="user", parts=(Text(text="hi"),)),
        *(Message(role="tool", parts=(result,)) for result in results),
    )
    return Request(**{"model": "m", "messages": messages, "tools": (Tool(name="own"),), **more})


def result_of(sent: Request, place: int) -> ToolResult:
    [result] = sent.messages[place].parts
    assert isinstance(result, ToolResult)
    return result


def text_of(result: ToolResult) -> str:
    assert isinstance(result.parts[0], Text)
    return result.parts[0].text


def read(tools: LargeResults, **args: Any) -> tuple[str, bool, bool]:
    outcome = asyncio.run(tools.start(ToolCall(id="c", name="read_result", raw="{}", args=args), lambda: 0).outcome)
    [text] = outcome.parts
    assert isinstance(text, Text)
    return text.text, outcome.is_error, outcome.is_refused


def test_a_large_result_is_sent_as_its_beginning() -> None:
    tools = LargeResults(100)
    sent = tools.begin(request("small", TEXT))
    assert text_of(result_of(sent, 1)) == "small"
    shortened = result_of(sent, 2)
    assert text_of(shortened).startswith("line 0\nline 1\n")
    assert "result_2" in text_of(shortened)
    assert len(text_of(shortened)) < 450
    assert shortened.parts[1] == IMAGE
    assert [tool.name for tool in sent.tools] == ["read_result", "own"]
    assert tools.losses[0].why.startswith("1 results of 1,")


def test_results_of_the_gateways_own_tools_get_handles_too() -> None:
    tools = LargeResults(100)
    sent = tools.begin(request("small"))
    assert tools.losses == ()
    piece = ToolResult(call_id="r", parts=(Text(text="x" * 450),), name="read_result")
    large = ToolResult(call_id="c", parts=(Text(text=TEXT),), name="box__log")
    rounds = (*sent.messages, Message(role="tool", parts=(piece,)), Message(role="tool", parts=(large,)))
    again = tools.resume(replace(sent, messages=rounds))
    assert again.messages[:3] == rounds[:3]  # what was read is not shortened again
    assert "result_3" in text_of(result_of(again, 3))
    assert read(tools, handle="result_3", find="line 77\n")[0].startswith("at ")
    assert [loss.feature for loss in tools.losses] == ["results.shortened"]
    assert tools.resume(again) is again


def test_the_history_of_the_next_request_is_the_same() -> None:
    first = LargeResults(100).begin(request(TEXT))
    second = LargeResults(100).begin(request(TEXT, TEXT))
    assert second.messages[: len(first.messages)] == first.messages
    assert second.tools == first.tools
    assert LargeResults(100).begin(request()).tools == first.tools


def test_the_whole_result_can_be_read() -> None:
    tools = LargeResults(100)
    tools.begin(request(TEXT))
    pieces, offset = "", 0
    while offset < len(TEXT):
        text, is_error, _ = read(tools, handle="result_1", offset=offset)
        assert not is_error
        piece = text.rpartition("\n\n[")[0]
        pieces, offset = pieces + piece, offset + len(piece)
    assert pieces == TEXT
    assert text.endswith("end of the result.]")


def test_a_text_is_found() -> None:
    tools = LargeResults(1000)
    tools.begin(request(TEXT))
    assert f"at {TEXT.index('line 321')}: " in read(tools, handle="result_1", find="line 321")[0]
    assert read(tools, handle="result_1", find="zebra")[0] == "The result does not contain this text."
    assert read(tools, handle="result_1", find="line")[0].startswith("The first 20 places:")


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"handle": "result_9"},
        {"handle": 5},
        {"handle": "result_1", "offset": -1},
        {"handle": "result_1", "offset": 10**9},
    ],
)
def test_wrong_arguments_are_an_error_for_the_model(args: Any) -> None:
    tools = LargeResults(100)
    tools.begin(request(TEXT))
    assert read(tools, **args)[1:] == (True, False)


def test_reads_are_limited() -> None:
    tools = LargeResults(100)
    sent = tools.begin(request(TEXT))
    refused = [read(tools, handle="result_1")[2] for _ in range(21)]
    assert refused == [False] * 20 + [True]
    assert tools.resume(request(TEXT)).tools == (Tool(name="own"),)
    assert tools.resume(sent) is sent


def test_the_clients_tool_of_the_same_name_stays_its_own() -> None:
    tools = LargeResults(100)
    sent = tools.begin(request(TEXT, tools=(Tool(name="read_result"),)))
    assert [tool.name for tool in sent.tools] == ["gateway_read_result", "read_result"]
    assert not tools.owns(ToolCall(id="c", name="read_result", raw="{}"))


def test_it_is_off_unless_the_owner_wants_it() -> None:
    for tokens in (0, 100):
        job = job_of(request(TEXT), policy=Policy(max_result_tokens=tokens))
        backend = job.backend
        asyncio.run(Preparation().run(job))
        assert (job.backend is backend) == (tokens == 0)


def test_several_choices_get_whole_results() -> None:
    assert wants_handles(job_of(request(TEXT)))
    assert not wants_handles(job_of(request(TEXT, sampling=Sampling(choices=2))))
