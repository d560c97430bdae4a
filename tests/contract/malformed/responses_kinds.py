"""Malformed streams of Responses servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
    call_events,
    call_item,
    message_events,
    message_item,
    numbered,
    resource,
    responses_begin,
    responses_body,
    responses_end,
    responses_items,
    responses_stream,
    thought_events,
    thought_item,
)

RESPONSES = "responses"
Kinds = dict[str, tuple[list[Value], ReplyContent | Expected]]
PAIR = ReplyContent(calls=(PARIS, OSLO))
# Unknown events are forwarded, because the dialect evolves; the judge does not know them or their sequence numbers.
_UNKNOWN = ("is not in the official union", "sequence_number", " after ")
_FLAWS = {"unknown events": _UNKNOWN, "an end by another name": _UNKNOWN}


def kinds() -> Iterator[Malformed]:
    for name, (values, expected) in (_items() | _events() | _ends() | _finals() | _thoughts()).items():
        yield streamed(name, RESPONSES, values, expected, _FLAWS.get(name, ()))
    yield from _bodies()


def _edited(values: list[Value], change: Callable[[Value], Value | None]) -> list[Value]:
    """The events after change(); None drops one. Sequence numbers stay consecutive."""
    kept = [found for value in values if (found := change(dict(value))) is not None]
    return numbered([{key: item for key, item in one.items() if key != "sequence_number"} for one in kept])


def _leaving_out(values: list[Value], *kinds: str) -> list[Value]:
    return _edited(values, lambda value: None if value["type"].removeprefix("response.") in kinds else value)


def _with(values: list[Value], **members: Any) -> list[Value]:
    """Sets these members in every event that has them; None removes them."""

    def change(value: Value) -> Value:
        found = {**value, **{key: item for key, item in members.items() if key in value}}
        return {key: item for key, item in found.items() if item is not None or key not in members}

    return _edited(values, change)


def _in_items(values: list[Value], kinds: tuple[str, ...], **members: Any) -> list[Value]:
    """The same for the items in these events."""

    def change(value: Value) -> Value:
        if value["type"].removeprefix("response.") not in kinds:
            return value
        item = {**value["item"], **{key: found for key, found in members.items() if key in value["item"]}}
        return {**value, "item": {key: found for key, found in item.items() if found is not None}}

    return _edited(values, change)


def _bare(values: list[Value]) -> list[Value]:
    """The final object has no items."""
    return _edited(values, _emptied)


def _emptied(value: Value) -> Value:
    if value["type"] != "response.completed":
        return value
    return {**value, "response": {**value["response"], "output": []}}


def _items() -> Kinds:
    """Identity of items: ids and indices, and where they appear."""
    regular = responses_stream(PARALLEL)
    added, done = ("output_item.added",), ("output_item.done",)
    changing = [
        {**value, "item_id": f"x{place}"} if "item_id" in value else value for place, value in enumerate(regular)
    ]
    fresh = [
        {**value, "item": {**value["item"], "id": f"y{place}"}} if "item" in value else value
        for place, value in enumerate(changing)
    ]
    pair = [*responses_begin(), *call_events(0, PARIS)[:2], *call_events(1, OSLO)[:2]]
    pair += [*call_events(0, PARIS)[2:], *call_events(1, OSLO)[2:]]
    zero = [{**value, "output_index": 0} if "output_index" in value else value for value in pair]
    ends = responses_end([call_item(PARIS, 0), call_item(OSLO, 1)])
    return {
        "no id of an added item": (_in_items(regular, added, id=None), PARALLEL),
        "no id of any item": (_in_items(regular, added + done, id=None), PARALLEL),
        "H006 call_id only in done": (_in_items(regular, added, call_id=None), PARALLEL),
        "H006 call_id only in added": (_in_items(regular, done, call_id=None), PARALLEL),
        "H006 no call_id": (_in_items(regular, added + done, call_id=None), PARALLEL),
        "call_id empty": (_in_items(regular, added + done, call_id=""), PARALLEL),
        "name only in done": (_in_items(regular, added, name=None), PARALLEL),
        "H001 all output indices zero": (_with(regular, output_index=0), PARALLEL),
        "H001 all output indices zero, nothing in the end": (_bare(_with(regular, output_index=0)), PARALLEL),
        "H001 all output indices zero, interleaved": (numbered([*zero, *ends]), PAIR),
        "interleaved calls": (numbered([*pair, *ends]), PAIR),
        "no output index": (_with(regular, output_index=None), PARALLEL),
        "no output index, nothing in the end": (_bare(_with(regular, output_index=None)), PARALLEL),
        "output indices as words": (_bare(_with(regular, output_index="0")), PARALLEL),
        "output indices from seven": (
            _edited(
                regular, lambda one: {**one, "output_index": one["output_index"] + 7} if "output_index" in one else one
            ),
            PARALLEL,
        ),
        "no item_id": (_with(regular, item_id=None), PARALLEL),
        "another item_id each time": (changing, PARALLEL),
        "another id of the item each time": (fresh, PARALLEL),
        "another id of the item each time, nothing in the end": (_bare(fresh), PARALLEL),
        "no content_index": (_with(regular, content_index=None), PARALLEL),
        "done without added": (_leaving_out(regular, "output_item.added"), PARALLEL),
        "done without added, nothing in the end": (_bare(_leaving_out(regular, "output_item.added")), PARALLEL),
        "added without done": (_leaving_out(regular, "output_item.done"), PARALLEL),
        "added without done, nothing in the end": (_bare(_leaving_out(regular, "output_item.done")), PARALLEL),
        "added twice": (_edited_twice(regular, "output_item.added"), PARALLEL),
        "done twice": (_edited_twice(regular, "output_item.done"), PARALLEL),
        "a call without a name": (_in_items(_bare(regular), added + done, name=None), failing("without a name")),
    }


def _edited_twice(values: list[Value], kind: str) -> list[Value]:
    found: list[Value] = []
    for value in values:
        found += [value, value] if value["type"] == f"response.{kind}" else [value]
    return _edited(found, lambda value: value)


def _events() -> Kinds:
    """Events that are missing, duplicate or undocumented."""
    regular = responses_stream(PARALLEL)
    arguments = "function_call_arguments"
    unknown = {"type": "response.reticulating_splines", "output_index": 0, "item_id": "msg_0"}
    ping = {"type": "ping", "cost": "0"}
    no_types = [{key: item for key, item in value.items() if key != "type"} for value in regular]
    custom = _edited(
        regular, lambda value: {**value, "type": value["type"].replace(arguments, "custom_tool_call_input")}
    )
    return {
        "only deltas": (
            _leaving_out(regular, f"{arguments}.done", "output_text.done", "content_part.done", "content_part.added"),
            PARALLEL,
        ),
        "no deltas": (_leaving_out(regular, f"{arguments}.delta", "output_text.delta"), PARALLEL),
        "no deltas, nothing in the end": (
            _bare(_leaving_out(regular, f"{arguments}.delta", "output_text.delta")),
            PARALLEL,
        ),
        "arguments only in arguments.done": (
            _bare(_in_items(_leaving_out(regular, f"{arguments}.delta"), ("output_item.done",), arguments="")),
            PARALLEL,
        ),
        "arguments only in the item's end": (
            _bare(_leaving_out(regular, f"{arguments}.delta", f"{arguments}.done")),
            PARALLEL,
        ),
        "arguments only in the end": (
            _leaving_out(regular, f"{arguments}.delta", f"{arguments}.done", "output_item.done"),
            PARALLEL,
        ),
        "arguments already in added": (
            [*_begun_with_arguments(), *responses_end(responses_items(ReplyContent(calls=(PARIS,))))],
            ReplyContent(calls=(PARIS,)),
        ),
        "no arguments in the item's end": (_in_items(_bare(regular), ("output_item.done",), arguments=""), PARALLEL),
        "H012 a call without any arguments": (
            _bare(
                _in_items(
                    _leaving_out(
                        responses_stream(ReplyContent(calls=(CLOCK,))), f"{arguments}.delta", f"{arguments}.done"
                    ),
                    ("output_item.done",),
                    arguments="",
                )
            ),
            ReplyContent(calls=(CLOCK,)),
        ),
        "no content_part events": (_leaving_out(regular, "content_part.added", "content_part.done"), PARALLEL),
        "no response.created": (_leaving_out(regular, "created", "in_progress"), PARALLEL),
        "response.created twice": (_edited_twice(regular, "created"), PARALLEL),
        "deltas twice over in done": (_edited_twice(regular, "output_text.done"), PARALLEL),
        "H007 custom events for functions": (custom, PARALLEL),
        "no sequence numbers": (
            [{key: item for key, item in one.items() if key != "sequence_number"} for one in regular],
            PARALLEL,
        ),
        "sequence numbers all zero": ([{**one, "sequence_number": 0} for one in regular], PARALLEL),
        "sequence numbers from one": (
            [{**one, "sequence_number": one["sequence_number"] + 1} for one in regular],
            PARALLEL,
        ),
        "sequence numbers with gaps": (
            [{**one, "sequence_number": one["sequence_number"] * 3} for one in regular],
            PARALLEL,
        ),
        "sequence numbers as words": (
            [{**one, "sequence_number": str(one["sequence_number"])} for one in regular],
            PARALLEL,
        ),
        "unknown events": (
            numbered([*_bare_numbers(regular[:4]), unknown, ping, *_bare_numbers(regular[4:])]),
            PARALLEL,
        ),
        "no types": (no_types, failing()),
        "a null response in created": (
            _edited(regular, lambda one: {**one, "response": None} if one["type"] == "response.created" else one),
            PARALLEL,
        ),
        "an item that is null": (
            numbered(
                [
                    *_bare_numbers(regular[:2]),
                    {"type": "response.output_item.added", "output_index": 9, "item": None},
                    *_bare_numbers(regular[2:]),
                ]
            ),
            PARALLEL,
        ),
        "a part opened twice": (_edited_twice(regular, "content_part.added"), PARALLEL),
    }


def _bare_numbers(values: list[Value]) -> list[Value]:
    return [{key: item for key, item in value.items() if key != "sequence_number"} for value in values]


def _begun_with_arguments() -> list[Value]:
    """Some servers send a complete call and then its deltas."""
    events = call_events(0, PARIS)
    events[0] = {**events[0], "item": call_item(PARIS, 0)}
    return [*responses_begin(), *events]


def _ends() -> Kinds:
    """The final event."""
    regular = responses_stream(ASKING)
    begun, final = regular[:-1], regular[-1]["response"]
    cut_call = Call("get_weather", ('{"location": "Pa',))
    half = numbered([*responses_begin(), *message_events(0, WORDS), *call_events(1, cut_call)[:2]])

    def end(kind: str, **members: Any) -> Value:
        return {"type": f"response.{kind}", "sequence_number": len(begun), "response": {**final, **members}}

    error = {"code": "server_error", "message": "Overloaded."}
    length = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {
        "completed twice": ([*regular, regular[-1]], ASKING),
        "a mark for the end": ([*begun, DONE], failing()),
        "one mark behind the end": ([*regular, DONE], ASKING),
        "no status in completed": ([*begun, end("completed", status=None)], ASKING),
        "status in_progress in completed": ([*begun, end("completed", status="in_progress")], ASKING),
        "no usage in completed": ([*begun, end("completed", usage=None)], expected_of(ASKING, usage=None)),
        "a null response in completed": (
            [*begun, {**end("completed"), "response": None}],
            expected_of(ASKING, usage=None),
        ),
        "status incomplete in completed": ([*begun, end("completed", **length)], expected_of(ASKING, finish="length")),
        "no status in incomplete": ([*begun, end("incomplete", status=None)], expected_of(ASKING, finish="length")),
        "no details in incomplete": (
            [*begun, end("incomplete", status="incomplete", incomplete_details=None)],
            expected_of(ASKING, finish="length"),
        ),
        "an unknown reason in incomplete": (
            [*begun, end("incomplete", status="incomplete", incomplete_details={"reason": "tired"})],
            expected_of(ASKING, finish="length"),
        ),
        "an error in completed": ([*begun, end("completed", status="failed", error=error)], failing("Overloaded")),
        "failed": ([*begun, end("failed", status="failed", error=error)], failing("Overloaded")),
        "failed without an error": ([*begun, end("failed", status="failed")], failing()),
        "failed in mid-call": ([*half, end("failed", status="failed", error=error)], failing("Overloaded")),
        "cancelled": ([*begun, end("cancelled", status="cancelled")], failing()),
        "an end by another name": ([*begun, end("done")], failing()),
        "half a call and completed": (
            [*half, {**end("completed", output=[]), "sequence_number": len(half)}],
            failing(),
        ),
        "half a call and incomplete": (
            [*half, {**end("incomplete", output=[], **length), "sequence_number": len(half)}],
            expected_of(ReplyContent(WORDS, (cut_call,), finish="length")),
        ),
        "queued first": (
            _edited(regular, lambda one: {**one, "type": one["type"].replace("in_progress", "queued")}),
            ASKING,
        ),
    }


def _finals() -> Kinds:
    """A final object that differs from the streamed items."""
    regular = responses_stream(PARALLEL)
    items = responses_items(PARALLEL)
    text = responses_stream(HELLO)
    renamed = [{**item, "id": f"z{place}"} for place, item in enumerate(items)]
    return {
        "nothing in the end": (_bare(regular), PARALLEL),
        "no output in the end": ([*regular[:-1], _without_output(regular[-1])], PARALLEL),
        "more in the end than was streamed": (
            [*text[:-1], {**text[-1], "response": resource("completed", items)}],
            PARALLEL,
        ),
        "everything only in the end": (numbered([*responses_begin(), *responses_end(items)]), PARALLEL),
        "only the end": (numbered(responses_end(items)), PARALLEL),
        "other ids in the end": (
            [*regular[:-1], {**regular[-1], "response": resource("completed", renamed)}],
            PARALLEL,
        ),
        "another order in the end": (
            [*regular[:-1], {**regular[-1], "response": resource("completed", items[::-1])}],
            PARALLEL,
        ),
        "no ids in the end": (
            [
                *regular[:-1],
                {
                    **regular[-1],
                    "response": resource(
                        "completed", [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in items]
                    ),
                },
            ],
            PARALLEL,
        ),
        "only the calls in the end": (
            [*regular[:-1], {**regular[-1], "response": resource("completed", items[1:])}],
            PARALLEL,
        ),
        "nulls in the end": (
            [*regular[:-1], {**regular[-1], "response": resource("completed", [None, *items])}],
            PARALLEL,
        ),  # type: ignore[list-item] # malformed
    }


def _without_output(value: Value) -> Value:
    return {**value, "response": {key: item for key, item in value["response"].items() if key != "output"}}


def _thoughts() -> Kinds:
    thoughts = ("Hm. ", "Well.")
    words = ReplyContent(WORDS, reasoning=thoughts)
    regular = responses_stream(words)
    first, second = thought_events(0, thoughts)[1:5], thought_events(0, thoughts)[5:9]
    added, done = thought_events(0, thoughts)[0], thought_events(0, thoughts)[-1]
    message = message_events(1, WORDS)
    end = responses_end([thought_item(thoughts, 0), message_item("".join(WORDS), 1)])
    place = {"item_id": "rs_0", "output_index": 0, "content_index": 0}
    plain = [
        added,
        {"type": "response.reasoning_text.delta", **place, "delta": "Hm. Well."},
        {"type": "response.reasoning_text.done", **place, "text": "Hm. Well."},
    ]
    plain_item = {
        "type": "reasoning",
        "id": "rs_0",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm. Well."}],
    }
    behind = [*responses_begin(), *message_events(0, WORDS), *thought_events(1, thoughts)]
    backwards = expected_of(words, reasoning=None)
    return {
        "summary parts out of order": (
            numbered([*responses_begin(), added, *second, *first, done, *message, *end]),
            backwards,
        ),
        "no summary part events": (
            _leaving_out(regular, "reasoning_summary_part.added", "reasoning_summary_part.done"),
            words,
        ),
        "no summary_index": (_with(_bare(regular), summary_index=None), words),
        "plain thoughts without a part": (
            numbered(
                [
                    *responses_begin(),
                    *plain,
                    {**done, "item": plain_item},
                    *message,
                    *responses_end([plain_item, message_item("".join(WORDS), 1)]),
                ]
            ),
            words,
        ),
        "thoughts only in the item's end": (
            _bare(
                _leaving_out(
                    regular,
                    *(f"reasoning_summary_{one}" for one in ("part.added", "part.done", "text.delta", "text.done")),
                )
            ),
            words,
        ),
        "thoughts behind the text": (
            numbered([*behind, *responses_end([message_item("".join(WORDS), 0), thought_item(thoughts, 1)])]),
            words,
        ),
        "thoughts without an end": (_leaving_out(_bare(regular), "output_item.done"), words),
        "an item with a null summary": (
            _edited(
                regular,
                lambda one: (
                    {**one, "item": {**one["item"], "summary": None}}
                    if one["type"].endswith("item.added") and one["item"]["type"] == "reasoning"
                    else one
                ),
            ),
            words,
        ),
    }


def _bodies() -> Iterator[Malformed]:
    regular = responses_body(ASKING)
    message, call = regular["output"]
    error = {"code": "server_error", "message": "Overloaded."}
    bare = {key: item for key, item in call.items() if key != "arguments"}
    clock = expected_of(ReplyContent(WORDS, (CLOCK,)))
    for name, value, expected in (
        ("no ids of items", {**regular, "output": [{**message, "id": None}, {**call, "id": ""}]}, expected_of(ASKING)),
        ("no call_id", {**regular, "output": [message, {**call, "call_id": None}]}, expected_of(ASKING)),
        ("equal ids of items", {**regular, "output": [message, {**call, "id": "msg_0"}]}, expected_of(ASKING)),
        ("no name", {**regular, "output": [message, {**call, "name": None}]}, failing("without a name")),
        ("no arguments", {**regular, "output": [message, {**bare, "name": "get_time"}]}, clock),
        (
            "arguments as an object",
            {**regular, "output": [message, {**call, "arguments": {"location": "Paris"}}]},
            expected_of(ASKING, calls=(("get_weather", '{"location":"Paris"}'),)),
        ),
        ("no output", {**regular, "output": None}, failing("no output")),
        ("no status", {**regular, "status": None}, expected_of(ASKING)),
        ("status failed", {**regular, "status": "failed", "error": error}, failing("Overloaded")),
        ("status cancelled", {**regular, "status": "cancelled"}, failing()),
        ("an error beside output", {**regular, "error": error}, failing("Overloaded")),
        ("status in_progress", {**regular, "status": "in_progress"}, failing()),
        ("nulls for items", {**regular, "output": [None, message, None, call]}, expected_of(ASKING)),
        ("content null", {**regular, "output": [{**message, "content": None}, call]}, expected_of(ASKING, text="")),
        (
            "content as words",
            {**regular, "output": [{**message, "content": "Let me look."}, call]},
            expected_of(ASKING),
        ),
        (
            "text for output_text",
            {**regular, "output": [{**message, "content": [{"type": "text", "text": "Let me look."}]}, call]},
            expected_of(ASKING),
        ),
        ("no id", {**regular, "id": None}, expected_of(ASKING)),
    ):
        yield whole(name, RESPONSES, value, expected)
