"""Whether a request does nothing but answer the calls of the last turn, so that whoever asked for them can go on where it stopped.

It does if it ends in results alone (and perhaps instructions), exactly one for each call of the assistant's turn before them. What stands before that turn is its
ground: a turn may only go on if the ground is the one it began on, otherwise somebody has edited the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from ..calls.signatures.fingerprint import is_random, print_of
from ..types import Loss, Media, Message, Part, Refusal, Request, Text, Tool, ToolCall, ToolResult
from ..wire.exact_json import encode, object_of
from .sessions import Place

# Clients write the hour, the open file or what is left of a budget into their instructions; the turn that waits has read them.
_INSTRUCTIONS = ("system", "developer")


class Continuation(Struct, frozen=True, kw_only=True):
    """calls and results in the order of the calls; start is where the assistant's turn begins among the messages. losses: what
    stands behind the results and cannot be told to a turn that waits."""

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    start: int
    losses: tuple[Loss, ...] = ()


def continuation(messages: Sequence[Message]) -> Continuation | None:
    """None where the end of it is anything but the results of one turn, all of them; only instructions may follow."""
    behind = end = _spoken(messages)
    while end and messages[end - 1].parts and all(isinstance(part, ToolResult) for part in messages[end - 1].parts):
        end -= 1
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    results = {part.call_id: part for part in _parts(messages[end:behind]) if isinstance(part, ToolResult)}
    calls = tuple(part for part in _parts(messages[start:end]) if isinstance(part, ToolCall))
    count = sum(len(message.parts) for message in messages[end:behind])
    if not calls or len(calls) != count or len(results) != count or {call.id for call in calls} != set(results):
        return None
    losses = tuple(
        Loss("role.system", f"messages[{number}]", "the turn that waits for results takes nothing else")
        for number in range(behind, len(messages))
    )
    return Continuation(calls=calls, results=tuple(results[call.id] for call in calls), start=start, losses=losses)


def _spoken(messages: Sequence[Message]) -> int:
    """Where what is said ends: clients put instructions behind results, such as how many tokens are left."""
    end = len(messages)
    while end and messages[end - 1].role in _INSTRUCTIONS:
        end -= 1
    return end


def place_of(request: Request, owner: str = "") -> tuple[Place, Continuation] | None:
    """Where the turn that this request continues would wait."""
    found = continuation(request.messages)
    if found is None:
        return None
    return _place(request, request.messages[: min(found.start, _seen(request))], found.calls, owner), found


def place_after(request: Request, calls: Sequence[ToolCall], owner: str = "") -> Place:
    """Where a turn waits that has answered this request with these calls."""
    return _place(request, request.messages[: _seen(request)], calls, owner)


def _seen(request: Request) -> int:
    """What the gateway told the model between two answers is no ground: the client's next request is without it."""
    return len(request.messages) - request.unseen


def _place(request: Request, messages: Sequence[Message], calls: Sequence[ToolCall], owner: str) -> Place:
    digest = blake2b(digest_size=16)
    for piece in _pieces(request, messages):
        data = piece.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(data))
        digest.update(data)
    ordered = sorted(calls, key=lambda call: call.id)
    ground = digest.hexdigest() + print_of(map(_read, ordered), lambda call_id: call_id)
    return Place(frozenset(call.id for call in calls), ground, owner)


def _pieces(request: Request, messages: Sequence[Message]) -> Iterator[str]:
    yield request.model
    yield from _settled(request)
    for tool in request.tools:
        yield from _told(tool)
    for message in messages:
        if message.role not in _INSTRUCTIONS:
            yield message.role
            for part in message.parts:
                yield from _said(part)


def _settled(request: Request) -> Iterator[str]:
    """What the turn that waits was begun with, and cannot be told anew: which tools may be called, and the form of the answer."""
    choice, output = request.tool_choice, request.output
    if choice is not None and choice.mode in ("none", "named", "allowed"):
        yield "none" if choice.mode == "none" else "only"
        yield from sorted(choice.names)
    if output.format == "schema":
        yield "schema"
        yield encode(output.schema).decode()


def _told(tool: Tool) -> Iterator[str]:
    yield "tool"
    yield tool.name
    yield tool.description or ""
    yield encode(tool.schema).decode()


def _said(part: Part) -> Iterator[str]:
    """Without what a client may drop or write in its own way: thoughts, ids, empty texts, what only one dialect understands."""
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
            yield print_of((_read(part),), lambda call_id: call_id)
        case ToolResult():
            yield "result"
            yield part.call_id
            yield "error" if part.is_error else ""
            for piece in part.parts:
                yield from _said(piece)
        case _:
            pass


def _read(call: ToolCall) -> ToolCall:
    """With its arguments as a value: of what a model wrote a client may send back no more than that."""
    if call.args is not None:
        return call
    return replace(call, args=object_of(call.raw) if call.raw.strip() else {})


def _parts(messages: Iterable[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts]


def answered_calls(request: Request) -> list[str]:
    """Calls that have their results here, as far as no other conversation can have a call of the same id."""
    names = {part.id: part.name for part in _parts(request.messages) if isinstance(part, ToolCall)}
    results = [part.call_id for part in _parts(request.messages) if isinstance(part, ToolResult)]
    return [call_id for call_id in results if is_random(call_id, names.get(call_id, ""))]
