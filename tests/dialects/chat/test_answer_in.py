"""Chat answers in: what upstreams get wrong is put right by state, and said."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.dialects.codec_harness import answer_in, body_in, events_in, failure, irregular_in, make_request, terminal
from tests.dialects.upstream_events import DONE, TOP, call, chunk, sse, usage_chunk
from toolwire.events import Finished, FoldedAnswer, Noted, fold
from toolwire.types import Citation, Opaque, Reasoning, Refusal, Text, ToolCall

ROLE = chunk({"role": "assistant", "content": ""})
CALLS = chunk(finish="tool_calls")
ONE, TWO = '{"a":1}', '{"b":2}'


def calls_of(answer: FoldedAnswer) -> list[tuple[str, str, str]]:
    return [(one.id, one.name, one.raw) for one in answer.parts_of(0) if isinstance(one, ToolCall)]


def calls_in(*chunks: bytes, end: bytes = CALLS + DONE) -> list[tuple[str, str, str]]:
    return calls_of(answer_in("chat", ROLE, *chunks, end))


def two(*deltas: Any) -> bytes:
    """Several calls in one chunk."""
    return chunk({"tool_calls": [one["tool_calls"][0] for one in deltas]})


BOTH = [("x", "first", ONE), ("y", "second", TWO)]


@pytest.mark.parametrize("index", [0, 7, None], ids=["all zero", "all seven", "none"])
def test_H001_H003_H004_parallel_calls_with_one_index_stay_apart(index: int | None) -> None:
    pieces = [
        chunk(call(index, "x", "first", "")),
        chunk(call(index, arguments='{"a"')),
        chunk(call(index, arguments=":1}")),
        chunk(call(index, "y", "second", "")),
        chunk(call(index, arguments=TWO)),
    ]
    assert calls_in(*pieces) == BOTH
    assert irregular_in("chat", b"".join([ROLE, *pieces, CALLS, DONE]))


def test_H002_a_call_a_chunk_each_with_index_zero_and_whole() -> None:
    assert calls_in(chunk(call(0, "x", "first", ONE)), chunk(call(0, "y", "second", TWO))) == BOTH


def test_two_calls_in_one_chunk() -> None:
    assert calls_in(two(call(0, "x", "first", ONE), call(1, "y", "second", TWO))) == BOTH
    assert calls_in(two(call(0, "x", "first", ONE), call(0, "y", "second", TWO))) == BOTH


def test_interleaved_fragments_go_to_their_call() -> None:
    pieces = [
        two(call(0, "x", "first", ""), call(1, "y", "second", "")),
        chunk(call(0, arguments='{"a"')),
        chunk(call(1, arguments='{"b"')),
        chunk(call(0, arguments=":1}")),
        chunk(call(1, arguments=":2}")),
    ]
    assert calls_in(*pieces) == BOTH
    assert irregular_in("chat", b"".join([ROLE, *pieces, CALLS, DONE])) == ""


def test_id_and_name_on_every_fragment() -> None:
    texts = ['{"a"', ":", "1}"]
    assert calls_in(*(chunk(call(0, "x", "first", text)) for text in texts)) == [BOTH[0]]
    assert calls_in(*(chunk(call(None, "x", "first", text)) for text in texts)) == [BOTH[0]]


def test_H017_equal_fragments_are_all_kept() -> None:
    texts = ['{"n":1', "0", "0", ',"s":"l', "l", " -l", '"}']
    assert calls_in(chunk(call(0, "x", "first", "")), *(chunk(call(0, arguments=text)) for text in texts)) == [
        ("x", "first", '{"n":100,"s":"ll -l"}')
    ]


@pytest.mark.parametrize("copy", [call(0, "x", "first", ONE), call(0, "x", None, ONE), call(None, "x", "first", ONE)])
def test_H015_a_full_copy_at_the_end_is_no_second_half(copy: Any) -> None:
    assert calls_in(chunk(call(0, "x", "first", '{"a"')), chunk(call(0, arguments=":1}")), chunk(copy)) == [BOTH[0]]


@pytest.mark.parametrize("late", [call(0, arguments=ONE), call(0, arguments="\n"), call(0, "x", "first", ONE)])
def test_H015_a_copy_after_the_next_call_began(late: Any) -> None:
    assert calls_in(chunk(call(0, "x", "first", ONE)), chunk(call(1, "y", "second", TWO)), chunk(late)) == BOTH


def test_H016_id_name_and_all_arguments_in_one_chunk() -> None:
    assert calls_in(chunk(call(0, "x", "first", ONE))) == [BOTH[0]]


def test_H050_H051_equal_ids_are_two_calls() -> None:
    pieces = chunk(call(0, "http", "http", ONE)), chunk(call(1, "http", "http", TWO))
    assert calls_in(*pieces) == [("http", "http", ONE), ("http", "http", TWO)]


def test_the_name_comes_after_the_arguments() -> None:
    assert calls_in(chunk(call(0, "x", None, '{"a"')), chunk(call(0, None, "first", ":1}"))) == [BOTH[0]]


def test_H012_H109_a_call_without_arguments_has_the_empty_object() -> None:
    assert calls_in(chunk(call(0, "x", "first", ""))) == [("x", "first", "{}")]
    assert calls_in(chunk(call(0, "x", "first"))) == [("x", "first", "{}")]


def test_H030_arguments_as_an_object() -> None:
    assert calls_in(chunk(call(0, "x", "first", {"a": 1}))) == [BOTH[0]]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "type": "function", "name": "weather", "arguments": '{"city":"Rome"}'},
        {"id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
        {"id": "c1", "type": "function", "function": {"name": "weather", "parameters": {"city": "Rome"}}},
    ],
)
def test_a_call_with_its_members_in_other_places(call: dict[str, Any]) -> None:
    stream = chunk({"tool_calls": [{"index": 0, **call}]}) + chunk(finish="tool_calls") + DONE
    [part] = fold(events_in("chat", stream)).parts
    assert part.part == ToolCall(id="c1", name="weather", raw='{"city":"Rome"}', args={"city": "Rome"})
    assert irregular_in("chat", stream)


def test_H030_a_new_id_each_chunk_is_one_answer() -> None:
    wire = b"".join(chunk({"content": text}, id=f"chatcmpl-{text}") for text in "abc") + chunk(finish="stop") + DONE
    answer = answer_in("chat", wire)
    assert answer.started.id == "chatcmpl-a"
    assert answer.parts_of(0) == (Text(text="abc"),)
    assert irregular_in("chat", wire)


def test_the_legacy_function_call() -> None:
    pieces = (
        chunk({"function_call": {"name": "first", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
    )
    assert calls_in(*pieces, end=chunk(finish="function_call") + DONE) == [("", "first", ONE)]


def test_H028_stop_after_calls_is_irregular() -> None:
    wire = ROLE + chunk(call(0, "x", "first", ONE)) + chunk(finish="stop") + DONE
    assert "hides" in irregular_in("chat", wire)


def test_H029_content_after_a_finish_reason_is_kept() -> None:
    answer = answer_in("chat", chunk({"content": "a"}, "stop"), chunk({"content": "b"}), chunk(finish="stop"), DONE)
    assert answer.parts_of(0) == (Text(text="ab"),)
    late = answer_in("chat", chunk({"content": "a"}, "stop"), chunk(call(0, "x", "first", ONE)), CALLS, DONE)
    assert calls_of(late) == [BOTH[0]]


def test_H013_usage_on_every_chunk_ends_nothing() -> None:
    pieces = [
        chunk(call(0, "x", "first", ""), usage={"prompt_tokens": 5, "completion_tokens": 1}),
        chunk(call(0, arguments='{"a"'), usage={"prompt_tokens": 5, "completion_tokens": 2}),
        chunk(call(0, arguments=":1}"), usage={"prompt_tokens": 5, "completion_tokens": 3}),
    ]
    answer = answer_in("chat", *pieces, CALLS, DONE)
    assert calls_of(answer) == [BOTH[0]]
    assert answer.finished.usage is not None
    assert (answer.finished.usage.input, answer.finished.usage.output) == (5, 3)


def test_H008_text_and_calls_of_one_answer_in_two_choices() -> None:
    wire = chunk({"content": "I look."}) + chunk(call(0, "x", "first", ONE), index=1)
    answer = answer_in("chat", wire, chunk(finish="stop"), chunk(finish="tool_calls", index=1), DONE)
    assert answer.parts_of(0) == (Text(text="I look."), ToolCall(id="x", name="first", raw=ONE, args={"a": 1}))
    assert [choice.index for choice in answer.finished.choices] == [0]


def test_H008_the_same_in_a_body() -> None:
    tool_call = {"id": "x", "type": "function", "function": {"name": "first", "arguments": ONE}}
    choices = [
        {"index": 0, "message": {"role": "assistant", "content": "I look."}, "finish_reason": "stop"},
        {"index": 1, "message": {"role": "assistant", "tool_calls": [tool_call]}, "finish_reason": "tool_calls"},
    ]
    answer = fold(body_in("chat", json.dumps({**TOP, "object": "chat.completion", "choices": choices}).encode()))
    assert answer.parts_of(0) == (Text(text="I look."), ToolCall(id="x", name="first", raw=ONE, args={"a": 1}))
    assert [choice.reason for choice in answer.finished.choices] == ["tool_calls"]


def test_H005_two_requested_choices_stay_two() -> None:
    request = make_request("chat", n=2)
    wire = chunk({"content": "a"}) + chunk(call(0, "x", "first", ONE), index=1) + chunk({"content": "b"})
    answer = answer_in("chat", wire, chunk(finish="stop"), chunk(finish="tool_calls", index=1), DONE, request=request)
    assert answer.parts_of(0) == (Text(text="ab"),)
    assert answer.parts_of(1) == (ToolCall(id="x", name="first", raw=ONE, args={"a": 1}),)
    assert [choice.reason for choice in answer.finished.choices] == ["stop", "tool_calls"]


def test_H031_arguments_cut_by_the_limit_are_no_complete_call() -> None:
    answer = answer_in("chat", chunk(call(0, "x", "first", '{"a": "lon')), chunk(finish="length"), DONE)
    (part,) = answer.parts_of(0)
    assert isinstance(part, ToolCall)
    assert (part.raw, part.args) == ('{"a": "lon', None)
    assert answer.finished.choices[0].reason == "length"


def test_H154_a_cut_in_a_call_is_an_error_not_a_call() -> None:
    events = events_in("chat", ROLE, chunk(call(0, "x", "first", '{"a')))
    assert failure(events).error.code == "upstream_cut"
    events = events_in("chat", ROLE, chunk(call(0, "x", "first", '{"a')), DONE)
    assert failure(events).error.code == "upstream_cut"


def test_no_end_mark_after_a_finish_reason_is_an_end() -> None:
    events = events_in("chat", chunk({"content": "a"}), chunk(finish="stop"))
    assert isinstance(terminal(events), Finished)
    assert irregular_in("chat", ROLE + chunk({"content": "a"}) + chunk(finish="stop")) == "no end mark"


def test_a_mark_without_finish_reason_after_text_is_an_end() -> None:
    answer = answer_in("chat", chunk({"content": "a"}), DONE)
    assert answer.finished.choices[0].reason == "stop"


@pytest.mark.parametrize(
    ("frame", "status", "words"),
    [
        (sse({"error": {"message": "no more quota", "code": 429}}), 429, "no more quota"),
        (sse({"error": {"message": "busy", "type": "server_error"}}), 502, "busy"),
        (sse({"error": "plain words"}), 502, "plain words"),
        (sse({"message": "odd"}, "error"), 502, "odd"),
        (sse({"error parsing tool call": "raw='x'"}), 502, "error parsing tool call"),
        (b"data: <html>busy</html>\n\n", 502, "<html>"),
        (b"data: [1]\n\n", 502, "where a chunk was expected"),
        (chunk({"content": ""}, "error", error={"message": "upstream died", "code": 503}), 503, "upstream died"),
        (chunk(finish="error") + DONE, 502, "ended its answer with an error"),
    ],
    ids=["object", "no status", "words", "event", "H114", "html", "list", "with choices", "finish"],
)
def test_H154_an_error_in_mid_stream_keeps_its_message(frame: bytes, status: int, words: str) -> None:
    for before in (b"", ROLE + chunk({"content": "abc"})):
        error = failure(events_in("chat", before, frame)).error
        assert error.status == status
        assert words in error.message


def test_H146_an_overflow_is_known_as_one() -> None:
    words = "This model's maximum context length is 8192 tokens."
    assert failure(events_in("chat", sse({"error": {"message": words}}))).error.code == "context_length_exceeded"


def test_html_instead_of_a_stream_is_a_failure() -> None:
    assert failure(events_in("chat", b"<html><body>502 Bad Gateway</body></html>")).error.status == 502


def test_a_call_without_a_name_is_a_failure_in_a_stream_and_in_a_body() -> None:
    assert "without a name" in failure(events_in("chat", chunk(call(0, "x", None, ONE)), CALLS, DONE)).error.message
    message = {"tool_calls": [{"id": "x", "function": {"arguments": ONE}}]}
    body = {**TOP, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert "without a name" in failure(body_in("chat", json.dumps(body).encode())).error.message


def test_reasoning_precedes_the_text_of_its_chunk() -> None:
    answer = answer_in("chat", chunk({"content": "b", "reasoning_content": "a"}), chunk(finish="stop"), DONE)
    assert answer.parts_of(0) == (Reasoning(text="a", extra={"chat": {}}), Text(text="b"))


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_both_names_of_thoughts(member: str) -> None:
    answer = answer_in("chat", chunk({member: "a"}), chunk({"content": "b"}), chunk(finish="stop"), DONE)
    assert answer.parts_of(0) == (Reasoning(text="a", extra={"chat": {}}), Text(text="b"))


def test_content_in_a_list() -> None:
    delta = {
        "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}, {"type": "text", "text": "b"}]
    }
    answer = answer_in("chat", chunk(delta), chunk(finish="stop"), DONE)
    assert answer.parts_of(0) == (Reasoning(text="a", extra={"chat": {}}), Text(text="b"))


def test_a_whole_message_where_a_delta_was_due() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "abc"}, "finish_reason": "stop"}
    assert answer_in("chat", sse({**TOP, "choices": [choice]}), DONE).parts_of(0) == (Text(text="abc"),)


def test_refusals_and_their_reason() -> None:
    answer = answer_in(
        "chat", chunk({"refusal": "I"}), chunk({"refusal": " won't"}), chunk(finish="content_filter"), DONE
    )
    assert answer.parts_of(0) == (Refusal(text="I won't"),)
    assert answer.finished.choices[0].reason == "refused"


def test_citations_belong_to_the_text_also_in_its_first_chunk() -> None:
    note = {
        "type": "url_citation",
        "url_citation": {"url": "https://a", "title": "A", "start_index": 0, "end_index": 1},
    }
    for chunks in (
        [chunk({"content": "a", "annotations": [note]})],
        [chunk({"content": "a"}), chunk({"annotations": [note]})],
    ):
        events = events_in("chat", *chunks, chunk(finish="stop"), DONE)
        (part,) = fold(events).parts_of(0)
        assert isinstance(part, Text)
        assert [(one.url, one.end) for one in part.citations] == [("https://a", 1)]
        assert [event.index for event in events if isinstance(event, Noted) and isinstance(event.note, Citation)] == [0]


def test_unknown_members_are_noted_not_dropped() -> None:
    events = events_in("chat", ROLE, chunk({"content": "a", "x_delta": 1}, x_top=2), chunk(finish="stop"), DONE)
    (noted,) = [event for event in events if isinstance(event, Noted)]
    assert isinstance(noted.note, Opaque)
    assert noted.note.value == {"x_top": 2, "choices": [{"index": 0, "delta": {"x_delta": 1}}]}


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": 5},
        {"tool_calls": 5},
        {"tool_calls": [5]},
        {"content": 5},
        {"function_call": 5},
        {"content": [5, {"thinking": 5}]},
    ],
)
def test_wrong_types_inside_a_delta_do_no_harm(odd: Any) -> None:
    assert isinstance(terminal(events_in("chat", ROLE, chunk(odd), chunk(finish="stop"), DONE)), Finished)


def test_a_custom_call() -> None:
    started = {"tool_calls": [{"index": 0, "id": "x", "type": "custom", "custom": {"name": "patch", "input": ""}}]}
    more = {"tool_calls": [{"index": 0, "custom": {"input": "*** Begin"}}]}
    (part,) = answer_in("chat", chunk(started), chunk(more), CALLS, DONE).parts_of(0)
    assert part == ToolCall(id="x", name="patch", raw="*** Begin", kind="custom")


def test_a_body_in_full() -> None:
    message = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "hm",
        "refusal": None,
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "first", "arguments": ""}}],
        "x_message": 1,
    }
    body = {**TOP, "object": "chat.completion", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "x_top": 2}
    body["choices"] = [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}]
    answer = fold(body_in("chat", json.dumps(body).encode()))
    assert answer.started.extra == {"chat": {"x_top": 2}}
    assert answer.parts_of(0) == (
        Reasoning(text="hm", extra={"chat": {}}),
        Text(text="a"),
        ToolCall(id="x", name="first", raw="{}", args={}),
        Opaque(dialect="chat", value={"x_message": 1}),
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "no choices"),
        (b'{"choices":[]}', "no choices"),
        (b'{"error":{"message":"no"}}', "no"),
        (b'{"error":"no"}', "no"),
    ],
)
def test_a_body_that_is_no_answer(body: bytes, words: str) -> None:
    assert words in failure(body_in("chat", body)).error.message


def test_the_counters_of_usage() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "x_usage": 1,
    }
    found = answer_in("chat", chunk({"content": "a"}, "stop"), usage_chunk(**usage), DONE).finished.usage
    assert found is not None
    assert (found.input, found.output, found.cached, found.reasoning) == (10, 7, 4, 5)
    assert found.extra == {"chat": usage}
    odd = {"prompt_tokens": "x", "completion_tokens": -1, "prompt_tokens_details": 3}
    bad = answer_in("chat", chunk({"content": "a"}, "stop"), usage_chunk(**odd), DONE).finished.usage
    assert bad is not None
    assert (bad.input, bad.output, bad.cached) == (0, 0, 0)


def test_counts_and_likelihoods_keep_their_digits_also_in_a_regular_chunk() -> None:
    entry = {"token": "a", "logprob": "-0.1000000000000000000001", "bytes": None, "top_logprobs": []}
    choice = {"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    value = {**TOP, "choices": [{**choice, "logprobs": {"content": [entry]}}]}
    wire = sse(value).replace(b'"-0.1000000000000000000001"', b"-0.1000000000000000000001")
    counts = usage_chunk(prompt_tokens=9.0, completion_tokens=5)
    answer = answer_in("chat", wire, counts, DONE)
    (part,) = answer.parts_of(0)
    assert isinstance(part, Text)
    assert part.logprobs is not None
    assert part.logprobs[0]["logprob"] == Decimal("-0.1000000000000000000001")
    assert answer.finished.usage is not None
    assert (answer.finished.usage.input, answer.finished.usage.output) == (9, 5)


def test_long_answers_cost_linear_work() -> None:
    """Headers repeated on each of many fragments must not make every fragment a parse of the whole."""
    count = 20_000
    pieces = [chunk(call(0, "x", "first", text)) for text in ['{"a":[', *["{},"] * count, "1]}"]]
    (part,) = answer_in("chat", b"".join(pieces), CALLS, DONE).parts_of(0)
    assert isinstance(part, ToolCall)
    assert part.args is not None
    assert len(part.args["a"]) == count + 1


def test_H031_a_call_cut_before_its_arguments_has_none() -> None:
    assert calls_in(chunk(call(0, "x", "first", "")), end=chunk(finish="length") + DONE) == [("x", "first", "")]
    assert calls_in(chunk(call(0, "x", "first", ""))) == [("x", "first", "{}")]


def test_H074_what_a_server_adds_to_a_call_stays_with_it() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    first, second = call(0, "c", "f", "{"), call(0, arguments="}")
    first["tool_calls"][0]["extra_content"] = signature
    (part,) = answer_in("chat", ROLE, chunk(first), chunk(second), CALLS + DONE).parts_of(0)
    assert part == ToolCall(id="c", name="f", raw="{}", args={}, extra={"chat": {"extra_content": signature}})
    whole = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signature}
    message = {"role": "assistant", "content": None, "tool_calls": [whole]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    (part,) = fold(
        body_in("chat", json.dumps(TOP | {"object": "chat.completion", "choices": [choice]}).encode())
    ).parts_of(0)
    assert part.extra == {"chat": {"extra_content": signature}}
