"""Words of names and texts."""

from __future__ import annotations

import pytest

from toolwire.calls.search.terms import name_terms, query_terms, stem, text_terms


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("getUserById", ["get", "user", "by", "id"]),
        ("mcp__git-hub__list_PRs2", ["mcp", "git", "hub", "list", "prs", "2"]),
        ("HTTPServer", ["http", "server"]),
        ("中文_tool", ["中文", "tool"]),
        ("", []),
    ],
)
def test_names_are_split(name: str, terms: list[str]) -> None:
    assert name_terms(name) == [stem(term) for term in terms]


@pytest.mark.parametrize(
    "forms",
    [
        ("file", "files"),
        ("create", "creates", "created", "creating"),
        ("query", "queries"),
        ("stop", "stopped", "stopping"),
        ("search", "searches", "searching"),
        ("write", "written", "wrote"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_filler_words_are_left_out() -> None:
    assert text_terms("Please show me the files of this") == [stem("show"), stem("files")]


def test_words_of_the_same_meaning_count_for_less() -> None:
    terms = query_terms("erase it")
    assert terms[stem("erase")] == 1.0
    assert 0 < terms[stem("delete")] < 1.0


def test_a_long_word_is_bounded() -> None:
    assert len(stem("x" * 10_000)) <= 40
