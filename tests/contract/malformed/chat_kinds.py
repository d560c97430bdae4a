"""Malformed streams of Chat Completions servers."""

from __future__ import annotations

from collections.abc import Iterator

from .kinds import Expected, Malformed, expected_of, failing, streamed, whole
from .regular import (
    ASKING,
    CHAT_USAGE,
    CLOCK,
    DONE,
    HELLO,
    OSLO,
    PARALLEL,
    PARIS,
    ROLE,
    TOP,
    USAGE_CHUNK,
    WORDS,
    Call,
    ReplyContent,
    Value,
    calls,
    chat_body,
    chat_end,
    chat_stream,
    chunk,
    fragment,
)

CHAT = "chat"
PAIR = ReplyContent(calls=(PARIS, OSLO))
ONE = ReplyContent(calls=(PARIS,))
_WHOLE = (PARIS.raw, OSLO.raw)
_FLAWS: dict[str, tuple[str, ...]] = {
    "choices empty at first": ("empty choices without usage",),
    "filter results first": ("empty choices without usage",),
    "half a call and stop": ("tool arguments are not",),
}


def kinds() -> Iterator[Malformed]:
    for name, (values, expected) in (_headers() | _indices() | _copies() | _arguments()).items():
        yield streamed(name, CHAT, [ROLE, *values, *chat_end()], expected)
    for name, (values, expected) in (_shapes() | _finishes() | _usage()).items():
        yield streamed(name, CHAT, values, expected, _FLAWS.get(name, ()))
    yield from _bodies()
    unasked = streamed("usage nobody asked for", CHAT, chat_stream(ASKING), ASKING, ("was not asked for",))
    yield unasked._replace(asks_usage=False)


Kinds = dict[str, tuple[list[Value], ReplyContent | Expected]]


def _headers() -> Kinds:
    """Id, name and type of a call: where and how often they appear."""
    first, second = PARIS.pieces
    every = [calls(fragment(one, 0, "call_1", "get_weather")) for one in ("", first, second)]
    no_name = calls({"index": 0, "id": "call_1", "type": "function", "function": {"name": None, "arguments": ""}})
    return {
        "id and name on each fragment": (every, ONE),
        "id on each fragment": (
            [calls(fragment("", 0, "call_1", "get_weather"))]
            + [calls(fragment(one, 0, "call_1")) for one in PARIS.pieces],
            ONE,
        ),
        "name on each fragment": (
            [calls(fragment("", 0, "call_1", "get_weather"))]
            + [calls(fragment(one, 0, None, "get_weather")) for one in PARIS.pieces],
            ONE,
        ),
        "name on each fragment, no id at all": (
            [calls(fragment(one, 0, None, "get_weather")) for one in ("", first, second)],
            ONE,
        ),
        "another id on each fragment": (
            [calls(fragment("", 0, "call_1", "get_weather"))]
            + [calls(fragment(one, 0, f"call_{place + 7}")) for place, one in enumerate(PARIS.pieces)],
            ONE,
        ),
        "another id on each fragment, and the name": (
            [calls(fragment(one, 0, f"call_{place}", "get_weather")) for place, one in enumerate(PARIS.pieces)],
            ONE,
        ),
        "name in pieces": (
            [calls(fragment("", 0, "call_1", "get_"))]
            + [calls(fragment(None, 0, None, one)) for one in ("wea", "ther")]
            + [calls(fragment(one)) for one in PARIS.pieces],
            ONE,
        ),
        "name in pieces with empty arguments": (
            [calls(fragment("", 0, "call_1", "get_"))]
            + [calls(fragment("", 0, None, "weather"))]
            + [calls(fragment(one)) for one in PARIS.pieces],
            ONE,
        ),
        "name null at first": ([no_name, calls(fragment(first, 0, None, "get_weather")), calls(fragment(second))], ONE),
        "name behind the arguments": (
            [
                calls(fragment(first, 0, "call_1")),
                calls(fragment(second)),
                calls(fragment(None, 0, None, "get_weather")),
            ],
            ONE,
        ),
        "id behind the arguments": (
            [
                calls(fragment(first, 0, None, "get_weather")),
                calls(fragment(second)),
                calls(fragment(None, 0, "call_1")),
            ],
            ONE,
        ),
        "name an empty text on later fragments": (
            [
                calls(fragment("", 0, "call_1", "get_weather")),
                *(calls(fragment(one, 0, "", "")) for one in PARIS.pieces),
            ],
            ONE,
        ),
        "no type": (
            [calls({"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": PARIS.raw}})],
            ONE,
        ),
        "nulls everywhere": (
            [
                calls(fragment("", 0, "call_1", "get_weather")),
                *(
                    calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": one}})
                    for one in PARIS.pieces
                ),
            ],
            ONE,
        ),
        "the legacy function_call": (
            [
                chunk({"function_call": {"name": "get_weather", "arguments": ""}}),
                *(chunk({"function_call": {"arguments": one}}) for one in PARIS.pieces),
            ],
            ONE,
        ),
        "a call without a name": ([calls(fragment(PARIS.raw, 0, "call_1"))], failing("without a name")),
        "a call with an empty name": ([calls(fragment(PARIS.raw, 0, "call_1", ""))], failing("without a name")),
        "extra_content on a call": (
            [calls({**fragment(PARIS.raw, 0, "call_1", "get_weather"), "extra_content": {"google": {"s": "c2ln"}}})],
            ONE,
        ),
    }


def _indices() -> Kinds:
    """Indices: which call a fragment belongs to."""

    def opened(one: Call, index: object, raw: str = "") -> Value:
        return fragment(raw, index, one.id, one.name)

    def grown(one: Call, index: object) -> list[Value]:
        return [calls(opened(one, index)), *(calls(fragment(piece, index)) for piece in one.pieces)]

    (a, b), (c, d) = PARIS.pieces, OSLO.pieces
    return {
        "H001 all indices zero": ([*grown(PARIS, 0), *grown(OSLO, 0)], PAIR),
        "no index": ([*grown(PARIS, None), *grown(OSLO, None)], PAIR),
        "index from one": ([*grown(PARIS, 1), *grown(OSLO, 2)], PAIR),
        "indices with gaps": ([*grown(PARIS, 3), *grown(OSLO, 17)], PAIR),
        "indices that go down": ([*grown(PARIS, 5), *grown(OSLO, 2)], PAIR),
        "indices as words": ([*grown(PARIS, "0"), *grown(OSLO, "1")], PAIR),
        "negative indices": ([*grown(PARIS, -1), *grown(OSLO, -2)], PAIR),
        "huge indices": ([*grown(PARIS, 10**15), *grown(OSLO, 10**30)], PAIR),
        "index only at first": (
            [calls(opened(PARIS, 0)), *(calls(fragment(one, None)) for one in PARIS.pieces), *grown(OSLO, 1)],
            PAIR,
        ),
        "H002 whole calls, all index zero": ([calls(opened(one, 0, one.raw)) for one in PAIR.calls], PAIR),
        "whole calls without an index": ([calls(opened(one, None, one.raw)) for one in PAIR.calls], PAIR),
        "whole calls without index and id": (
            [calls(fragment(one.raw, None, None, one.name)) for one in PAIR.calls],
            PAIR,
        ),
        "whole calls with index zero and no id": (
            [calls(fragment(one.raw, 0, None, one.name)) for one in PAIR.calls],
            PAIR,
        ),
        "H050 whole calls with one index and one id": (
            [calls(fragment(one.raw, 0, "get_weather", "get_weather")) for one in PAIR.calls],
            PAIR,
        ),
        "H050 whole calls with one id and no index": (
            [calls(fragment(one.raw, None, "get_weather", "get_weather")) for one in PAIR.calls],
            PAIR,
        ),
        "two calls in one chunk": (
            [calls(*(opened(one, place, one.raw) for place, one in enumerate(PAIR.calls)))],
            PAIR,
        ),
        "two calls in one chunk, both index zero": ([calls(*(opened(one, 0, one.raw) for one in PAIR.calls))], PAIR),
        "two calls in one chunk without index": ([calls(*(opened(one, None, one.raw) for one in PAIR.calls))], PAIR),
        "interleaved fragments": (
            [
                calls(opened(PARIS, 0)),
                calls(opened(OSLO, 1)),
                calls(fragment(a, 0)),
                calls(fragment(c, 1)),
                calls(fragment(b, 0)),
                calls(fragment(d, 1)),
            ],
            PAIR,
        ),
        "interleaved fragments known by id": (
            [
                calls(opened(PARIS, 0, a)),
                calls(opened(OSLO, 1, c)),
                calls(fragment(b, None, PARIS.id)),
                calls(fragment(d, None, OSLO.id)),
            ],
            PAIR,
        ),
        "fragments of two calls in one chunk": (
            [
                calls(opened(PARIS, 0), opened(OSLO, 1)),
                calls(fragment(a, 0), fragment(c, 1)),
                calls(fragment(b, 0), fragment(d, 1)),
            ],
            PAIR,
        ),
        "two choices of one answer": (
            [chunk({"content": "Let me look."}), {**chunk({"tool_calls": [opened(PARIS, 0, PARIS.raw)]}, index=1)}],
            ASKING,
        ),
        "text between the fragments": (
            [calls(opened(PARIS, 0, a)), chunk({"content": "Let me look."}), calls(fragment(b, 0))],
            ASKING,
        ),
        "calls without arguments, all index zero": (
            [calls(fragment("", 0, f"call_{number}", "get_time")) for number in (1, 2)],
            ReplyContent(calls=(CLOCK, CLOCK)),
        ),
    }


def _copies() -> Kinds:
    """H015: content is repeated. Complete arguments cannot continue, so a copy is recognised by state."""
    told = [calls(fragment("", 0, "call_1", "get_weather")), *(calls(fragment(one)) for one in PARIS.pieces)]
    copy = calls(fragment(PARIS.raw, 0, "call_1", "get_weather"))
    other = [calls(fragment(OSLO.raw, 1, OSLO.id, OSLO.name))]
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": [_whole_call(PARIS)]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    texts = [chunk({"content": one}) for one in WORDS]
    return {
        "H015 a full copy at the end": ([*told, copy], ONE),
        "H015 a full copy without an index": ([*told, calls(fragment(PARIS.raw, None, "call_1", "get_weather"))], ONE),
        "H015 a full copy with other blanks": (
            [*told, calls(fragment('{"location":"Paris"}', 0, "call_1", "get_weather"))],
            ONE,
        ),
        "H015 a full copy behind the next call": ([*told, *other, copy], PAIR),
        "H015 a full copy in fragments": (
            [*told, *(calls(fragment(one, 0, "call_1", "get_weather")) for one in ("", *PARIS.pieces))],
            ONE,
        ),
        "H015 copies of both": (
            [
                *told,
                *other,
                calls(*(fragment(one.raw, place, one.id, one.name) for place, one in enumerate(PAIR.calls))),
            ],
            PAIR,
        ),
        "H015 a copy in a message": ([*texts, *told, {**TOP, "choices": [choice]}], ASKING),
        "H015 a copy in a message beside the delta": (
            [*texts, *told, {**TOP, "choices": [{**choice, "delta": {}, "finish_reason": None}]}],
            ASKING,
        ),
        "the header of a call twice": ([told[0], *told], ONE),
    }


def _whole_call(one: Call) -> Value:
    return {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.raw}}


def _arguments() -> Kinds:
    """Arguments that are no string."""

    def given(arguments: object) -> list[Value]:
        return [
            calls(
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "get_time", "arguments": arguments},
                }
            )
        ]

    def seen(raw: str) -> ReplyContent:
        return ReplyContent(calls=(CLOCK._replace(pieces=(raw,)),))

    bare = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_time"}}
    return {
        "H030 arguments as an object": (
            given({"location": "Paris", "n": 10**20}),
            seen('{"location":"Paris","n":100000000000000000000}'),
        ),
        "arguments as an empty object": (given({}), seen("{}")),
        "arguments null": (given(None), seen("{}")),
        "arguments absent": ([calls(bare)], seen("{}")),
        "H109 arguments an empty text": (given(""), seen("{}")),
        "arguments of blanks": (given(" "), seen(" {}")),
        "function absent": (
            [calls(fragment("", 0, "call_1", "get_time")), calls({"index": 0}), calls(fragment("{}"))],
            seen("{}"),
        ),
        "function null": (
            [
                calls(fragment("", 0, "call_1", "get_time")),
                calls({"index": 0, "function": None}),
                calls(fragment("{}")),
            ],
            seen("{}"),
        ),
        "an empty list of calls on each chunk": (
            [
                chunk({"content": "", "tool_calls": []}),
                *given("{}"),
                chunk({"tool_calls": []}),
                chunk({"tool_calls": None}),
            ],
            seen("{}"),
        ),
    }


def _shapes() -> Kinds:
    """Chunks in undocumented forms."""
    text = [chunk({"content": one}) for one in WORDS]
    end = chat_end("stop")
    regular = chat_stream(PARALLEL)
    parts = [{"type": "text", "text": WORDS[0]}, {"type": "text", "text": WORDS[1]}]
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
    thought = ReplyContent(WORDS, reasoning=("Hm.",))
    message = {"role": "assistant", "content": "Let me look."}
    return {
        "no role": ([*text, *end], HELLO),
        "role on each chunk": ([ROLE, *(chunk({"role": "assistant", "content": one}) for one in WORDS), *end], HELLO),
        "role null": ([chunk({"role": None, "content": ""}), *text, *end], HELLO),
        "choices empty at first": ([{**TOP, "choices": [], "prompt_filter_results": []}, ROLE, *text, *end], HELLO),
        "filter results first": ([{**TOP, "choices": [], "prompt_filter_results": [{}]}, *chat_stream(HELLO)], HELLO),
        "choices empty in between": ([ROLE, text[0], {**TOP, "choices": []}, text[1], *end], HELLO),
        "choices null in between": ([ROLE, text[0], {**TOP, "choices": None}, text[1], *end], HELLO),
        "choices null with usage": ([ROLE, *text, end[0], {**TOP, "choices": None, "usage": CHAT_USAGE}, DONE], HELLO),
        "choices absent with usage": ([ROLE, *text, end[0], {**TOP, "usage": CHAT_USAGE}, DONE], HELLO),
        "a choice that is null": ([ROLE, *text, {**TOP, "choices": [None]}, *end], HELLO),
        "no index of the choice": ([_without(value, "index") for value in (ROLE, *text, end[0])] + end[1:], HELLO),
        "content in a list": ([ROLE, chunk({"content": parts}), *end], HELLO),
        "thoughts in a list": ([ROLE, chunk({"content": thinking}), *text, *end], thought),
        "content null": ([ROLE, chunk({"content": None}), *text, chunk({"content": None}), *end], HELLO),
        "delta null": ([ROLE, *text, _choice({"index": 0, "delta": None, "finish_reason": None}), *end], HELLO),
        "no delta at the end": ([ROLE, *text, _choice({"index": 0, "finish_reason": "stop"}), *end[1:]], HELLO),
        "a message for a delta": (
            [_choice({"index": 0, "message": message, "finish_reason": "stop"}), *end[1:]],
            HELLO,
        ),
        "messages for deltas": (
            [
                *(
                    _choice({"index": 0, "message": {"role": "assistant", "content": one}, "finish_reason": None})
                    for one in WORDS
                ),
                *end,
            ],
            HELLO,
        ),
        "text for a delta": (
            [*(_choice({"index": 0, "text": one, "finish_reason": None}) for one in WORDS), *end],
            HELLO,
        ),
        "H030 a new id each chunk": (
            [{**one, "id": f"c-{place}"} if one != DONE else one for place, one in enumerate(regular)],
            PARALLEL,
        ),
        "no id": ([{**one, "id": ""} if one != DONE else one for one in regular], PARALLEL),
        "another model in between": (
            [{**one, "model": f"m{place}"} if one != DONE else one for place, one in enumerate(regular)],
            PARALLEL,
        ),
        "no model": ([_missing(one, "model") for one in regular], PARALLEL),
        "no time": ([_missing(one, "created") for one in regular], PARALLEL),
        "time as a fraction": ([{**one, "created": 1700000000.5} if one != DONE else one for one in regular], PARALLEL),
        "no kind": ([_missing(one, "object") for one in regular], PARALLEL),
        "the kind of a body": (
            [{**one, "object": "chat.completion"} if one != DONE else one for one in regular],
            PARALLEL,
        ),
        "reasoning by its other name": ([ROLE, chunk({"reasoning": "Hm."}), *text, *end], thought),
        "reasoning by both names": (
            [ROLE, chunk({"reasoning": "Hm.", "reasoning_content": "Hm."}), *text, *end],
            thought,
        ),
        "reasoning and text in one chunk": (
            [ROLE, chunk({"reasoning_content": "Hm.", "content": WORDS[0]}), text[1], *end],
            thought,
        ),
        "reasoning behind the text": ([ROLE, text[0], chunk({"reasoning_content": "Hm."}), text[1], *end], thought),
        "reasoning as an object": ([ROLE, chunk({"reasoning": {"text": "Hm."}}), *text, *end], HELLO),
        "a refusal beside text": (
            [ROLE, *text, chunk({"refusal": "No."}), *end],
            expected_of(HELLO, refusal=None, finish="", text=""),
        ),
    }


def _choice(value: Value) -> Value:
    return {**TOP, "choices": [value]}


def _missing(value: Value, key: str) -> Value:
    return {name: item for name, item in value.items() if name != key}


def _without(value: Value, key: str) -> Value:
    return {**value, "choices": [_missing(one, key) for one in value["choices"]]}


def _finishes() -> Kinds:
    """How and when the end is reported."""
    regular = chat_stream(ASKING)
    begun, text = regular[:-3], chat_stream(HELLO)[:-3]
    call = calls(fragment(PARIS.raw, 0, "call_1", "get_weather"))
    cut_call = calls(fragment('{"location": "Pa', 0, "call_1", "get_weather"))
    more = chunk({"content": " More."})
    longer = ReplyContent((*WORDS, " More."))
    usage = USAGE_CHUNK
    both = {**calls(fragment(PARIS.raw, 0, "call_1", "get_weather"))}
    both["choices"] = [{**both["choices"][0], "finish_reason": "tool_calls"}]
    found: Kinds = {
        "no finish reason but a mark, text": ([*text, usage, DONE], HELLO),
        "no finish reason but a mark, a call": ([*begun, usage, DONE], ASKING),
        "no finish reason but a mark, half a call": ([*text, cut_call, usage, DONE], failing()),
        "no finish reason but a mark, a call without arguments": (
            [*text, calls(fragment("", 0, "c", "get_time")), usage, DONE],
            expected_of(ReplyContent(WORDS, (CLOCK,))),
        ),
        "no mark behind the finish reason": (regular[:-1], ASKING),
        "no mark and no usage": ([*begun, chunk(finish="tool_calls")], expected_of(ASKING, usage=None)),
        "an empty finish reason on each chunk": ([_finishing(one, "") for one in begun] + chat_end(), ASKING),
        "H029 a finish reason in between": ([*text, chunk(finish="stop"), more, *chat_end("stop")], longer),
        "H029 a finish reason in between, none at the end": ([*text, chunk(finish="stop"), more, usage, DONE], longer),
        "H029 a finish reason in between, then a clean end": ([*text, chunk(finish="stop"), more], failing()),
        "H029 stop before the call": ([*text, chunk(finish="stop"), call, *chat_end("tool_calls")], ASKING),
        "H029 stop on each chunk": ([_finishing(one, "stop") for one in text] + [usage, DONE], HELLO),
        "H029 a finish reason between the fragments": (
            [
                *begun[:-1],
                chunk(finish="tool_calls"),
                begun[-1],
                *chat_end(),
            ],
            ASKING,
        ),
        "H029 usage, then more": ([*text, chunk(finish="stop"), usage, more, *chat_end("stop")], longer),
        "the finish reason twice": ([*begun, chunk(finish="tool_calls"), *chat_end()], ASKING),
        "two finish reasons": ([*begun, chunk(finish="stop"), *chat_end("tool_calls")], ASKING),
        "a finish reason beside the last words": ([*text[:-1], _finishing(text[-1], "stop"), usage, DONE], HELLO),
        "a finish reason beside the call": ([*text, both, usage, DONE], ASKING),
        "a finish reason beside usage": ([*begun, chunk(finish="tool_calls", usage=CHAT_USAGE), DONE], ASKING),
        "half a call and stop": (
            [*text, cut_call, *chat_end("stop")],
            expected_of(ReplyContent(WORDS, (PARIS._replace(pieces=('{"location": "Pa',)),))),
        ),
        "finish reason error": ([*text, *chat_end("error")], failing()),
        "finish reason abort": ([*text, *chat_end("abort")], failing()),
        "nothing but an end": ([ROLE, *chat_end("stop")], ReplyContent()),
    }
    for word, reason in {
        "eos": "stop",
        "STOP": "stop",
        "end_turn": "stop",
        "max_tokens": "length",
        "MAX_TOKENS": "length",
        "model_length": "length",
        "SAFETY": "refused",
        "sensitive": "refused",
        "whatever": "stop",
    }.items():
        found[f"finish reason {word}"] = ([*text, *chat_end(word)], expected_of(HELLO, finish=reason, refusal=None))
    for word in ("tool_use", "function_call", "tool_call", "TOOL_CALLS", "eos"):
        found[f"finish reason {word} behind a call"] = ([*begun, *chat_end(word)], ASKING)
    return found


def _finishing(value: Value, reason: str) -> Value:
    return {**value, "choices": [{**one, "finish_reason": reason} for one in value["choices"]]}


def _usage() -> Kinds:
    regular = chat_stream(ASKING)
    early = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return {
        "H013 usage on each chunk": ([{**one, "usage": CHAT_USAGE} if one != DONE else one for one in regular], ASKING),
        "usage that grows on each chunk": ([{**one, "usage": early} for one in regular[:-2]] + regular[-2:], ASKING),
        "usage first": ([{**regular[0], "usage": CHAT_USAGE}, *regular[1:-2], DONE], ASKING),
        "usage first, alone": ([USAGE_CHUNK, *regular[:-2], DONE], ASKING),
        "usage twice": ([*regular[:-1], USAGE_CHUNK, DONE], ASKING),
        "usage before the finish reason": ([*regular[:-3], USAGE_CHUNK, regular[-3], DONE], ASKING),
        "no usage": ([*regular[:-2], DONE], expected_of(ASKING, usage=None)),
        "usage null on each chunk": (
            [{**one, "usage": None} if one not in (DONE, USAGE_CHUNK) else one for one in regular],
            ASKING,
        ),
    }


def _bodies() -> Iterator[Malformed]:
    regular = chat_body(ASKING)
    choice = regular["choices"][0]
    message = choice["message"]

    def of(**members: object) -> Value:
        return {**regular, "choices": [{**choice, "message": {**message, **members}}]}

    call = message["tool_calls"][0]
    split = [{**choice, "message": {**message, "tool_calls": None}, "finish_reason": "stop"}]
    split.append({**choice, "message": {"role": "assistant", "content": None, "tool_calls": [call]}})
    bare = {**call, "function": {"name": "get_time"}}
    clock = expected_of(ReplyContent(WORDS, (CLOCK,)))
    for name, value, expected in (
        ("H008 two choices", {**regular, "choices": split}, expected_of(ASKING)),
        ("arguments as an object", of(tool_calls=[{**call, "function": {"name": "get_time", "arguments": {}}}]), clock),
        ("arguments absent", of(tool_calls=[bare]), clock),
        ("content in a list", of(content=[{"type": "text", "text": "Let me look."}]), expected_of(ASKING)),
        ("no id of the call", of(tool_calls=[{**call, "id": None}]), expected_of(ASKING)),
        ("no type of the call", of(tool_calls=[_missing(call, "type")]), expected_of(ASKING)),
        ("no role", of(role=None), expected_of(ASKING)),
        ("no name of the call", of(tool_calls=[{**call, "function": {"arguments": "{}"}}]), failing("without a name")),
        ("no choices", {**regular, "choices": []}, failing("no choices")),
        ("choices null", {**regular, "choices": None}, failing("no choices")),
        ("no message", {**regular, "choices": [{"index": 0, "finish_reason": "stop"}]}, failing()),
        (
            "a delta for the message",
            {**regular, "choices": [{"index": 0, "delta": message, "finish_reason": "tool_calls"}]},
            expected_of(ASKING),
        ),
        ("finish reason null", {**regular, "choices": [{**choice, "finish_reason": None}]}, expected_of(ASKING)),
        ("finish reason error", {**regular, "choices": [{**choice, "finish_reason": "error"}]}, failing()),
        (
            "finish reason MAX_TOKENS",
            {**regular, "choices": [{**choice, "finish_reason": "MAX_TOKENS"}]},
            expected_of(ASKING, finish="length"),
        ),
        ("no id", {**regular, "id": None}, expected_of(ASKING)),
        (
            "an error beside choices",
            {**regular, "error": {"message": "Overloaded.", "code": 503}},
            failing("Overloaded"),
        ),
        ("a null error beside choices", {**regular, "error": None}, expected_of(ASKING)),
    ):
        yield whole(name, CHAT, value, expected)
