"""MCP over HTTP at /mcp: each POST is one message, without sessions, so that any process can answer it."""

from __future__ import annotations

from collections.abc import Mapping

from ...backends.mounts import Receive
from ...wire.exact_json import encode
from ..reply import Reply, WrongMethod
from .models import TOOLS, AsgiApp, ModelTools
from .protocol import McpFault, McpRequest, handle, read_message

PATH = "/mcp"


def check_method(method: str) -> None:
    """Raises WrongMethod. Older clients open a stream with GET, and continue without one where that is refused."""
    if method != "POST":
        raise WrongMethod(method, "POST")


async def answer(gateway: AsgiApp, body: bytes, headers: Mapping[str, str], receive: Receive, reply: Reply) -> None:
    """gateway: gets the requests for models."""
    request = None
    try:
        request = read_message(body)
        if request is None:
            await reply.whole(202, b"", "application/json")
            return
        handled = handle(request, TOOLS, headers)
    except McpFault as fault:
        await reply.whole(fault.status, encode(fault.body(None if request is None else request.id)), "application/json")
        return
    result = handled.result
    if result is None:
        result = await ModelTools(gateway, headers, receive).call(handled.name, handled.arguments)
    await reply.whole(200, _encoded(handled, result), "application/json")


def _encoded(request: McpRequest, result: dict[str, object]) -> bytes:
    return encode(request.body(result))
