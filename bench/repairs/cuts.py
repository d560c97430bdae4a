"""Calls cut off by a limit: none may come back as a call, unless what came back is what was meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

Json = Any


def prefixes(arguments: Json, random: Random, count: int) -> Iterator[str]:
    """Some of the texts that the arguments begin with, in three ways of writing them."""
    for text in (
        json.dumps(arguments, ensure_ascii=False),
        json.dumps(arguments, indent=2),
        json.dumps(arguments, separators=(",", ":")),
    ):
        for end in random.sample(range(1, len(text)), min(count, len(text) - 1)):
            yield text[:end]


def in_strings(arguments: Json, random: Random, count: int) -> Iterator[str]:
    """Texts that end inside a string's value."""
    text = json.dumps(arguments, ensure_ascii=False)
    inside, is_open, is_escaped, is_value = [], False, False, False
    for index, sign in enumerate(text):
        if is_open:
            inside += [index] if is_value else []
            is_open = is_escaped or sign != '"'
            is_escaped = sign == "\\" and not is_escaped
        elif sign == '"':
            is_open, is_value = True, text[:index].rstrip()[-1:] not in "{," or _in_array(text[:index])
    for end in random.sample(inside, min(count, len(inside))):
        yield text[:end]


def _in_array(text: str) -> bool:
    """Whether the innermost open bracket is an array's; strings with brackets in them make it guess."""
    depth = 0
    for sign in reversed(text):
        depth += (sign in "]}") - (sign in "[{")
        if depth < 0:
            return sign == "["
    return False
