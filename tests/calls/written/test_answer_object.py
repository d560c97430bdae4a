"""Answers under a schema of text and calls: the same pieces wherever the text is cut, and nothing lost where the schema is ignored."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import OfferedTools, ToolOffer
from toolwire.calls.written.answer_object import AnswerScanner
from toolwire.calls.written.formats.base import CallBroken, CallClosed, CallGrew, CallOpened, Piece, PlainText
from toolwire.types import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
KNOWN = OfferedTools(ToolOffer([Tool(name="weather", schema=SCHEMA), Tool(name="now")]), Schemas(), True)
PARIS = '{"name": "weather", "arguments": {"city": "Paris"}}'
BLOCK = f"<tool_call>\n{PARIS}\n</tool_call>"


def read(*pieces: str) -> tuple[list[Piece], AnswerScanner]:
    scanner = AnswerScanner(KNOWN)
    found = [made for piece in pieces for made in scanner.feed(piece)]
    return found + scanner.close(), scanner


def joined(pieces: list[Piece]) -> list[Any]:
    """Adjacent texts, and the growth of a call, as one. CallGrew must add up to the arguments."""
    out: list[Any] = []
    grown: list[str] = []
    for piece in pieces:
        match piece:
            case PlainText() if out and isinstance(out[-1], PlainText):
                out[-1] = PlainText(out[-1].text + piece.text)
            case CallGrew():
                grown.append(piece.text)
            case CallOpened():
                grown = []
            case CallClosed() | CallBroken():
                assert not grown or "".join(grown) == piece.raw
                grown = []
                out.append(piece)
            case _:
                out.append(piece)
    return out


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, PlainText))


def calls_of(pieces: list[Piece]) -> list[tuple[str, Any]]:
    return [(piece.name, json.loads(piece.raw)) for piece in pieces if isinstance(piece, CallClosed)]


def test_text_is_decoded_while_it_grows() -> None:
    scanner = AnswerScanner(KNOWN)
    assert scanner.feed('{"te') == []
    assert scanner.feed('xt": "Hel') == [PlainText("Hel")]
    assert scanner.passes("lo, ")
    assert not scanner.passes('wor\\"ld')
    assert text_of(scanner.feed('\\"wor')) == '"wor'
    assert text_of(scanner.feed("ld\\")) == "ld"
    assert text_of(scanner.feed("n")) == "\n"
    assert scanner.feed('"}') == []
    assert scanner.close() == []
    assert scanner.is_obeyed


def test_surrogates_wait_for_their_other_half() -> None:
    scanner = AnswerScanner(KNOWN)
    assert scanner.feed('{"text":"\\ud83d') == []
    assert not scanner.passes("x")
    assert text_of(scanner.feed("\\ude00")) == "😀"
    assert text_of(scanner.feed("\\ud83d") + scanner.feed("x")) == "\ud83dx"


def test_calls_are_reported_when_their_name_is_known() -> None:
    scanner = AnswerScanner(KNOWN)
    assert scanner.feed('{"calls": [{"name": "weather", "arguments": ') == []
    assert scanner.feed('{"city": ') == [CallOpened("weather"), CallGrew('{"city": ')]
    pieces = [*scanner.feed('"Paris"}}, {"name": "now", "arguments": {}}]}'), *scanner.close()]
    assert calls_of(pieces) == [("weather", {"city": "Paris"}), ("now", {})]
    assert scanner.is_obeyed


def test_members_may_come_in_any_order() -> None:
    pieces, scanner = read('{"calls": [{"arguments": {"city": "Oslo"}, "name": "weather"}], "text": "Soon."}')
    assert calls_of(pieces) == [("weather", {"city": "Oslo"})]
    assert text_of(pieces) == "Soon."
    assert scanner.is_obeyed


@pytest.mark.parametrize("value", ['{"a": ["}", {"b": "\\""}]}', "[1, 2]", '"x"', "-1.5e3", "true", "{}"])
def test_output_of_the_client_stays_as_it_was_written(value: str) -> None:
    pieces, scanner = read(f'{{"json": {value} }}')
    assert text_of(pieces) == value
    assert scanner.is_obeyed


@pytest.mark.parametrize(
    "text",
    ["I would say {no}.", '{"answer": 1}', "{}", '{"text": 5}', '{"calls": 1}', "[1]", "{text}", "```python\nx\n```"],
)
def test_an_answer_that_begins_otherwise_is_text(text: str) -> None:
    pieces, scanner = read(text)
    assert joined(pieces) == [PlainText(text)]
    assert scanner.is_obeyed is False


@pytest.mark.parametrize(
    "text", [BLOCK, PARIS, f"Well.\n{BLOCK}", json.dumps({"text": BLOCK}), '{"text": "So."}\n' + BLOCK]
)
def test_calls_in_the_formats_of_models_are_found_where_the_schema_is_ignored(text: str) -> None:
    pieces, _ = read(text)
    assert calls_of(pieces) == [("weather", {"city": "Paris"})]


def test_a_code_fence_around_the_object_is_no_text_and_shows_that_nothing_is_constrained() -> None:
    pieces, scanner = read('```json\n{"text": "Hi."}\n```\n')
    assert text_of(pieces) == "Hi."
    assert scanner.is_obeyed is False


@pytest.mark.parametrize("answer", [PARIS.join(['{"calls": [', "]}"]), BLOCK])
def test_reasoning_before_the_answer_is_text_as_in_any_answer(answer: str) -> None:
    thought = f"<think>Call it? {BLOCK}\n{{</think>"
    for pieces, scanner in (read(f"{thought}\n{answer}"), read(*f"{thought}\n{answer}")):
        assert text_of(pieces).strip() == thought
        assert calls_of(pieces) == [("weather", {"city": "Paris"})]
        assert scanner.is_obeyed is False
    assert text_of(read(*thought[:-3])[0]) == thought[:-3]


def test_text_after_the_object_is_not_lost() -> None:
    pieces, scanner = read('{"text": "Hi."} And more.')
    assert text_of(pieces) == "Hi.And more."
    assert scanner.is_obeyed is False
    pieces, _ = read('{"text": "Hi.", "mood": 1}')
    assert text_of(pieces) == 'Hi. "mood": 1}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"calls": [{name: "weather"}]}', "JSON"),
        ('{"calls": [{"name": weather}]}', "names no tool"),
        ('{"calls": [{"name": "weather" "arguments": {}}]}', "JSON"),
        ('{"calls": [{"arguments": {}}]}', "names no tool"),
        ('{"calls": [{"name": "weather"}]}', "no arguments"),
        ('{"calls": [{"name": "weather", "arguments": [1]}]}', "not a JSON object"),
        ('{"calls": [{"name": "weather", "arguments": {"city": Paris}}]}', "not a JSON object"),
    ],
)
def test_calls_that_cannot_be_read_are_broken_and_not_text(text: str, why: str) -> None:
    pieces, _ = read(text)
    (broken,) = joined(pieces)
    assert isinstance(broken, CallBroken)
    assert why in broken.why
    assert broken.text in text


def test_arguments_as_text_are_their_object() -> None:
    pieces, _ = read(json.dumps({"calls": [{"name": "weather", "arguments": '{"city": "Paris"}'}]}))
    assert calls_of(pieces) == [("weather", {"city": "Paris"})]


def test_a_cut_answer_keeps_its_text_and_its_whole_calls() -> None:
    whole = '{"text": "One \\u00e9", "calls": [' + PARIS + ', {"name": "weather", "arguments": {"city": "Os'
    pieces, scanner = read(whole)
    text, call, broken = joined(pieces)
    assert (text, call) == (PlainText("One é"), CallClosed(name="weather", raw='{"city": "Paris"}'))
    assert isinstance(broken, CallBroken)
    assert (broken.name, broken.raw) == ("weather", '{"city": "Os')
    assert scanner.is_obeyed
    for end in range(len('{"text": "')):
        assert read(whole[:end])[0] == []
    assert text_of(read('{"text": "a\\u00')[0]) == "a"


_texts = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n<>{}`'), max_size=30)
_arguments = st.dictionaries(st.sampled_from(["city", "days", "x"]), _texts | st.integers(), max_size=3)
_calls = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["weather", "now"]), "arguments": _arguments}), max_size=3
)
_objects = st.one_of(
    st.fixed_dictionaries({"text": _texts}),
    st.fixed_dictionaries({"calls": _calls}),
    st.fixed_dictionaries({"text": _texts, "calls": _calls}),
    st.fixed_dictionaries({"json": st.recursive(_texts | st.booleans(), lambda inner: st.lists(inner, max_size=3))}),
)


@given(value=_objects, is_ascii=st.booleans(), cuts=st.lists(st.integers(0, 400), max_size=10))
def test_any_cut_gives_the_text_and_the_calls_of_the_object(value: Any, is_ascii: bool, cuts: list[int]) -> None:
    written = json.dumps(value, ensure_ascii=is_ascii)
    places = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    cut, scanner = read(*(written[start:end] for start, end in itertools.pairwise(places)))
    assert joined(cut) == joined(read(written)[0]) == joined(read(*written)[0])
    assert scanner.is_obeyed
    if "json" in value:
        assert json.loads(text_of(cut)) == value["json"]
    elif not any(isinstance(piece, CallClosed) for piece in read(value.get("text", ""))[0]):
        assert text_of(cut) == value.get("text", "")
        assert calls_of(cut) == [(call["name"], call["arguments"]) for call in value.get("calls", ())]


@given(
    text=st.text(st.sampled_from('{}[]":,\\u0dtexcals njor`<>/ihk'), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
)
def test_any_cut_of_anything_gives_the_same_pieces(text: str, cuts: list[int]) -> None:
    for written in (text, f'{{"text": "{text}', f'{{"calls": [{{{text}', f"<think>{text}</think>{text}"):
        places = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
        pieces = [written[start:end] for start, end in itertools.pairwise(places)]
        cut, scanner = read(*pieces)
        whole, at_once = read(written)
        assert joined(cut) == joined(whole) == joined(read(*written)[0])
        assert scanner.is_obeyed == at_once.is_obeyed


@pytest.mark.parametrize(
    "piece",
    ['{"text": "' + "a\\n" * 300, " " * 900, '{"calls": [{"x": "' + "y" * 900, '{"calls": [{"arguments": {"a":'],
)
def test_work_is_linear(piece: str) -> None:
    def seconds(times: int) -> float:
        scanner = AnswerScanner(KNOWN)
        scanner.feed(piece)
        started = time.process_time()
        for _ in range(times):
            scanner.feed(piece[-300:])
        scanner.close()
        return time.process_time() - started

    seconds(50)
    assert min(seconds(4000) for _ in range(2)) < 40 * max(min(seconds(400) for _ in range(3)), 0.001)
