"""Docstrings in three styles say the same."""

from __future__ import annotations

import pytest

from toolwire.tools.docstrings import parse

GOOGLE = """Find flights.

    Looks at all airlines.

    Args:
        origin (str): Where it begins.
        to: Where it ends: a city
            or an airport.
        **rest: Anything else.

    Returns:
        The cheapest first.

    Raises:
        ValueError: If there is none.

    Example:
        find("FRA")
    """
NUMPY = """Find flights.

    Looks at all airlines.

    Parameters
    ----------
    origin : str
        Where it begins.
    to : str, optional
        Where it ends: a city
        or an airport.
    **rest
        Anything else.

    Returns
    -------
    The cheapest first.

    Raises
    ------
    ValueError
        If there is none.

    Example
    -------
    find("FRA")
    """
SPHINX = """Find flights.

    Looks at all airlines.

    :param str origin: Where it begins.
    :param to: Where it ends: a city
        or an airport.
    :type to: str
    :param \\**rest: Anything else.
    :returns: The cheapest first.
    :rtype: list
    :raises ValueError: If there is none.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_parameters_and_description(text: str) -> None:
    found = parse(text)
    assert found.parameters == {
        "origin": "Where it begins.",
        "to": "Where it ends: a city or an airport.",
        "rest": "Anything else.",
    }
    assert found.description.startswith("Find flights.\n\nLooks at all airlines.")
    assert found.description.endswith("Returns: The cheapest first.")
    assert "ValueError" not in found.description


@pytest.mark.parametrize("text", [GOOGLE, NUMPY])
def test_examples_stay(text: str) -> None:
    assert 'find("FRA")' in parse(text).description


def test_numpy_names_that_share_a_description() -> None:
    assert parse("X.\n\nParameters\n----------\na, b : int\n    Both.").parameters == {"a": "Both.", "b": "Both."}


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_an_empty_docstring_has_no_description(text: str | None) -> None:
    assert parse(text).description == ""


def test_prose_that_looks_like_a_section_stays() -> None:
    text = "Take care:\nthis is prose.\n\n:class:`X` is not a field, nor is :this one."
    assert parse(text).description == text


def test_a_section_ends_where_prose_begins_again() -> None:
    found = parse("A.\n\nArgs:\n    x: One.\n\nMore prose.")
    assert found.parameters == {"x": "One."}
    assert found.description == "A.\n\nMore prose."


def test_parameters_without_description_are_left_out() -> None:
    assert parse("A.\n\nArgs:\n    x:\n    no colon here\n    y: Two.").parameters == {"y": "Two."}
