"""Codex app-server: responses to its own requests. No person can approve anything here, so everything is declined."""

from __future__ import annotations

from ....errors import quote
from ....types import JsonObject
from ....wire.json_rpc import Id, RpcRequest, refusal, result

TOOL_CALL = "item/tool/call"
_NO_METHOD = -32601  # an error code of JSON-RPC

# Codex takes an error, the response to all other requests, as a refusal.
DECLINED: dict[str, JsonObject] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "execCommandApproval": {"decision": "denied"},
    "applyPatchApproval": {"decision": "denied"},
    "mcpServer/elicitation/request": {"action": "decline", "content": None},
    "item/tool/requestUserInput": {"answers": {}},
}


def decline(request: RpcRequest) -> JsonObject:
    """The response to a request that is not a call of a client's tool in an open thread."""
    if (answer := DECLINED.get(request.method)) is not None:
        return result(request.id, answer)
    return refusal(request.id, {"code": _NO_METHOD, "message": f"toolwire does not answer {quote(request.method)}."})


def refuse_call(id: Id) -> JsonObject:
    """The response to a call of another turn."""
    return refusal(id, {"code": _NO_METHOD, "message": "the turn has ended."})
