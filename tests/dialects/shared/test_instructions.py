"""The first look at a body: an object, or a refusal that says what was found."""

from __future__ import annotations

import pytest

from tests.dialects.playing import NAMES
from tests.dialects.refusing import NOT_OBJECTS, refusal
from toolwire.dialects.shared.instructions import as_note, body_object, split_head, with_listener, with_one_head
from toolwire.errors import BadRequest
from toolwire.types import Loss, Media, Message, Part, Role, Text


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


def said(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def test_a_conversation_of_instructions_alone_gets_a_message_of_the_users() -> None:
    losses: list[Loss] = []
    head = (said("system", Text(text="a")), said("developer", Text(text="b")))
    assert with_listener(head, losses) == (head[0], said("user", Text(text="b")))
    assert [loss.feature for loss in losses] == ["role.system"]
    for spoken in ((*head, said("user")), ()):
        assert with_listener(spoken, losses) is spoken
    assert len(losses) == 1


def test_H112_instructions_at_the_start_become_one_message() -> None:
    rest = (said("user", Text(text="hi")), said("system", Text(text="later")))
    head = (said("system", Text(text="a"), Text(text="b")), said("developer", Text(text="c")))
    assert with_one_head((*head, *rest)) == (said("system", Text(text="a\n\nb\n\nc")), *rest)
    image = Media(kind="image", url="https://a/b.png")
    assert with_one_head((head[1], said("system", image))) == (said("developer", Text(text="c"), image),)
    single = (head[0], *rest)
    assert with_one_head(single) is single


def test_H141_a_note_is_labelled_and_recorded() -> None:
    losses: list[Loss] = []
    assert as_note("a", "messages[3]", losses) == "<system>\na\n</system>"
    assert [(loss.feature, loss.where) for loss in losses] == [("role.system", "messages[3]")]
