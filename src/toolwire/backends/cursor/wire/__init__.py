"""Cursor's Agent API without I/O: the messages that are sent for a request, and the meaning of those that come back."""

from __future__ import annotations

from .decoder import DecoderReply, RunDecoder
from .exec_routing import RunContext
from .execs import CANCEL, CLIENT_HEARTBEAT, Exec, allowed_tools
from .request import RunOpening, RunSetup, offered, opening

__all__ = [
    "CANCEL",
    "CLIENT_HEARTBEAT",
    "Exec",
    "RunOpening",
    "DecoderReply",
    "RunContext",
    "RunSetup",
    "RunDecoder",
    "allowed_tools",
    "offered",
    "opening",
]
