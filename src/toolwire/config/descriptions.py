"""Values and types of the configuration, as error messages describe them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args, get_origin

from ..errors import quote
from .secret import Secret
from .values import Switch


def quoted_list(words: Iterable[str]) -> str:
    return ", ".join(quote(word) for word in words)


def describe(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return quote(str(value))[1:-1] if abs(value) < 10**18 else "a very large number"
    return quote(value) if isinstance(value, str) else noun(value)


def noun(value: Any) -> str:
    nouns = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return nouns.get(type(value), "a date or time")


def expected(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {quoted_list(get_args(kind))}"
    if get_origin(kind) is Annotated:
        return str(kind.__metadata__[0].description)
    if kind == Switch:
        return 'true, false or "auto"'
    if kind is Secret:
        return 'a string: "env:NAME", "file:PATH" or the key itself'
    if kind == dict[str, Any]:
        return "a table"
    return {bool: "true or false", str: "a string", tuple: "a list of strings", dict: "a table of strings"}[
        get_origin(kind) or kind
    ]
