"""Scripts for the simulator: what its model does, as a file of TOML, JSON or JSON lines.

A script is a list of turns, and a turn a list of steps. One turn is one answer of the model: text, and calls if it makes any. A run
begins with the turn after as many as the history has answers; when the results of a turn's calls are there, the next turn follows in the
same run; a turn without calls ends it. Past the last turn comes the last one again.

    [[turns]]
    steps = [
        { do = "think", text = "I need the file." },
        { do = "say", text = "Reading it.", pieces = 3 },
        { do = "call", name = "read_file", args = { path = "README.md" } },
    ]
    [[turns]]
    faults = { gzip = true, at = { text = "drop" } }
    steps = [{ do = "say", text = "It says {{result:0}}" }]

As JSON the same is {"turns": [{"steps": [...]}]}, as JSON lines one turn a line. The steps are: say, think, call, together (calls),
native (kind, args), query (kind), set_blob, checkpoint, pause (seconds), ended (usage), fail (error, or code and message), drop (how),
stall, with (faults), raw (data). {{result:N}} is the text of the N-th result of the conversation, counted from 0, and
{{result:N:EXPRESSION}} what a regular expression finds in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ....errors import ConfigError, quote
from .faults import Faults
from .steps import Call, CallTogether, Result, Seen, Step, With

_RESULT = re.compile(r"\{\{result:(\d{1,6})(?::((?:[^{}]|\{[^{}]{0,20}\}){1,200}))?\}\}")


class ScriptTurn(Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[Step, ...]
    faults: Faults | None = None


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """A model."""

    turns: tuple[ScriptTurn, ...]

    def start(self, seen: Seen) -> Generator[Step, list[Result], None]:
        texts = seen.results
        number = seen.answers
        while True:
            turn = self.turns[min(number, len(self.turns) - 1)]
            if turn.faults is not None:
                yield With(turn.faults)
            has_called = False
            for step in turn.steps:
                results = yield filled(step, texts)
                if isinstance(step, Call | CallTogether):
                    has_called = True
                    texts = [*texts, *(result.text for result in results)]
            number += 1
            if not has_called:
                return


def play(*turns: list[Step] | Step) -> Script:
    """A script in Python: a turn is a list of steps, or one step."""
    return Script(tuple(ScriptTurn(tuple(turn) if isinstance(turn, list) else (turn,)) for turn in turns))


def load(path: Path) -> Script:
    """Raises ConfigError with what is wrong."""
    try:
        data = path.read_bytes()
        script = msgspec.convert(_value(path, data), Script)
    except OSError as fault:
        raise ConfigError(f"the script cannot be read: {fault.strerror}.", where=str(path)) from None
    except (ValueError, msgspec.MsgspecError) as fault:
        raise ConfigError(f"the script has the wrong form: {quote(str(fault))}.", where=str(path)) from None
    if not script.turns:
        raise ConfigError("the script has no turns; expected at least one.", where=str(path))
    return script


def filled(step: Step, texts: list[str]) -> Step:
    """The step with the results that it quotes."""
    written = msgspec.to_builtins(step)
    return msgspec.convert(_filled(written, texts), type(step))


def _value(path: Path, data: bytes) -> Any:
    if path.suffix == ".toml":
        return tomllib.loads(data.decode())
    lines = [line for line in data.splitlines() if line.strip()]
    try:
        whole = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return {"turns": [msgspec.json.decode(line) for line in lines]}
    if isinstance(whole, list):
        return {"turns": whole}
    return {"turns": [whole]} if isinstance(whole, dict) and "steps" in whole else whole


def _filled(value: Any, texts: list[str]) -> Any:
    match value:
        case str():
            return _RESULT.sub(lambda found: _quoted(texts, int(found[1]), found[2]), value)
        case list() | tuple():
            return [_filled(item, texts) for item in value]
        case dict():
            return {key: _filled(item, texts) for key, item in value.items()}
        case _:
            return value


def _quoted(texts: list[str], number: int, pattern: str | None) -> str:
    if number >= len(texts):
        raise ValueError(f"result {number} is asked for; the conversation has {len(texts)}, counted from 0")
    if pattern is None:
        return texts[number]
    found = re.search(pattern, texts[number])
    if found is None:
        raise ValueError(f"{quote(pattern)} matches nothing in result {number}, which is {quote(texts[number])}")
    return found[0]
