from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.tools.workspace.messages import ToolRefused, display_path, os_errors_refused, parse_name


@given(st.binary(min_size=1, max_size=40).filter(lambda name: not {0, 47} & set(name)))
def test_every_name_is_one_line_and_is_parsed_back(name: bytes) -> None:
    text = display_path(os.fsdecode(name))
    assert text.encode("utf-8")
    assert len(text.splitlines()) == 1
    if b"\\x" not in name:
        assert os.fsencode(parse_name(text)) == name


@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=60))
def test_what_is_meant_has_no_separator_or_dots_of_its_own(text: str) -> None:
    for letter in ("/", "\0", "."):
        assert parse_name(text).count(letter) == text.count(letter)


def test_escapes_that_would_make_a_separator_stay_text() -> None:
    assert parse_name("\\x2f\\x2e\\x2e\\x00") == "\\x2f\\x2e\\x2e\\x00"


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.EIO])
def test_an_os_error_becomes_a_message_about_the_path(number: int) -> None:
    with pytest.raises(ToolRefused, match=r'"some/path".*\.$'), os_errors_refused("some/path"):
        raise OSError(number, os.strerror(number), "/secret/place")


def test_a_refusal_does_not_contain_the_path_of_the_root() -> None:
    with pytest.raises(ToolRefused) as refusal, os_errors_refused("a"):
        raise OSError(errno.EIO, "broken", "/secret/place")
    assert "secret" not in str(refusal.value)
