"""Requests without the wire objects that they were decoded from."""

from __future__ import annotations

import msgspec

from toolwire.types import Request


def without_sources(request: Request) -> Request:
    return msgspec.structs.replace(
        request,
        source={},
        messages=tuple(msgspec.structs.replace(message, source=None) for message in request.messages),
        tools=tuple(msgspec.structs.replace(tool, source=None) for tool in request.tools),
    )
