"""The script format: the answers of a scripted model, and how a script is found in a file or in a prompt.

A script is one turn, or {"turns": [turn, ...]}. In a prompt it is written as [[script:BASE64]], in a file as
{"turns": [...]} or {"models": {"name": {"turns": [...]}}}. Unknown members are refused, so that a typing error does not make a test pass.
With "strict": true beside the turns, the model answers HISTORY-ALTERED if a past call is changed or unpaired, and TOOL-NOT-OFFERED instead of
calling a tool that was not offered.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from ...errors import BadRequest, quote
from ...types import Citation, JsonObject, Message, Text
from ...wire.exact_json import BadJson, decode

_MARK = re.compile(r"\[\[script:([^\[\]]*)\]\]")
_DEFAULT_CHUNK = 12

_T = TypeVar("_T")


class ScriptedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """arguments as a string is the exact output of the model, which may be broken JSON. input, for a tool that takes free text, takes
    precedence over arguments."""

    name: str
    arguments: JsonObject | str = {}
    input: str | None = None
    id: str = ""


class ScriptedPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of text, reasoning (with or without signature), refusal and call."""

    text: str | None = None
    reasoning: str | None = None
    signature: str | None = None
    refusal: str | None = None
    call: ScriptedCall | None = None


class ScriptedUsage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Missing counts are estimated."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None


class ScriptedError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """after: the number of deltas before it; 0 refuses the request."""

    status: int = 500
    message: str = "The script asked for this error."
    code: str = "upstream_error"
    after: int = 0


class ScriptedTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model answer. parts, if given, replaces reasoning, text, refusal and calls."""

    reasoning: str | None = None
    signature: str | None = None
    text: str | None = None
    refusal: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    parts: tuple[ScriptedPart, ...] | None = None
    chunk: int = _DEFAULT_CHUNK
    delay: float = 0.0
    pace: float = 0.0
    finish: Literal["stop", "length", "tool_calls", "refused"] | None = None
    usage: ScriptedUsage = ScriptedUsage()
    error: ScriptedError | None = None
    cut: int | None = None
    logprobs: bool = False
    citations: tuple[Citation, ...] = ()
    echo: bool = False


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turns: tuple[ScriptedTurn, ...]
    strict: bool = False

    def turn(self, played: int) -> ScriptedTurn:
        """The turn after so many; past the end, the last one again."""
        return self.turns[min(played, len(self.turns) - 1)]


class Cue(Struct, frozen=True, kw_only=True):
    """The script of a conversation and the messages after it."""

    script: Script
    past: Sequence[Message] = ()

    @property
    def turn(self) -> ScriptedTurn:
        return self.script.turn(answers_in(self.past))


class ScriptFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """turns is for every model that models does not name."""

    turns: tuple[ScriptedTurn, ...] = ()
    strict: bool = False
    models: dict[str, Script] = {}

    def script_for(self, model: str) -> Script | None:
        return self.models.get(model) or (Script(turns=self.turns, strict=self.strict) if self.turns else None)


def parse_file(data: bytes) -> ScriptFile:
    """Raises BadRequest."""
    parsed = _shaped(_decoded(data), ScriptFile)
    scripts = list(parsed.models.values()) + ([Script(turns=parsed.turns)] if parsed.turns else [])
    if not scripts or not all(script.turns for script in scripts):
        raise _wrong('found no turns; expected {"turns": [...]} or {"models": {"name": {"turns": [...]}}}.')
    return parsed


def cue_in_prompt(messages: Sequence[Message]) -> Cue | None:
    """The last script of the prompt decides. If it has several turns, they count from the first such script."""
    marks = list(_marks(messages))
    if not marks:
        return None
    place, encoded = marks[-1]
    last = _parse(encoded)
    if isinstance(last, ScriptedTurn):
        return Cue(script=Script(turns=(last,)))
    for place, encoded in marks:
        script = _parse(encoded)
        if isinstance(script, Script):
            return Cue(script=script, past=messages[place + 1 :])
    raise AssertionError("the last script has turns, so a first one has")


def answers_in(messages: Sequence[Message]) -> int:
    """The number of answers; adjacent assistant messages are one answer."""
    return len(answers_of(messages))


def answers_of(messages: Sequence[Message]) -> list[list[Message]]:
    """The assistant messages of each answer."""
    answers: list[list[Message]] = []
    before = ""
    for message in messages:
        if message.role == "assistant":
            answers += [[]] if before != "assistant" else []
            answers[-1].append(message)
        before = message.role
    return answers


def _marks(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    for place, message in enumerate(messages):
        if message.role != "user":
            continue
        for part in message.parts:
            if isinstance(part, Text):
                yield from ((place, found) for found in _MARK.findall(part.text))


def _parse(encoded: str) -> ScriptedTurn | Script:
    value = _decoded(_bytes_of(encoded))
    if isinstance(value, dict) and "turns" in value:
        script = _shaped(value, Script)
        if not script.turns:
            raise _wrong("turns is empty; expected at least one turn.")
        return script
    return _shaped(value, ScriptedTurn)


def _bytes_of(encoded: str) -> bytes:
    plain = encoded.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(f"found {quote(encoded)}; expected base64 of JSON, as in [[script:eyJ0ZXh0Ijoib2sifQ]].") from None


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except BadJson as fault:
        raise _wrong(f"it is not JSON: {quote(str(fault))}.") from None


def _shaped(value: Any, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as fault:
        raise _wrong(f"it has the wrong form: {quote(str(fault))}.") from None
    except RecursionError:
        raise _wrong("it nests too deep.") from None


def _wrong(message: str) -> BadRequest:
    return BadRequest(
        message, code="bad_script", where="script", hint="See the script format of the scripted back end."
    )
