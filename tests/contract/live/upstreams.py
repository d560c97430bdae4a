"""The same answer as back ends of each dialect stream it, with their mistakes, and what was received after each frame."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tests.dialects.upstream_events import (
    DONE,
    call,
    chunk,
    event,
    gemini_call,
    gemini_chunk,
    json_delta,
    message_start,
    sse,
    text_delta,
    tool_use,
    usage_chunk,
)
from tests.dialects.upstream_events import response as response_object
from toolwire.wire.exact_json import encode

from .script import Call, Frame, Part, Recorder, Words

ROLE = {"role": "assistant", "content": ""}


class Manner(NamedTuple):
    """How a Chat Completions server marks which call a fragment belongs to, and how it ends the stream."""

    index: Literal["right", "absent", "zero"] = "right"
    ids: Literal["first", "every", "absent"] = "first"
    order: Literal["sequential", "interleaved"] = "sequential"
    has_bare_header: bool = True  # the first fragment has no arguments
    is_legacy: bool = False  # function_call instead of tool_calls
    has_finish: bool = True
    has_mark: bool = True

    @property
    def is_decidable(self) -> bool:
        """Whether the stream determines which call each fragment belongs to."""
        if self.is_legacy:
            return self.order == "sequential" and (self.index, self.ids) == ("zero", "absent")
        return self.order == "sequential" or self.index == "right" or self.ids == "every"

    @property
    def is_whole(self) -> bool:
        """Whether the stream marks the answer as complete."""
        return self.has_finish or self.has_mark


def chat(items: Sequence[Words | Call], manner: Manner) -> list[Frame]:
    writer = _Chat(manner)
    writer.recorder.frame(chunk(ROLE))
    for group in _groups(items, manner):
        writer.play(group)
    return writer.ended()


def _groups(items: Sequence[Words | Call], manner: Manner) -> list[list[Words | Call]]:
    """Parts that are streamed at the same time: interleaved parallel calls, else one part after the other."""
    groups: list[list[Words | Call]] = []
    for item in items:
        is_parallel = manner.order == "interleaved" and isinstance(item, Call)
        if is_parallel and groups and isinstance(groups[-1][-1], Call):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _in_turn(steps: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """Round-robin over the iterators."""
    waiting = deque(steps)
    while waiting:
        one = waiting.popleft()
        for step in one:
            yield step
            waiting.append(one)
            break


class _Chat:
    def __init__(self, manner: Manner) -> None:
        self.recorder = Recorder()
        self._manner = manner
        self._calls = 0

    def play(self, group: list[Words | Call]) -> None:
        for part, text, delta in _in_turn(
            self._text(item) if isinstance(item, Words) else self._call(item) for item in group
        ):
            self.recorder.grow(part, text)
            self.recorder.frame(chunk(delta))

    def ended(self) -> list[Frame]:
        recorder, manner = self.recorder, self._manner
        if manner.has_finish:
            recorder.frame(chunk(finish="tool_calls" if self._calls else "stop"), tells_end=True)
            recorder.frame(usage_chunk(), tells_end=True)
        if manner.has_mark:
            recorder.frame(DONE, tells_end=True)
        return recorder.frames

    def _text(self, words: Words) -> Any:
        part = None
        for piece in words.pieces:
            part = part or self.recorder.begin()
            yield part, piece, {"content": piece}

    def _call(self, item: Call) -> Any:
        manner, number = self._manner, self._calls
        self._calls += 1
        index = {"right": number, "absent": None, "zero": 0}[manner.index]
        pieces = ("", *item.pieces) if manner.has_bare_header else item.pieces
        part = None
        for place, piece in enumerate(pieces):
            is_first = place == 0
            part = part or self.recorder.begin(item.name)
            name = item.name if is_first else None
            has_id = manner.ids == "every" or (manner.ids == "first" and is_first)
            delta = call(index, item.id if has_id else None, name, piece)
            if manner.is_legacy:
                delta = {"function_call": delta["tool_calls"][0]["function"]}
            yield part, piece, delta


def messages(items: Sequence[Words | Call]) -> list[Frame]:
    recorder = Recorder()
    recorder.frame(message_start())
    for index, item in enumerate(items):
        name = item.name if isinstance(item, Call) else ""
        part = recorder.begin(name)
        start = tool_use(item.id, name) if isinstance(item, Call) else {"type": "text", "text": ""}
        recorder.grow(part)
        recorder.frame(event("content_block_start", index=index, content_block=start))
        for piece in item.pieces:
            recorder.grow(part, piece)
            delta = json_delta(piece) if name else text_delta(piece)
            recorder.frame(event("content_block_delta", index=index, delta=delta))
        part.is_closed = True
        recorder.frame(event("content_block_stop", index=index))
    has_calls = any(isinstance(item, Call) for item in items)
    delta = {"stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None}
    recorder.frame(event("message_delta", delta=delta, usage={"output_tokens": 5}), tells_end=True)
    recorder.frame(event("message_stop"), tells_end=True)
    return recorder.frames


def gemini(items: Sequence[Words | Call]) -> list[Frame]:
    recorder = Recorder()
    part: Part | None = None
    for item in items:
        part = recorder.begin(item.name if isinstance(item, Call) else "")
        if isinstance(item, Call):
            recorder.grow(part, encode(json.loads(item.raw)).decode())  # the spelling of an object is not preserved
            part.is_closed = True
            recorder.frame(gemini_chunk(gemini_call(item.id, item.name, json.loads(item.raw))))
            continue
        for piece in item.pieces:
            recorder.grow(part, piece)
            recorder.frame(gemini_chunk({"text": piece}))
    recorder.frame(gemini_chunk({"text": ""}, finish="STOP"), tells_end=True)
    return recorder.frames


class Leaving(NamedTuple):
    """Members that a Responses server omits from its events."""

    item_id: bool = False
    output_index: bool = False
    sequence: bool = False
    part_events: bool = False  # content_part.*, *.done
    item_done: bool = False
    order: Literal["sequential", "interleaved"] = "sequential"

    @property
    def is_decidable(self) -> bool:
        return self.order == "sequential" or not (self.item_id and self.output_index)


def responses(items: Sequence[Words | Call], leaving: Leaving) -> list[Frame]:
    writer = _Responses(leaving)
    manner = Manner(order=leaving.order)
    writer.send("created", response=response_object("in_progress", []))
    for group in _groups(items, manner):
        for _ in _in_turn(writer.item(item) for item in group):
            pass
    writer.send("completed", response=response_object("completed", writer.output), tells_end=True)
    return writer.recorder.frames


class _Responses:
    def __init__(self, leaving: Leaving) -> None:
        self.recorder = Recorder()
        self.output: list[Any] = []
        self._leaving = leaving
        self._number = 0
        self._items = 0

    def send(self, kind: str, *, tells_end: bool = False, **members: Any) -> None:
        leaving = self._leaving
        members = {"sequence_number": self._number, **members}
        self._number += 1
        for key, is_left in (
            ("sequence_number", leaving.sequence),
            ("item_id", leaving.item_id),
            ("output_index", leaving.output_index),
        ):
            if is_left:
                members.pop(key, None)
        kind = f"response.{kind}"
        self.recorder.frame(sse({"type": kind, **members}, kind), tells_end=tells_end)

    def item(self, item: Words | Call) -> Any:
        index = self._items
        self._items += 1
        self.output.append(None)
        return self._call(index, item) if isinstance(item, Call) else self._text(index, item)

    def _text(self, index: int, item: Words) -> Any:
        leaving, recorder, item_id = self._leaving, self.recorder, f"msg_{index}"
        value = {"type": "message", "id": item_id, "role": "assistant", "status": "in_progress", "content": []}
        if leaving.item_id:
            value.pop("id")
        where = {"item_id": item_id, "output_index": index, "content_index": 0}
        whole = {"type": "output_text", "text": "".join(item.pieces), "annotations": [], "logprobs": []}
        self.send("output_item.added", output_index=index, item=value)
        yield None
        part = recorder.begin()
        recorder.grow(part)
        if not leaving.part_events:
            self.send("content_part.added", **where, part={**whole, "text": ""})
            yield None
        for piece in item.pieces:
            recorder.grow(part, piece)
            self.send("output_text.delta", **where, delta=piece, logprobs=[])
            yield None
        if not leaving.part_events:
            self.send("output_text.done", **where, text=whole["text"], logprobs=[])
            self.send("content_part.done", **where, part=whole)
            yield None
        yield self._done(index, part, {**value, "status": "completed", "content": [whole]})

    def _call(self, index: int, item: Call) -> Any:
        leaving, recorder, item_id = self._leaving, self.recorder, f"fc_{index}"
        value = {"type": "function_call", "id": item_id, "call_id": item.id, "name": item.name}
        if leaving.item_id:
            value.pop("id")
        where = {"item_id": item_id, "output_index": index}
        part = recorder.begin(item.name)
        recorder.grow(part)
        opening = {**value, "arguments": "", "status": "in_progress"}
        self.send("output_item.added", output_index=index, item=opening)
        yield None
        for piece in item.pieces:
            recorder.grow(part, piece)
            self.send("function_call_arguments.delta", **where, delta=piece)
            yield None
        if not leaving.part_events:
            self.send("function_call_arguments.done", **where, arguments=item.raw)
            yield None
        yield self._done(index, part, {**value, "arguments": item.raw, "status": "completed"})

    def _done(self, index: int, part: Part, value: Any) -> None:
        self.output[index] = value
        if not self._leaving.item_done:
            part.is_closed = True
            self.send("output_item.done", output_index=index, item=value)
