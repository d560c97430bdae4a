"""What the model inside the simulator is: it sees a prompt, and does one step after the other.

A model is a generator of steps. What a step brings back is sent into it: `results = yield Call("read", {"path": "a"})` waits for the
client's result, however long that takes, and gives a list of Result; steps that bring nothing give an empty list.
When the generator ends, the turn ends as it should: blob, checkpoint, turn_ended, end of the stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from ....types import JsonObject
from .faults import Faults


class Say(Struct, frozen=True, tag="say", tag_field="do", forbid_unknown_fields=True):
    """Text, in that many deltas."""

    text: str
    pieces: int = 3
    pause: float = 0.0  # seconds between two deltas
    is_notice: bool = False


class Think(Struct, frozen=True, tag="think", tag_field="do", forbid_unknown_fields=True):
    text: str
    pieces: int = 2


class Call(Struct, frozen=True, tag="call", tag_field="do", forbid_unknown_fields=True):
    """A call of a tool that the client offered, or of one that it did not: models do that."""

    name: str
    args: JsonObject = {}
    call_id: str = ""
    announce: bool = True  # by tool_call_started, before the exec


class CallTogether(Struct, frozen=True, tag="together", tag_field="do", forbid_unknown_fields=True):
    """Several calls that are all out before the first result is waited for."""

    calls: tuple[Call, ...]
    late: float = 0.0  # seconds between two execs
    is_late_announced: bool = True  # tool_call_started of all of them comes with the first


class Native(Struct, frozen=True, tag="native", tag_field="do", forbid_unknown_fields=True):
    """One of the vendor's own tools: kind is the exec's name without "_args", as in "shell_stream"."""

    kind: str
    args: dict[str, Any] = {}
    call_id: str = ""


class Query(Struct, frozen=True, tag="query", tag_field="do", forbid_unknown_fields=True):
    """A question to the person: kind is the query's name without its ending, as in "web_search"."""

    kind: str = "web_search"
    args: dict[str, Any] = {}


class SetBlob(Struct, frozen=True, tag="set_blob", tag_field="do", forbid_unknown_fields=True):
    """A message of the conversation is left with the client; None is what the model said so far."""

    message: JsonObject | None = None


class Checkpoint(Struct, frozen=True, tag="checkpoint", tag_field="do", forbid_unknown_fields=True):
    used_tokens: int = 1000
    max_tokens: int = 200_000


class Pause(Struct, frozen=True, tag="pause", tag_field="do", forbid_unknown_fields=True):
    seconds: float


class Usage(Struct, frozen=True, forbid_unknown_fields=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Ended(Struct, frozen=True, tag="ended", tag_field="do", forbid_unknown_fields=True):
    """The turn is over; no usage is what the server sent until the summer of 2026."""

    usage: Usage | None = None


class Fail(Struct, frozen=True, tag="fail", tag_field="do", forbid_unknown_fields=True):
    """The end frame with an error; error is a name of faults.ERRORS and goes before the rest."""

    error: str = ""
    code: str = "internal"
    message: str = "Error"


class Drop(Struct, frozen=True, tag="drop", tag_field="do", forbid_unknown_fields=True):
    """The end of the connection, in one of the ways of faults.TROUBLES."""

    how: str = "drop"


class Stall(Struct, frozen=True, tag="stall", tag_field="do", forbid_unknown_fields=True):
    """Nothing more ever, but heartbeats; or not even these."""

    is_silent: bool = False


class With(Struct, frozen=True, tag="with", tag_field="do", forbid_unknown_fields=True):
    """From here on in this run, these faults."""

    faults: Faults


class Raw(Struct, frozen=True, tag="raw", tag_field="do", forbid_unknown_fields=True):
    """An AgentServerMessage in hexadecimal, as it is."""

    data: str


Step: TypeAlias = (
    Say
    | Think
    | Call
    | CallTogether
    | Native
    | Query
    | SetBlob
    | Checkpoint
    | Pause
    | Ended
    | Fail
    | Drop
    | Stall
    | With
    | Raw
)


class Result(Struct, frozen=True, kw_only=True):
    """What the client answered. kind: the member of the result that was set, as in "success" or "rejected"; "thrown" for a throw."""

    call_id: str
    name: str
    kind: str
    text: str = ""
    is_error: bool = False
    images: tuple[tuple[str, bytes], ...] = ()  # type and bytes
    messages: tuple[Any, ...] = ()  # the result messages as they came


class Offered(Struct, frozen=True, kw_only=True):
    """A tool of the client's."""

    name: str
    tool_name: str
    provider: str
    description: str
    schema: JsonObject


class Seen(Struct, frozen=True, kw_only=True):
    """All that reaches the model. The messages have the shape of the blobs; the last one is the user's, unless the run is resumed."""

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
        """The text of every tool result in the prompt, in order."""
        return [
            result_text(part.get("result"))
            for message in self.messages
            if message.get("role") == "tool"
            for part in parts_of(message)
            if part.get("type") == "tool-result"
        ]


Place = Literal["open", "text", "call", "parked", "result", "end"]


class Model(Protocol):
    def start(self, seen: Seen) -> Generator[Step, list[Result], None] | AsyncGenerator[Step, list[Result]]: ...


def parts_of(message: JsonObject) -> list[JsonObject]:
    """A string is one text."""
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
