"""A record of everything that the simulator received, for tests and people."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from ....types import JsonObject


class CallRecord(Struct, kw_only=True):
    """One exec for the client."""

    id: int
    exec_id: str
    kind: str
    call_id: str = ""  # as sent
    name: str = ""
    args: JsonObject = {}
    sent_at: float = 0.0
    answered_at: float | None = None
    answers: int = 0
    is_closed: bool = False
    heartbeats: list[float] = []
    result: str = ""  # the member that was set in the result
    text: str = ""


class Run(Struct, kw_only=True):
    """One run. All times are seconds since the start of the simulator."""

    number: int
    transport: Literal["run", "sse"]
    http: str
    request_id: str
    headers: dict[str, str]
    at: float
    conversation_id: str = ""
    action: str = ""
    model: str = ""
    request: Any = None  # the AgentRunRequest
    opening: bytes = b""  # the bytes of the first message
    roots: list[bytes] = []
    fetched: int = 0
    messages: list[JsonObject] = []  # the root messages, including those of the system
    user_text: str = ""
    tools: list[str] = []
    rules: list[str] = []
    calls: list[CallRecord] = []  # of the client's tools
    execs: list[CallRecord] = []  # all of them
    heartbeats: list[float] = []
    received: Counter[str] = field(default_factory=Counter)  # messages by kind
    appends: int = 0
    text: str = ""  # of the model
    state: Literal["open", "ended", "refused", "gone", "cut"] = "open"
    error: str = ""
    ended_at: float | None = None
    offences: list[str] = []

    @property
    def results(self) -> dict[str, int]:
        """How often each call was answered, by its id."""
        return {call.call_id: call.answers for call in self.calls}


class JournalEntry(Struct, kw_only=True):
    at: float
    run: int | None
    what: str
    detail: JsonObject


class Journal:
    """runs in the order of their start. offences: violations of the protocol, refused or not."""

    def __init__(self, path: Path | None = None) -> None:
        self.runs: list[Run] = []
        self.entries: list[JournalEntry] = []
        self.requests: list[tuple[str, str, int]] = []  # HTTP version, path, status
        self.exchanges: int = 0  # of an API key for a token
        self._path = path
        self._start = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._start

    @property
    def offences(self) -> list[str]:
        return [entry.detail["why"] for entry in self.entries if entry.what == "offence"]

    @property
    def open_runs(self) -> list[Run]:
        return [run for run in self.runs if run.state == "open"]

    def note(self, what: str, run: Run | None = None, /, **detail: Any) -> None:
        entry = JournalEntry(at=self.now, run=None if run is None else run.number, what=what, detail=detail)
        self.entries.append(entry)
        if self._path is not None:
            line = {"at": round(entry.at, 4), "run": entry.run, "what": what, **detail}
            with self._path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line, ensure_ascii=False, default=_as_text) + "\n")

    def offence(self, why: str, run: Run | None = None) -> None:
        if run is not None:
            run.offences.append(why)
        self.note("offence", run, why=why)

    def request(self, version: str, path: str, status: int) -> None:
        self.requests.append((version, path, status))
        self.note("request", http=version, path=path, status=status)

    def close(self, run: Run, state: Literal["ended", "refused", "gone", "cut"], error: str = "") -> None:
        """Only the first call for a run counts."""
        if run.state == "open":
            run.state, run.error, run.ended_at = state, error, self.now
            self.note("end", run, state=state, error=error)


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
