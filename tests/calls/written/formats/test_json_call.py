from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.speaking import joined, told
from tests.calls.written.formats.native import Tools
from toolwire.calls.written.formats.base import CallBroken, CallClosed, CallGrew, CallOpened, Piece
from toolwire.calls.written.formats.json_call import Envelope
from toolwire.calls.written.formats.lexer import Tape
from toolwire.types import Tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def scanned(text: str, size: int = 0, *, is_bare: bool = False) -> tuple[Envelope, list[Piece], str]:
    tape = Tape("", told())
    envelope = Envelope(tape, is_bare=is_bare)
    pieces = tape.pieces
    for start in range(0, len(text), size or len(text)):
        piece = text[start : start + (size or len(text))]
        end = envelope.feed(piece, 0)
        if envelope.status != "more":
            return envelope, pieces, piece[end:] + text[start + len(piece) :]
    return envelope, pieces, ""


@given(
    st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.sampled_from([None, 1]), st.booleans(), st.integers(0, 9)
)
def test_arguments_are_passed_as_they_were_written(
    arguments: dict[str, object], indent: int | None, is_first: bool, size: int
) -> None:
    raw = json.dumps(arguments, indent=indent)
    text = f'{{"arguments": {raw}, "name": "f"}} x' if is_first else f'{{"name": "f", "arguments":{raw}}} x'
    envelope, pieces, rest = scanned(text, size)
    assert envelope.status == "done"
    assert rest == " x"
    envelope.finish()
    assert joined(pieces) == [CallOpened("f"), CallGrew(raw), CallClosed(name="f", raw=raw)]


@pytest.mark.parametrize(
    ("text", "status", "rest"),
    [
        ('{"name": "f", "a": [1}', "bad", "}"),
        ('{"name": "f" </x>', "tag", "</x>"),
        ('{"tool_calls": [{', "several", "[{"),
        ('{"a": "<"', "more", ""),
    ],
)
def test_where_it_stops(text: str, status: str, rest: str) -> None:
    for size in (0, 1):
        envelope, _, left = scanned(text, size)
        assert (envelope.status, left) == (status, rest)


def test_without_a_tag_the_first_other_member_ends_it() -> None:
    envelope, _, _ = scanned('{"id": 1, "title": "x"', is_bare=True)
    assert envelope.status == "stranger"


def test_the_first_name_and_arguments_count() -> None:
    envelope, pieces, _ = scanned('{"name": "f", "args": {"a": 1}, "name": "g", "input": {"b": 2}}')
    envelope.finish()
    assert pieces[-1] == CallClosed(name="f", raw='{"a": 1}')


def test_members_deeper_inside_do_not_count() -> None:
    envelope, pieces, _ = scanned(
        '{"extra": {"name": "g", "arguments": {"b": 2}}, "name": "f", "arguments": {"name": "h"}}'
    )
    envelope.finish()
    assert pieces[-1] == CallClosed(name="f", raw='{"name": "h"}')


def test_arguments_that_do_not_begin_like_json_wait_for_their_end() -> None:
    envelope, pieces, _ = scanned("{'name': 'f', 'arguments': { 'a': [1, 2,], b: None")
    assert pieces == []
    assert envelope.arguments() is None


def test_what_was_written_behind_the_fault_belongs_to_the_arguments() -> None:
    envelope, pieces, rest = scanned('{"name": "f", "arguments": {"a": [1}}')
    envelope.extend(rest)
    envelope.finish(why="because")
    assert pieces[-1] == CallBroken(text="", why="because", name="f", raw='{"a": [1}')


@pytest.mark.slow
def test_deep_nesting_is_no_danger() -> None:
    envelope, pieces, _ = scanned('{"name": "f", "arguments": {"a": ' + "[" * 200_000 + "]" * 200_000 + "}}", 1000)
    assert envelope.status == "done"
    envelope.finish()
    assert isinstance(pieces[-1], CallBroken)


SERVERS = Tools(
    is_instructed=True,
    tools=[
        Tool(
            name="list_servers",
            schema={
                "type": "object",
                "properties": {"type": {"type": "string"}, "id": {}, "deep": {"type": "boolean"}},
            },
        )
    ],
)


@pytest.mark.parametrize(
    ("members", "raw"),
    [
        ('"type": "mtna"', '{"type":"mtna"}'),
        ('"type": "mtna", "deep": true', '{"type":"mtna","deep":true}'),
        ('"type": "function", "deep": true', '{"deep":true}'),
        ('"id": 7, "index": 0', '{"id":7}'),
        ('"type": "mtna", "reason": "as asked"', '{"type":"mtna"}'),
    ],
)
def test_arguments_beside_the_name_are_those_that_the_tool_knows(members: str, raw: str) -> None:
    assert settled(f'{{"name": "list_servers", {members}}}') == CallClosed(
        name="list_servers", raw=raw, repairs=("flat",)
    )


@pytest.mark.parametrize("members", ['"type": "function"', '"id": "call_1", "type": "tool_use"', '"index": 0'])
def test_what_calls_have_is_no_argument(members: str) -> None:
    assert settled(f'{{"name": "list_servers", {members}}}') == CallClosed(name="list_servers", raw="{}")


@pytest.mark.parametrize(
    "members", ['"deep": "very"', '"reason": "as asked"', '"type": "function", "why": 1', '"deep": true; x']
)
def test_unknown_members_are_not_left_out(members: str) -> None:
    assert isinstance(settled(f'{{"name": "list_servers", {members}}}'), CallBroken)


def settled(text: str) -> Piece:
    tape = Tape("", SERVERS)
    tape.add(text)
    envelope = Envelope(tape)
    tape.take_by(envelope.feed)
    assert tape.span == text
    envelope.finish()
    return tape.pieces[-1]


@pytest.mark.parametrize("unseen", ["\u200b", "\u200d", "\u2060", "\ufeff"])
@pytest.mark.parametrize("size", [0, 1])
def test_what_cannot_be_seen_between_two_tokens_is_no_value(unseen: str, size: int) -> None:
    text = (
        f'{{{unseen}"name":{unseen}"get_weather",{unseen}"arguments":{unseen}{{"city": "Paris"}}{unseen}}}</tool_call>'
    )
    envelope, pieces, _ = scanned(text, size)
    assert envelope.name == "get_weather"
    assert "".join(piece.text for piece in pieces if isinstance(piece, CallGrew)) == '{"city": "Paris"}'
