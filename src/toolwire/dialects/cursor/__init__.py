"""Cursor's Agent API, without I/O: what is sent to have a request answered, and what the messages of a run mean."""

from __future__ import annotations

from .answer_in import Outlook, Reply, TurnDecoder
from .execs import CLIENT_HEARTBEAT, Exec, answered, exec_of, heartbeat, rejected, thrown
from .faults import error_of, error_of_status
from .models import requested, usable
from .names import Names
from .permits import CANCEL, allowed_tools
from .request_out import NAME, Opening, Setup, losses_of, offered, opening
from .results import mcp_result

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
