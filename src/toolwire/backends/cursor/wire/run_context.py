"""Cursor: what a decoder is told of its run beforehand, and what it hands back for each message."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from ....events import Event
from ....types import ToolCall, ToolResult
from .builtin_tools.results import Known
from .builtin_tools.schema import Fits
from .execs import Exec
from .request.request_out import Opening


class Outlook(Struct, frozen=True, kw_only=True):
    """mint makes ids for calls that came without one. fits judges whether arguments fit the schema of a tool. local are the kinds of exec that the gateway runs itself, for clients that
    brought no tools. known gives the result of a call that was made before, where such calls are not to be told again. files are those
    that the client has shown."""

    model: str
    opening: Opening
    mint: Callable[[], str]
    fits: Fits
    local: frozenset[str] = frozenset()
    is_parallel: bool = True
    known: Callable[[ToolCall], ToolResult | None] | None = None
    files: Known = field(default_factory=Known)

    @property
    def own_kinds(self) -> frozenset[str]:
        """A client with tools has its own workspace: nothing is done in ours then."""
        return frozenset() if self.opening.tools else self.local

    def client_name(self, name: str, tool_name: str = "") -> str | None:
        """The client's own name for what the server calls so; None where no tool that is offered now has it."""
        found = self.opening.names.client(name, tool_name)
        return found if any(tool.name == found for tool in self.opening.tools) else None

    def tool_names(self) -> list[str]:
        """As the model reads them."""
        return [self.opening.names.wire(tool.name) for tool in self.opening.tools]


class Reply(Struct):
    """events for the client, messages for the server, in order; local is to be run by the gateway, aborted to be stopped there.
    declined: so many of the model's wishes were answered without anybody doing anything. used: tokens of the context, where the
    server tells them."""

    events: list[Event] = []
    send: list[bytes] = []
    local: list[Exec] = []
    aborted: list[int] = []
    declined: int = 0
    used: int = 0
