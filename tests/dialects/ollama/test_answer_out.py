"""Ollama: answers as lines of JSON and as one object."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.dialects.codec_harness import NOW, make_request, numbered_ids, out
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.ollama.answer_out import OllamaStreamEncoder, load_answer
from toolwire.dialects.ollama.request_in import decode_generate
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, emptied
from toolwire.types import Choice, Part, Reason, Reasoning, Refusal, Request, Text, ToolCall, Usage

CALL = ToolCall(id="call_a", name="f", raw='{"a": [1]}', args={"a": [1]})


def events_of(*parts: Part, reason: Reason = "stop") -> list[Event]:
    events: list[Event] = [Started(id="x", model="gpt")]
    for index, part in enumerate(parts):
        text = part.raw if isinstance(part, ToolCall) else getattr(part, "text", "")
        events.append(PartStarted(index=index, part=emptied(part)))
        events += [PartDelta(index, piece) for piece in (text[:2], text[2:]) if piece]
        events.append(PartEnded(index=index, part=part))
    return [*events, Finished(choices=(Choice(reason=reason),), usage=Usage(input=3, output=2))]


def lines(events: Iterable[Event], request: Request | None = None) -> list[Any]:
    wire = out("ollama", events, request or make_request("ollama"))
    assert wire.endswith(b"\n")
    return [json.loads(line) for line in wire.splitlines()]


def whole(events: Iterable[Event], request: Request | None = None) -> Any:
    return json.loads(out("ollama", events, request or make_request("ollama", is_stream=False)))


def prompt(*, is_stream: bool) -> Request:
    return decode_generate(json.dumps({"model": "m", "prompt": "hi", "stream": is_stream}).encode(), {})


def test_text_and_thinking_stream_and_the_last_line_counts() -> None:
    found = lines(events_of(Reasoning(text="let me"), Text(text="hello")))
    messages = [line["message"] for line in found]
    assert "".join(message.get("thinking", "") for message in messages) == "let me"
    assert "".join(message["content"] for message in messages) == "hello"
    assert len(found) == 5
    assert [line["done"] for line in found] == [False] * 4 + [True]
    assert all((line["model"], line["created_at"]) == ("m", "2027-01-15T08:00:00Z") for line in found)
    last = found[-1]
    assert (last["done_reason"], last["prompt_eval_count"], last["eval_count"]) == ("stop", 3, 2)


def test_H002_H028_calls_are_whole_and_numbered() -> None:
    found = lines(events_of(Text(text="x"), CALL, ToolCall(id="call_b", name="g", raw=""), reason="tool_calls"))
    calls = [call for line in found for call in line["message"].get("tool_calls", ())]
    assert calls == [
        {"id": "call_a", "function": {"index": 0, "name": "f", "arguments": {"a": [1]}}},
        {"id": "call_b", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert found[-1]["done_reason"] == "stop"


def test_one_object_has_the_same_content() -> None:
    parts = (Reasoning(text="hm"), Text(text="one"), Text(text="two"), Refusal(text="no"), CALL)
    streamed, body = lines(events_of(*parts)), whole(events_of(*parts))
    assert body["message"]["content"] == "".join(line["message"]["content"] for line in streamed) == "one\n\ntwo\n\nno"
    assert body["message"]["thinking"] == "hm"
    assert body["message"]["tool_calls"] == [
        call for line in streamed for call in line["message"].get("tool_calls", ())
    ]
    assert body["done"] is True


def test_generate_has_no_message() -> None:
    found = lines(events_of(Reasoning(text="hm"), Text(text="hello")), prompt(is_stream=True))
    assert "".join(line["response"] for line in found) == "hello"
    assert "".join(line.get("thinking", "") for line in found) == "hm"
    body = whole(events_of(Text(text="hello")), prompt(is_stream=False))
    assert (body["response"], body["done_reason"]) == ("hello", "stop")
    assert "message" not in body


def test_a_limit_is_named() -> None:
    assert lines(events_of(Text(text="x"), reason="length"))[-1]["done_reason"] == "length"


def test_log_probabilities_are_beside_their_text() -> None:
    likely = ({"token": "hi", "logprob": -0.1, "bytes": [104, 105], "top_logprobs": []},)
    text = Text(text="hi", logprobs=likely)
    events: list[Event] = [Started(id="x", model="gpt"), PartStarted(index=0, part=emptied(text)),
                           PartDelta(0, "hi", likely), PartEnded(index=0, part=text),
                           Finished(choices=(Choice(reason="stop"),))]  # fmt: skip
    assert lines(events)[0]["logprobs"] == list(likely)
    assert whole(events)["logprobs"] == list(likely)


def test_durations_are_those_of_the_clock() -> None:
    times = iter([12.0, 13.5])
    context = AnswerContext(
        request=make_request("ollama"), mint=numbered_ids(), now=NOW, clock=lambda: next(times), started=10.0
    )
    encoder = OllamaStreamEncoder(context)
    last = json.loads(b"".join(encoder.send(event) for event in events_of(Text(text="hello"))).splitlines()[-1])
    assert last["prompt_eval_duration"] == 2_000_000_000
    assert last["eval_duration"] == 1_500_000_000
    assert last["total_duration"] == 3_500_000_000


def test_H154_an_answer_that_fails_ends_with_its_error() -> None:
    events = [*events_of(Text(text="hello"))[:-1], Failed(error=UpstreamError("it broke.", where="x"))]
    assert lines(events)[-1] == {"error": "x: it broke."}


def test_requests_that_load_a_model() -> None:
    request = make_request("ollama", messages=[])
    answer = json.loads(load_answer(request, NOW))
    assert (answer["done"], answer["done_reason"], answer["message"]["content"]) == (True, "load", "")
    unload = json.loads(load_answer(make_request("ollama", messages=[], keep_alive=0), NOW))
    assert unload["done_reason"] == "unload"
