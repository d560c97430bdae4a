"""Gemini: parts of one candidate, from pieces."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.gemini.candidates import Candidate, Nameless
from toolwire.dialects.shared.assembly import Assembly
from toolwire.events import Event, PartEnded
from toolwire.types import Citation, Opaque, Part, Reasoning, Refusal, Text, ToolCall


def chunk(*parts: Any, **members: Any) -> Any:
    return {"content": {"parts": list(parts), "role": "model"}, **members}


def parts_of(*chunks: Any, is_whole: bool = False, offered: frozenset[str] = frozenset()) -> list[Part]:
    candidate = Candidate(Assembly(), 0, offered)
    events: list[Event] = []
    for value in chunks:
        events += candidate.read(value, is_whole=is_whole)
    events += candidate.end()[0]
    return [event.part for event in events if isinstance(event, PartEnded)]


def test_pieces_of_text_are_one_part_and_of_a_body_each_its_own() -> None:
    pieces = [chunk({"text": "a"}), chunk({"text": "b"}, {"text": "c"})]
    assert parts_of(*pieces) == [Text(text="abc")]
    whole = parts_of(*pieces, is_whole=True)
    assert whole == [Text(text="a"), *(Text(text=text, is_continuation=True) for text in "bc")]


def test_thoughts_and_words_are_kept_apart() -> None:
    found = parts_of(
        chunk({"text": "let ", "thought": True}),
        chunk({"text": "me", "thought": True}, {"text": "So"}),
        chunk({"text": "hm", "thought": True}),
        chunk({"text": "it is."}),
    )
    assert [(type(part).__name__, getattr(part, "text", "")) for part in found] == [
        ("Reasoning", "let me"), ("Text", "So"), ("Reasoning", "hm"), ("Text", "it is."),
    ]  # fmt: skip


def test_H002_H016_calls_of_many_chunks_are_many_calls() -> None:
    found = parts_of(
        chunk({"functionCall": {"id": "1", "name": "a", "args": {"n": 1}}}),
        chunk({"functionCall": {"id": "2", "name": "a", "args": {"n": 1}}}),
        chunk({"functionCall": {"name": "b"}}, {"functionCall": {"name": "b", "args": None}}),
    )
    assert [(part.id, part.name, part.raw) for part in found if isinstance(part, ToolCall)] == [
        ("1", "a", '{"n":1}'), ("2", "a", '{"n":1}'), ("", "b", "{}"), ("", "b", "{}"),
    ]  # fmt: skip


def test_H074_a_signature_stays_on_its_part() -> None:
    found = parts_of(
        chunk({"text": "why", "thought": True, "thoughtSignature": "QQ=="}),
        chunk({"text": "because", "thought": True}),
        chunk({"text": "one"}),
        chunk({"text": "two", "thoughtSignature": "Qg=="}),
        chunk({"text": "three"}),
        chunk({"functionCall": {"name": "f"}, "thoughtSignature": "Qw=="}, {"functionCall": {"name": "g"}}),
    )
    assert found[:2] == [
        Reasoning(text="why", encrypted="QQ==", extra={"gemini": {}}), Reasoning(text="because", extra={"gemini": {}}),
    ]  # fmt: skip
    assert found[2:5] == [
        Text(text="one"),
        Text(text="two", is_continuation=True, extra={"gemini": {"thoughtSignature": "Qg=="}}),
        Text(text="three", is_continuation=True),
    ]
    assert [part.extra for part in found[5:]] == [{"gemini": {"thoughtSignature": "Qw=="}}, {}]


def test_H074_a_signature_without_a_word_goes_before_what_it_led_to() -> None:
    found = parts_of(
        chunk({"text": "so"}), chunk({"text": "", "thoughtSignature": "QQ=="}), chunk({"functionCall": {"name": "f"}})
    )
    assert found[:2] == [Text(text="so"), Reasoning(text="", encrypted="QQ==", extra={"gemini": {}})]


def test_H074_a_signature_at_the_end_belongs_to_the_answer() -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    candidate.read(chunk({"text": "so"}), is_whole=False)
    candidate.read(chunk({"text": "", "thoughtSignature": "QQ=="}, finishReason="STOP"), is_whole=False)
    assert candidate.finish == "STOP"
    _, choice = candidate.end()
    assert choice.extra == {"gemini": {"thoughtSignature": "QQ=="}}


def test_H029_an_end_that_goes_on_is_no_end() -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    candidate.read(chunk({"text": "a"}, finishReason="STOP"), is_whole=False)
    assert candidate.finish == "STOP"
    candidate.read(chunk({"text": "b"}), is_whole=False)
    assert candidate.finish == ""
    candidate.read({"finishReason": "MAX_TOKENS"}, is_whole=False)
    assert candidate.end()[1].reason == "length"


@pytest.mark.parametrize(
    ("finish", "has_call", "reason"),
    [
        ("STOP", False, "stop"), ("STOP", True, "tool_calls"), ("MAX_TOKENS", True, "length"), ("SAFETY", True, "refused"),
        ("OTHER", False, "other"), ("OTHER", True, "tool_calls"), ("NEW_WORD", False, "other"), ("LANGUAGE", False, "refused"),
    ],
)  # fmt: skip
def test_H028_how_it_ended(finish: str, has_call: bool, reason: str) -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    part = {"functionCall": {"name": "f"}} if has_call else {"text": "x"}
    candidate.read(chunk(part, finishReason=finish), is_whole=False)
    choice = candidate.end()[1]
    assert (choice.reason, choice.raw_reason) == (reason, finish)


def test_why_it_was_stopped_is_told_where_nothing_else_is() -> None:
    refused = {"finishReason": "PROHIBITED_CONTENT", "finishMessage": "Not this."}
    (told,) = parts_of(refused)
    assert told == Refusal(text="The provider ended the answer: PROHIBITED_CONTENT. Not this.", extra={"gemini": {}})
    assert parts_of(chunk({"text": "I"}, **refused)) == [Text(text="I")]


def test_H054_a_name_that_had_to_change_is_the_tools_own_again() -> None:
    (part,) = parts_of(chunk({"functionCall": {"name": "_3d"}}), offered=frozenset({"3d"}))
    assert isinstance(part, ToolCall)
    assert part.name == "3d"


def test_a_call_without_a_name_is_nobodys() -> None:
    with pytest.raises(Nameless):
        parts_of(chunk({"functionCall": {"args": {}}}))


def test_arguments_in_pieces_are_left_to_who_asked_for_them() -> None:
    pieces = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}},
        {"functionCall": {}},
    ]
    assert parts_of(*map(chunk, pieces)) == [Opaque(dialect="gemini", value=piece) for piece in pieces]


def test_other_parts_are_carried() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "x"}}
    assert parts_of(chunk({"text": "a"}, image, {"text": "b"})) == [
        Text(text="a"), Opaque(dialect="gemini", value=image), Text(text="b"),
    ]  # fmt: skip


def test_sources_are_the_last_texts() -> None:
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"endIndex": 5, "text": "It is"}, "groundingChunkIndices": [0]}],
    }
    cited = (Citation(url="https://a.example", title="A", quote="It is", start=0, end=5),)
    for is_whole in (True, False):
        found = parts_of(chunk({"text": "It is 18 C."}, groundingMetadata=grounding), is_whole=is_whole)
        assert found == [Text(text="It is 18 C.", citations=cited)]


@pytest.mark.parametrize(
    "value", [{"content": 1}, {"content": {"parts": 1}}, {"content": {"parts": [1, None, {}]}}, {}]
)
def test_odd_chunks_say_nothing(value: Any) -> None:
    assert [part for part in parts_of(value) if not isinstance(part, Opaque)] == []
