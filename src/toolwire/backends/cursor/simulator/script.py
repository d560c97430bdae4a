"""The steps of a simulated model, and scripts of them as TOML, JSON or JSON lines.

A script is a list of turns, and a turn is a list of steps. One turn is one answer of the model: text, and possibly calls. A run starts
with the turn whose number is the number of answers in the history. After the results of a turn's calls, the next turn follows in the
same run; a turn without calls ends it. The last turn is repeated.

In Python a model is a generator of steps. The results of a step are sent into it: `results = yield MakeCall("read", {"path": "a"})` waits
for the client's result and gives a list of ClientResult; other steps give an empty list. When the generator ends, the turn ends
regularly: blob, checkpoint, turn_ended, end of the stream.

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
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from ....errors import ConfigError, quote
from ....types import JsonObject
from .settings import SimulatorFaults

_RESULT = re.compile(r"\{\{result:(\d{1,6})(?::((?:[^{}]|\{[^{}]{0,20}\}){1,200}))?\}\}")


class ScriptTurn(Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[Step, ...]
    faults: SimulatorFaults | None = None


class ModelScript(Struct, frozen=True, forbid_unknown_fields=True):
    """A model."""

    turns: tuple[ScriptTurn, ...]

    def start(self, seen: Seen) -> Generator[Step, list[ClientResult], None]:
        texts = seen.results
        number = seen.answers
        while True:
            turn = self.turns[min(number, len(self.turns) - 1)]
            if turn.faults is not None:
                yield With(turn.faults)
            has_called = False
            for step in turn.steps:
                results = yield filled(step, texts)
                if isinstance(step, MakeCall | MakeCalls):
                    has_called = True
                    texts = [*texts, *(result.text for result in results)]
            number += 1
            if not has_called:
                return


def play(*turns: list[Step] | Step) -> ModelScript:
    """A script in Python: each turn is a list of steps, or one step."""
    return ModelScript(tuple(ScriptTurn(tuple(turn) if isinstance(turn, list) else (turn,)) for turn in turns))


def load(path: Path) -> ModelScript:
    """Raises ConfigError."""
    try:
        data = path.read_bytes()
        script = msgspec.convert(_value(path, data), ModelScript)
    except OSError as fault:
        raise ConfigError(f"the script cannot be read: {fault.strerror}.", where=str(path)) from None
    except (ValueError, msgspec.MsgspecError) as fault:
        raise ConfigError(f"the script has the wrong form: {quote(str(fault))}.", where=str(path)) from None
    if not script.turns:
        raise ConfigError("the script has no turns; expected at least one.", where=str(path))
    return script


def filled(step: Step, texts: list[str]) -> Step:
    """The step with the placeholders for results replaced."""
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
        raise ValueError(f"result {number} does not exist; the conversation has {len(texts)}, counted from 0")
    if pattern is None:
        return texts[number]
    found = re.search(pattern, texts[number])
    if found is None:
        raise ValueError(f"{quote(pattern)} matches nothing in result {number}, which is {quote(texts[number])}")
    return found[0]


class Say(Struct, frozen=True, tag="say", tag_field="do", forbid_unknown_fields=True):
    """Text in so many deltas."""

    text: str
    pieces: int = 3
    pause: float = 0.0  # seconds between two deltas
    is_notice: bool = False


class Think(Struct, frozen=True, tag="think", tag_field="do", forbid_unknown_fields=True):
    text: str
    pieces: int = 2


class MakeCall(Struct, frozen=True, tag="call", tag_field="do", forbid_unknown_fields=True):
    """A call of a tool, which the client may not have offered: models do that."""

    name: str
    args: JsonObject = {}
    call_id: str = ""
    announce: bool = True  # by tool_call_started, before the exec


class MakeCalls(Struct, frozen=True, tag="together", tag_field="do", forbid_unknown_fields=True):
    """Several calls that are sent before the first result."""

    calls: tuple[MakeCall, ...]
    late: float = 0.0  # seconds between two execs
    is_late_announced: bool = True  # all are announced with the first


class Native(Struct, frozen=True, tag="native", tag_field="do", forbid_unknown_fields=True):
    """A built-in tool: kind is the exec's name without "_args", such as "shell_stream"."""

    kind: str
    args: dict[str, Any] = {}
    call_id: str = ""


class AskPerson(Struct, frozen=True, tag="query", tag_field="do", forbid_unknown_fields=True):
    """A question to a person: kind is the query's name without its ending, such as "web_search"."""

    kind: str = "web_search"
    args: dict[str, Any] = {}


class SetBlob(Struct, frozen=True, tag="set_blob", tag_field="do", forbid_unknown_fields=True):
    """Store a message at the client; None stores the model's output so far."""

    message: JsonObject | None = None


class Checkpoint(Struct, frozen=True, tag="checkpoint", tag_field="do", forbid_unknown_fields=True):
    used_tokens: int = 1000
    max_tokens: int = 200_000


class Pause(Struct, frozen=True, tag="pause", tag_field="do", forbid_unknown_fields=True):
    seconds: float


class TurnUsage(Struct, frozen=True, forbid_unknown_fields=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class EndTurn(Struct, frozen=True, tag="ended", tag_field="do", forbid_unknown_fields=True):
    """End the turn. The server sent no usage until the summer of 2026."""

    usage: TurnUsage | None = None


class Fail(Struct, frozen=True, tag="fail", tag_field="do", forbid_unknown_fields=True):
    """An end frame with an error; error is a key of ERRORS and takes precedence."""

    error: str = ""
    code: str = "internal"
    message: str = "Error"


class Disconnect(Struct, frozen=True, tag="drop", tag_field="do", forbid_unknown_fields=True):
    """Break the connection in one of the ways of FAILURES."""

    how: str = "drop"


class Stall(Struct, frozen=True, tag="stall", tag_field="do", forbid_unknown_fields=True):
    """Only heartbeats follow, or nothing at all."""

    is_silent: bool = False


class With(Struct, frozen=True, tag="with", tag_field="do", forbid_unknown_fields=True):
    """These faults apply to the rest of the run."""

    faults: SimulatorFaults


class Raw(Struct, frozen=True, tag="raw", tag_field="do", forbid_unknown_fields=True):
    """An AgentServerMessage in hexadecimal."""

    data: str


Step: TypeAlias = (
    Say
    | Think
    | MakeCall
    | MakeCalls
    | Native
    | AskPerson
    | SetBlob
    | Checkpoint
    | Pause
    | EndTurn
    | Fail
    | Disconnect
    | Stall
    | With
    | Raw
)


class ClientResult(Struct, frozen=True, kw_only=True):
    """The client's answer. kind: the member that was set, such as "success" or "rejected"; "thrown" for a throw."""

    call_id: str
    name: str
    kind: str
    text: str = ""
    is_error: bool = False
    images: tuple[tuple[str, bytes], ...] = ()  # type and bytes
    messages: tuple[Any, ...] = ()  # the result messages as received


class Offered(Struct, frozen=True, kw_only=True):
    """A tool of the client."""

    name: str
    tool_name: str
    provider: str
    description: str
    schema: JsonObject


class Seen(Struct, frozen=True, kw_only=True):
    """Input of the model. Messages have the form of the blobs; the last one is the user's, unless the run is resumed."""

    messages: tuple[JsonObject, ...] = ()
    user_text: str = ""
    images: tuple[tuple[str, bytes], ...] = ()  # of the user's message: type and bytes
    is_resumed: bool = False
    rules: tuple[str, ...] = ()
    tools: tuple[Offered, ...] = ()
    model: str = ""
    parameters: dict[str, str] = {}
    max_mode: bool = False
    allowed_tools: tuple[str, ...] = ()
    number: int = 0  # of the run on this server, from 0

    @property
    def answers(self) -> int:
        """How often the model has spoken: neighbouring assistant messages are one answer."""
        roles = [message.get("role") for message in self.messages]
        before = ["", *roles[:-1]]
        return sum(role == "assistant" and last != "assistant" for role, last in zip(roles, before, strict=bool(roles)))

    @property
    def results(self) -> list[str]:
        """The text of every tool result, in order."""
        return [
            result_text(part.get("result"))
            for message in self.messages
            if message.get("role") == "tool"
            for part in parts_of(message)
            if part.get("type") == "tool-result"
        ]


class SimulatedModel(Protocol):
    def start(
        self, seen: Seen
    ) -> Generator[Step, list[ClientResult], None] | AsyncGenerator[Step, list[ClientResult]]: ...


def parts_of(message: JsonObject) -> list[JsonObject]:
    """The parts of a message whose content may be a string."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def result_text(result: Any) -> str:
    """A result in the history may be text, a list of parts, or any JSON."""
    if isinstance(result, str):
        return result
    if isinstance(result, list):
        return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in result)
    if isinstance(result, dict):
        inner = result.get("text", result.get("content", result.get("value")))
        return "" if inner is None else result_text(inner)
    return "" if result is None else str(result)
