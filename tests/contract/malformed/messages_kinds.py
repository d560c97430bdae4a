"""Malformed streams of Messages servers."""

from __future__ import annotations

from collections.abc import Iterator

from .kinds import Expected, Malformed, expected_of, failing, streamed, whole
from .regular import (
    ASKING,
    CLOCK,
    DONE,
    HELLO,
    OSLO,
    PARALLEL,
    PARIS,
    WORDS,
    Call,
    ReplyContent,
    Value,
    grown,
    message_end,
    message_start,
    messages_body,
    messages_stream,
    opened,
    stopped,
    text_block,
    thought_block,
    use,
    use_block,
)

MESSAGES = "messages"
Kinds = dict[str, tuple[list[Value], ReplyContent | Expected]]
PAIR = ReplyContent(calls=(PARIS, OSLO))
ONE = ReplyContent(calls=(PARIS,))
START = message_start()
# Unknown members are forwarded, because the dialect evolves.
_FLAWS = {"unknown events": ("unknown type",), "unknown deltas": ("unknown type",)}


def kinds() -> Iterator[Malformed]:
    for name, (values, expected) in (_inputs() | _blocks() | _ends() | _starts() | _others()).items():
        yield streamed(name, MESSAGES, values, expected, _FLAWS.get(name, ()))
    yield from _bodies()


def _inputs() -> Kinds:
    """Where the arguments of a call are."""
    end = message_end("tool_use")
    paris = {"location": "Paris"}
    clock = ReplyContent(calls=(CLOCK,))
    blank = ReplyContent(calls=(CLOCK._replace(pieces=(" {}",)),))
    json_of = "input_json_delta"

    def block(start: Value, *deltas: Value) -> list[Value]:
        return [START, opened(0, start), *deltas, stopped(0), *end]

    pieces = [grown(0, json_of, one) for one in PARIS.pieces]
    tight = ReplyContent(calls=(PARIS._replace(pieces=('{"location":"Paris"}',)),))
    no_input = {key: item for key, item in use(CLOCK).items() if key != "input"}
    return {
        "H010 the input in the start": (block(use(PARIS, input=paris)), tight),
        "H010 the input in the start and an empty delta": (
            block(use(PARIS, input=paris), grown(0, json_of, "")),
            tight,
        ),
        "H010 the input in the start and in the deltas": (block(use(PARIS, input=paris), *pieces), ONE),
        "the input in the start as text": (block(use(PARIS, input=PARIS.raw)), ONE),
        "the input in the start as an empty text": (block(use(PARIS, input=""), *pieces), ONE),
        "the input in the start null": (block(use(PARIS, input=None), *pieces), ONE),
        "H011 no input in the start": (block(no_input), clock),
        "H011 no input in the start, and deltas": (block({**no_input, "name": PARIS.name}, *pieces), ONE),
        "H012 no deltas": (block(use(CLOCK)), clock),
        "H012 one empty delta": (block(use(CLOCK), grown(0, json_of, "")), clock),
        "H012 a delta of blanks": (block(use(CLOCK), grown(0, json_of, " ")), blank),
        "a delta as an object": (block(use(PARIS), grown(0, json_of, paris)), tight),
        "a delta null": (block(use(PARIS), grown(0, json_of, None), *pieces), ONE),
        "a delta with more members": (
            block(use(PARIS), *({**one, "delta": {**one["delta"], "snapshot": {}}} for one in pieces)),
            ONE,
        ),
        "deltas without a type": (
            block(use(PARIS), *({**one, "delta": {"partial_json": one["delta"]["partial_json"]}} for one in pieces)),
            ONE,
        ),
        "no name": (block(use(PARIS, name=None), *pieces), failing("without a name")),
        "an empty name": (block(use(PARIS, name=""), *pieces), failing("without a name")),
        "no id": (block(use(PARIS, id=None), *pieces), ONE),
        "H015 a full copy behind the stop": (
            [START, *use_block(0, PARIS), grown(0, json_of, PARIS.raw), *end],
            ONE,
        ),
        "a fragment behind the stop": (
            [START, opened(0, use(PARIS)), pieces[0], stopped(0), pieces[1], *end],
            failing(),
        ),
    }


def _blocks() -> Kinds:
    """Indices: which block a delta belongs to."""
    json_of = "input_json_delta"
    (a, b), (c, d) = PARIS.pieces, OSLO.pieces
    end = message_end("tool_use")
    regular = messages_stream(PARALLEL)
    two_open = [START, opened(0, use(PARIS)), opened(1, use(OSLO))]
    two_open += [grown(0, json_of, a), grown(1, json_of, c), grown(0, json_of, b), grown(1, json_of, d)]
    text = text_block(0, WORDS)

    def reindexed(index: object) -> list[Value]:
        return [{**one, "index": index} if "index" in one else one for one in regular]

    return {
        "no stop of a block": ([one for one in regular if one["type"] != "content_block_stop"], PARALLEL),
        "no stop of the last block": ([one for one in regular if one != stopped(3)], PARALLEL),
        "a stop twice": ([START, *text, stopped(0), *message_end()], HELLO),
        "a stop of another block": ([START, *text[:-1], stopped(7), stopped(0), *message_end()], HELLO),
        "two blocks open at once": ([*two_open, stopped(0), stopped(1), *end], PAIR),
        "two blocks open at once, stopped backwards": ([*two_open, stopped(1), stopped(0), *end], PAIR),
        "text and call open at once": (
            [
                START,
                text[0],
                opened(1, use(PARIS)),
                text[1],
                grown(1, json_of, a),
                text[2],
                grown(1, json_of, b),
                stopped(0),
                stopped(1),
                *end,
            ],
            ASKING,
        ),
        "all indices zero": (reindexed(0), PARALLEL),
        "no indices": ([{key: item for key, item in one.items() if key != "index"} for one in regular], PARALLEL),
        "indices null": (reindexed(None), PARALLEL),
        "indices from one": (
            [{**one, "index": one["index"] + 1} if "index" in one else one for one in regular],
            PARALLEL,
        ),
        "indices with gaps": (
            [{**one, "index": one["index"] * 5} if "index" in one else one for one in regular],
            PARALLEL,
        ),
        "indices as words": (
            [{**one, "index": str(one["index"])} if "index" in one else one for one in regular],
            PARALLEL,
        ),
        "an index twice": ([START, *use_block(0, PARIS), *use_block(0, OSLO), *end], PAIR),
        "no start of a text block": ([START, *text[1:], *message_end()], HELLO),
        "no start of a text block behind a call": (
            [START, *use_block(0, PARIS), grown(1, "text_delta", "Let me look."), stopped(1), *end],
            ASKING,
        ),
        "no start of a call's block": ([START, *text, *use_block(1, PARIS)[1:], *end], failing()),
        "text deltas in a call's block": (
            [
                START,
                opened(0, use(PARIS)),
                grown(0, json_of, a),
                grown(0, "text_delta", "Let me look."),
                grown(0, json_of, b),
                stopped(0),
                *end,
            ],
            ASKING,
        ),
        "text in the start of its block": (
            [
                START,
                opened(0, {"type": "text", "text": WORDS[0]}),
                grown(0, "text_delta", WORDS[1]),
                stopped(0),
                *message_end(),
            ],
            HELLO,
        ),
        "an empty text block": ([START, *text_block(0, ()), *text_block(1, WORDS), *message_end()], HELLO),
        "a block that is null": (
            [START, {**opened(0, {}), "content_block": None}, stopped(0), *text_block(1, WORDS), *message_end()],
            HELLO,
        ),
    }


def _ends() -> Kinds:
    regular = messages_stream(ASKING)
    begun = regular[:-2]
    delta, stop = message_end("tool_use")
    half = [START, *text_block(0, WORDS), opened(1, use(PARIS)), grown(1, "input_json_delta", '{"location": "Pa')]
    cut_call = Call("get_weather", ('{"location": "Pa',))
    more = text_block(1, (" More.",))
    longer = ReplyContent((*WORDS, " More."))
    hello = [START, *text_block(0, WORDS)]
    found: Kinds = {
        "no message_delta": ([*begun, stop], expected_of(ASKING, usage=None)),
        "no message_stop": ([*begun, delta], ASKING),
        "no stop reason": ([*begun, *message_end(None)], ASKING),
        "no stop reason and half a call": ([*half, *message_end(None)], failing()),
        "no message_delta and half a call": ([*half, stop], failing()),
        "half a block and tool_use": ([*half, delta, stop], failing()),
        "half a block and max_tokens": (
            [*half, *message_end("max_tokens")],
            expected_of(ReplyContent(WORDS, (cut_call,), finish="length")),
        ),
        "half a stopped block and max_tokens": (
            [*half, stopped(1), *message_end("max_tokens")],
            expected_of(ReplyContent(WORDS, (cut_call,), finish="length")),
        ),
        "one mark behind the end": ([*regular, DONE], ASKING),
        "a mark for message_stop": ([*begun, delta, DONE], ASKING),
        "a mark for the end": ([*begun, DONE], failing()),
        "message_delta twice": ([*begun, delta, delta, stop], ASKING),
        "message_delta before the blocks": ([START, message_end("tool_use")[0], *begun[1:], delta, stop], ASKING),
        "H029 blocks behind message_delta": ([*hello, message_end()[0], *more, *message_end()], longer),
        "H029 blocks behind message_delta, none at the end": ([*hello, message_end()[0], *more, stop], longer),
        "H029 blocks behind message_delta, then a clean end": ([*hello, message_end()[0], *more], failing()),
        "H029 a call behind message_delta": (
            [*hello, message_end()[0], *use_block(1, PARIS), *message_end("end_turn")],
            ASKING,
        ),
        "message_stop twice": ([*regular, stop], ASKING),
        "stop_sequence null left out": ([*begun, {**delta, "delta": {"stop_reason": "tool_use"}}, stop], ASKING),
        "a null delta": ([*begun, {**delta, "delta": None}, stop], ASKING),
    }
    for word, reason in {
        "stop": "stop",
        "length": "length",
        "MAX_TOKENS": "length",
        "max_output_tokens": "length",
        "content_filter": "refused",
        "whatever": "stop",
        "model_context_window_exceeded": "length",
    }.items():
        found[f"stop reason {word}"] = ([*hello, *message_end(word)], expected_of(HELLO, finish=reason, refusal=None))
    for word in ("tool_calls", "stop", "end_turn", "whatever"):
        found[f"stop reason {word} behind a call"] = ([*begun, *message_end(word)], ASKING)
    found["stop reason error"] = ([*hello, *message_end("error")], failing())
    return found


def _starts() -> Kinds:
    regular = messages_stream(ASKING)
    body = regular[1:]
    none = expected_of(ASKING, usage=None)
    begin = message_start()
    return {
        "no message_start": (body, none),
        "message_start twice": ([START, *regular], ASKING),
        "message_start in between": ([*regular[:4], START, *regular[4:]], ASKING),
        "message_start without an id": ([message_start(id=None), *body], ASKING),
        "message_start without a model": ([message_start(model=None), *body], ASKING),
        "message_start without usage": ([message_start(usage=None), *body], none),
        "message_start without content": ([message_start(content=None), *body], ASKING),
        "message_start with content": ([message_start(content=[{"type": "text", "text": ""}]), *body], ASKING),
        "message_start with a stop reason": ([message_start(stop_reason="tool_use"), *body], ASKING),
        "message_start with a null message": ([{**begin, "message": None}, *body], none),
        "usage only in the end": (
            [
                message_start(usage={}),
                *body[:-2],
                *message_end("tool_use", usage={"input_tokens": 9, "output_tokens": 5}),
            ],
            ASKING,
        ),
        "usage only in the start": (
            [
                message_start(usage={"input_tokens": 9, "output_tokens": 5}),
                *body[:-2],
                *message_end("tool_use", usage=None),
            ],
            ASKING,
        ),
        "H144 no input tokens in the start": (
            [
                message_start(usage={"input_tokens": 0, "output_tokens": 0}),
                *body[:-2],
                *message_end("tool_use", usage={"input_tokens": 9, "output_tokens": 5}),
            ],
            ASKING,
        ),
        "no usage anywhere": ([message_start(usage=None), *body[:-2], *message_end("tool_use", usage=None)], none),
    }


def _others() -> Kinds:
    regular = messages_stream(ASKING)
    ping = {"type": "ping"}
    unknown = {"type": "content_block_reticulated", "index": 0}
    thoughts = ReplyContent(WORDS, reasoning=("Let me think.",))
    end = message_end()
    text = text_block(1, WORDS)
    thought = thought_block(0, ("Let me think.",))
    signed = [*thought[:-2], *(grown(0, "signature_delta", one) for one in ("c2", "ln")), stopped(0)]
    search = [
        opened(1, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        grown(1, "input_json_delta", '{"query": "Paris"}'),
        stopped(1),
        opened(2, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        stopped(2),
    ]
    odd_delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "sparkle_delta", "sparkle": "*"}}
    redacted = [opened(0, {"type": "redacted_thinking", "data": "c2VjcmV0"}), stopped(0)]
    return {
        "pings everywhere": ([found for one in regular for found in (ping, one)], ASKING),
        "unknown events": ([found for one in regular for found in (one, unknown)][:-1], ASKING),
        "unknown deltas": ([START, *text_block(0, WORDS)[:2], odd_delta, *text_block(0, WORDS)[2:], *end], HELLO),
        "H081 a signature in pieces": ([START, *signed, *text, *end], thoughts),
        "a thought without a signature": ([START, *thought[:-2], stopped(0), *text, *end], thoughts),
        "a signature alone": ([START, thought[0], *thought[-2:], *text, *end], HELLO),
        "redacted thinking": ([START, *redacted, *text, *end], HELLO),
        "a thought behind the text": (
            [START, *text_block(0, WORDS), *thought_block(1, ("Let me think.",)), *end],
            thoughts,
        ),
        "a hosted tool": ([START, *text_block(0, WORDS[:1]), *search, *text_block(3, WORDS[1:]), *end], HELLO),
        "tool_use, then text": ([START, *use_block(0, PARIS), *text_block(1, WORDS), *message_end("tool_use")], ASKING),
    }


def _bodies() -> Iterator[Malformed]:
    regular = messages_body(ASKING)
    text, call = regular["content"]
    bare = {key: item for key, item in call.items() if key != "input"}
    clock = expected_of(ReplyContent(WORDS, (CLOCK,)))
    for name, value, expected in (
        ("no id of the call", {**regular, "content": [text, {**call, "id": None}]}, expected_of(ASKING)),
        ("no name", {**regular, "content": [text, {**call, "name": None}]}, failing("without a name")),
        ("no input", {**regular, "content": [text, {**bare, "name": "get_time"}]}, clock),
        ("input null", {**regular, "content": [text, {**call, "name": "get_time", "input": None}]}, clock),
        ("input as text", {**regular, "content": [text, {**call, "input": PARIS.raw}]}, expected_of(ASKING)),
        ("content null", {**regular, "content": None}, failing("no content")),
        ("content as words", {**regular, "content": "Let me look.", "stop_reason": "end_turn"}, expected_of(HELLO)),
        ("nulls for blocks", {**regular, "content": [None, text, None, call]}, expected_of(ASKING)),
        ("stop reason null", {**regular, "stop_reason": None}, expected_of(ASKING)),
        ("stop reason length", {**regular, "stop_reason": "length"}, expected_of(ASKING, finish="length")),
        ("no id", {**regular, "id": None}, expected_of(ASKING)),
        ("no role", {**regular, "role": None}, expected_of(ASKING)),
        (
            "an error beside content",
            {**regular, "error": {"type": "api_error", "message": "Overloaded."}},
            failing("Overloaded"),
        ),
    ):
        yield whole(name, MESSAGES, value, expected)
