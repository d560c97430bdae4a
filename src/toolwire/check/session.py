"""One run against one dialect of an endpoint: sends requests, reads the answers strictly, collects the results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from ..types import Request, Tool
from .deviations import Deviation, DeviationLog
from .endpoint import CheckedEndpoint, HttpAttempt
from .results import Area, DialectReport, Outcome, ProbeResult
from .wire import READERS
from .wire.frames import SeenAnswer

_AS_TEXT = re.compile(
    r"<tool_call|<function[=_]|\[TOOL_CALLS\]|<\|python_tag\|>|<\uff5ctool|<invoke|```tool_code", re.IGNORECASE
)
_ERROR_TEXT = 200
_SLOW = 1.0  # seconds; a faster answer may well arrive in one piece
_NO_CALLS = frozenset({"schema.no_call", "choice.ignored"})


class ProbeAnswer:
    """An answer and what was found in it. answer is None if the endpoint sent none."""

    def __init__(self, attempt: HttpAttempt, log: DeviationLog, answer: SeenAnswer | None) -> None:
        self.attempt = attempt
        self.log = log
        self.answer = answer

    @property
    def refusal(self) -> str:
        """The status and the start of the message, "" if the request was accepted."""
        if not self.attempt.is_refused:
            return ""
        return f"status {self.attempt.status}: {self.attempt.body[:_ERROR_TEXT].decode('utf-8', 'replace')}"


class CheckSession:
    """progress is called with the name of each probe that has ended."""

    def __init__(self, endpoint: CheckedEndpoint, *, is_quick: bool, progress: Callable[[ProbeResult], None]) -> None:
        self.endpoint = endpoint
        self.is_quick = is_quick
        self.report = DialectReport(dialect=endpoint.dialect, model=endpoint.model)
        self.has_seen_calls = False
        self._progress = progress
        self._reader = READERS[endpoint.dialect]

    @property
    def model(self) -> str:
        return self.endpoint.model

    async def ask(self, request: Request, name: str) -> ProbeAnswer:
        return self.read(await self.endpoint.ask(request), request, name)

    def read(self, attempt: HttpAttempt, request: Request, name: str) -> ProbeAnswer:
        """Reads the answer as the dialect defines it. A refusal is left to the caller."""
        log = DeviationLog(name)
        if attempt.code:
            log.add(attempt.code, "connection", attempt.detail)
        if attempt.is_refused or (attempt.code and not attempt.body):
            return ProbeAnswer(attempt, log, None)
        wanted = "text/event-stream" if request.stream else "application/json"
        log.expect(
            attempt.content_type == wanted, "http.content_type", "content-type", attempt.content_type or "missing"
        )
        read = self._reader.read_stream if request.stream else self._reader.read_body
        answer = read(attempt.body, log)
        if answer.usage is not None:
            self.report.tokens += sum(answer.usage)
        if request.stream and attempt.reads == 1 and answer.pieces > 8 and attempt.seconds > _SLOW:
            log.add("stream.one_piece", "stream", f"{answer.pieces} pieces in one read")
        self._check_calls(answer, request, log)
        self.has_seen_calls = self.has_seen_calls or bool(answer.calls)
        return ProbeAnswer(attempt, log, answer)

    def is_error_form(self, attempt: HttpAttempt) -> bool:
        try:
            return self._reader.is_error(json.loads(attempt.body))
        except ValueError:
            return False

    def add(
        self, name: str, area: Area, answers: Iterable[ProbeAnswer], *, outcome: Outcome | None = None, note: str = ""
    ) -> ProbeResult:
        """Without an outcome the deviations decide."""
        listed = list(answers)
        result = ProbeResult(name=name, area=area, note=note, seconds=sum(one.attempt.seconds for one in listed))
        for one in listed:
            result.deviations.extend(one.log.found.values())
        if outcome is None:
            is_failed = any(deviation.is_fault for deviation in result.deviations)
            outcome = "fail" if is_failed else "unusual" if result.deviations else "pass"
        result.outcome = outcome
        self.report.results.append(result)
        self._progress(result)
        return result

    def note_ignored_tools(self) -> None:
        """Call it at the end: an endpoint that makes no call at all has no tools, which is one finding and no fault of every probe."""
        found = {one.code for one in self.report.deviations}
        if self.has_seen_calls or found & {"tools.refused", "call.as_text"} or not found & _NO_CALLS:
            return
        for result in self.report.results:
            if any(one.code in _NO_CALLS for one in result.deviations):
                others = [one for one in result.deviations if one.code not in _NO_CALLS]
                result.deviations = [*others, Deviation(code="tools.ignored", where=result.name)]
                result.outcome = "fail" if any(one.is_fault for one in others) else "unsupported"

    def _check_calls(self, answer: SeenAnswer, request: Request, log: DeviationLog) -> None:
        if answer.calls and answer.finish == "stop" and request.tool_choice is None:
            log.add("finish.calls_unreported", "finish reason")
        if request.tools and not answer.calls and _is_written_call(answer.text, request.tools):
            log.add("call.as_text", "text", answer.text[:120])


def _is_written_call(text: str, tools: tuple[Tool, ...]) -> bool:
    if _AS_TEXT.search(text):
        return True
    names = "|".join(re.escape(tool.name) for tool in tools)
    return re.search(rf'"(?:name|tool|function)"\s*:\s*"(?:{names})"', text) is not None
