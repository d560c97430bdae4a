"""Chat answers out: chunks that any client can read, for any text and any order of parts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.answers import CHARACTERS
from tests.dialects.codec_harness import NOW, body_out, frames, make_request, out
from tests.thorough import examples
from toolwire.errors import BadRequest, UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Citation, Media, Opaque, Part, Reason, Reasoning, Refusal, Text, ToolCall, Usage

STARTED = Started(id="up_1", model="upstream", created=5)
USAGE = Usage(input=10, output=7, cached=4, reasoning=5)


def finished(reason: Reason = "stop") -> Finished:
    return Finished(choices=(Choice(reason=reason),), usage=USAGE)


def whole(part: Part, *texts: str, index: int = 0) -> list[Event]:
    return [
        PartStarted(index=index, part=part),
        *(PartDelta(index, text) for text in texts),
        PartEnded(index=index, part=part),
    ]


def deltas(wire: bytes) -> list[dict[str, object]]:
    return [value["choices"][0]["delta"] for _, value in frames(wire) if value != "[DONE]" and value["choices"]]


@given(st.text(CHARACTERS, min_size=1, max_size=20))
@examples(60)
def test_any_text_is_json(text: str) -> None:
    wire = out("chat", [STARTED, *whole(Text(text=text), text), finished()])
    assert "".join(str(delta.get("content", "")) for delta in deltas(wire)) == text
    wire.decode("utf-8")


def test_H001_H005_calls_are_numbered_by_choice() -> None:
    events: list[Event] = [STARTED]
    for index, (choice, name) in enumerate([(0, "a"), (1, "b"), (0, "c")]):
        events.append(PartStarted(index=index, part=ToolCall(id=name, name=name, raw=""), choice=choice))
    events += [PartDelta(index, "{}") for index in (2, 0, 1)]
    wire = out("chat", events, make_request("chat", n=2))
    calls: dict[tuple[int, int], str] = {}
    for _, value in frames(wire):
        for choice in value["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                key = choice["index"], call["index"]
                calls[key] = calls.get(key, "") + str(call.get("id", "")) + call["function"]["arguments"]
    assert calls == {(0, 0): "a{}", (1, 0): "b{}", (0, 1): "c{}"}


def test_the_first_chunk_has_the_role_and_the_last_the_reason() -> None:
    wire = out("chat", [STARTED, *whole(ToolCall(id="x", name="a", raw="{}"), "{}"), finished("tool_calls")])
    values = [value for _, value in frames(wire)]
    assert values[0]["choices"][0]["delta"]["role"] == "assistant"
    assert [value["choices"][0]["finish_reason"] for value in values[:-2]] == [None, None, "tool_calls"]
    assert values[-2]["choices"] == []
    assert values[-2]["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    assert values[-1] == "[DONE]"
    assert {value["id"] for value in values[:-1]} == {values[0]["id"]}
    assert values[0]["id"].startswith("chatcmpl-")
    assert (values[0]["model"], values[0]["created"]) == ("m", 5)


def test_an_empty_answer_still_has_its_role_and_end() -> None:
    values = [value for _, value in frames(out("chat", [STARTED, finished()]))]
    assert values[0]["choices"][0] == {
        "index": 0,
        "delta": {"role": "assistant", "content": ""},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert frames(out("chat", [finished()]))[-1] == ("", "[DONE]")


def test_H145_usage_only_where_it_was_requested() -> None:
    wire = out("chat", [STARTED, finished()], make_request("chat", stream_options=None))
    assert b'"usage"' not in wire


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("refused", "content_filter"),
        ("paused", "stop"),
        ("other", "stop"),
    ],
)
def test_reasons(reason: Reason, word: str) -> None:
    assert body_out("chat", [STARTED, finished(reason)])["choices"][0]["finish_reason"] == word


def test_H154_H156_a_failure_is_an_error_and_no_end() -> None:
    error = UpstreamError("the back end is gone.", status=529, code="overloaded", details={"type": "overloaded_error"})
    wire = out("chat", [STARTED, *whole(Text(text="a"), "a"), Failed(error=error)])
    (_, last) = frames(wire)[-1]
    assert last == {
        "error": {"message": "the back end is gone.", "type": "overloaded_error", "param": None, "code": "overloaded"}
    }
    assert b"[DONE]" not in wire
    assert b'"finish_reason":"' not in wire


def test_a_failure_of_a_body_is_the_error_alone() -> None:
    with pytest.raises(BadRequest, match=r"^no\.$") as caught:
        body_out("chat", [STARTED, Failed(error=BadRequest("no.", where="model"))])
    assert caught.value.where == "model"


def test_logprobs_and_citations_stay_with_their_choice() -> None:
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    part = Text(text="a", logprobs=(entry,))
    events: list[Event] = [STARTED, PartStarted(index=0, part=Text(text=""), choice=1), PartDelta(0, "a", (entry,))]
    events += [
        Noted(note=Citation(url="https://a", title="A", start=0, end=1), index=0),
        PartEnded(index=0, part=part, choice=1),
    ]
    values = [value for _, value in frames(out("chat", events, make_request("chat", n=2)))]
    assert [value["choices"][0]["index"] for value in values] == [1, 1, 1]
    assert values[1]["choices"][0]["logprobs"] == {"content": [entry], "refusal": None}
    assert values[2]["choices"][0]["delta"]["annotations"][0]["url_citation"]["url"] == "https://a"


def test_parts_of_other_dialects_leave_no_trace() -> None:
    foreign: list[Part] = [
        Opaque(dialect="messages", value={"type": "server_tool_use"}),
        Media(kind="image", url="u"),
        Reasoning(text="", redacted="x"),
    ]
    for part in foreign:
        events = [STARTED, *whole(part), finished()]
        assert [delta for delta in deltas(out("chat", events)) if delta.keys() - {"role", "content"}] == []
        assert body_out("chat", events)["choices"][0]["message"]["content"] is None


def test_own_unknown_members_go_out_again() -> None:
    note = Opaque(dialect="chat", value={"x_top": 1, "choices": [{"index": 0, "delta": {"x_delta": 2}}]})
    started = Started(id="chatcmpl-9", model="real", extra={"chat": {"system_fingerprint": "fp"}})
    values = [value for _, value in frames(out("chat", [started, Noted(note=note), finished()]))]
    assert values[0]["x_top"] == 1
    assert values[0]["choices"][0]["delta"] == {"x_delta": 2}
    assert (values[0]["id"], values[0]["model"], values[0]["system_fingerprint"]) == ("chatcmpl-9", "real", "fp")
    assert values[0]["created"] == NOW


def test_H007_every_kind_of_part_is_in_the_body() -> None:
    parts: list[Part] = [
        Reasoning(text="one"),
        Reasoning(text="two"),
        Text(text="hello "),
        Text(text="world"),
        Refusal(text="no"),
        ToolCall(id="x", name="a", raw='{"a": 1}'),
        ToolCall(id="y", name="b", raw="free", kind="custom"),
    ]
    events: list[Event] = [STARTED]
    for index, part in enumerate(parts):
        events += whole(part, index=index)
    message = body_out("chat", [*events, finished("tool_calls")])["choices"][0]["message"]
    assert message["content"] == "hello world"
    assert message["reasoning_content"] == "one\n\ntwo"
    assert message["refusal"] == "no"
    assert message["tool_calls"] == [
        {"id": "x", "type": "function", "function": {"name": "a", "arguments": '{"a": 1}'}},
        {"id": "y", "type": "custom", "custom": {"name": "b", "input": "free"}},
    ]


def test_deltas_for_nothing_known_are_nothing() -> None:
    assert out("chat", [STARTED, PartDelta(9, "x")]) == b""
    assert json.loads(out("chat", [STARTED, PartDelta(9, "x"), finished()], make_request("chat", is_stream=False)))[
        "choices"
    ]
