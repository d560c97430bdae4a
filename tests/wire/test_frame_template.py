"""A shortcut never says anything that parsing would not."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.wire.frame_template import Shortcut, is_plain


def frame(text: str, **more: object) -> bytes:
    return b"data: " + json.dumps({"index": 0, "delta": {"text": text}, **more}, ensure_ascii=False).encode()


def test_a_frame_like_the_last_one_gives_its_text() -> None:
    shortcut = Shortcut()
    shortcut.learn(frame("one"), "one")
    assert shortcut.text_in(frame("two words, äöü 世界")) == "two words, äöü 世界"
    assert shortcut.text_in_frame(frame("three") + b"\n\n") == "three"
    assert shortcut.text_in_frame(frame("three")) is None
    assert shortcut.text_in(frame("three") + b"\n\n") is None
    assert shortcut.text_in_frame(frame("three") + b"\n\n" + frame("four") + b"\n\n") is None


def test_what_needs_unescaping_is_not_matched() -> None:
    shortcut = Shortcut()
    shortcut.learn(frame("one"), "one")
    for text in ('a "quote"', "a\nline", "back\\slash", "", "\u2028", "tab\t"):
        assert shortcut.text_in(frame(text)) is None


def test_other_frames_are_not_matched() -> None:
    shortcut = Shortcut()
    shortcut.learn(frame("one"), "one")
    assert shortcut.text_in(frame("two", usage=None)) is None
    assert shortcut.text_in(frame("two")[:-1]) is None
    assert shortcut.text_in(frame("two") + frame("three")) is None
    assert shortcut.text_in(b"") is None
    assert shortcut.text_in(frame("x").replace(b"x", b"\xff")) is None


def test_a_text_that_stands_twice_or_needs_escaping_is_not_learned() -> None:
    shortcut = Shortcut()
    shortcut.learn(frame("index"), "index")
    assert shortcut.text_in(frame("two")) is None
    shortcut.learn(frame("one"), "one")
    shortcut.learn(frame("a\nb"), "a\nb")
    assert shortcut.text_in(frame("two")) is None


def test_a_text_that_stands_escaped_is_not_taken_from_another_place() -> None:
    shortcut = Shortcut()
    shortcut.learn(b'data: {"id":"hello","text":"h\\u0065llo"}', "hello")
    assert shortcut.text_in(b'data: {"id":"other","text":"h\\u0065llo"}') is None


@given(st.text(max_size=12), st.text(max_size=12))
@settings(max_examples=200)
def test_it_agrees_with_parsing(first: str, second: str) -> None:
    first, second = (text.encode("utf-8", "replace").decode() for text in (first, second))
    shortcut = Shortcut()
    shortcut.learn(frame(first), first)
    found = shortcut.text_in(frame(second))
    assert found is None or found == second
    if is_plain(first) and is_plain(second) and frame(first).count(json.dumps(first, ensure_ascii=False).encode()) == 1:
        assert found == second
