"""Unusual content of the model: characters, arguments, ids, ends. The same in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .framing import ends_at
from .kinds import JSON, Expected, Malformed, both, expected_of, failing, streamed, whole
from .regular import (
    ASKING,
    CLOCK,
    OSLO,
    PARALLEL,
    PARIS,
    WORDS,
    Call,
    ReplyContent,
    Value,
    body,
    candidates,
    dumped,
    stream,
)

ODD_TEXTS: dict[str, tuple[str, ...]] = {
    "line separators of Unicode": ("a\u2028b\u2029c\u0085d", "\u2028", "e"),
    "characters of many bytes": ("Zürich ☃", " 日本 🙂", " \U0001f468\u200d\U0001f469\u200d\U0001f467"),
    "NUL and other controls": ("a\u0000b\u0001", "\u001b[31m", "\u007f\u009f"),
    "half a surrogate pair": ("a\ud83d", "b\udc00c"),
    "a surrogate pair in two events": ("a\ud83d", "\ude42b"),
    "what looks like events": ("data: [DONE]\n\n", "event: error\n", 'data: {"error": "no"}\r\n\r\n'),
    "a mark as text": ("[DONE]",),
    "what looks like a call": ('It writes <tool_call>{"name": "get_time"', "}</tool_call> for that."),
    "quotes and backslashes": ('"\\', '\\"', '"}]}'),
    "empty deltas": ("", "a", "", "", "b", ""),
    "equal deltas": ("ha", "ha", "ha", "\n", "\n"),
    "blanks alone": (" ", "\n", "\t"),
    "a long delta": ("x" * 300_000, "y"),
    "many deltas": tuple(f"w{number} " for number in range(300)),
}

RAW_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "H071 numbers of 19 digits": ('{"n": 2512292042121', '000001, "m": -9007199254740993}'),
    "numbers beyond all floats": ('{"n": 1e400, "m": 1', 'E-400, "o": 1.50, "p": -0.0}'),
    "H019 escapes": (r'{"location": "a\"b\\', r"\\c\u00e9\ud83d", r'\ude42\/ <>&"}'),
    "half a surrogate pair in arguments": ('{"location": "\ud800', '"}'),
    "a surrogate pair in two fragments": ('{"location": "\ud83d', '\ude42"}'),
    "braces in strings": ('{"location": "}{', '}}"', "}"),
    "deep arguments": ('{"a":' * 150, "[]" + "}" * 150),
    "long arguments": ('{"location": "' + "0123456789" * 20_000, '"}'),
    "H017 equal fragments": ('{"count": 1', "0", "0", ', "l": "', "l", "l", " -", "l", '"}'),
    "one character a fragment": tuple('{"location": "Zürich"}'),
    "blanks around arguments": (" \n{ ", '"location" :\t"Paris"', " }\n "),
    "empty fragments": ("", '{"location"', "", "", ':"Paris"}', ""),
}

# Arguments that are no object are the model's own mistake: they are repaired if their meaning is certain, else forwarded unchanged.
ODD_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "arguments that are no JSON": ('{"location": Par', "is}"),
    "arguments that stop in mid-string": ('{"location": "Par',),
    "arguments that are a list": ('["Par', 'is"]'),
    "arguments that are null": ("nu", "ll"),
    "arguments that are a number": ("5",),
    "arguments that are a string": ('"{\\"location\\":', ' \\"Paris\\"}"'),
    "arguments twice over": ('{"location": "Paris"}', '{"location": "Paris"}'),
    "arguments in a fence": ("```json\n", '{"location": "Paris"}', "\n```"),
}
_ODD = ("tool arguments are not",)
_HALVES = (
    "differs from the joined deltas",
)  # the judge's JSON decoder joins the halves of a surrogate pair in the copy only
_FOREIGN_IDS = ("does not match ^[a-zA-Z0-9_-]+$",)  # a server accepts the ids that it created


def kinds(dialect: str) -> Iterator[Malformed]:
    for name, texts in ODD_TEXTS.items():
        yield from both(name, dialect, ReplyContent(texts), _HALVES)
    for name, pieces in RAW_ARGUMENTS.items():
        yield from both(name, dialect, ReplyContent(calls=(Call("get_weather", pieces),)), _HALVES)
    for name, pieces in ODD_ARGUMENTS.items():
        words = ReplyContent(WORDS, (Call("get_weather", pieces), CLOCK))
        yield streamed(name, dialect, stream(dialect, words), words, _ODD)
        if dialect not in ("messages", "gemini"):
            yield whole(name, dialect, body(dialect, words), words, _ODD)
    yield from _orders(dialect)
    yield from _ids(dialect)
    yield from _ends(dialect)
    yield from _usage(dialect)
    yield from _errors(dialect)


def _orders(dialect: str) -> Iterator[Malformed]:
    yield from both(
        "H015 the same call twice is two calls", dialect, ReplyContent(calls=(PARIS, PARIS._replace(id="call_2")))
    )
    yield from both("calls before text", dialect, ReplyContent(calls=(PARIS, CLOCK), after=WORDS))
    yield from both("text, call, text", dialect, ReplyContent(WORDS, (PARIS,), after=("Done.",)))
    yield from both("reasoning and call", dialect, ReplyContent(calls=(PARIS,), reasoning=("Let me think.",)))
    yield from both("reasoning, text and calls", dialect, ReplyContent(WORDS, (PARIS, OSLO), ("Hm. ", "Well.")))
    many = tuple(Call("get_time", ("{}",), f"call_{number}") for number in range(40))
    yield from both("forty calls", dialect, ReplyContent(calls=many))
    yield from both("H012 a call with nothing for arguments", dialect, ReplyContent(calls=(CLOCK,)))


def _ids(dialect: str) -> Iterator[Malformed]:
    for name, ids in {
        "H049 equal ids": ("call_1", "call_1", "call_1"),
        "empty ids": ("", "", ""),
        "H050 H051 the tool's name for an id": ("get_weather", "get_weather", "get_time"),
        "H043 ids with a colon": ("functions.get_weather:0", "functions.get_weather:1", "functions.get_time:2"),
        "H045 long ids": ("x" * 83, "x" * 83 + "y", "z" * 300),
        "ids of odd characters": ("é☃", "\u0000", '"'),
    }.items():
        calls = tuple(one._replace(id=ids[place]) for place, one in enumerate(PARALLEL.calls))
        yield from both(name, dialect, ReplyContent(WORDS, calls), _FOREIGN_IDS if dialect == "messages" else ())


def _ends(dialect: str) -> Iterator[Malformed]:
    yield from both("length in the text", dialect, ReplyContent(WORDS, finish="length"))
    yield from both("length behind a complete call", dialect, ReplyContent(WORDS, (PARIS,), finish="length"))
    open_call = Call("get_weather", ('{"location": "Pa',), "call_2")
    for finish in ("length", "refused"):
        words = ReplyContent(WORDS, (PARIS, open_call), finish=finish)
        yield streamed(f"H031 {finish} in a call", dialect, stream(dialect, words), words, _ODD)
        if dialect == "gemini":  # calls are never in pieces
            continue
        bare = ReplyContent(WORDS, (open_call._replace(pieces=()),), finish=finish)
        yield streamed(f"H031 {finish} before the arguments", dialect, stream(dialect, bare), expected_of(bare), _ODD)
    if dialect not in ("responses", "gemini"):  # these have no finish reason for calls
        hidden = ReplyContent(WORDS, (PARIS, CLOCK), finish="stop")
        expected = expected_of(hidden, finish="tool_calls")
        yield streamed("H028 stop behind calls", dialect, stream(dialect, hidden), expected)
        yield whole("H028 stop behind calls", dialect, body(dialect, hidden), expected)
        promised = ReplyContent(WORDS, finish="tool_calls")
        expected = expected_of(promised, finish="stop")
        yield streamed("a call is promised and none comes", dialect, stream(dialect, promised), expected)
        yield whole("a call is promised and none comes", dialect, body(dialect, promised), expected)


_COUNTS = {
    "chat": ("prompt_tokens", "completion_tokens"),
    "responses": ("input_tokens", "output_tokens"),
    "messages": ("input_tokens", "output_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount"),
}


def _usage(dialect: str) -> Iterator[Malformed]:
    given, produced = _COUNTS[dialect]
    key = "usageMetadata" if dialect == "gemini" else "usage"
    any_usage = expected_of(ASKING, usage=None)
    for name, usage in {
        "negative": {given: -1, produced: -5, "total_tokens": -6},
        "of fractions": {given: 9.0, produced: 5.5, "total_tokens": 14.5},
        "of words": {given: "9", produced: "5", "total_tokens": "14"},
        "of nulls": {given: None, produced: None, "total_tokens": None},
        "of nothing": {},
        "beyond all counts": {given: 10**30, produced: 5, "total_tokens": 14},
        "of truths": {given: True, produced: True, "total_tokens": True},
    }.items():
        yield streamed(f"usage {name}", dialect, _with_usage(stream(dialect, ASKING), key, usage), any_usage)
        yield whole(f"usage {name}", dialect, {**body(dialect, ASKING), key: usage}, any_usage)
    for name, odd in {"null": None, "a list": [], "a word": "none"}.items():
        yield streamed(f"usage is {name}", dialect, _with_usage(stream(dialect, ASKING), key, odd), any_usage)
        yield whole(f"usage is {name}", dialect, {**body(dialect, ASKING), key: odd}, any_usage)
    bare = {name: item for name, item in body(dialect, ASKING).items() if name != key}
    yield whole("no usage", dialect, bare, any_usage)


def _with_usage(values: list[Value], name: str, usage: object) -> list[Value]:
    def changed(value: Value) -> Value:
        found = {
            key: changed(item) if key in ("response", "message") and isinstance(item, dict) else item
            for key, item in value.items()
        }
        return {**found, name: usage} if found.get(name) is not None else found

    return [changed(value) for value in values]


def _errors(dialect: str) -> Iterator[Malformed]:
    values = stream(dialect, ASKING)
    end = ends_at(dialect, values)
    call = next(place for place, value in enumerate(values) if b"location" in dumped(value)) + 1
    places = {"first": 0, "in mid-stream": 3, "in a call": call, "before the end": end}
    if dialect != "responses":
        places["behind the finish reason"] = end + 1
    for form, value in _error_forms(dialect).items():
        for place, position in places.items():
            yield streamed(f"an error {form}, {place}", dialect, [*values[:position], value], failing("Overloaded"))
            yield streamed(
                f"an error {form}, {place}, and on it goes",
                dialect,
                [*values[:position], value, *values[position:]],
                failing("Overloaded"),
            )
    for form, value in {
        "as an object": {"error": {"message": "Overloaded.", "type": "server_error", "code": 503}},
        "as words": {"error": "Overloaded."},
        "in a list": [{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}],
        "as a message": {"message": "Overloaded.", "code": 503},
        "as a detail": {"detail": "Overloaded."},
        "H114 as a key": {"Overloaded. Try again later.": 503},
    }.items():
        wire = json.dumps(value).encode()
        yield Malformed(f"an error {form} for a body", dialect, wire, failing("Overloaded"), JSON)
        yield Malformed(f"an error {form} for a body, called a stream", dialect, wire, failing("Overloaded"))
    for place, position in places.items():
        wire = b"".join([_frames(values[:position]), b"event: error\ndata: Overloaded, sorry\n\n"])
        yield Malformed(f"an error event in plain words, {place}", dialect, wire, failing("Overloaded"))


def _frames(values: list[Value]) -> bytes:
    return streamed("", "chat", values, Expected()).wire


def _error_forms(dialect: str) -> dict[str, Value]:
    inner = {"message": "Overloaded.", "type": "overloaded_error", "code": "overloaded", "param": None}
    forms: dict[str, Value] = {
        "as an object": {"error": inner},
        "as words": {"error": "Overloaded."},
        "with a type": {"type": "error", "error": inner},
    }
    if dialect == "chat":
        forms["beside choices"] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}], "error": inner}
        forms["H114 as a key"] = {"Overloaded. Try again later.": None}
        forms["as a message"] = {"object": "error", "message": "Overloaded.", "code": 40303}
    elif dialect == "responses":
        forms["flat"] = {"type": "error", "code": "server_error", "message": "Overloaded.", "param": None}
        forms["in a failed response"] = {"type": "response.failed", "response": {"status": "failed", "error": inner}}
    elif dialect == "gemini":
        google = {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE", "details": [None, {"@type": 5}]}
        forms["of Google"] = {"error": google}
        forms["beside candidates"] = {**candidates({"text": ""}), "error": google}
    return forms
