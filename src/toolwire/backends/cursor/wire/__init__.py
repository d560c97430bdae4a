"""Cursor's Agent API, without I/O: what is sent to have a request answered, and what the messages of a run mean."""

from __future__ import annotations

from .answer.decoder import Outlook, Reply, TurnDecoder
from .errors import error_of, error_of_status
from .execs import CLIENT_HEARTBEAT, Exec, answered, exec_of, heartbeat, rejected, thrown
from .request.models import requested, usable
from .request.names import Names
from .request.request_out import NAME, Opening, Setup, losses_of, offered, opening
from .request.results import mcp_result
from .visible_tools import CANCEL, allowed_tools

__all__ = [
    "CANCEL",
    "CLIENT_HEARTBEAT",
    "NAME",
    "Exec",
    "Names",
    "Opening",
    "Outlook",
    "Reply",
    "Setup",
    "TurnDecoder",
    "allowed_tools",
    "answered",
    "error_of",
    "error_of_status",
    "exec_of",
    "heartbeat",
    "losses_of",
    "mcp_result",
    "offered",
    "opening",
    "rejected",
    "requested",
    "thrown",
    "usable",
]
