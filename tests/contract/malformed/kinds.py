"""One kind of malformed answer: the bytes that a server sends with a 200, and the outcome that every client must see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .regular import HELLO, WORDS, Call, ReplyContent, Value, body, body_bytes, sse, stream

SSE = "text/event-stream"
JSON = "application/json"
DIALECTS = ("chat", "responses", "messages", "gemini")
TEXT = "".join(WORDS)


class Expected(NamedTuple):
    """The one correct outcome: an answer, or an error that contains this text. None is not compared.

    calls are (name, arguments as the model wrote them). after is the text after the calls.
    """

    text: str = ""
    after: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    reasoning: str | None = ""
    refusal: str | None = ""
    usage: tuple[int, int] | None = (9, 5)
    error: str | None = None


class Malformed(NamedTuple):
    """is_cut: the connection breaks after the last byte. flaws: errors that the judge may find, because they are the back end's
    own content, which the gateway does not change. may_fail: an error is as correct as the answer."""

    name: str
    dialect: str
    wire: bytes
    expected: Expected
    kind: str = SSE
    is_cut: bool = False
    flaws: tuple[str, ...] = ()
    asks_usage: bool = True
    may_fail: bool = False

    @property
    def is_body(self) -> bool:
        """Whether it is a non-streaming body, whatever its content type: there, arguments may be no string."""
        return self.kind == JSON or "a body" in self.name

    @property
    def title(self) -> str:
        return f"{self.dialect}: {self.name}"


def expected_of(words: ReplyContent, **changes: object) -> Expected:
    """The outcome of a correct answer."""
    answer = Expected(
        text="".join(words.text),
        after="".join(words.after),
        calls=tuple((one.name, one.raw) for one in words.calls),
        finish=words.reason,
        reasoning="".join(words.reasoning),
    )
    return answer._replace(**changes)  # type: ignore[arg-type] # fields of Expected


def failing(words: str = "") -> Expected:
    return Expected(error=words)


def streamed(
    name: str, dialect: str, values: Iterable[Value], expected: Expected | ReplyContent, flaws: tuple[str, ...] = ()
) -> Malformed:
    wanted = expected_of(expected) if isinstance(expected, ReplyContent) else expected
    return Malformed(name, dialect, sse(list(values)), wanted, flaws=flaws)


def whole(
    name: str, dialect: str, value: Value, expected: Expected | ReplyContent, flaws: tuple[str, ...] = ()
) -> Malformed:
    wanted = expected_of(expected) if isinstance(expected, ReplyContent) else expected
    return Malformed(f"{name}, whole", dialect, body_bytes(value), wanted, kind=JSON, flaws=flaws)


def both(name: str, dialect: str, words: ReplyContent, flaws: tuple[str, ...] = ()) -> Iterator[Malformed]:
    """Something malformed in what the model says itself, streamed and whole."""
    yield streamed(name, dialect, stream(dialect, words), words, flaws)
    yield whole(name, dialect, body(dialect, words), words, flaws)


__all__ = [
    "DIALECTS",
    "HELLO",
    "JSON",
    "SSE",
    "TEXT",
    "Call",
    "Expected",
    "Malformed",
    "both",
    "failing",
    "expected_of",
    "streamed",
    "whole",
]
