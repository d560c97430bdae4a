"""JSON without loss: every digit, every character, and a sentence where it is not JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.dialects.answers import JSON
from tests.thorough import examples
from toolwire.wire.exact_json import BadJson, decode, encode, object_of, typed_decoder


@pytest.mark.parametrize("text", ["2512292042121000001", "-" + "9" * 300, "0", "-0"])
def test_H071_integers_keep_every_digit(text: str) -> None:
    assert decode(text) == int(text)
    assert json.loads(encode(decode(text))) == int(text)


@pytest.mark.parametrize(
    "text", ["1.10", "1e400", "-1E-400", "-0.0", "0.1", "1e9999999", "3.14159265358979323846264338"]
)
def test_decimals_stay_as_written(text: str) -> None:
    value = decode(text)
    assert value == Decimal(text)
    again = encode(value).decode()
    assert Decimal(again) == Decimal(text)
    assert str(Decimal(again)) == str(Decimal(text))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "😀\ud83d", "plain", "\0\x1f\u2028"])
def test_any_string_can_be_written(text: str) -> None:
    wire = encode({text: [text, Decimal("1.10"), 10**30, msgspec.Raw(b'{"a":"\xc3\xa9"}')]})
    wire.decode("utf-8")
    assert json.loads(wire) == {text: [text, 1.1, 10**30, {"a": "é"}]}
    assert decode(wire)[text][0] == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[1,]", "trailing comma"),
        (b'{"a":NaN}', "invalid character"),
        (rb'{"a":"\ud800","b":NaN}', "NaN is not JSON"),
        (rb'{"a":"\ud800","b":-Infinity}', "-Infinity is not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "byte 0"),
        (b'{"abc":"\xff"}', "not UTF-8 at byte 8"),
        (rb'{"a":"\ud800"' + b',"b":"\xff"}', "not UTF-8 at byte 19"),
        (b"[" * 5000 + b"]" * 5000, "too deep"),
        (b"1" * 5000, "out of range"),
        (b"1e99999999999999999999", "exponent"),
        (rb'["\ud800"', "delimiter"),
    ],
)
def test_what_is_not_json_is_refused_with_a_message(data: bytes, words: str) -> None:
    with pytest.raises(BadJson, match=words):
        decode(data)


def test_too_deep_to_write() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(BadJson, match="too deep"):
        encode(value)
    with pytest.raises(BadJson, match="too deep"):
        encode(["\ud800", value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' {"a": 1} ', {"a": 1}),
        ("[]", None),
        ("1", None),
        ("", None),
        ('{"a":', None),
        ('{"a":1}{"a":1}', None),
    ],
)
def test_arguments_are_an_object_or_nothing(text: str, value: Any) -> None:
    assert object_of(text) == value


@given(JSON)
@examples(100)
def test_every_value_survives(value: Any) -> None:
    assert json.loads(encode(decode(json.dumps(value)))) == value


class Box(msgspec.Struct):
    """What a typed reader knows, and something that it does not."""

    name: str
    inner: dict[str, Any]


def test_a_typed_reader_keeps_every_digit() -> None:
    box = typed_decoder(Box).decode(b'{"name":"a","inner":{"p":-0.10000000000000000001,"n":9.0}}')
    assert box.inner == {"p": Decimal("-0.10000000000000000001"), "n": Decimal("9.0")}
    assert encode(box.inner) == b'{"p":-0.10000000000000000001,"n":9.0}'
    for wrong in (b'{"name":1,"inner":{}}', b'{"name":"a","inner":{"p":1e999999999999999999999}}', b"{"):
        with pytest.raises(msgspec.DecodeError):
            typed_decoder(Box).decode(wrong)
