"""Markdown is rendered block by block, and foreign text cannot act on the terminal."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.cli.chat.markdown import MarkdownStream, render_markdown, split_blocks
from toolwire.cli.chat.terminal import Terminal

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str, columns: int = 40) -> list[str]:
    return [STYLE.sub("", line) for line in render_markdown(text, columns)]


def test_blocks_end_with_an_empty_line_or_a_fence() -> None:
    assert split_blocks("one\ntwo") == ("", "one\ntwo")
    assert split_blocks("one\n\ntwo") == ("one\n\n", "two")
    assert split_blocks("```py\na\n\nb") == ("", "```py\na\n\nb")
    assert split_blocks("```py\na\n\n```\nnext") == ("```py\na\n\n```\n", "next")
    assert split_blocks("````\n```\n\n````\nx") == ("````\n```\n\n````\n", "x")


def test_words_are_wrapped_and_links_written_out() -> None:
    assert plain("a " * 30, 20) == ["a a a a a a a a a a"] * 3
    assert plain("[click](https://evil.example)") == ["click (https://evil.example)"]


@examples(50)
@given(st.text(alphabet=st.sampled_from(list("ab`*#|-\n\x1b[]()\x07\x9b>_~1. ")), max_size=80))
def test_only_the_renderer_writes_escape_sequences(text: str) -> None:
    for line in render_markdown(text, 30):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", STYLE.sub("", line))


def test_a_stream_is_rendered_once_and_previews_are_replaced() -> None:
    written = io.StringIO()
    terminal = Terminal(written, has_screen=True, has_colour=True)
    stream = MarkdownStream(terminal)
    for piece in ("Hel", "lo **w", "orld**\n", "\nSec", "ond"):
        stream.feed(piece)
    assert stream.is_pending
    stream.flush()
    shown = STYLE.sub("", written.getvalue())
    assert shown.count("Hello world\n") == 1
    assert shown.endswith("Second\n")


def test_a_block_without_end_is_written_in_pieces() -> None:
    written = io.StringIO()
    stream = MarkdownStream(Terminal(written, has_screen=True, has_colour=True), clock=lambda: 0.0)
    stream.feed("x " * 20_000)
    assert not stream.is_pending
