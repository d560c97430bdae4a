"""One text between quotes, as models write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.arguments.quotes import NotLoose, Place, QuoteReader, Steps


def read(text: str, place: Place = "member", names: str = "") -> tuple[str, str, list[str]]:
    """The text, what is left behind it, and the repairs."""
    repairs: dict[str, None] = {}
    quoting = QuoteReader(text, frozenset(names.split()), repairs, Steps(1000))
    found = quoting.read(0, place)
    return found, text[quoting.position :], list(repairs)


@given(st.text(), st.sampled_from([",", "}", " ]", "", "\n// x\n}"]), st.booleans())
def test_json_is_read_as_json(text: str, behind: str, is_ascii: bool) -> None:
    assert read(json.dumps(text, ensure_ascii=is_ascii) + behind) == (text, behind, [])


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("'it\\'s'}", "it's", "}"),
        ("'it's'}", "it's", "}"),
        ('“a "b" c”,', 'a "b" c', ","),
        ("`a`}", "a", "}"),
        ('"one\ntwo"}', "one\ntwo", "}"),
        ('"say "hi" now"}', 'say "hi" now', "}"),
        ('""hi" he said"}', '"hi" he said', "}"),
        ('"he said "hi""}', 'he said "hi"', "}"),
        ('"print("x")"}', 'print("x")', "}"),
        ('"\\d+\\.\\w"}', "\\d+\\.\\w", "}"),
        ("'caf\\xe9'}", "café", "}"),
        ('"""a "b"\nc"""}', 'a "b"\nc', "}"),
        ('"x" "key": 1}', "x", ' "key": 1}'),
        ('"x"\n known: 1}', "x", "\n known: 1}"),
    ],
)
def test_one_meaning_is_read(text: str, value: str, rest: str) -> None:
    assert read(text, names="known")[:2] == (value, rest)


@pytest.mark.parametrize(
    "text",
    [
        '"never ends',
        '"never ends\\"',
        "'never ends\\",
        '"He said "no", and left"}',
        '"5" screen"}',
        '"x""key": 1}',
        '"x" unknown: 1}',
        '"a": 5}, {"b"}',
        '"C:\\Users\\name"}',
        '"\\x41"}',
        '"""one" , "two"""}',
        "'the dogs' bowl'}",
    ],
)
def test_two_meanings_are_refused(text: str) -> None:
    with pytest.raises(NotLoose):
        read(text, names="known")


def test_a_key_ends_before_its_colon_only() -> None:
    assert read("'a': 1", "key")[:2] == ("a", ": 1")
    with pytest.raises(NotLoose):
        read('"a" b": 1', "key")


def test_work_is_bounded() -> None:
    with pytest.raises(NotLoose, match="too long"):
        read("'" + "\\'" * 5000 + "'}")
