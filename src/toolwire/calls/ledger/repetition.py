"""Adds a notice for a model that makes the same call again and again and gets the same result each time (H137).

It counts consecutive rounds in which all calls and all results are the same. A changed result, as when a model waits for something, starts
the count again (H138), and so does a user message. Nothing is blocked: the result stays, with a notice after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...types import Message, Part, Text, ToolCall, ToolResult
from ...wire.exact_json import encode

MOST = 3  # rounds in a row that are the model's own business
_NOTICE = (
    "[Notice: the last {count} rounds made exactly this call and got exactly this result. Making it again will not change it. "
    "Use what is known, try something else, or say what is missing.]"
)


def with_loop_notices(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same object where no round is repeated so often. Linear; later messages never change how earlier ones are written."""
    wanted = dict(_repeated(messages))
    if not wanted:
        return messages
    return tuple(
        message if place not in wanted else _with_notice(message, wanted[place])
        for place, message in enumerate(messages)
    )


def count_repeats(messages: tuple[Message, ...]) -> int:
    """How many of the last rounds were one and the same."""
    since = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    count, before = 0, b""
    for last, round_ in _rounds(messages[since:]):
        signature = b"" if last is None else encode([_signed(part) for part in round_])
        count = count + 1 if signature and signature == before else int(bool(signature))
        before = signature
    return count


def _repeated(messages: tuple[Message, ...]) -> Iterator[tuple[int, int]]:
    """The place of the last result of each round that is one too many, and the number of rounds so far."""
    count, before = 0, b""
    for last, round_ in _rounds(messages):
        if last is None:
            count, before = 0, b""
            continue
        signature = encode([_signed(part) for part in round_])
        count = count + 1 if signature == before else 1
        before = signature
        if count >= MOST:
            yield last, count


def _rounds(messages: tuple[Message, ...]) -> Iterator[tuple[int | None, list[Part]]]:
    """Each turn's calls with their results, by the place of the last of these; None where the user speaks."""
    calls: list[Part] = []
    results: list[Part] = []
    last = 0
    for place, message in enumerate(messages):
        answers = [part for part in message.parts if isinstance(part, ToolResult)]
        if answers:
            results += answers
            last = place
            continue
        if results and calls:
            yield last, [*calls, *results]
            calls, results = [], []
        if message.role == "assistant":
            calls += [part for part in message.parts if isinstance(part, ToolCall)]
        elif message.role == "user":
            yield None, []
    if results and calls:
        yield last, [*calls, *results]


def _signed(part: Part) -> list[object]:
    """What makes two parts the same: not their ids."""
    if isinstance(part, ToolCall):
        return [part.namespace, part.name, part.raw if part.args is None else part.args]
    assert isinstance(part, ToolResult)
    return [part.is_error, [inner.text if isinstance(inner, Text) else repr(inner) for inner in part.parts]]


def _with_notice(message: Message, count: int) -> Message:
    parts = list(message.parts)
    place = max(number for number, part in enumerate(parts) if isinstance(part, ToolResult))
    result = parts[place]
    assert isinstance(result, ToolResult)
    parts[place] = replace(result, parts=(*result.parts, Text(text=_NOTICE.format(count=count))), extra={})
    return message.with_parts(tuple(parts))
