"""Whether calls are right: BFCL's rules for what is equal, without its exceptions for single languages."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
from msgspec import Struct

from .questions import Question

Json = Any
_UNSEEN = re.compile(r"[ ,./\-_*^]")


class Verdict(Struct, frozen=True):
    """has_call: there is a call; parses: the arguments of all are JSON objects; validates: all are valid by the schema of a tool that was
    offered; is_equal: they are the right ones, or rightly none."""

    has_call: bool = False
    parses: bool = False
    validates: bool = False
    is_equal: bool = False


def judge(question: Question, calls: list[tuple[str, str]]) -> Verdict:
    """calls: names, and arguments as they were sent."""
    if not calls:
        return Verdict(is_equal=not question.truth)
    values = [(name, _object(raw)) for name, raw in calls]
    if any(value is None for _, value in values):
        return Verdict(has_call=True)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in question.tools}
    validates = all(name in schemas and jsonschema_rs.is_valid(schemas[name], value) for name, value in values)
    return Verdict(has_call=True, parses=True, validates=validates, is_equal=_are_equal(values, question.truth))


def _object(raw: str) -> dict[str, Json] | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _are_equal(calls: list[tuple[str, Any]], truth: list[dict[str, Json]]) -> bool:
    """In any order, each once."""
    left = list(truth)
    for name, value in calls:
        found = next((one for one in left if name in one and _fits(value, one[name])), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _fits(value: dict[str, Json], options: dict[str, list[Json]]) -> bool:
    """options: the right values of each member."""
    if not value.keys() <= options.keys():
        return False
    return all(
        any(_is_same(value[name], option) for option in choices) if name in value else "" in choices
        for name, choices in options.items()
    )


def _is_same(value: Json, option: Json) -> bool:
    """In a right object each member has a list of right values again."""
    if isinstance(value, bool) or isinstance(option, bool):
        return value is option
    if isinstance(value, str) and isinstance(option, str):
        return _plain(value) == _plain(option)
    if isinstance(value, list) and isinstance(option, list):
        return len(value) == len(option) and all(map(_is_same, value, option))
    if isinstance(value, dict) and isinstance(option, dict):
        return _fits(value, {name: one if isinstance(one, list) else [one] for name, one in option.items()})
    return bool(value == option)


def _plain(text: str) -> str:
    return _UNSEEN.sub("", text).lower().replace("'", '"')
