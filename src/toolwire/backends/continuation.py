"""Whether a request only returns the results of the last turn's calls, so that the run that made the calls can resume.

It does if it ends in results alone (instructions may follow), exactly one for each call of the assistant's turn before them.
A run resumes only if everything before that turn is what the run started from; otherwise the conversation was edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from ..calls.signatures import is_random, print_of
from ..types import Loss, Media, Message, Part, Refusal, Request, Text, ToolCall, ToolResult
from ..wire.exact_json import encode, object_of

# Not compared: clients write the time, the open file or the remaining budget into their instructions.
_INSTRUCTIONS = ("system", "developer")


class ResumePoint(Struct, frozen=True):
    """Where a run waits: the calls without results, a digest of the conversation before them, and whose it is."""

    calls: frozenset[str]
    history: str = ""
    owner: str = ""


class Continuation(Struct, frozen=True, kw_only=True):
    """calls and results in the order of the calls; start is the index of the first message of the assistant's turn.

    losses: instructions after the results, which a waiting run cannot take.
    """

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    start: int
    losses: tuple[Loss, ...] = ()

    def by_call(self) -> dict[str, ToolResult]:
        return {result.call_id: result for result in self.results}


def continuation(messages: Sequence[Message]) -> Continuation | None:
    """None unless the messages end in the results of one turn, all of them; only instructions may follow."""
    last = len(messages)
    while last and messages[last - 1].role in _INSTRUCTIONS:
        last -= 1
    end = last
    while end and messages[end - 1].parts and all(isinstance(part, ToolResult) for part in messages[end - 1].parts):
        end -= 1
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    results = {part.call_id: part for part in _parts(messages[end:last]) if isinstance(part, ToolResult)}
    calls = tuple(part for part in _parts(messages[start:end]) if isinstance(part, ToolCall))
    count = sum(len(message.parts) for message in messages[end:last])
    if not calls or len(calls) != count or len(results) != count or {call.id for call in calls} != set(results):
        return None
    losses = tuple(
        Loss("instruction.dropped", f"messages[{number}]", "a run that waits for results takes nothing else")
        for number in range(last, len(messages))
    )
    return Continuation(calls=calls, results=tuple(results[call.id] for call in calls), start=start, losses=losses)


def resume_point(request: Request) -> tuple[ResumePoint, Continuation] | None:
    """Where the run that this request continues would wait."""
    found = continuation(request.messages)
    if found is None:
        return None
    return _point(request, request.messages[: min(found.start, _seen(request))], found.calls), found


def resume_point_after(request: Request, calls: Sequence[ToolCall]) -> ResumePoint:
    """Where a run waits that has answered this request with these calls."""
    return _point(request, request.messages[: _seen(request)], calls)


def answered_calls(request: Request) -> list[str]:
    """Calls that have their results here. Only random ids: others may occur in several conversations."""
    names = {part.id: part.name for part in _parts(request.messages) if isinstance(part, ToolCall)}
    results = [part.call_id for part in _parts(request.messages) if isinstance(part, ToolResult)]
    return [call_id for call_id in results if is_random(call_id, names.get(call_id, ""))]


def _seen(request: Request) -> int:
    """Without the messages that the gateway added between two answers: the client's next request does not have them."""
    return len(request.messages) - request.unseen


def _point(request: Request, messages: Sequence[Message], calls: Sequence[ToolCall]) -> ResumePoint:
    digest = blake2b(digest_size=16)
    for piece in _pieces(request, messages):
        data = piece.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(data))
        digest.update(data)
    ordered = sorted(calls, key=lambda call: call.id)
    history = digest.hexdigest() + print_of(map(_with_args, ordered), lambda call_id: call_id)
    return ResumePoint(frozenset(call.id for call in calls), history, request.owner)


def _pieces(request: Request, messages: Sequence[Message]) -> Iterator[str]:
    yield request.model
    yield from _settings(request)
    for tool in request.tools:
        yield from ("tool", tool.name, tool.description or "", encode(tool.schema).decode())
    for message in messages:
        if message.role not in _INSTRUCTIONS:
            yield message.role
            for part in message.parts:
                yield from _part(part)


def _settings(request: Request) -> Iterator[str]:
    """What is fixed when a run starts: which tools may be called, and the format of the answer."""
    choice, output = request.tool_choice, request.output
    if choice is not None and choice.mode in ("none", "named", "allowed"):
        yield "none" if choice.mode == "none" else "only"
        yield from sorted(choice.names)
    if output.format == "schema":
        yield "schema"
        yield encode(output.schema).decode()


def _part(part: Part) -> Iterator[str]:
    """Without what clients drop or rewrite: reasoning, ids, empty texts, parts of one dialect."""
    match part:
        case Text() | Refusal():
            if part.text:
                yield "text"
                yield part.text
        case Media():
            yield "media"
            yield part.data or part.url or part.file_id or ""
        case ToolCall():
            yield "call"
            yield print_of((_with_args(part),), lambda call_id: call_id)
        case ToolResult():
            yield "result"
            yield part.call_id
            yield "error" if part.is_error else ""
            for piece in part.parts:
                yield from _part(piece)
        case _:
            pass


def _with_args(call: ToolCall) -> ToolCall:
    """With parsed arguments: a client may send back another text of the same value."""
    if call.args is not None:
        return call
    return replace(call, args=object_of(call.raw) if call.raw.strip() else {})


def _parts(messages: Iterable[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts]
