"""Cursor's Agent API, without I/O: what is sent to have a request answered, and what the messages of a run mean."""

from __future__ import annotations

from .decoder import Outlook, Reply, TurnDecoder
from .errors import error_of, error_of_status
from .execs import CANCEL, CLIENT_HEARTBEAT, Exec, allowed_tools, answered, exec_of, heartbeat, rejected, thrown
from .history import mcp_result
from .models import requested, usable
from .names import Names
from .request import NAME, Opening, Setup, losses_of, offered, opening

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
