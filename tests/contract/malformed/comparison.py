"""Compare a client's answer with the one correct outcome: one message per difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.contract.client_answers import Call, Seen, exact, see
from tests.contract.client_requests import Reply
from tests.contract.judge.framing import parse_sse
from tests.contract.judge.official import Report
from tests.contract.judge.validate import check

from .kinds import Malformed

_OWN_WORDS = {"model_context_window_exceeded": "length", "OTHER": "stop"}
_LAST = {"responses": ("response.completed", "response.incomplete"), "messages": ("message_stop",)}


def faults(malformed: Malformed, client: str, request: dict[str, Any], reply: Reply) -> list[str]:
    """Empty if the answer is correct."""
    is_stream = bool(request.get("stream")) and reply.status < 400
    try:
        report = check(client, reply.body, reply.status, reply.content_type, request)
        seen = see(client, _by_one_name(client, reply.body), stream=is_stream)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as fault:
        return [f"no client can read it: {fault!r}"]
    found = [f"judge: {path}: {words}" for _, path, words in report.errors if not _is_allowed(words, malformed)]
    if malformed.expected.error is not None:
        return found + list(_error_faults(malformed, client, seen, reply, is_stream=is_stream))
    if malformed.may_fail and seen.error and not seen.finish:
        return found
    if reply.status != 200 or seen.error:
        return [*found, f"it failed with {reply.status}: {seen.error}"]
    found += _end_faults(client, reply) if is_stream else []
    found += _answer_faults(malformed, client, seen, is_stream=is_stream)
    found += _usage_faults(malformed, seen, is_asked=client != "chat" or not is_stream or malformed.asks_usage)
    return found


def _is_allowed(words: str, malformed: Malformed) -> bool:
    return any(flaw in words for flaw in malformed.flaws)


def _error_faults(malformed: Malformed, client: str, seen: Seen, reply: Reply, *, is_stream: bool) -> Iterator[str]:
    if not seen.error:
        yield f"no error, but {seen.finish!r} with {seen.text!r}"
    if seen.finish:
        yield f"a normal end beside the error: {seen.finish}"
    if (malformed.expected.error or "") not in seen.error:
        yield f"the error does not say {malformed.expected.error!r}: {seen.error}"
    if not is_stream and reply.status < 400:
        yield f"an error with status {reply.status}"
    if is_stream and client == "chat" and b"[DONE]" in reply.body:
        yield "a mark behind the error"


def _end_faults(client: str, reply: Reply) -> Iterator[str]:
    """Exactly one end, as the last event."""
    events = parse_sse(reply.body, Report())
    if client == "chat":
        if [data for _, data in events].count("[DONE]") != 1 or events[-1][1] != "[DONE]":
            yield "the mark is not there once, at the end"
        return
    if client == "gemini":  # the judge knows that nothing follows the finish reason
        return
    if [name for name, _ in events if name in _LAST[client]] != [events[-1][0]]:
        yield "the final event is not there once, at the end"


def _answer_faults(malformed: Malformed, client: str, seen: Seen, *, is_stream: bool) -> Iterator[str]:
    expected = malformed.expected
    if expected.refusal is not None:
        text = _whole_text(malformed, client)
        if _joined(seen.text) != _joined(text):
            yield f"text {seen.text[:200]!r}, expected {text[:200]!r}"
        if seen.refusal and expected.finish != "refused":
            yield f"a refusal: {seen.refusal!r}"
    if expected.finish and _OWN_WORDS.get(seen.finish, seen.finish) != expected.finish:
        yield f"finish {seen.finish!r}, expected {expected.finish!r}"
    if expected.reasoning is not None and _thought(seen.reasoning) != _thought(expected.reasoning):
        yield f"reasoning {seen.reasoning!r}, expected {expected.reasoning!r}"
    if [call.name for call in seen.calls] != [name for name, _ in expected.calls]:
        yield f"calls {[call.name for call in seen.calls]}, expected {[name for name, _ in expected.calls]}"
        return
    ids = [call.id for call in seen.calls]
    if len(set(ids)) != len(ids) or not all(isinstance(one, str) and one for one in ids):
        yield f"ids are not all there and unique: {ids}"
    may_carry = is_stream or client != "messages"
    has_object = malformed.dialect == "messages" and malformed.is_body
    for call, (_, raw) in zip(seen.calls, expected.calls, strict=True):
        # No arguments and the empty object are equal in that dialect; the end of the answer shows that the call was truncated.
        raw = "{}" if client in ("messages", "gemini") and not raw else raw
        is_object = has_object or (malformed.dialect == "gemini" and isinstance(exact(_joined(raw)), dict))
        yield from _argument_faults(call, raw, carries_text=may_carry and not is_object)


def _whole_text(malformed: Malformed, client: str) -> str:
    """Chat Completions clients get separate texts as one string, with a blank line between them."""
    before, after = malformed.expected.text, malformed.expected.after
    is_apart = client == "chat" and malformed.dialect != "chat" and before and after
    return f"{before}\n\n{after}" if is_apart else before + after


REPAIRED = {
    "location": "Paris"
}  # what all arguments in the catalogue mean that are no object and have one certain meaning


def _argument_faults(call: Call, raw: str, *, carries_text: bool) -> Iterator[str]:
    if not isinstance(exact(_joined(raw)), dict) and call.arguments == REPAIRED:
        return
    if carries_text and call.raw is not None:
        if _joined(call.raw) != _joined(raw):
            yield f"arguments {call.raw[:200]!r}, expected {raw[:200]!r}"
        return
    wanted = exact(_joined(raw))
    wanted = wanted if isinstance(wanted, dict) else {"_raw": raw}
    if call.arguments != wanted and exact(_joined(call.raw or "")) != wanted:
        yield f"arguments {str(call.arguments)[:200]}, expected {str(wanted)[:200]}"


def _usage_faults(malformed: Malformed, seen: Seen, *, is_asked: bool) -> Iterator[str]:
    if seen.usage is None:
        if is_asked:
            yield "no usage"
        return
    counts = seen.usage[:2]
    if not all(type(count) is int and 0 <= count < 1 << 53 for count in counts) or not sum(counts):
        yield f"usage that cannot be: {seen.usage}"
    if malformed.expected.usage is not None and counts != malformed.expected.usage:
        yield f"usage {counts}, expected {malformed.expected.usage}"


def _by_one_name(client: str, body: bytes) -> bytes:
    """Maps the server's own member for reasoning to the name that this reader expects."""
    return body.replace(b'"reasoning":"', b'"reasoning_content":"') if client == "chat" else body


def _joined(text: str) -> str:
    """Joins the two halves of a surrogate pair, as in the languages of most clients."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if text else ""


def _thought(text: str) -> str:
    """The reasoning as one text, because some dialects do not separate the pieces."""
    return text.replace("\n\n", "")
