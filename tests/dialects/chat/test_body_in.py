"""Whole answers of Chat Completions servers that are not as documented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.codec_harness import answer_in, body_in, events_in, failure, make_request, terminal
from tests.dialects.upstream_events import DONE, TOP, call, chunk
from toolwire.dialects.base import OTHER_CHOICES as LOSS
from toolwire.dialects.chat.body_in import body_events, regular_body_events
from toolwire.dialects.chat.shapes import is_counted, usage_in
from toolwire.events import Event, Finished, FoldedAnswer, Noted, fold
from toolwire.types import Loss, Opaque, Text, ToolCall

MESSAGE = {"role": "assistant", "content": "a"}


def body(**members: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    return {**TOP, "object": "chat.completion", "choices": [choice], "usage": usage, **members}


def test_a_regular_body_is_regular() -> None:
    events, irregular = body_events(make_request("chat"), body())
    assert irregular == ""
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    "members",
    [
        {"usage": {"prompt_tokens": -1, "completion_tokens": 5}},
        {"usage": {"prompt_tokens": 9, "completion_tokens": True}},
        {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": MESSAGE, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "STOP"}]},
    ],
)
def test_faults_in_it_are_reported_and_harmless(members: dict[str, Any]) -> None:
    events, irregular = body_events(make_request("chat"), body(**members))
    assert irregular
    assert isinstance(events[-1], Finished)
    assert events[-1].choices[0].reason == "stop"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"error": {"message": "busy"}}, "busy"),
        ({"choices": None, "detail": "busy"}, "busy"),
        ({"choices": [{"index": 0, "finish_reason": "stop"}]}, "no message"),
        ({"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "abort"}]}, "with an error"),
    ],
)
def test_H114_H154_an_error_in_a_200_is_an_error(members: dict[str, Any], words: str) -> None:
    events = body_in("chat", json.dumps(body(**members)).encode())
    assert words in failure(events).error.message
    assert terminal(events) is events[-1]


def test_counts_are_whole_numbers() -> None:
    assert is_counted({"prompt_tokens": 0, "completion_tokens": 5})
    assert not is_counted({"prompt_tokens": 1 << 60, "completion_tokens": 5})
    assert usage_in({"prompt_tokens": "9", "completion_tokens": 5}).input == 0


ROLE = {"role": "assistant", "content": ""}
ONE, TWO = '{"a":1}', '{"b":2}'
FIRST = ToolCall(id="x", name="f", raw=ONE, args={"a": 1})
SECOND = ToolCall(id="y", name="f", raw=TWO, args={"b": 2})
LOOK = Text(text="I look.")


def losses(events: list[Event]) -> list[Loss]:
    return [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]


def ends(*indices: int) -> bytes:
    return b"".join(chunk(finish="tool_calls", index=index) for index in indices) + DONE


def fragments(call_id: str, raw: str, index: int) -> list[bytes]:
    texts = [chunk(call(0, arguments=text), index=index) for text in (raw[:3], raw[3:])]
    return [chunk(ROLE, index=index), chunk(call(0, call_id, "f", ""), index=index), *texts]


@pytest.mark.parametrize("order", ["in turn", "one by one", "the second one first", "in one chunk"])
def test_calls_of_two_choices_do_not_mix(order: str) -> None:
    first, second = fragments("x", ONE, 0), fragments("y", TWO, 1)
    match order:
        case "in turn":
            wire = b"".join(one for pair in zip(first, second, strict=True) for one in pair)
        case "one by one":
            wire = b"".join(first + second)
        case "the second one first":
            wire = b"".join(second + first)
        case _:
            choices = [
                {"index": index, "delta": {**ROLE, **call(0, call_id, "f", raw)}, "finish_reason": None}
                for index, call_id, raw in ((0, "x", ONE), (1, "y", TWO))
            ]
            wire = b"data: " + json.dumps({**TOP, "choices": choices}).encode() + b"\n\n"
    events = events_in("chat", wire, ends(0, 1))
    assert fold(events).parts_of(0) == (FIRST,)
    assert fold(events).finished.choices[0].reason == "tool_calls"
    assert losses(events) == [LOSS]


def test_where_two_were_requested_both_count() -> None:
    wire = b"".join(fragments("x", ONE, 0) + fragments("y", TWO, 1))
    events = events_in("chat", wire, ends(0, 1), request=make_request("chat", n=2))
    assert fold(events).parts_of(0) == (FIRST,)
    assert fold(events).parts_of(1) == (SECOND,)
    assert losses(events) == []


def test_H008_calls_of_the_second_choice_come_when_the_first_has_ended() -> None:
    text = chunk({**ROLE, "content": "I look."})
    half = fragments("y", TWO, 1)
    for wire in ([text, *half, chunk(finish="stop")], [text, chunk(finish="stop"), *half]):
        events = events_in("chat", *wire, ends(1))
        assert fold(events).parts_of(0) == (LOOK, SECOND)
        assert fold(events).finished.choices[0].reason == "tool_calls"
        assert losses(events) == []


def test_H008_the_first_choice_need_not_tell_its_end() -> None:
    answer = answer_in("chat", chunk({**ROLE, "content": "I look."}), *fragments("y", TWO, 1), ends(1))
    assert answer.parts_of(0) == (LOOK, SECOND)


def test_a_second_choice_with_text_of_its_own_is_another_answer() -> None:
    text = chunk({**ROLE, "content": "I look."})
    other = chunk({"content": "Let me see."}, index=1)
    wire = [text, other, *fragments("y", TWO, 1), chunk(finish="stop")]
    events = events_in("chat", *wire, ends(1))
    assert fold(events).parts_of(0) == (LOOK,)
    assert fold(events).finished.choices[0].reason == "stop"
    assert losses(events) == [LOSS]


def test_text_behind_the_calls_of_a_half_is_lost_and_reported() -> None:
    wire = [chunk({**ROLE, "content": "I look."}), chunk(finish="stop"), *fragments("y", TWO, 1)]
    events = events_in("chat", *wire, chunk({"content": "Done."}, index=1), ends(1))
    assert fold(events).parts_of(0) == (LOOK, SECOND)
    assert losses(events) == [LOSS]


def test_where_the_first_choice_is_empty_the_second_is_the_answer() -> None:
    for before in ([], [chunk(ROLE), chunk(finish="stop")]):
        text = chunk({**ROLE, "content": "I look."}, index=1)
        events = events_in("chat", *before, text, *fragments("y", TWO, 1), ends(1))
        assert fold(events).parts_of(0) == (LOOK, SECOND)
        assert losses(events) == []


def test_choices_that_say_nothing_are_no_loss() -> None:
    events = events_in("chat", chunk({**ROLE, "content": "I look."}), chunk(ROLE, index=1), ends(1, 0))
    assert fold(events).parts_of(0) == (LOOK,)
    assert losses(events) == []


def test_unknown_members_and_sources_of_another_choice_are_left_out() -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://a", "start_index": 0, "end_index": 1}}
    odd = chunk({"content": "Hm.", "x_delta": 1, "annotations": [note]}, index=1, x_top=2)
    events = events_in("chat", chunk({**ROLE, "content": "I look."}), odd, chunk(finish="stop"), DONE)
    noted = [event.note for event in events if isinstance(event, Noted)]
    assert noted == [Opaque(dialect="chat", value={"x_top": 2}), LOSS]


def body_with_choices(*messages: Any) -> list[Event]:
    choices = [
        {"index": index, "message": {"role": "assistant", **message}, "finish_reason": finish}
        for index, (message, finish) in enumerate(messages)
    ]
    return body_in("chat", json.dumps({**TOP, "object": "chat.completion", "choices": choices}).encode())


def calling(call_id: str, raw: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": raw}}]}


def reason(answer: FoldedAnswer) -> str:
    (choice,) = answer.finished.choices
    return choice.reason


def test_a_body_has_one_answer_by_the_same_rule() -> None:
    events = body_with_choices((calling("x", ONE), "tool_calls"), (calling("y", TWO), "tool_calls"))
    assert fold(events).parts_of(0) == (FIRST,)
    assert losses(events) == [LOSS]
    events = body_with_choices(({"content": "I look."}, "stop"), (calling("y", TWO), "tool_calls"))
    assert (fold(events).parts_of(0), reason(fold(events))) == ((LOOK, SECOND), "tool_calls")
    assert losses(events) == []
    events = body_with_choices(
        ({"content": "I look."}, "length"), ({"content": "Hm.", **calling("y", TWO)}, "tool_calls")
    )
    assert (fold(events).parts_of(0), reason(fold(events))) == ((LOOK,), "length")
    assert losses(events) == [LOSS]
    events = body_with_choices(({"content": None}, "stop"), (calling("y", TWO), "tool_calls"))
    assert (fold(events).parts_of(0), reason(fold(events))) == ((SECOND,), "tool_calls")
    assert losses(events) == []
    events = body_with_choices(
        ({"content": "I look."}, "stop"), (calling("x", ONE), "tool_calls"), (calling("y", TWO), "stop")
    )
    assert (fold(events).parts_of(0), reason(fold(events))) == ((LOOK, FIRST), "tool_calls")
    assert losses(events) == [LOSS]


REGULAR = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi é."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


def regular_variants() -> Iterator[tuple[dict[str, Any], bool]]:
    """Bodies, each with whether it is regular."""
    message, choice = REGULAR["choices"][0]["message"], REGULAR["choices"][0]  # type: ignore[index]
    yield REGULAR, True
    yield REGULAR | {"system_fingerprint": None, "service_tier": "default"}, True
    for more in ({"refusal": None}, {"annotations": []}, {"tool_calls": None}):
        yield REGULAR | {"choices": [choice | {"message": message | more}]}, True
    for finish in ("length", "content_filter"):
        yield REGULAR | {"choices": [choice | {"finish_reason": finish, "logprobs": None}]}, True
    for other in ({"content": ""}, {"content": None}, {"role": "user"}, {"refusal": "no"}, {"reasoning": "hm"}):
        yield REGULAR | {"choices": [choice | {"message": message | other}]}, False
    for odd in ({"finish_reason": "eos"}, {"finish_reason": None}, {"index": 1}, {"logprobs": {"content": [1]}}):
        yield REGULAR | {"choices": [choice | odd]}, False
    for change in (
        {"choices": []},
        {"choices": [choice, choice]},
        {"usage": {}},
        {"id": ""},
        {"timings": 1},
        {"error": 1},
    ):
        yield REGULAR | change, False


@pytest.mark.parametrize(("body", "is_regular"), list(regular_variants()))
def test_a_regular_body_has_the_same_events_without_reading_it_by_hand(body: dict[str, Any], is_regular: bool) -> None:
    request = make_request("chat")
    found = regular_body_events(request, json.dumps(body, ensure_ascii=False).encode())
    assert (found is not None) == is_regular
    if found is not None:
        assert (found, "") == body_events(request, body)
