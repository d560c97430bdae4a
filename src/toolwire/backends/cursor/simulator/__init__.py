"""A server that speaks Cursor's Agent API on loopback, faithful in what it asks and in what it refuses."""

from __future__ import annotations

from .faults import ERRORS, PLACES, TROUBLES, Faults, parse
from .journal import CallRecord, Entry, Journal, Run
from .model import Brain, Obliging, demo, prompted
from .script import Script, load, play
from .server import Simulator
from .settings import API_KEY, TOKEN, Settings
from .steps import (
    Call,
    CallTogether,
    Checkpoint,
    Drop,
    Ended,
    Fail,
    Model,
    Native,
    Offered,
    Pause,
    Query,
    Raw,
    Result,
    Say,
    Seen,
    SetBlob,
    Stall,
    Step,
    Think,
    Usage,
    With,
)

__all__ = [
    "Simulator",
    "Settings",
    "API_KEY",
    "TOKEN",
    "Faults",
    "ERRORS",
    "PLACES",
    "TROUBLES",
    "parse",
    "Journal",
    "Run",
    "CallRecord",
    "Entry",
    "Model",
    "Seen",
    "Offered",
    "Result",
    "Script",
    "play",
    "load",
    "Brain",
    "Obliging",
    "demo",
    "prompted",
    "Step",
    "Say",
    "Think",
    "Call",
    "CallTogether",
    "Native",
    "Query",
    "SetBlob",
    "Checkpoint",
    "Pause",
    "Usage",
    "Ended",
    "Fail",
    "Drop",
    "Stall",
    "With",
    "Raw",
]
