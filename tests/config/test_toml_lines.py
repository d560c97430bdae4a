"""Lines of keys: what tomllib leaves out."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.config.toml_lines import KeyPath, dotted, key_lines, parse
from toolwire.errors import ConfigError

SAMPLE = '''# a comment with [brackets] = "and more"
title = "x" # c = 1

[server]
host = "a # no comment"
"quoted key" = 1
'literal.key' = 2
[ backends . "my openai" ]
kind = "b"
headers.x-one = "1"
models = [
  "a", # ] not the end
  "b = 1",
]
text = """
[not.a.table]
key = "no"
""""
raw = \'\'\'
also = "no"
\'\'\'
after = { inner = { deep = 1 }, list = [{ a = 1 }, { b = 2 }], last = 2 }
[[entries]]
one = 1.5
[[entries]]
one = 2
two = 1979-05-27T07:32:00Z
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("server",), 4),
        (("server", "host"), 5),
        (("server", "quoted key"), 6),
        (("server", "literal.key"), 7),
        (("backends",), 8),
        (("backends", "my openai"), 8),
        (("backends", "my openai", "kind"), 9),
        (("backends", "my openai", "headers"), 10),
        (("backends", "my openai", "headers", "x-one"), 10),
        (("backends", "my openai", "models"), 11),
        (("backends", "my openai", "text"), 15),
        (("backends", "my openai", "raw"), 19),
        (("backends", "my openai", "after"), 22),
        (("backends", "my openai", "after", "inner", "deep"), 22),
        (("backends", "my openai", "after", "list", "b"), 22),
        (("backends", "my openai", "after", "last"), 22),
        (("entries",), 23),
        (("entries", "one"), 24),
        (("entries", "two"), 27),
    ],
)
def test_every_kind_of_key_has_its_line(path: KeyPath, line: int) -> None:
    assert key_lines(SAMPLE)[path] == line


def test_what_only_looks_like_a_key_has_no_line() -> None:
    tomllib.loads(SAMPLE)
    found = key_lines(SAMPLE)
    assert not [path for path in found if {"not", "key", "also", "c", "b = 1"} & set(path)]


def test_lines_are_the_same_with_windows_line_ends() -> None:
    assert key_lines(SAMPLE.replace("\n", "\r\n")) == key_lines(SAMPLE)


def test_a_key_without_a_line_has_that_of_its_table() -> None:
    document = parse("\n[server]\nport = 1\n", "t.toml")
    assert document.line_of(("server", "keys")) == 2
    assert document.line_of(("backends",)) is None
    assert document.error(("server", "keys"), "no.").sentence() == "t.toml, line 2, server.keys: no."
    assert document.error(("backends",), "no.").where == "t.toml, backends"


def test_a_path_is_written_as_in_the_file() -> None:
    assert dotted(("backends", "my openai", "a\nb")) == 'backends."my openai"."a\\u000ab"'


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = 1\nb = \n", "t.toml, line 2"),
        ("a = 1\nb = [1,\n", "t.toml, line 2"),
        ("a = 1\na = 2\n", "t.toml, line 2"),
        ("a = " + "[" * 5000, "t.toml"),
    ],
)
def test_a_text_that_is_no_toml_is_refused_with_its_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "t.toml")
    assert caught.value.where == where


def test_a_number_python_refuses_is_an_error_of_the_file() -> None:
    with pytest.raises(ConfigError, match="not TOML"):
        parse("a = " + "1" * 5000, "t.toml")


KEYS = st.sampled_from(["a", "b-c", '"q.r"', "'l # x'", '"\\u00e9"', "1"])
VALUES = st.sampled_from(
    [
        "1",
        "1.5",
        "true",
        '"x = 1"',
        "'#'",
        '"""\n[a]\nb = 2\n"""',
        "'''\n'x'\n'''",
        "[1, [2,\n3], # no\n]",
        "[{ a = 1 }]",
    ]
)
LINES = st.one_of(
    st.builds("{} = {}".format, KEYS, VALUES),
    st.builds("{}.{} = {}".format, KEYS, KEYS, VALUES),
    st.builds("{} = {{ {} = {} }}".format, KEYS, KEYS, st.sampled_from(["1", "'}'", "[1, 2]", "{ z = 1 }"])),
    st.builds("[{}]".format, KEYS),
    st.builds("[ {} . {} ]  # x".format, KEYS, KEYS),
    st.builds("[[{}]]".format, KEYS),
    st.sampled_from(["", "# [a]", "  "]),
)


def paths_of(value: Any, prefix: KeyPath = ()) -> set[KeyPath]:
    if isinstance(value, list):
        return {path for element in value for path in paths_of(element, prefix)}
    if not isinstance(value, dict):
        return set()
    return {(*prefix, key) for key in value} | {
        path for key, inner in value.items() for path in paths_of(inner, (*prefix, key))
    }


@given(st.lists(LINES, max_size=6))
def test_exactly_the_keys_of_the_document_have_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = key_lines(text)
    assert set(found) == paths_of(data)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


@examples(50)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text, "t.toml")
