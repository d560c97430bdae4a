"""One run against one dialect of an endpoint: sends requests, reads the answers strictly, collects the results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Literal

from ..types import Request, Tool, ToolChoice
from .deviations import Deviation, DeviationLog
from .endpoint import CheckedEndpoint, HttpAttempt
from .questions import named
from .results import Area, DialectReport, Outcome, ProbeResult
from .wire import READERS
from .wire.frames import SeenAnswer

_AS_TEXT = re.compile(
    r"<tool_call|<function[=_]|\[TOOL_CALLS\]|<\|python_tag\|>|<\uff5ctool|<invoke|```tool_code", re.IGNORECASE
)
_ERROR_TEXT = 200
_SLOW = 1.0  # seconds; a faster answer may well arrive in one piece
_TEMPLATE = re.compile(r"<\|(?:im_start|im_end|eot_id|end|endoftext|assistant|user)\|>|<end_of_turn>|\[/INST\]|</s>")
_REASONING = re.compile(r"\s*<(?:think|thinking|thought)>", re.IGNORECASE)
# What follows from other deviations is not reported beside them.
_CAUSES = frozenset(
    [
        *("http.cut", "http.stalled", "body.not_json", "body.is_stream", "stream.bad_json", "stream.framing"),
        *("stream.not_streamed", "stream.order", "stream.endless", "call.legacy"),
    ]
)
_EFFECTS = ("http.content_type", "finish.missing", "finish.calls_absent", "usage.missing")
_NO_CALLS = frozenset({"schema.no_call", "choice.ignored"})


class ProbeAnswer:
    """An answer and what was found in it. answer is None if the endpoint sent none."""

    def __init__(self, attempt: HttpAttempt, log: DeviationLog, answer: SeenAnswer | None) -> None:
        self.attempt = attempt
        self.log = log
        self.answer = answer

    @property
    def has_faults(self) -> bool:
        return any(deviation.is_fault for deviation in self.log.found.values())

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
        self.force_mode: Literal["named", "required"] = "named"
        self._call_ids: set[str] = set()
        self._progress = progress
        self._reader = READERS[endpoint.dialect]

    @property
    def model(self) -> str:
        return self.endpoint.model

    def force(self, tool: Tool) -> ToolChoice:
        """A choice that forces a call of the tool, if it is the only tool of the request."""
        return named(tool) if self.force_mode == "named" else ToolChoice(mode="required")

    async def ask(self, request: Request, name: str) -> ProbeAnswer:
        return self.read(await self.endpoint.ask(request), request, name)

    def read(self, attempt: HttpAttempt, request: Request, name: str) -> ProbeAnswer:
        """Reads the answer as the dialect defines it. A refusal is left to the caller."""
        log = DeviationLog(name, "stream" if request.stream else "whole")
        if attempt.code:
            log.add(attempt.code, "connection", attempt.detail)
        if attempt.is_refused or (attempt.code and not attempt.body):
            return ProbeAnswer(attempt, log, None)
        if not self._is_readable(attempt, log):
            return ProbeAnswer(attempt, log, SeenAnswer())
        wanted = "text/event-stream" if request.stream else "application/json"
        log.expect(
            attempt.content_type == wanted, "http.content_type", "content-type", attempt.content_type or "missing"
        )
        read = self._reader.read_stream if request.stream else self._reader.read_body
        answer = read(attempt.body, log)
        if not _CAUSES.isdisjoint(log.found):
            for code in _EFFECTS:
                log.found.pop(code, None)
        if answer.usage is not None:
            self.report.tokens += sum(answer.usage)
        if request.stream and attempt.reads == 1 and answer.pieces > 8 and attempt.seconds > _SLOW:
            log.add("stream.one_piece", "stream", f"{answer.pieces} pieces in one read")
        self._check_calls(answer, request, log)
        _check_text(answer, log)
        self.has_seen_calls = self.has_seen_calls or bool(answer.calls)
        return ProbeAnswer(attempt, log, answer)

    def is_error_form(self, attempt: HttpAttempt) -> bool:
        return self._reader.is_error(_json(attempt.body))

    def check_error(self, attempt: HttpAttempt, log: DeviationLog) -> None:
        """The form of an error."""
        if self.is_error_form(attempt):
            return
        value = _json(attempt.body)
        is_flat = isinstance(value, dict) and value.get("object") == "error" and isinstance(value.get("message"), str)
        log.add("error.flat" if is_flat else "error.form", "body", attempt.body[:120].decode("utf-8", "replace"))

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

    def _is_readable(self, attempt: HttpAttempt, log: DeviationLog) -> bool:
        """Whether the body is worth reading as JSON or as a stream."""
        start = attempt.body[:200].lstrip().lower()
        if not start and not attempt.code:
            log.add("body.empty", "body", f"status {attempt.status}")
        elif attempt.content_type == "text/html" or start.startswith((b"<!doctype", b"<html")):
            log.add("body.html", "body", attempt.body[:120].decode("utf-8", "replace"))
        else:
            return True
        return False

    def _check_calls(self, answer: SeenAnswer, request: Request, log: DeviationLog) -> None:
        if answer.calls and answer.finish == "stop" and request.tool_choice is None:
            log.add("finish.calls_unreported", "finish reason")
        if request.tools and not answer.calls and _is_written_call(answer.text, request.tools):
            log.add("call.as_text", "text", answer.text[:120])
        ids = {call.id for call in answer.calls if call.id}
        if reused := ids & self._call_ids:
            log.add("call.id_reused", "calls", sorted(reused))
        self._call_ids |= ids


def _check_text(answer: SeenAnswer, log: DeviationLog) -> None:
    if found := _TEMPLATE.search(answer.text):
        log.add("body.template_token", "text", found[0])
    if _REASONING.match(answer.text):
        log.add("body.reasoning_in_text", "text", answer.text[:60])
    everything = "".join([answer.text, *(call.arguments for call in answer.calls)])
    if any("\ud800" <= character <= "\udfff" for character in everything):
        log.add("body.encoding", "text", "found half of a surrogate pair")
    if (answer.text or answer.calls) and answer.usage == (0, 0):
        log.add("usage.zero", "usage")


def _json(raw: bytes) -> object:
    """None for what is no JSON."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _is_written_call(text: str, tools: tuple[Tool, ...]) -> bool:
    if _AS_TEXT.search(text):
        return True
    names = "|".join(re.escape(tool.name) for tool in tools)
    return re.search(rf'"(?:name|tool|function)"\s*:\s*"(?:{names})"', text) is not None
