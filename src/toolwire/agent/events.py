"""The events of a tool loop, the same for every provider."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..types import Json, JsonObject, Media, Opaque, Text, Usage

Fault: TypeAlias = Literal["invalid", "unknown", "failed", "timeout", "denied", "interrupted"]
Ending: TypeAlias = Literal[
    "done", "max_iterations", "budget", "loop", "invalid", "length", "refused", "interrupted", "error"
]


class TextEvent(Struct, frozen=True, kw_only=True, tag="text"):
    """A piece of the answer's text."""

    text: str


class ReasoningEvent(Struct, frozen=True, kw_only=True, tag="reasoning"):
    text: str


class ToolCallEvent(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A complete, valid call that runs next unless it is denied. raw: the arguments as the model wrote them."""

    id: str
    name: str
    arguments: JsonObject
    repairs: tuple[str, ...] = ()
    raw: str = ""


class ToolResultEvent(Struct, frozen=True, kw_only=True, tag="tool_result"):
    id: str
    name: str
    parts: tuple[Text | Media | Opaque, ...]
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


class ToolErrorEvent(Struct, frozen=True, kw_only=True, tag="tool_error"):
    """A call that was not made or failed; message is sent to the model.

    For invalid arguments: missing has the names of required members, validation_errors have `path` and `message` each, and received has
    the arguments, shortened if they are long.
    """

    id: str
    name: str
    kind: Fault
    message: str
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    validation_errors: tuple[JsonObject, ...] = ()
    received: Json = None


class ApprovalEvent(Struct, frozen=True, kw_only=True, tag="approval"):
    """The decision about a call that needed approval; arguments are those that the tool gets."""

    id: str
    name: str
    arguments: JsonObject
    is_allowed: bool
    reason: str = ""


class StatusEvent(Struct, frozen=True, kw_only=True, tag="status"):
    """asking (a request is sent; detail is its number), calling (the model starts to write a call), arguments (a piece of them), running
    (progress of a tool), last (the next request must be answered with text; detail is the reason)."""

    status: str
    detail: str = ""
    id: str = ""
    name: str = ""


class ErrorEvent(Struct, frozen=True, kw_only=True, tag="error"):
    """The error that ended the loop. Only stream() yields it; run() raises it."""

    code: str
    message: str


class CompleteEvent(Struct, frozen=True, kw_only=True, tag="complete"):
    """The end of the loop: the final text, the reason and the total usage.

    cost: by the prices of Terms, else those of the gateway, in US dollars; None if a price is unknown. context: tokens of the last request and its answer, 0 if unknown. output: the value of the type that the agent was given, if it was given one.
    """

    text: str
    reason: Ending
    iterations: int
    usage: Usage
    cost: float | None = None
    context: int = 0
    output: Any = None


LoopEvent: TypeAlias = (
    TextEvent
    | ReasoningEvent
    | ToolCallEvent
    | ToolResultEvent
    | ToolErrorEvent
    | ApprovalEvent
    | StatusEvent
    | ErrorEvent
    | CompleteEvent
)


def plain(event: LoopEvent) -> dict[str, Any]:
    """Data for exact_json.encode(), which keeps the digits of numbers."""
    is_complete = isinstance(event, CompleteEvent)
    data: dict[str, Any] = to_builtins(replace(event, output=None) if is_complete else event, builtin_types=(Decimal,))
    data.pop("output", None)  # an object of the program; text has its JSON
    return data
