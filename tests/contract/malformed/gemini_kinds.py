"""Malformed streams of Gemini servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .kinds import Expected, Malformed, expected_of, failing, streamed, whole
from .regular import (
    ASKING,
    CLOCK,
    DONE,
    GEMINI_USAGE,
    HELLO,
    OSLO,
    PARALLEL,
    PARIS,
    WORDS,
    ReplyContent,
    Value,
    candidates,
    dumped,
    function_call,
    gemini_body,
    gemini_end,
    gemini_parts,
    gemini_stream,
    sse,
)

GEMINI = "gemini"
Kinds = dict[str, tuple[list[Value], ReplyContent | Expected]]
END = gemini_end()
TEXT = [candidates({"text": one}) for one in WORDS]
ONE = ReplyContent(calls=(PARIS,))
PAIR = ReplyContent(calls=(PARIS, OSLO))
# Clients of this dialect read until the bytes end, so what follows a finish reason is forwarded.
_LATE = ("after the one with the finish reason", "absent")
_LATE_NAMES = ("H029 a finish reason before the call", "H029 a finish reason in every chunk", "usage behind the end")


def kinds() -> Iterator[Malformed]:
    for name, (values, expected) in (_calls() | _candidates() | _parts() | _ends() | _tops()).items():
        yield streamed(name, GEMINI, values, expected, _LATE if name in _LATE_NAMES else ())
    yield from _framings()
    yield from _bodies()


def changed(call: Value, **members: Any) -> Value:
    """A call part with other members; those that are None are left out."""
    given = {**call["functionCall"], **members}
    return {"functionCall": {key: item for key, item in given.items() if item is not None}}


def _calls() -> Kinds:
    call, clock = function_call(PARIS), function_call(CLOCK)
    only_clock = ReplyContent(calls=(CLOCK,))
    twice = ReplyContent(calls=(PARIS, PARIS._replace(id="call_2")))
    return {
        "H051 calls without ids": (
            [candidates(changed(function_call(one), id=None)) for one in PAIR.calls] + [END],
            PAIR,
        ),
        "two calls in one chunk": ([candidates(*(function_call(one) for one in PAIR.calls)), END], PAIR),
        "two calls in one chunk without ids": (
            [candidates(*(changed(function_call(one), id=None) for one in twice.calls)), END],
            twice,
        ),
        "no args": ([candidates(changed(clock, args=None)), END], only_clock),
        "args null": ([candidates({"functionCall": {**clock["functionCall"], "args": None}}), END], only_clock),
        "args as text": ([candidates(changed(call, args=PARIS.raw)), END], ONE),
        "args as an empty text": ([candidates(changed(clock, args="")), END], only_clock),
        "args as blanks": ([candidates(changed(clock, args="  ")), END], only_clock),
        "an id that is a number": ([candidates(changed(call, id=7)), END], ONE),
        "no name": ([candidates(changed(call, name=None)), END], failing("without a name")),
        "an empty name": ([candidates(changed(call, name="")), END], failing("without a name")),
        "a name that is a list": ([candidates(changed(call, name=["x"])), END], failing("without a name")),
        "no name, after text": ([*TEXT, candidates(changed(call, name=None)), END], failing("without a name")),
        "a call in the last chunk": (
            [*TEXT, {**candidates(call, finishReason="STOP"), "usageMetadata": GEMINI_USAGE}],
            ASKING,
        ),
        "H029 a finish reason before the call": (
            [*TEXT, candidates({"text": ""}, finishReason="STOP"), candidates(call), END],
            ASKING,
        ),
        "H029 a finish reason in every chunk": (
            [
                {**one, "candidates": [{**one["candidates"][0], "finishReason": "STOP"}]}
                for one in gemini_stream(PARALLEL)
            ],
            PARALLEL,
        ),
        "a call with unknown members": ([candidates({**changed(call, x_trace=1), "x_more": {}}), END], ONE),
        "a call with an empty text beside it": ([candidates({"text": ""}, call, {"text": ""}), END], ONE),
        "a signature of a call": ([candidates({**call, "thoughtSignature": "c2ln"}), END], ONE),
    }


def _candidates() -> Kinds:
    regular = gemini_stream(ASKING)

    def each(**members: Any) -> list[Value]:
        return [{**one, "candidates": [{**one["candidates"][0], **members}]} for one in regular]

    def without(name: str) -> list[Value]:
        return [
            {**one, "candidates": [{key: item for key, item in one["candidates"][0].items() if key != name}]}
            for one in regular
        ]

    other = {"content": {"parts": [{"text": "Another."}], "role": "model"}, "index": 1, "finishReason": "STOP"}
    return {
        "no index": (without("index"), ASKING),
        "index null": (each(index=None), ASKING),
        "index as a word": (each(index="0"), ASKING),
        "index below zero": (each(index=-1), ASKING),
        "index beyond all counts": (each(index=10**30), ASKING),
        "a second candidate": (
            [{**one, "candidates": [*one["candidates"], {**other, "finishReason": ""}]} for one in regular[:-1]]
            + [{**regular[-1], "candidates": [*regular[-1]["candidates"], other]}],
            ASKING,
        ),
        "nulls among candidates": (
            [{**one, "candidates": [*one["candidates"], None, 5, []]} for one in regular],
            ASKING,
        ),
        "chunks without candidates": (
            [regular[0], {"usageMetadata": GEMINI_USAGE}, *regular[1:]],
            ASKING,
        ),
        "chunks with empty candidates": ([regular[0], {"candidates": []}, *regular[1:]], ASKING),
        "chunks with candidates null": ([regular[0], {"candidates": None}, *regular[1:]], ASKING),
        "no content in the end": ([*regular[:-1], without("content")[-1]], ASKING),
        "content null in the end": ([*regular[:-1], each(content=None)[-1]], ASKING),
        "no role": (
            [
                {**one, "candidates": [{**one["candidates"][0], "content": {"parts": one["candidates"][0]["content"]["parts"]}}]}
                for one in regular
            ],
            ASKING,
        ),
        "content without parts in the end": ([*regular[:-1], each(content={"role": "model"})[-1]], ASKING),
        "parts null in the end": ([*regular[:-1], each(content={"role": "model", "parts": None})[-1]], ASKING),
    }  # fmt: skip


def _parts() -> Kinds:
    call = function_call(PARIS)
    thought: Value = {"text": "Let me think.", "thought": True}
    thoughts = ReplyContent(WORDS, reasoning=("Let me think.",))
    signed = {"text": WORDS[1], "thoughtSignature": "c2ln"}
    return {
        "nulls among parts": ([candidates(None, {"text": "Let me look."}, None), END], HELLO),  # type: ignore[arg-type] # nulls
        "words among parts": ([candidates("hm", {"text": "Let me look."}), END], HELLO),  # type: ignore[arg-type] # no object
        "an empty part": ([TEXT[0], candidates({}), TEXT[1], END], HELLO),
        "text null": ([TEXT[0], candidates({"text": None}), TEXT[1], END], HELLO),
        "many texts in one chunk": ([candidates(*({"text": one} for one in WORDS)), END], HELLO),
        "everything in one chunk": (
            [{**candidates(*gemini_parts(PARALLEL), finishReason="STOP"), "usageMetadata": GEMINI_USAGE}],
            PARALLEL,
        ),
        "thought null": ([candidates({"text": one, "thought": None}) for one in WORDS] + [END], HELLO),
        "thought false": ([candidates({"text": one, "thought": False}) for one in WORDS] + [END], HELLO),
        "a thought behind the text": ([*TEXT, candidates(thought), END], thoughts),
        "a thought in every chunk": ([candidates(thought, {"text": "Let me look."}), END], thoughts),
        "a signed text": ([TEXT[0], candidates(signed), END], HELLO),
        "a signature alone": ([candidates({"text": "", "thoughtSignature": "c2ln"}), *TEXT, END], HELLO),
        "a signature without text": ([candidates({"thoughtSignature": "c2ln", "thought": True}), *TEXT, END], HELLO),
        "a signature that is a number": ([candidates({"text": one, "thoughtSignature": 5}) for one in WORDS] + [END], HELLO),
        "a signature in the end": (
            [*TEXT, {**candidates({"text": "", "thoughtSignature": "c2ln"}, finishReason="STOP"), "usageMetadata": GEMINI_USAGE}],
            HELLO,
        ),
        "a call between two texts": (
            [*TEXT, candidates(call), candidates({"text": "Done."}), END],
            ReplyContent(WORDS, (PARIS,), after=("Done.",)),
        ),
    }  # fmt: skip


def _ends() -> Kinds:
    def ending(reason: Any, **members: Any) -> Value:
        return {**candidates({"text": ""}, finishReason=reason, **members), "usageMetadata": GEMINI_USAGE}

    found: Kinds = {
        f"the end {reason}": ([*TEXT, ending(reason)], expected_of(HELLO, finish="refused", refusal=None))
        for reason in ("RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR")
    }  # fmt: skip
    for reason in (
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
    ):
        found[f"H154 the end {reason}"] = ([*TEXT, ending(reason)], failing())
        found[f"H154 the end {reason} with a message"] = (
            [*TEXT, ending(reason, finishMessage="The call was broken.")],
            failing("The call was broken."),
        )
    found |= {
        "a finish reason null": ([*TEXT, ending(None)], failing()),
        "a finish reason that is empty": ([*TEXT, ending("")], failing()),
        "a finish reason that is a number": ([*TEXT, ending(1)], failing()),
        "a finish reason nobody knows": ([*TEXT, ending("NEW_REASON")], expected_of(HELLO, finish="")),
        "the reason without a content": (
            [*TEXT, {"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": GEMINI_USAGE}],
            HELLO,
        ),
        "usage behind the end": (
            [*TEXT, candidates({"text": ""}, finishReason="STOP"), {"usageMetadata": GEMINI_USAGE}],
            HELLO,
        ),
        "usage in every chunk": (
            [{**one, "usageMetadata": {**GEMINI_USAGE, "candidatesTokenCount": 1}} for one in TEXT] + [END],
            HELLO,
        ),
        "a mark at the end": ([*TEXT, END, DONE], HELLO),
        "the prompt is blocked": (
            [{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": GEMINI_USAGE}],
            Expected(finish="refused", refusal=None),
        ),
        "the prompt is blocked by a number": (
            [{"promptFeedback": {"blockReason": 5}, "usageMetadata": GEMINI_USAGE}],
            failing(),
        ),
        "H154 nothing but an end": ([END], failing()),
        "H154 a thought and an end": ([candidates({"text": "Hm.", "thought": True}), END], failing()),
    }
    return found


def _tops() -> Kinds:
    regular = gemini_stream(ASKING)

    def each(**members: Any) -> list[Value]:
        return [{**one, **members} for one in regular]

    def without(name: str) -> list[Value]:
        return [{key: item for key, item in one.items() if key != name} for one in regular]

    return {
        "no response id": (without("responseId"), ASKING),
        "response id null": (each(responseId=None), ASKING),
        "response id of another type": (each(responseId=[1]), ASKING),
        "a new response id in every chunk": (
            [{**one, "responseId": f"resp-{number}"} for number, one in enumerate(regular)],
            ASKING,
        ),
        "no version of the model": (without("modelVersion"), ASKING),
        "version of another type": (each(modelVersion={}), ASKING),
        "error null": (each(error=None), ASKING),
        "error empty": (each(error={}), ASKING),
        "feedback null": (each(promptFeedback=None), ASKING),
        "feedback without a reason": (each(promptFeedback={"safetyRatings": []}), ASKING),
        "wrapped chunks": ([{"response": one, "traceId": "t"} for one in regular], ASKING),
    }


def _framings() -> Iterator[Malformed]:
    values = gemini_stream(PARALLEL)
    array = b"[" + b"\n,\r\n".join(map(dumped, values)) + b"]\n"
    expected = expected_of(PARALLEL)
    yield Malformed("an array of chunks", GEMINI, array, expected, "application/json")
    yield Malformed("an array of chunks that is called a stream", GEMINI, array, expected)
    yield Malformed("an array in an event", GEMINI, b"data: " + array.replace(b"\n", b"").replace(b"\r", b"") + b"\n\n", expected)  # fmt: skip
    yield Malformed("half an array of chunks", GEMINI, array[: len(array) // 2], failing(), "application/json")
    broken = b"[" + b",".join(map(dumped, values[:-1])) + b"]"
    yield Malformed("an array without its last chunk", GEMINI, broken, failing(), "application/json")
    yield Malformed("two chunks in an event", GEMINI, b"data: " + dumped(values[0]) + dumped(values[1]) + b"\n\n" + sse(values[2:]), failing())  # fmt: skip


def _bodies() -> Iterator[Malformed]:
    regular = gemini_body(ASKING)
    candidate = regular["candidates"][0]
    text, call = candidate["content"]["parts"]

    def with_parts(*parts: Any, **members: Any) -> Value:
        return {**regular, "candidates": [{**candidate, "content": {"parts": list(parts), "role": "model"}, **members}]}

    clock = expected_of(ReplyContent(WORDS, (CLOCK,)))
    for name, value, expected in (
        ("no id of the call", with_parts(text, changed(call, id=None)), expected_of(ASKING)),
        ("no name of the call", with_parts(text, changed(call, name=None)), failing("without a name")),
        ("no args", with_parts(text, changed(function_call(CLOCK), args=None)), clock),
        ("args as text", with_parts(text, changed(call, args=PARIS.raw)), expected_of(ASKING)),
        ("nulls for parts", with_parts(None, text, None, call), expected_of(ASKING)),
        ("no finish reason", with_parts(text, call, finishReason=None), failing()),
        ("content null", {**regular, "candidates": [{**candidate, "content": None}]}, failing()),
        ("candidates null", {**regular, "candidates": None}, failing()),
        ("no candidates", {**regular, "candidates": []}, failing()),
        ("candidates that are an object", {**regular, "candidates": candidate}, failing()),
        ("no response id", {**regular, "responseId": None}, expected_of(ASKING)),
        ("an error beside candidates", {**regular, "error": {"code": 503, "message": "Overloaded."}}, failing("Overloaded")),
        ("a body in an array", [regular], expected_of(ASKING)),
    ):  # fmt: skip
        yield whole(name, GEMINI, value, expected)  # type: ignore[arg-type] # an array, too
