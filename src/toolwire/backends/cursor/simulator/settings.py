"""Settings of the simulator, the faults it can produce on request, and the errors of the real server.

A fault is written NAME or NAME=VALUE: a member of SimulatorFaults (`gzip`, `calls=3`, `late=0.2`), or a failure at a place of the turn
(`drop=text`, `stall=parked`, `error:rate_limited=open`).
"""

from __future__ import annotations

import tomllib
from pkgutil import get_data
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ....errors import BadRequest, quote
from ....wire.connect import ConnectFault, Detail
from ..wire import agent

API_KEY = "key_simulator"
TOKEN = "token_simulator"

MODELS = (
    "default",
    "composer-2",
    "claude-4.6-sonnet",
    "claude-4.6-opus",
    "gpt-5.4",
    "gpt-5.4-codex",
    "gemini-3-pro",
    "grok-5",
)


class Settings(Struct, frozen=True, kw_only=True):
    """The defaults are what is known of the real server, and otherwise lenient."""

    heartbeat: float = 1.0  # seconds, as seen on the real server
    api_keys: tuple[str, ...] = (API_KEY,)
    tokens: tuple[str, ...] = (TOKEN,)  # these never expire
    token_seconds: float = 3600.0  # lifetime of a token exchanged for an API key
    is_sign_in_barred: bool = False  # the exchange ends with sign_in_policy_violation
    models: tuple[str, ...] = MODELS
    knows_every_model: bool = False
    minimum_version: str = ""  # such as cli-2026.01.09
    needs_context: bool = False  # refuses runs without a request context in the first message
    has_precheck: bool = True  # sends a precheck before every call
    needs_close: bool = False  # a result counts only after its stream_close
    orders_appends: bool = False  # accepts appends in any order
    append_wait: float = 1.0  # seconds that an append waits for its RunSSE
    is_enveloped: bool = False  # sends the list of models in an envelope
    parked_seconds: float = 0.05  # until the failure of a parked run
    http2_config: int = 2


PLACES = ("open", "text", "call", "parked", "result", "end")
FAILURES = {
    "stall": "only heartbeats follow",
    "silence": "nothing follows, not even heartbeats",
    "drop": "the connection is dropped",
    "close": "the answer ends regularly, but without an end frame",
    "reset": "the stream is reset (on HTTP/1.1 the connection is dropped)",
    "goaway": "GOAWAY, then the connection is closed (on HTTP/1.1 it is only closed)",
    "half_frame": "an incomplete frame, then the end of the answer",
    "huge_frame": "a frame with a length of one gibibyte",
    "junk_frame": "a frame that is not a message",
    "error:NAME": "the end frame with one of the errors",
}


class SimulatorFaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The defaults are a server without faults."""

    calls: int = 1  # every call is sent so often, each with its own id
    late: float = 0.0  # seconds between them
    newline_ids: bool = False  # two ids in tool_call_id
    prefixed_names: bool = False  # mcp_<provider>_<tool>
    native: str = ""  # this exec is sent before every call, whatever tools are allowed
    query: str = ""  # this question is sent before the first text
    repeat_exec: bool = False  # the same exec is sent twice
    text_as_blob: bool = False  # no text deltas: the answer is only stored as a blob
    endless: Literal["", "text", "nothing"] = (
        ""  # after results: the text only as a blob, or no text, then only heartbeats
    )
    think_tags: bool = False  # thinking is sent as <think> in the text
    empty_usage: bool = False  # turn_ended without numbers
    no_turn_ended: bool = False
    gzip: bool = False  # if the client accepts it
    split: bool = False  # writes every byte separately
    slow: float = 0.0  # seconds before every message
    unknown: bool = False  # unknown messages and fields in between
    poison: bool = False  # refuses this conversation id with a bare resource_exhausted, for good
    status: int = 0  # answers with this HTTP status instead of a stream
    at: dict[str, str] = {}  # place -> failure


class Error(Struct, frozen=True, kw_only=True):
    """name: of ErrorDetails.Error; without it there are no details."""

    code: str
    name: str = ""
    message: str = "Error"
    title: str = ""
    detail: str = ""
    is_retryable: bool = False

    def as_fault(self) -> ConnectFault:
        if not self.name:
            return ConnectFault(self.code, self.message)
        number = agent.ErrorDetails_Error.Value(self.name)
        details: Any = {"title": self.title, "detail": self.detail, "is_retryable": self.is_retryable}
        value = agent.ErrorDetails(error=number, details=details, is_expected=True).SerializeToString()
        camel_case = {"title": self.title, "detail": self.detail, "isRetryable": self.is_retryable}
        debug = {"error": self.name, "details": camel_case, "isExpected": True}
        return ConnectFault(self.code, self.message, (Detail("aiserver.v1.ErrorDetails", value, debug),))


class RunRefused(Exception):
    """The run ends with this error."""

    def __init__(self, error: Error) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error


def refused(code: str, message: str) -> RunRefused:
    return RunRefused(Error(code=code, message=message))


ERRORS: dict[str, Error] = msgspec.convert(
    tomllib.loads((get_data(__package__, "errors.toml") or b"").decode()), dict[str, Error]
)


def parse(names: list[str] | tuple[str, ...]) -> SimulatorFaults:
    """The faults of a command line. Raises BadRequest for an unknown one."""
    members: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for written in names:
        name, _, value = written.partition("=")
        if is_failure(name):
            if value and value not in PLACES:
                raise _unknown(written)
            failures[value or "text"] = name
        elif name in SimulatorFaults.__struct_fields__ and name != "at":
            members[name] = value or True
        else:
            raise _unknown(written)
    try:
        return msgspec.convert({**members, "at": failures}, SimulatorFaults, strict=False)
    except msgspec.ValidationError as fault:
        raise BadRequest(f"a fault has the wrong value: {quote(str(fault))}.", code="bad_fault") from None


def is_failure(name: str) -> bool:
    """Whether this is the name of a failure at a place."""
    kind, _, error = name.partition(":")
    return error in ERRORS if kind == "error" else name in FAILURES


def _unknown(written: str) -> BadRequest:
    members = [name for name in SimulatorFaults.__struct_fields__ if name != "at"]
    known = ", ".join([*members, *(f"{failure}=PLACE" for failure in FAILURES)])
    return BadRequest(
        f"found the fault {quote(written)}; expected one of {known}; places: {', '.join(PLACES)}; "
        f"errors: {', '.join(ERRORS)}.",
        code="bad_fault",
    )
