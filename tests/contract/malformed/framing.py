"""Unusual framing: line ends, comments, splits, content types, bodies for streams. The same in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .kinds import JSON, SSE, Malformed, expected_of, failing, streamed
from .regular import (
    ASKING,
    DONE,
    HELLO,
    PARALLEL,
    WORDS,
    ReplyContent,
    Value,
    body,
    body_bytes,
    dumped,
    frame,
    sse,
    stream,
)

_MIXED = (b"\n", b"\r\n", b"\r")


def kinds(dialect: str) -> Iterator[Malformed]:
    for name, wire in _rewritten(dialect):
        yield Malformed(
            name, dialect, wire, expected_of(PARALLEL), flaws=("unknown SSE field",) if "unknown" in name else ()
        )
    yield from _cuts(dialect)
    yield from _content_types(dialect)
    yield from _no_answers(dialect)
    yield from _after_the_end(dialect)
    yield Malformed("nothing is malformed", dialect, sse(stream(dialect, PARALLEL)), expected_of(PARALLEL))
    yield Malformed(
        "nothing is malformed, whole", dialect, body_bytes(body(dialect, PARALLEL)), expected_of(PARALLEL), kind=JSON
    )


def _rewritten(dialect: str) -> Iterator[tuple[str, bytes]]:
    """The same events in other bytes."""
    values = stream(dialect, PARALLEL)
    wire = sse(values)
    blocks = wire.split(b"\n\n")[:-1]
    yield "byte order mark", b"\xef\xbb\xbf" + wire
    yield "CRLF", wire.replace(b"\n", b"\r\n")
    yield "CR", wire.replace(b"\n", b"\r")
    lines = wire.split(b"\n")
    yield "mixed line ends", b"".join(line + _MIXED[place % 2] for place, line in enumerate(lines[:-1]))
    yield "comments between events", b": ping\n\n".join([b"", *(one + b"\n\n" for one in blocks)])
    yield "comments inside events", b"".join(b": hm\n" + one + b"\n:\n\n" for one in blocks)
    yield "retry and id lines", b"".join(b"id: %d\nretry: 3000\n%b\n\n" % pair for pair in enumerate(blocks))
    yield "no blank behind the colon", wire.replace(b"data: ", b"data:").replace(b"event: ", b"event:")
    yield "blank lines first and doubled", b"\n\n" + wire.replace(b"\n\n", b"\n\n\n\n")
    yield "data over many lines", b"".join(_many_lines(value) for value in values)
    yield "data before its event", b"".join(b"\n".join(reversed(one.split(b"\n"))) + b"\n\n" for one in blocks)
    yield "no blank line at the end", wire.removesuffix(b"\n")
    yield "no line end at the end", wire.removesuffix(b"\n\n")
    yield "spaces around members", b"".join(_dumped(value, separators=(" , ", " : ")) for value in values)
    yield "everything escaped", b"".join(_dumped(value, ensure_ascii=True) for value in values)
    yield "members in another order", b"".join(frame(_reversed(value)) for value in values)
    yield "spaces around data", wire.replace(b"data: ", b"data:   ").replace(b"}\n\n", b"} \t\n\n")
    yield "unknown fields of an event", b"".join(b"trace: 1\nfoo\n" + one + b"\n\n" for one in blocks)
    yield "members nobody knows", sse([_extended(value) for value in values])


def _many_lines(value: Value) -> bytes:
    if value == DONE:
        return frame(value)
    head, _, _ = frame(value).rpartition(b"data: ")
    lines = json.dumps(json.loads(dumped(value)), indent=1).encode().split(b"\n")
    return head + b"\n".join(b"data: " + line for line in lines) + b"\n\n"


def _dumped(value: Value, **options: object) -> bytes:
    if value == DONE:
        return frame(value)
    head, _, _ = frame(value).rpartition(b"data: ")
    return head + b"data: " + json.dumps(json.loads(dumped(value)), **options).encode() + b"\n\n"  # type: ignore[arg-type] # options of dumps


def _reversed(value: Value) -> Value:
    return {key: _reversed(item) if isinstance(item, dict) else item for key, item in reversed(value.items())}


def _extended(value: Value) -> Value:
    return value if value == DONE else {**value, "x_trace": {"error": None, "n": 1.50}}


def ends_at(dialect: str, values: list[Value]) -> int:
    """The index of the first event about the end of the answer."""
    return len(values) - {"chat": 3, "responses": 1, "messages": 2, "gemini": 1}[dialect]


def _cuts(dialect: str) -> Iterator[Malformed]:
    values = stream(dialect, ASKING)
    end = ends_at(dialect, values)
    call = next(place for place, value in enumerate(values) if b"location" in dumped(value))
    text = next(place for place, value in enumerate(values) if b"Let me" in dumped(value))
    places = {
        "before anything": b"",
        "behind the first event": sse(values[:1]),
        "in the text": sse(values[: text + 1]),
        "in a call": sse(values[: call + 1]),
        "before the end is told": sse(values[:end]),
        "in the middle of an event": sse(values[:call]) + frame(values[call])[:-9],
        "in the middle of the last event": sse(values[:end]) + frame(values[end])[:-20],
        "in a character": sse(values[: text + 1]) + frame(values[text]).replace(b"Let me", "☃".encode()[:2])[:-9],
    }
    for name, wire in places.items():
        yield Malformed(f"broken {name}", dialect, wire, failing(), is_cut=True)
        yield Malformed(f"clean end {name}", dialect, wire, failing())
    yield Malformed(
        "broken behind half a body", dialect, body_bytes(body(dialect, ASKING))[:-40], failing(), JSON, True
    )
    yield Malformed("clean end of half a body", dialect, body_bytes(body(dialect, ASKING))[:-40], failing(), JSON)


def _content_types(dialect: str) -> Iterator[Malformed]:
    streamed_wire, whole_wire = sse(stream(dialect, PARALLEL)), body_bytes(body(dialect, PARALLEL))
    expected = expected_of(PARALLEL)
    yield Malformed("a stream that is called JSON", dialect, streamed_wire, expected, JSON, may_fail=True)
    yield Malformed(
        "a stream that is called plain text",
        dialect,
        streamed_wire,
        expected,
        "text/plain; charset=utf-8",
        may_fail=True,
    )
    yield Malformed("a stream that is called nothing", dialect, streamed_wire, expected, "", may_fail=True)
    yield Malformed("a stream that is called HTML", dialect, streamed_wire, expected, "text/html", may_fail=True)
    yield Malformed(
        "a stream with a comment first that is called JSON",
        dialect,
        b": hm\n\n" + streamed_wire,
        expected,
        JSON,
        may_fail=True,
    )
    yield Malformed("a stream in capitals", dialect, streamed_wire, expected, "Text/Event-Stream;charset=UTF-8")
    yield Malformed("a body that is called a stream", dialect, whole_wire, expected, SSE)
    pretty = json.dumps(json.loads(whole_wire), indent=2).replace("\n", "\n\n").encode()
    yield Malformed("a body with blank lines that is called a stream", dialect, pretty, expected, SSE)
    yield Malformed("a body that is called plain text", dialect, whole_wire, expected, "text/plain")
    yield Malformed("a body that is called nothing", dialect, whole_wire, expected, "")
    one_frame = b"data: " + dumped(json.loads(whole_wire)) + b"\n\n"
    yield Malformed("a body in one event", dialect, one_frame, expected, SSE)
    yield Malformed("a body in one event with a mark", dialect, one_frame + b"data: [DONE]\n\n", expected, SSE)
    yield Malformed("a body with a byte order mark", dialect, b"\xef\xbb\xbf" + whole_wire, expected, JSON)
    yield Malformed("a body between blanks", dialect, b"\r\n \n" + whole_wire + b"\n\n", expected, JSON)


def _no_answers(dialect: str) -> Iterator[Malformed]:
    page = b"<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1>\n\n<p>nginx</p></body></html>"
    values = stream(dialect, HELLO)
    start = sse(values[: min(3, ends_at(dialect, values))])
    yield Malformed("a page", dialect, page, failing(), "text/html")
    yield Malformed("a page that is called a stream", dialect, page, failing(), SSE)
    yield Malformed("a page that is called JSON", dialect, page, failing(), JSON)
    yield Malformed("a page in an event", dialect, b"data: " + page.replace(b"\n", b"") + b"\n\n", failing())
    yield Malformed("a page in mid-stream", dialect, start + page + b"\n\n", failing())
    yield Malformed("a page in an event in mid-stream", dialect, start + b"data: <html>busy</html>\n\n", failing())
    for kind in (SSE, JSON, ""):
        label = kind or "nothing"
        yield Malformed(f"no byte, called {label}", dialect, b"", failing(), kind)
        yield Malformed(f"blank lines, called {label}", dialect, b"\n\n\n\n", failing(), kind)
        yield Malformed(f"null, called {label}", dialect, b"null", failing(), kind)
        yield Malformed(f"an empty object, called {label}", dialect, b"{}", failing(), kind)
    yield Malformed("an empty list, called JSON", dialect, b"[]", failing(), JSON)
    yield Malformed("words", dialect, b"Service Unavailable", failing(), "text/plain")
    yield Malformed("only comments", dialect, b": ping\n\n" * 5, failing())
    yield Malformed("only a mark", dialect, b"data: [DONE]\n\n", failing())
    yield Malformed("an event that is null", dialect, start + b"data: null\n\n", failing())
    yield Malformed("an event that is a list", dialect, start + b"data: []\n\n", failing())
    yield Malformed("an event that is a number", dialect, start + b"data: 1e999999999\n\n", failing())
    yield Malformed("an event that is not UTF-8", dialect, start + b'data: {"a":"\xff\xfe"}\n\n', failing())
    yield Malformed("an event that nests too deep", dialect, start + b"data: " + b"[" * 100_000 + b"\n\n", failing())
    lines = b"\n".join(dumped(value) for value in stream(dialect, HELLO))
    yield Malformed("lines of JSON", dialect, lines, failing(), "application/x-ndjson")


def _after_the_end(dialect: str) -> Iterator[Malformed]:
    values = stream(dialect, PARALLEL)
    wire, again = sse(values), sse(stream(dialect, ReplyContent(("More.",))))
    if dialect != "gemini":  # there the end of a stream is the end of its bytes
        yield Malformed("a second answer behind the end", dialect, wire + again, expected_of(PARALLEL))
        yield Malformed("rubbish behind the end", dialect, wire + b"data: <html>\n\n}{", expected_of(PARALLEL))
    late = ("after the one with the finish reason",) if dialect == "gemini" else ()
    yield Malformed("the end twice", dialect, wire + sse(values[-1:]), expected_of(PARALLEL), flaws=late)
    yield Malformed("a mark behind the end", dialect, wire + b"data: [DONE]\n\ndata: [DONE]\n\n", expected_of(PARALLEL))
    yield Malformed(
        "broken behind the end", dialect, wire, expected_of(PARALLEL), is_cut=True, may_fail=dialect == "gemini"
    )
    yield streamed(
        "a stream of one word", dialect, stream(dialect, ReplyContent((WORDS[0],))), ReplyContent((WORDS[0],))
    )
