from __future__ import annotations

import re

import pytest

from toolwire.calls.written.formats.text_position import TextPosition


def behind(text: str, size: int = 0) -> TextPosition:
    """The place behind a text that is passed in pieces of this size."""
    lines = TextPosition()
    for start in range(0, len(text), size or max(1, len(text))):
        for run in re.findall(r"`+|~+|[^`~]+", text[start : start + (size or len(text))]):
            if run[0] in "`~":
                lines.ticks(run[0], len(run))
            else:
                lines.plain(run)
    return lines


def everywhere(text: str) -> list[tuple[bool, bool, bool]]:
    return [
        (lines.is_code, lines.is_blank, lines.ends_sentence) for lines in (behind(text, size) for size in (0, 1, 2, 3))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`",
        "a ``b`",
        "```\n",
        "~~~\nx\n",
        "````\n```\n",
        "```\n~~~\n",
        "> - ```\n",
        "```\n``` x\n",
        "  ~~~~ info\n~~~\n",
        "12. ```py\n",
    ],
)
def test_in_code(text: str) -> None:
    assert {is_code for is_code, _, _ in everywhere(text)} == {True}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "`a`",
        "``a`b``",
        "`\n",
        "```\n```\n",
        "```\n````  \n",
        "~~~\n~~~\n",
        "```a```\n",
        "x ```\n",
        "~~\n",
        "a ~~~\n",
        "> ```\n> ```\n",
    ],
)
def test_out_of_code(text: str) -> None:
    assert {is_code for is_code, _, _ in everywhere(text)} == {False}


@pytest.mark.parametrize(
    ("text", "is_blank"), [("", True), ("a", False), ("a\n", True), ("a\n \t", True), ("a\n b", False), ("`", False)]
)
def test_blank_lines(text: str, is_blank: bool) -> None:
    assert {found for _, found, _ in everywhere(text)} == {is_blank}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a.", True),
        ("a?! ", True),
        ("好。", True),
        ('"a."', True),
        ("(a!) ", True),
        ("a", False),
        ("a:", False),
        ("a.\n", False),
        ("a.b", False),
        ("", False),
    ],
)
def test_ends_of_sentences(text: str, ends: bool) -> None:
    assert {found for _, _, found in everywhere(text)} == {ends}


def test_behind_a_block_is_like_the_start_of_a_line() -> None:
    lines = behind("words. ")
    lines.behind_block()
    assert (lines.is_blank, lines.ends_sentence) == (True, False)


def test_fences_do_not_count_in_thinking() -> None:
    lines = TextPosition()
    lines.thought = "think"
    lines.ticks("`", 3)
    lines.plain("\n")
    assert not lines.is_code
