"""reasoning_details: pieces of one entry are joined, entries stay apart, and what proves a thought is never changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import (
    answer_in,
    body_in,
    events_in,
    failure,
    irregular_in,
    make_request,
    numbered_ids,
    pieces,
)
from tests.dialects.upstream_events import DONE, TOP, call, chunk
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.chat.reasoning_details import Details, details_of, joined, words_in
from toolwire.events import Event, Noted, fold
from toolwire.profiles import OPENROUTER
from toolwire.types import Message, Opaque, Reasoning, Text, ToolCall

CLAUDE = "anthropic-claude-v1"
SIGNED = {"type": "reasoning.text", "text": "Let me look.", "signature": "c2ln", "format": CLAUDE, "index": 0}
CLAUDE_PIECES = [
    {"type": "reasoning.text", "text": "Let me", "format": CLAUDE, "index": 0},
    {"type": "reasoning.text", "text": " look.", "format": CLAUDE, "index": 0},
    {"type": "reasoning.text", "signature": "c2ln", "format": CLAUDE, "index": 0},
]
GEMINI = {"type": "reasoning.encrypted", "data": "cHJvb2Y=", "id": "call_1", "format": "google-gemini-v1", "index": 0}
OPENAI = [
    {"type": "reasoning.summary", "summary": "Looked.", "id": None, "format": "openai-responses-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "Z0FB", "id": "rs_1", "format": "openai-responses-v1", "index": 0},
]
FINISH = chunk(finish="tool_calls", native_finish_reason="tool_use") + DONE
CALL = chunk(call(0, "call_1", "look", '{"q":1}'))


def merged(*lists: list[Any]) -> list[Any]:
    details = Details()
    for entries in lists:
        details.add(entries)
    return details.whole()


def claude_stream(*, with_words: bool = True) -> list[bytes]:
    chunks = []
    for piece in CLAUDE_PIECES:
        words = {"reasoning": piece["text"]} if with_words and "text" in piece else {"reasoning": None}
        chunks.append(chunk({"role": "assistant", "content": "", **words, "reasoning_details": [piece]}, provider="X"))
    return [*chunks, CALL, FINISH]


def thought_of(events: list[Event]) -> Reasoning:
    (thought,) = [part for part in fold(events).parts_of(0) if isinstance(part, Reasoning)]
    return thought


def test_H081_pieces_of_a_signed_thought_become_one_entry() -> None:
    assert merged(*[[piece] for piece in CLAUDE_PIECES]) == [SIGNED]
    assert merged(CLAUDE_PIECES) == [SIGNED]


def test_entries_of_other_types_indices_and_calls_stay_apart() -> None:
    assert merged([*OPENAI, GEMINI], [SIGNED | {"index": 1}]) == [*OPENAI, GEMINI, SIGNED | {"index": 1}]
    second = GEMINI | {"id": "call_2", "data": "cHJvb2Yy"}
    assert merged([GEMINI], [second]) == [GEMINI, second]


def test_a_proof_that_comes_twice_is_one_and_one_in_halves_is_whole() -> None:
    assert merged([GEMINI], [GEMINI]) == [GEMINI]
    halves = [GEMINI | {"data": "cHJv"}, GEMINI | {"data": "b2Y="}]
    assert merged(halves) == [GEMINI]


def test_without_an_index_only_text_continues() -> None:
    text = {"type": "reasoning.text", "text": "a"}
    assert merged([text], [text | {"text": "b", "signature": "s"}]) == [text | {"text": "ab", "signature": "s"}]
    sealed = {"type": "reasoning.encrypted", "data": "a"}
    assert merged([sealed], [sealed | {"data": "b"}]) == [sealed, sealed | {"data": "b"}]


@pytest.mark.parametrize(
    "odd", [None, 3, "x", [1], {}, {"type": 1}, {"index": "0", "type": {}}, {"type": [], "index": 0}]
)
def test_what_is_no_entry_stays_as_it_is(odd: Any) -> None:
    assert merged([SIGNED, odd, GEMINI]) == [SIGNED, odd, GEMINI]


def test_members_that_a_later_piece_omits_are_kept() -> None:
    first = {"type": "reasoning.text", "text": "a", "id": "t1", "format": CLAUDE, "index": 0, "new": {"kept": 1}}
    later = {"type": "reasoning.text", "text": None, "id": None, "format": None, "index": 0, "signature": "s"}
    assert merged([first], [later]) == [first | {"signature": "s"}]


def test_words_are_those_for_readers() -> None:
    assert (
        words_in([*CLAUDE_PIECES, *OPENAI, GEMINI, None, {"type": "reasoning.text", "text": 5}])
        == "Let me look.Looked."
    )


@given(st.lists(st.text(max_size=5), max_size=8), st.lists(st.integers(0, 8), max_size=4))
def test_it_does_not_matter_how_pieces_come(texts: list[str], cuts: list[int]) -> None:
    entries = [{"type": "reasoning.text", "text": text, "index": 0} for text in texts]
    places = sorted(min(cut, len(entries)) for cut in cuts)
    lists = [entries[start:end] for start, end in zip([0, *places], [*places, len(entries)], strict=True)]
    assert merged(*lists) == merged(entries)
    assert "".join(entry["text"] for entry in merged(entries)) == "".join(texts)


@pytest.mark.parametrize("with_words", [True, False], ids=["words beside", "words in the details alone"])
def test_H081_a_streamed_thought_ends_with_its_details(with_words: bool) -> None:
    events = events_in("chat", *claude_stream(with_words=with_words))
    assert thought_of(events) == Reasoning(text="Let me look.", extra={"chat": {"reasoning_details": [SIGNED]}})
    assert irregular_in("chat", b"".join(claude_stream(with_words=with_words))) == ""


def test_cutting_a_stream_anywhere_changes_nothing() -> None:
    wire = b"".join(claude_stream())
    whole = events_in("chat", wire)
    for cut in range(0, len(wire), 7):
        assert events_in("chat", *pieces(wire, [cut])) == whole


def test_H074_a_signature_without_text_precedes_its_call() -> None:
    delta = {"content": "", "reasoning_details": [GEMINI], **call(0, "call_1", "look", '{"q":1}')}
    parts = answer_in("chat", chunk({"role": "assistant", "content": "Hm."}), chunk(delta), FINISH).parts_of(0)
    assert [type(part) for part in parts] == [Text, Reasoning, ToolCall]
    assert details_of(parts) == [GEMINI]


def test_a_signature_after_the_first_text_still_completes_its_reasoning() -> None:
    wire = [
        chunk({"role": "assistant", "reasoning": "Let me look.", "reasoning_details": CLAUDE_PIECES[:2]}),
        chunk({"content": "Well."}),
        chunk({"reasoning_details": CLAUDE_PIECES[2:]}),
        CALL,
        FINISH,
    ]
    assert details_of(answer_in("chat", *wire).parts_of(0)) == [SIGNED]


def test_a_whole_message_at_the_end_repeats_nothing() -> None:
    message = {"role": "assistant", "content": "", "reasoning_details": [SIGNED]}
    last = json.dumps({**TOP, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    wire = [*claude_stream()[:-1], b"data: " + last.encode() + b"\n\n", DONE]
    assert details_of(answer_in("chat", *wire).parts_of(0)) == [SIGNED]


def test_details_that_are_no_list_pass_as_what_they_are() -> None:
    events = events_in("chat", chunk({"role": "assistant", "content": "a", "reasoning_details": {"x": 1}}), FINISH)
    notes = [event.note.value for event in events if isinstance(event, Noted) and isinstance(event.note, Opaque)]
    assert {"choices": [{"index": 0, "delta": {"reasoning_details": {"x": 1}}}]} in notes


def body_of(**message: Any) -> bytes:
    tool_call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}}
    whole = {"role": "assistant", "content": None, "tool_calls": [tool_call], **message}
    choice = {"index": 0, "message": whole, "finish_reason": "tool_calls", "native_finish_reason": "tool_use"}
    top = {**TOP, "object": "chat.completion", "provider": "X"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**top, "choices": [choice], "usage": usage}).encode()


@pytest.mark.parametrize("details", [[SIGNED], [GEMINI], OPENAI, [SIGNED, SIGNED]])
def test_a_body_keeps_them_as_they_are(details: list[Any]) -> None:
    events = body_in("chat", body_of(reasoning=words_in(details) or None, reasoning_details=details))
    thought = thought_of(events)
    assert thought == Reasoning(text=words_in(details), extra={"chat": {"reasoning_details": details}})
    assert not [part for part in fold(events).parts_of(0) if isinstance(part, Opaque)]


def written(events: list[Event], *, is_stream: bool, keep: bool = True) -> list[Any]:
    """All details that a client of this dialect is told; keep: the pieces reach the encoder as notes."""
    request = make_request("chat", is_stream=is_stream)
    encoder = DIALECTS["chat"].encoder(AnswerContext(request=request, mint=numbered_ids(), now=1))
    wire = b"".join(encoder.send(event) for event in events if keep or not isinstance(event, Noted)) + encoder.close()
    if not is_stream:
        return [json.loads(wire)["choices"][0]["message"]["reasoning_details"]]
    values = [json.loads(line[6:]) for line in wire.splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"] for value in values for choice in value["choices"]]
    return [delta["reasoning_details"] for delta in deltas if "reasoning_details" in delta]


def test_a_client_gets_the_pieces_as_they_come_or_the_whole_once() -> None:
    events = events_in("chat", *claude_stream())
    assert written(events, is_stream=True) == [[piece] for piece in CLAUDE_PIECES]
    assert written(events, is_stream=True, keep=False) == [[SIGNED]]
    assert written(events, is_stream=False) == [[SIGNED]]
    whole = body_in("chat", body_of(reasoning_details=[SIGNED]))
    assert written(whole, is_stream=True) == [[SIGNED]]


def test_pieces_that_were_forwarded_are_not_sent_again() -> None:
    """Where the encoder takes over in the middle of a thought."""
    events = events_in("chat", *claude_stream())
    encoder = DIALECTS["chat"].encoder(AnswerContext(request=make_request("chat"), mint=numbered_ids(), now=1))
    middle = next(place for place, event in enumerate(events) if isinstance(event, Noted)) + 1
    for event in events[:middle]:
        encoder.observe(event)
    wire = b"".join(encoder.send(event) for event in events[middle:])
    assert wire.count(b"reasoning_details") == len(CLAUDE_PIECES) - 1


def test_H075_they_go_back_in_one_array() -> None:
    first = Reasoning(text="Let me look.", extra={"chat": {"reasoning_details": CLAUDE_PIECES[:2]}})
    second = Reasoning(text="", extra={"chat": {"reasoning_details": [CLAUDE_PIECES[2], GEMINI]}})
    tool_call = ToolCall(id="call_1", name="look", raw="{}", args={})
    turn = Message(role="assistant", parts=(first, Text(text="Well."), second, tool_call))
    request = make_request("messages")
    request = type(request)(model="m", messages=(*request.messages, turn))
    body = json.loads(DIALECTS["chat"].encode_request(request, OPENROUTER).body)
    assert body["messages"][1]["reasoning_details"] == [SIGNED, GEMINI]


def test_one_list_is_handed_on_as_it_is() -> None:
    twice = [SIGNED, SIGNED]
    assert joined([twice]) is twice
    assert joined([]) == []


@pytest.mark.parametrize("code", [429, 502, "odd"])
def test_H154_a_provider_that_fails_in_a_200_is_an_error_with_its_message(code: Any) -> None:
    """OpenRouter tells it beside the choices, or in one of them with the finish reason error."""
    status = code if isinstance(code, int) else 502
    error = {"code": code, "message": "Provider returned error", "metadata": {"provider_name": "X"}}
    choice = {
        "index": 0,
        "delta": {"content": ""},
        "finish_reason": "error",
        "native_finish_reason": "error",
        "error": error,
    }
    body = {**TOP, "object": "chat.completion", "choices": [choice | {"message": {"role": "assistant", "content": ""}}]}
    streams = [{**TOP, "choices": [choice]}, {**TOP, "choices": [choice | {"error": None}], "error": error}]
    found = [failure(events_in("chat", CALL, f"data: {json.dumps(value)}\n\n".encode())).error for value in streams]
    found += [failure(body_in("chat", json.dumps(value).encode())).error for value in (body, {"error": error})]
    assert [(one.status, one.message) for one in found] == [(status, "Provider returned error")] * 4
