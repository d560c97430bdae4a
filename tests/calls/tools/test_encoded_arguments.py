"""Arguments that a back end's form of a schema made the model write otherwise, decoded into the client's form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.answers import JSON
from toolwire.calls.schemas import Schemas, Texts, clean_schema
from toolwire.calls.tools.encoded_arguments import ArgumentDecoder, Encoding
from toolwire.events import Event, PartDelta, PartEnded, PartStarted
from toolwire.profiles import GEMINI_SCHEMAS
from toolwire.types import Text, Tool, ToolCall
from toolwire.wire.exact_json import object_of

FREE: dict[str, Any] = {"type": "object", "additionalProperties": True}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "options": FREE,
        "what": {},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"cells": FREE}}},
        "either": {"anyOf": [{"type": "string"}, FREE]},
    },
}


def decoder(schema: Any = SCHEMA) -> ArgumentDecoder:
    found = clean_schema(schema, GEMINI_SCHEMAS)
    return ArgumentDecoder({"t": Encoding(texts=found.texts)}, [Tool(name="t", schema=schema)], Schemas())


def call(args: Any, name: str = "t") -> ToolCall:
    raw = args if isinstance(args, str) else json.dumps(args)
    return ToolCall(id="c", name=name, raw=raw, args=object_of(raw))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"options": '{"a": 1}'}, {"options": {"a": 1}}),
        ({"options": "no JSON"}, {"options": "no JSON"}),
        ({"options": "5"}, {"options": "5"}),
        ({"options": {"a": 1}}, {"options": {"a": 1}}),
        ({"city": '{"a": 1}'}, {"city": '{"a": 1}'}),
        ({"what": "[1, null]"}, {"what": [1, None]}),
        ({"what": "true"}, {"what": True}),
        ({"what": '"quoted"'}, {"what": "quoted"}),
        ({"what": "plain words"}, {"what": "plain words"}),
        ({"rows": [{"cells": "{}"}, {"cells": {}}, 5]}, {"rows": [{"cells": {}}, {"cells": {}}, 5]}),
        ({"either": '{"a": 1}'}, {"either": {"a": 1}}),
        ({"either": "7"}, {"either": "7"}),
    ],
)
def test_texts_that_hold_json_are_what_they_hold(args: Any, expected: Any) -> None:
    assert decoder().call(call(args)).args == expected


def test_all_arguments_in_one_text() -> None:
    whole = decoder(FREE)
    assert whole.call(call({"arguments": '{"a": {"b": 1}}'})).args == {"a": {"b": 1}}
    for other in ({"arguments": "[1]"}, {"arguments": "x"}, {"arguments": "{}", "more": 1}, {"a": 1}):
        assert whole.call(call(other)).args == other


def test_digits_stay_as_they_were() -> None:
    made = decoder().call(call({"options": '{"id": 123456789012345678901234567890, "x": 1.10}'}))
    assert made.raw == '{"options":{"id":123456789012345678901234567890,"x":1.10}}'


def test_nulls_that_stand_for_absent_members_go() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}}}
    nulls = ArgumentDecoder({"t": Encoding(has_nulls=True)}, [Tool(name="t", schema=schema)], Schemas())
    assert nulls.call(call({"a": None, "b": None})).args == {"b": None}


@pytest.mark.parametrize(
    "made", [call({"city": "Oslo"}), call('{"options": "{'), call({"options": "{}"}, name="other")]
)
def test_nothing_to_decode_is_the_same_object(made: ToolCall) -> None:
    assert decoder().call(made) is made


@pytest.mark.parametrize("name", ["default_api.t", "functions.t"])
def test_prefixes_that_models_invent(name: str) -> None:
    assert decoder().call(call({"options": "{}"}, name)).args == {"options": {}}


@given(JSON)
def test_what_was_written_as_text_comes_back(value: Any) -> None:
    made = decoder().call(call({"what": json.dumps(value)}))
    assert made.args is not None
    assert made.args["what"] == object_of(json.dumps({"v": value}))["v"]  # type: ignore[index] # an object


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_arguments_that_are_not_encoded_stay(args: dict[str, Any]) -> None:
    plain = ArgumentDecoder({"t": Encoding(texts=Texts())}, [], Schemas())
    made = call(args)
    assert plain.call(made) is made


def streamed(index: int, made: ToolCall, *cuts: int) -> list[Event]:
    pieces = [made.raw[start:end] for start, end in zip((0, *cuts), (*cuts, len(made.raw)), strict=True)]
    empty = ToolCall(id=made.id, name=made.name, raw="")
    return [
        PartStarted(index=index, part=empty),
        *(PartDelta(index, piece) for piece in pieces),
        PartEnded(index=index, part=made),
    ]


def test_a_call_of_an_encoded_tool_leaves_in_one_piece_and_others_as_they_come() -> None:
    encoded, plain = call({"options": '{"a": 1}'}), call({"a": 1}, name="other")
    words: list[Event] = [
        PartStarted(index=0, part=Text(text="")),
        PartDelta(0, "hm"),
        PartEnded(index=0, part=Text(text="hm")),
    ]
    given = [*words, *streamed(1, encoded, 3, 9), *streamed(2, plain, 2)]
    decode = decoder()
    found = [event for one in given for event in decode.send([one])]
    assert found[:3] == words
    assert found[3:6] == [
        PartStarted(index=1, part=ToolCall(id="c", name="t", raw="")),
        PartDelta(1, '{"options":{"a":1}}'),
        PartEnded(index=1, part=ToolCall(id="c", name="t", raw='{"options":{"a":1}}', args={"options": {"a": 1}})),
    ]
    assert found[6:] == given[-4:]
    assert decoder().send(given) == found
    assert decoder().send(words) is words


def test_a_call_that_was_cut_leaves_as_it_is() -> None:
    cut = call('{"options": "{')
    assert decoder().send(streamed(0, cut, 4)) == [
        PartStarted(index=0, part=ToolCall(id="c", name="t", raw="")),
        PartDelta(0, cut.raw),
        PartEnded(index=0, part=cut),
    ]
