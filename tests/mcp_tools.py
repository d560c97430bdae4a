"""500 tools recorded from public MCP servers, and two sets of questions with the tools that answer them.

mcp_tools.json names the package, version and licence (MIT or Apache-2.0) of each server. Its texts are shortened: 320 characters of a
description, 80 of the description of a member. A question names several tools where servers have the same one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from toolwire.types import Tool

_FOLDER = Path(__file__).parent / "calls" / "search"


class Question(NamedTuple):
    text: str
    answers: frozenset[str]  # names of tools
    is_held_out: bool  # the ranking was not tuned with it


@cache
def recorded_tools() -> tuple[Tool, ...]:
    """Under the names that clients give them: mcp__SERVER__TOOL."""
    servers: list[dict[str, Any]] = json.loads((_FOLDER / "mcp_tools.json").read_text(encoding="utf-8"))
    return tuple(
        Tool(name=f"mcp__{server['server']}__{tool['name']}", description=tool["description"], schema=tool["schema"])
        for server in servers
        for tool in server["tools"]
    )


@cache
def questions() -> tuple[Question, ...]:
    rows = _rows("questions.tsv")
    return tuple(Question(text, answers, place % 10 in (2, 5, 8)) for place, (text, answers) in enumerate(rows))


@cache
def fresh_questions() -> tuple[Question, ...]:
    """100 questions that were written after the ranking was finished, in colloquial words. Nothing may be tuned with them."""
    return tuple(Question(text, answers, is_held_out=True) for text, answers in _rows("fresh_questions.tsv"))


def _rows(file: str) -> list[tuple[str, frozenset[str]]]:
    lines = (_FOLDER / file).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines)
    return [(text, frozenset(f"mcp__{name.replace('/', '__')}" for name in names.split(","))) for text, names in pairs]
