"""Differential tests of the fast paths: shortcuts give the same result as the general decoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.dialects.codec_harness import ALL, make_request
from tests.dialects.upstream_events import REGULAR, Numbered, chunk, event, gemini_chunk, message_start, sse
from toolwire.dialects import DIALECTS
from toolwire.events import Event, Failed
from toolwire.wire.sse import SseReader

from .live.script import Call, Words
from .live.upstreams import Leaving, Manner, chat, gemini, messages, responses
from .malformed.catalogue import catalogue

SAID = [Words(("a", "b", "c")), Call("f", "x", tuple('{"a":1}')), Call("f", "y", tuple('{"a":2}')), Words(("d", "e"))]


def streams(dialect: str) -> Iterator[bytes]:
    """Regular ones, those whose frames are alike, and all that servers get wrong."""
    yield REGULAR[dialect]
    yield from (malformed.wire for malformed in catalogue() if malformed.dialect == dialect)
    yield from ALIKE[dialect]


def joined(frames: Iterable[Any]) -> bytes:
    return b"".join(frame.wire for frame in frames)


def _numbered(*numbers: int) -> bytes:
    """Deltas of one text with these sequence numbers, behind a regular start."""
    start = b"\n\n".join(REGULAR["responses"].split(b"\n\n")[:13]) + b"\n\n"
    kind = "response.output_text.delta"
    where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    return start + b"".join(
        sse({"type": kind, "sequence_number": number, **where, "delta": f"{place}x", "logprobs": []}, kind)
        for place, number in enumerate(numbers)
    )


def _interrupted() -> bytes:
    """A text that another item interrupts, and that goes on behind an event which is no delta."""
    wire = Numbered().created()
    where = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    message = {"type": "message", "id": "msg_0", "role": "assistant", "status": "in_progress", "content": []}
    wire.add("output_item.added", output_index=0, item=message)
    wire.add("content_part.added", **where, part={"type": "output_text", "text": "", "annotations": []})
    wire.add("output_text.delta", **where, delta="a", logprobs=[])
    wire.call(1, "f", "{}")
    note = {"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 1}
    wire.add("output_text.annotation.added", **where, annotation_index=0, annotation=note)
    wire.add("output_text.delta", **where, delta="b", logprobs=[])
    return wire.add("output_text.delta", **where, delta="c", logprobs=[]).ended().wire


def _of_another_kind() -> bytes:
    """Input of a custom tool in events that are those of a function."""
    wire = Numbered().created()
    item = {
        "type": "custom_tool_call",
        "id": "ctc_0",
        "call_id": "c",
        "name": "patch",
        "input": "",
        "status": "completed",
    }
    wire.add("output_item.added", output_index=0, item=item)
    for text in "ab":
        wire.add("function_call_arguments.delta", item_id="ctc_0", output_index=0, delta=text)
    return wire.add("output_item.done", output_index=0, item={**item, "input": "ab"}).ended().wire


def _signed(text: str) -> bytes:
    return gemini_chunk({"text": text}, {"text": "", "thoughtSignature": "c2ln"})


ALIKE: dict[str, list[bytes]] = {
    "chat": [
        *(
            joined(chat(SAID, Manner(index, ids)))
            for index in ("right", "zero", "absent")
            for ids in ("first", "every", "absent")
        ),
        b"".join(chunk({"content": text}, usage={"prompt_tokens": 1}) for text in "abc"),
        b"".join(chunk({"content": text, "refusal": "no"}) for text in "abc"),
        b"".join(chunk({"content": text, "x": 1}) for text in "abc"),
    ],
    "messages": [
        joined(messages(SAID)),
        message_start()
        + b"".join(event("content_block_delta", index=0, delta={"type": "text_delta", "text": t}) for t in "abc"),
    ],
    "responses": [
        joined(responses(SAID, Leaving())),
        joined(responses(SAID, Leaving(sequence=True))),
        _numbered(13, 13, 13),
        _interrupted(),
        _of_another_kind(),
        _numbered(13, 14, 15).replace(b'"content_index":0,"delta":', b'"delta":'),
        _numbered(13, 13, 14),
        _numbered(12, 12, 13),
    ],
    "gemini": [
        joined(gemini(SAID)),
        gemini_chunk({"text": "a"}) + b"".join(map(_signed, "bcd")),
        b"".join(gemini_chunk({"text": t}, finish="STOP") for t in "abc"),
    ],
}


@pytest.mark.parametrize("dialect", ALL)
def test_the_template_shortcut_equals_parsing(dialect: str) -> None:
    request = make_request(dialect)
    for wire in streams(dialect):
        quick, careful = (DIALECTS[dialect].stream_decoder(request) for _ in range(2))
        for frame in SseReader().feed(wire):
            assert _seen(quick, quick.feed(frame.raw)) == _seen(careful, careful.parse(frame)), frame
        assert _seen(quick, quick.close()) == _seen(careful, [] if careful.is_over else careful.close())


# The same values, spelled as no typed reader takes them.
RESPELLED: dict[str, tuple[bytes, bytes]] = {
    "chat": (b'"created":1700000000,', b'"created":1700000000.0,'),
    "messages": (b'data: {"type"', b'data: { "type"'),
    "responses": (b'data: {"type"', b'data: { "type"'),
}


@pytest.mark.parametrize("dialect", sorted(RESPELLED))
def test_the_typed_decoder_equals_the_general_one(dialect: str) -> None:
    request = make_request(dialect)
    usual, other = RESPELLED[dialect]
    for wire in streams(dialect):
        typed, general = (DIALECTS[dialect].stream_decoder(request) for _ in range(2))
        for frame, respelled in zip(SseReader().feed(wire), SseReader().feed(wire.replace(usual, other)), strict=True):
            found, expected = _seen(typed, typed.parse(frame)), _seen(general, general.parse(respelled))
            assert (found[0], bool(found[1]), *found[2:]) == (expected[0], bool(expected[1]), *expected[2:]), frame


def _seen(decoder: Any, events: list[Event]) -> tuple[object, ...]:
    told = [str(event.error) if isinstance(event, Failed) else event for event in events]
    return (told, decoder.irregular, decoder.is_ending, decoder.is_over)
