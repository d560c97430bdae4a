"""The mounted tools that one request gets, by the names that the client would see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ...config.values import McpServerConfig
from ...tools.base import Runnable
from ...types import RecurringTools, Tool

_MOST_KEYS = 10_000  # whose recent calls are stored


class MountedTool(Struct, frozen=True):
    """runnable: under the name that models see. is_returned: the client decides about each call, so it gets the call."""

    server: McpServerConfig
    runnable: Runnable
    is_returned: bool


class MountedOffer(Struct, frozen=True):
    """tools: by name. listed: their definitions. number: differs for each list."""

    number: int
    tools: Mapping[str, MountedTool]
    listed: RecurringTools

    def added_to(self, tools: tuple[Tool, ...]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        """The client's tools with these after them, and the names of those that the client has itself, which are left out."""
        if not tools:
            return self.listed, ()
        key = "mounted", self.number
        known: tuple[RecurringTools, tuple[str, ...]] | None = None
        if isinstance(tools, RecurringTools):
            known = tools.facts.get(key)
        if known is None:
            own = {name for tool in tools for name in (tool.name, tool.label)}
            taken = tuple(tool.name for tool in self.listed if tool.name in own)
            known = RecurringTools((*tools, *(tool for tool in self.listed if tool.name not in own))), taken
            if isinstance(tools, RecurringTools):
                tools.remember(key, known)
        return known

    def without(self, names: tuple[str, ...]) -> MountedOffer:
        """Without these tools; the list stays as it is."""
        return replace(self, tools={name: tool for name, tool in self.tools.items() if name not in names})


def approval_of(server: McpServerConfig, remote: str, *, changes_things: bool) -> Literal["allow", "ask", "deny"]:
    """remote: the server's own name of the tool. The first pattern that matches decides."""
    found = next((value for pattern, value in server.approvals.items() if fnmatchcase(remote, pattern)), None)
    match found or server.approval:
        case "auto":
            return "ask" if changes_things else "allow"
        case "allow":
            return "allow"
        case "ask":
            return "ask"
        case _:
            return "deny"


def is_for(server: McpServerConfig, names: tuple[str, ...], key: str) -> bool:
    """Whether a request for a model of these names, with the named key (or the owner's, ""), gets the tools of this server."""
    is_model = any(fnmatchcase(name, pattern) for name in names for pattern in server.models)
    return is_model and (not key or any(fnmatchcase(key, pattern) for pattern in server.keys))


class CallRate:
    """Calls of the last minute, by server and key, for servers with a limit. clock: in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], list[float]] = {}

    def admit(self, server: McpServerConfig, key: str) -> bool:
        """Counts the call, unless the limit is reached."""
        if not server.calls_per_minute:
            return True
        now, place = self._clock(), (server.name, key)
        recent = [time for time in self._calls.get(place, ()) if time > now - 60.0]
        is_admitted = len(recent) < server.calls_per_minute
        if is_admitted:
            recent.append(now)
        self._calls[place] = recent
        if len(self._calls) > _MOST_KEYS:
            self._calls = {place: times for place, times in self._calls.items() if times[-1] > now - 60.0}
        return is_admitted
