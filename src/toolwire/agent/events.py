"""What a loop tells while it runs: the same few events, whoever answers and whoever runs the tools."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, TypeAlias

from msgspec import Struct, to_builtins

from ..types import Json, JsonObject, Media, Opaque, Text, Usage

Fault: TypeAlias = Literal["invalid", "unknown", "failed", "timeout", "denied", "interrupted"]
Ending: TypeAlias = Literal[
    "done", "max_iterations", "budget", "loop", "invalid", "length", "refused", "interrupted", "error"
]


class TextEvent(Struct, frozen=True, kw_only=True, tag="text"):
    """A piece of what the model says, as it comes."""

    text: str


class ReasoningEvent(Struct, frozen=True, kw_only=True, tag="reasoning"):
    text: str


class ToolCallEvent(Struct, frozen=True, kw_only=True, tag="tool_call"):
    """A whole call that fits its tool; it runs next, unless somebody denies it. raw: the arguments as the model wrote them."""

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
    """A call that was not made, or did not come to its end; message is what the model is told.

    For arguments that do not fit: missing are members that are required, validation_errors have `path` and `message` each, received
    is what came, shortened where it is long.
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
    """Somebody was asked about a call, and this is what they said; arguments are those it runs with."""

    id: str
    name: str
    arguments: JsonObject
    is_allowed: bool
    reason: str = ""


class StatusEvent(Struct, frozen=True, kw_only=True, tag="status"):
    """What happens meanwhile: asking (detail: which request this is), calling (a call has begun to be written), arguments (more
    of it), running (a tool says how far it is), last (the request that must be answered in words, and why)."""

    status: str
    detail: str = ""
    id: str = ""
    name: str = ""


class ErrorEvent(Struct, frozen=True, kw_only=True, tag="error"):
    """The end of a loop that could not go on."""

    code: str
    message: str


class CompleteEvent(Struct, frozen=True, kw_only=True, tag="complete"):
    """The end, whatever led to it: the last text, and what all of it took."""

    text: str
    reason: Ending
    iterations: int
    usage: Usage


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
    """As data for wire.exact.encode(): numbers keep their digits, which other writers may not know."""
    found: dict[str, Any] = to_builtins(event, builtin_types=(Decimal,))
    return found
