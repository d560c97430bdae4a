"""Departures from a wire format: one code for each, with its weight and its meaning."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

AnswerWay: TypeAlias = Literal["", "whole", "stream"]
_DETAIL = 300
# Prefixes of codes that are about requests, however they are answered.
_ABOUT_REQUESTS = ("tools.", "choice.", "history.", "http.concurrency", "http.after_disconnect")


class _Meaning(NamedTuple):
    """A fault breaks the rules of the dialect. What is not a fault is unusual, but clients accept it."""

    is_fault: bool
    text: str


def _fault(text: str) -> _Meaning:
    return _Meaning(True, text)


def _unusual(text: str) -> _Meaning:
    return _Meaning(False, text)


CODES = {
    # HTTP
    "http.unreachable": _fault("The server cannot be reached."),
    "http.cut": _fault("The connection ends before the answer does, or the body has another length than announced."),
    "http.invalid": _fault("The answer is not valid HTTP."),
    "http.stalled": _fault("The server sends nothing until the timeout."),
    "http.status": _fault("A valid request is refused."),
    "http.redirect": _fault("Requests are redirected. Clients do not send the body and the key to another address."),
    "http.closes_silently": _fault("The server closes connections without announcing it with `connection: close`."),
    "http.closes": _unusual("The server closes the connection after each answer."),
    "http.after_disconnect": _fault("After a client has disconnected, the next request fails."),
    "http.large_request": _fault("A large request ends without an HTTP answer."),
    "http.content_type": _fault("The content type does not match the body."),
    "http.concurrency": _fault("Simultaneous requests fail or get answers of each other."),
    # Bodies and streams
    "body.not_json": _fault("The body is not a JSON object."),
    "body.html": _fault("The answer is an HTML page, so the address is not that of an API."),
    "body.empty": _fault("The body is empty."),
    "body.no_content": _fault("The answer has neither text nor a call."),
    "body.template_token": _fault("Tokens of the model's chat template are in the text."),
    "body.reasoning_in_text": _unusual("The model's reasoning is in the text."),
    "body.encoding": _fault("The bytes are not valid UTF-8, or contain replacement characters."),
    "body.is_stream": _fault("A request without `stream` is answered with a stream."),
    "body.error": _fault("An error is sent with status 200."),
    "body.member_missing": _unusual("A member that clients rarely read is missing."),
    "body.member_type": _fault("A member has another type than the dialect defines."),
    "body.structure": _fault("A part of the answer that clients need is missing."),
    "stream.not_streamed": _fault("A request with `stream` is answered with one JSON body."),
    "stream.framing": _fault("Server-sent events are not framed as the standard requires."),
    "stream.bad_json": _fault("The data of an event is not a JSON object."),
    "stream.done_missing": _fault("The stream does not end with `data: [DONE]`."),
    "stream.end_missing": _fault("The stream ends without its last event."),
    "stream.start_missing": _fault("The stream begins without its first event."),
    "stream.after_end": _fault("Events follow the end of the answer."),
    "stream.order": _fault("Events come in an order that the dialect does not allow."),
    "stream.event_name": _fault("The name of an event differs from the type in its data, or is missing."),
    "stream.event_unknown": _unusual("An event has a type that the dialect does not define."),
    "stream.id_changes": _fault("The id of the answer changes between events."),
    "stream.index": _fault("The index of a part is missing, repeated or has a gap."),
    "stream.date_missing": _unusual("The first event has no `created_at`."),
    "stream.item_id_missing": _unusual("Events do not name the item that they belong to."),
    "stream.mismatch": _fault("The deltas of a part and its final value differ."),
    "stream.sequence": _fault("The sequence numbers of events do not increase by one."),
    "stream.error": _fault("The stream ends with an error."),
    "stream.endless": _fault("The stream goes on after the end of the answer, or has no end."),
    "stream.cumulative": _fault("Each fragment repeats the ones before it, so clients join them wrongly."),
    "stream.byte_order_mark": _unusual("The stream begins with a byte order mark, which some clients do not skip."),
    "stream.part_missing": _fault("The start of a part is not announced."),
    "stream.part_end_missing": _fault("The end of a part is not announced."),
    "stream.deltas_missing": _unusual("Text is only in the last event of its part, without deltas before it."),
    "stream.one_piece": _unusual("The stream sends all its content at once."),
    "stream.differs": _fault(
        "The same request gives text or a call without streaming and none with it, or the other way round."
    ),
    # Calls
    "call.id_missing": _fault("A tool call has no id."),
    "call.id_repeated": _fault("Two tool calls have the same id."),
    "call.id_reused": _unusual("Tool calls of different answers have the same id."),
    "call.id_changes": _fault("The id of a tool call changes between its fragments."),
    "call.id_resent": _unusual("The id of a tool call is repeated in later fragments."),
    "call.name_missing": _fault("A tool call has no name."),
    "call.name_resent": _fault("The name of a tool call is repeated in later fragments, so clients join it twice."),
    "call.index_missing": _fault("Fragments of tool calls have no index."),
    "call.index_shared": _fault("Different tool calls have the same index."),
    "call.index_gap": _fault("The indexes of tool calls do not count from zero."),
    "call.type_missing": _unusual("A tool call has no type."),
    "call.legacy": _fault("Calls use the `function_call` member that tools replaced."),
    "call.arguments_type": _fault("The arguments of a call have the wrong JSON type."),
    "call.arguments_in_start": _fault("The arguments of a call are in the start of its block, not in deltas."),
    "call.arguments_missing": _fault("A call has no arguments."),
    "call.as_text": _fault("The model's call arrives as text."),
    "finish.missing": _fault("The answer has no finish reason."),
    "finish.unknown": _fault("The finish reason is none that the dialect defines."),
    "finish.calls_unreported": _fault("The answer has calls, and its finish reason is that of an answer without."),
    "finish.calls_absent": _fault("The finish reason announces calls, and the answer has none."),
    "finish.changes": _fault("The answer has two different finish reasons."),
    "finish.unused": _unusual("The answer was cut at the token limit, and its finish reason is another one."),
    "usage.missing": _unusual("The answer has no token usage."),
    "usage.alone": _unusual("The last event of a stream has the usage and no `choices`."),
    "usage.lost_in_stream": _fault("Answers have token usage, and streams that request it have none."),
    "usage.wrong": _fault("The token usage is invalid or does not add up."),
    "usage.type": _fault("A count of tokens is not a number."),
    "usage.zero": _unusual("The token usage is zero."),
    "limit.ignored": _fault("The limit of output tokens has no effect."),
    # Errors
    "error.accepted": _unusual("An invalid request is answered as if it were valid."),
    "error.status": _unusual("An invalid request is answered with status 5xx, so clients send it again."),
    "error.form": _fault("An error does not have the form of the dialect, so clients cannot show its message."),
    "error.flat": _unusual("The message of an error is outside of the member `error`."),
    # Calls under a forced choice, in the terms of OpenRouter's error rate
    "schema.invalid_json": _fault("The arguments of a forced call are not JSON."),
    "schema.unknown_name": _fault("A forced call has another name than the tool."),
    "schema.mismatch": _fault("The arguments of a forced call do not match the schema of the tool."),
    "schema.no_call": _fault("A forced call is not made."),
    "schema.refused": _unusual("The server refuses the schema of a tool."),
    # Requests
    "tools.refused": _fault("The server refuses requests with tools."),
    "tools.ignored": _unusual("Tools have no effect: no request led to a call."),
    "choice.refused": _unusual("The server refuses a tool choice."),
    "choice.ignored": _fault("A tool choice has no effect."),
    "choice.parallel": _fault("Several calls are made although one at a time was requested."),
    "history.refused": _fault("The server refuses a history with calls and results."),
    "history.unusual_refused": _unusual("The server refuses an unusual but valid form of a history."),
}


class Deviation(Struct, frozen=True, kw_only=True):
    """where: the request and the place in its answer. way: how the answer was sent; "" if the deviation is not about one way."""

    code: str
    where: str
    detail: str = ""
    way: AnswerWay = ""

    @property
    def is_fault(self) -> bool:
        return CODES[self.code].is_fault

    @property
    def meaning(self) -> str:
        return CODES[self.code].text


class DeviationLog:
    """Collects the deviations of one answer. Each code is recorded once, with its first place."""

    def __init__(self, request: str = "", way: AnswerWay = "") -> None:
        self._request = request
        self._way: AnswerWay = way
        self.found: dict[str, Deviation] = {}

    def add(self, code: str, where: str, detail: object = "") -> None:
        if code not in CODES:
            raise ValueError(f"{code} is not a code of a deviation.")
        text = detail if isinstance(detail, str) else repr(detail)
        place = f"{self._request}: {where}" if self._request else where
        way = "" if code.startswith(_ABOUT_REQUESTS) else self._way
        self.found.setdefault(code, Deviation(code=code, where=place, detail=text[:_DETAIL], way=way))

    def apply_to_all(self) -> None:
        """The deviations found so far are not about one way of answering."""
        self.found = {code: replace(one, way="") for code, one in self.found.items()}

    def expect(self, condition: object, code: str, where: str, detail: object = "") -> bool:
        """Adds the deviation unless the condition holds. Returns whether it holds."""
        if not condition:
            self.add(code, where, detail)
        return bool(condition)
