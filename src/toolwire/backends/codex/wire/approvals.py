"""Codex app-server: what is answered to its own requests. Nobody sits here who could approve anything, so nothing is approved."""

from __future__ import annotations

from msgspec import Struct

from ....errors import quote
from ....events import Event
from ....types import JsonObject
from ....wire.json_rpc import Id, refusal, result

TOOL_CALL = "item/tool/call"
_NOT_DONE = -32601  # no such method, in the numbers of JSON-RPC

# Server request -> its answer. All others are refused by an error, which Codex takes as a no.
DECLINED: dict[str, JsonObject] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
    "mcpServer/elicitation/request": {"action": "decline", "content": None},
    "item/tool/requestUserInput": {"answers": {}},
}


class ServerRequestReply(Struct, frozen=True, kw_only=True):
    """What to answer to a request: a result or an error. Neither: it waits, and is answered when the client has a result."""

    result: JsonObject | None = None
    error: JsonObject | None = None
    events: list[Event] = []

    @property
    def is_held(self) -> bool:
        return self.result is None and self.error is None

    def message(self, id: Id) -> JsonObject | None:
        """The answer as it is sent; None where it waits."""
        if self.error is not None:
            return refusal(id, self.error)
        return None if self.result is None else result(id, self.result)


def declined(method: str) -> ServerRequestReply:
    """The answer to any request that is not a call of the client's tools."""
    if (answer := DECLINED.get(method)) is not None:
        return ServerRequestReply(result=answer)
    return ServerRequestReply(error={"code": _NOT_DONE, "message": f"toolwire has no answer to {quote(method)}."})


def stray() -> ServerRequestReply:
    """The answer to a call in a thread or turn that nobody waits for."""
    return ServerRequestReply(error={"code": _NOT_DONE, "message": "the turn has ended."})
