"""The first look at a body: an object, or a refusal that says what was found."""

from __future__ import annotations

import pytest

from tests.dialects.playing import NAMES
from tests.dialects.refusing import NOT_OBJECTS, refusal
from toolwire.dialects.opening import body_object, split_head
from toolwire.errors import BadRequest
from toolwire.types import Message, Role


@pytest.mark.parametrize("body", NOT_OBJECTS, ids=lambda body: repr(body[:20]))
@pytest.mark.parametrize("dialect", NAMES)
def test_what_is_no_object_is_refused_in_every_dialect(dialect: str, body: bytes) -> None:
    assert refusal(dialect, body).code == "invalid_json"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b" ", "the body is empty; expected a JSON object."),
        (b"[]", "the body is an array; expected a JSON object."),
        (b"null", "the body is null; expected a JSON object."),
        (b'{"a":"\xff"}', "the body is not valid JSON: it is not UTF-8 at byte 6."),
    ],
)
def test_the_words(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        body_object(body)
    assert caught.value.message == words


def test_an_object_is_read_exactly() -> None:
    assert body_object(rb'{"n":12345678901234567890123,"s":"\ud800"}') == {"n": 12345678901234567890123, "s": "\ud800"}


def test_only_what_stands_before_all_else_is_the_head() -> None:
    roles: tuple[Role, ...] = ("system", "developer", "user", "system", "assistant")
    head, rest = split_head(tuple(Message(role=role, parts=()) for role in roles))
    assert [message.role for message in head] == ["system", "developer"]
    assert [message.role for message in rest] == ["user", "system", "assistant"]
    assert split_head(()) == ([], [])
