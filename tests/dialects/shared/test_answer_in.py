"""Frames and bodies as events: each part starts and ends once, and a stream has one end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import pieces
from tests.thorough import examples
from toolwire.dialects.shared.answer_in import (
    Assembly,
    Balance,
    BodyDecoder,
    FrameDecoder,
    OpenCallPart,
    is_mark,
    is_plain,
    last_frames,
    object_in,
)
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Citation, Opaque, Part, Reasoning, Refusal, Request, Text, ToolCall
from toolwire.wire.exact_json import object_of
from toolwire.wire.sse import Frame, SseReader

REQUEST = Request(model="m", messages=())


class Echo(FrameDecoder):
    """Each frame is a start; the end of the stream is the end of the answer."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self._sse = SseReader(limit)

    def parse(self, frame: Frame) -> list[Event]:
        return [] if self.is_over else [Started(id=frame.data.decode(), model="")]

    def end(self) -> list[Event]:
        return [Finished(choices=(Choice(reason="stop"),))]


def echo(request: Request) -> Echo:
    return Echo()


def test_frames_are_decoded_as_they_come_and_the_end_ends() -> None:
    decoder = Echo()
    assert decoder.feed(b"data: 1\n\nda") == [Started(id="1", model="")]
    assert decoder.feed(b"ta: {}") == []
    assert decoder.close() == [Started(id="{}", model=""), Finished(choices=(Choice(reason="stop"),))]


class Texts(FrameDecoder):
    """Each frame is more of one text; parsed counts the frames that were read in full. is_plain: a frame does nothing else."""

    def __init__(self, *, is_plain: bool) -> None:
        super().__init__()
        self.parsed = 0
        self._is_plain = is_plain
        self._growing, _ = self._assembly.start(Text(text=""))

    def parse(self, frame: Frame) -> list[Event]:
        self.parsed += 1
        growing = self.only_grows(self._growing) if self._is_plain else self._growing
        return [growing.grow(object_in(frame)["t"])]  # type: ignore[index] # all of them are objects

    def end(self) -> list[Event]:
        return self._assembly.end(self._growing)


@pytest.mark.parametrize(("is_plain", "parsed"), [(True, 1), (False, 3)])
def test_a_frame_like_the_last_one_is_parsed_unless_that_one_only_added_text(is_plain: bool, parsed: int) -> None:
    for is_whole in (True, False):
        decoder = Texts(is_plain=is_plain)
        frames = [b'data: {"t":"%d"}\n\n' % number for number in range(3)]
        events = [event for data in ([b"".join(frames)] if is_whole else frames) for event in decoder.feed(data)]
        texts = (
            ["0", "12"] if is_whole and is_plain else ["0", "1", "2"]
        )  # frames of one read that only add text are one event
        assert events == [PartDelta(0, text) for text in texts]
        assert decoder.parsed == parsed
        assert decoder.close() == [PartEnded(index=0, part=Text(text="012"))]


@given(st.lists(st.sampled_from(["a", "bc", "é", "\n", '"', "\\", "", "世"]), max_size=40), st.integers(1, 60))
def test_runs_of_frames_decode_to_the_same_text_wherever_reads_are_cut(texts: list[str], size: int) -> None:
    wire = b"".join(b'data: {"t":%b}\n\n' % json.dumps(text, ensure_ascii=False).encode() for text in texts)
    decoder = Texts(is_plain=True)
    events = [event for at in range(0, len(wire), size * 7) for event in decoder.feed(wire[at : at + size * 7])]
    assert "".join(event.text for event in events if isinstance(event, PartDelta)) == "".join(texts)
    assert decoder.close() == [PartEnded(index=0, part=Text(text="".join(texts)))]


def test_a_run_ends_at_a_frame_that_is_cut_inside_a_character() -> None:
    decoder = Texts(is_plain=True)
    decoder.feed(b'data: {"t":"a"}\n\n')
    first, second = "é".encode()[:1], "é".encode()[1:]
    run = decoder.find_run(
        b'data: {"t":"b"}\n\n' + b"".join(b'data: {"t":"%b"}\n\n' % half for half in (first, second))
    )
    assert run is not None
    assert (run.delta.text, run.size) == ("b", 17)


def test_where_the_end_has_begun_every_frame_is_parsed() -> None:
    decoder = Texts(is_plain=True)
    decoder.is_ending = True
    for number in range(3):
        decoder.feed(b'data: {"t":"%d"}\n\n' % number)
    assert decoder.parsed == 3


def test_a_frame_beyond_the_limit_is_a_failure_once() -> None:
    decoder = Echo(limit=10)
    (failed,) = decoder.feed(b"data: " + b"x" * 50)
    assert isinstance(failed, Failed)
    assert failed.error.code == "upstream_garbage"
    assert decoder.feed(b"x" * 50) == []
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        (b"data: {}", 1),
        (b"data: [DONE]", 1),
        (b"data: [DON", 0),
        (b'data: {"a":1', 0),
        (b"data: words", 0),
        (b"data: [1]", 0),
        (b"", 0),
    ],
)
def test_half_a_frame_at_the_end_is_none(rest: bytes, count: int) -> None:
    reader = SseReader()
    reader.feed(rest)
    assert len(last_frames(reader)) == count


def test_a_body_is_read_once_it_is_whole() -> None:
    decoder = BodyDecoder(REQUEST, lambda _, value: ([Started(id=value["id"], model="")], "odd"), echo)
    assert decoder.feed(b'{"id":') == []
    assert decoder.feed(b'"a"}') == []
    assert decoder.close() == [Started(id="a", model="")]
    assert decoder.irregular == "odd"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"a":', b"\xff"])
def test_a_body_that_is_no_object_is_a_failure_that_shows_it(body: bytes) -> None:
    decoder = BodyDecoder(REQUEST, lambda _, value: ([], ""), echo)
    decoder.feed(body)
    (failed,) = decoder.close()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UpstreamError)
    assert (failed.error.status, failed.error.code) == (502, "upstream_garbage")
    assert decoder.irregular == "not JSON"


def test_a_mark_may_have_blanks_around_it() -> None:
    assert is_mark(b" [DONE]\t")
    assert not is_mark(b"[DONE] x")


def test_a_stream_that_is_called_a_body_is_read_as_one() -> None:
    for wire in (b"data: a\n\ndata: b\n\n", b"\n: hm\n\ndata: a\n\ndata: b\n\n", b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"):
        decoder = BodyDecoder(REQUEST, lambda _, value: ([], ""), echo)
        assert decoder.feed(wire) == []
        assert len(decoder.close()) >= 2
        assert decoder.irregular == "a stream where a body was due"


def test_a_byte_order_mark_before_a_body_is_irregular() -> None:
    decoder = BodyDecoder(REQUEST, lambda _, value: ([], ""), echo)
    decoder.feed(b'\xef\xbb\xbf{"a": 1}')
    assert decoder.close() == []
    assert (decoder.value, decoder.irregular) == ({"a": 1}, "a byte order mark")


def test_a_document_is_its_own_last_frame_even_if_it_is_no_object() -> None:
    reader = SseReader()
    reader.feed(b"[1")
    assert [frame.data for frame in last_frames(reader)] == [b"[1"]


def test_indices_are_dense_over_all_choices() -> None:
    assembly = Assembly()
    starts = [assembly.start(Text(text=""), choice)[1] for choice in (0, 1, 0)]
    assert starts == [
        PartStarted(index=index, part=Text(text=""), choice=choice) for index, choice in enumerate((0, 1, 0))
    ]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (Text(text=""), Text(text="ab")),
        (Refusal(text=""), Refusal(text="ab")),
        (Reasoning(text="", item_id="r"), Reasoning(text="ab", item_id="r")),
        (ToolCall(id="c", name="f", raw=""), ToolCall(id="c", name="f", raw="ab")),
        (ToolCall(id="c", name="f", raw="", kind="custom"), ToolCall(id="c", name="f", raw="ab", kind="custom")),
        (Opaque(dialect="chat", value={}), Opaque(dialect="chat", value={})),
    ],
)
def test_an_end_carries_the_whole_and_comes_once(part: Part, whole: Part) -> None:
    assembly = Assembly()
    growing, _ = assembly.start(part)
    assert growing.is_empty
    assert [growing.grow("a"), growing.grow("b")] == [PartDelta(0, "a"), PartDelta(0, "b")]
    assert not growing.is_empty
    assert assembly.is_open(growing)
    assert assembly.end(growing) == [PartEnded(index=0, part=whole)]
    assert not assembly.is_open(growing)
    assert assembly.end(growing) == []


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n"]])
def test_H012_a_call_without_arguments_has_an_empty_object(pieces: list[str]) -> None:
    assembly = Assembly()
    growing, _ = assembly.start(ToolCall(id="c", name="f", raw=""))
    for piece in pieces:
        growing.grow(piece)
    delta, ended = assembly.end(growing)
    assert delta == PartDelta(0, "{}")
    assert isinstance(ended, PartEnded)
    assert isinstance(ended.part, ToolCall)
    assert ended.part.args == {}


def test_a_freeform_call_may_be_empty() -> None:
    assembly = Assembly()
    growing, _ = assembly.start(ToolCall(id="c", name="f", raw="", kind="custom"))
    assert len(assembly.end(growing)) == 1


def test_only_an_object_is_arguments() -> None:
    for raw, args in (('{"a":1}', {"a": 1}), ("[1]", None), ('{"a":', None), ("1", None)):
        assembly = Assembly()
        growing, _ = assembly.start(ToolCall(id="c", name="f", raw=""))
        growing.grow(raw)
        (ended,) = assembly.end(growing)
        assert isinstance(ended, PartEnded)
        assert ended.part == ToolCall(id="c", name="f", raw=raw, args=args)


def test_notes_beside_the_text_are_kept() -> None:
    assembly = Assembly()
    growing, _ = assembly.start(Text(text=""))
    growing.citations.append(Citation(url="https://a"))
    growing.logprobs.append({"token": "a"})
    (ended,) = assembly.end(growing)
    assert ended == PartEnded(
        index=0, part=Text(text="", citations=(Citation(url="https://a"),), logprobs=({"token": "a"},))
    )


def test_all_that_is_open_ends_in_order_with_what_is_only_known_now() -> None:
    assembly = Assembly()
    first, _ = assembly.start(Reasoning(text=""))
    assembly.start(Text(text=""))
    assert assembly.end(first, signature="s") == [PartEnded(index=0, part=Reasoning(text="", signature="s"))]
    assert assembly.end_all() == [PartEnded(index=1, part=Text(text=""))]
    assert assembly.open == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[]\n é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\}'), inner, max_size=3),
)


@given(st.dictionaries(st.text(alphabet='k"\\}'), JSON, max_size=3), st.lists(st.integers(0, 200), max_size=6))
def test_an_object_is_closed_at_its_last_character_however_it_is_cut(value: object, cuts: list[int]) -> None:
    text = json.dumps(value)
    balance = Balance()
    for piece in pieces(text.encode(), [min(cut, len(text)) for cut in cuts]):
        assert not balance.is_closed or not piece
        balance.read(piece.decode())
    assert balance.is_closed
    assert not balance.has_more
    balance.read(" \n")
    assert not balance.has_more
    balance.read(",")
    assert balance.has_more


class Counting(Balance):
    """Counts the characters that it is given."""

    __slots__ = ("characters",)

    def __init__(self) -> None:
        super().__init__()
        self.characters = 0

    def read(self, text: str) -> None:
        self.characters += len(text)
        super().read(text)


def test_a_call_is_read_once_however_often_its_value_is_wanted() -> None:
    balance = Counting()
    growing = OpenCallPart(0, ToolCall(id="c", name="f", raw=""), 0, balance)
    written = 0
    for number, piece in enumerate(['{"a":"', *["}}}}"] * 300, '"}']):
        assert growing.value is None
        if number % 7 == 0:
            assert len(growing.content) == written
        written += len(growing.grow(piece).text)
    assert growing.value == {"a": "}}}}" * 300}
    assert growing.value == {"a": "}}}}" * 300}
    assert balance.characters == written
    growing.grow(" \n")
    assert growing.value is not None
    growing.grow("}")
    assert growing.value is None


@pytest.mark.parametrize("part", [Text(text=""), ToolCall(id="c", name="f", raw="", kind="custom")])
def test_only_a_call_of_a_function_has_a_value(part: Part) -> None:
    growing, _ = Assembly().start(part)
    growing.grow("{}")
    assert growing.value is None


@given(st.lists(st.tuples(st.text(max_size=3), st.booleans(), st.booleans()), max_size=12))
def test_looking_at_a_call_changes_nothing(steps: list[tuple[str, bool, bool]]) -> None:
    growing, _ = Assembly().start(ToolCall(id="c", name="f", raw=""))
    written = ""
    for text, wants_content, wants_value in steps:
        growing.grow(text)
        written += text
        if wants_value:
            assert growing.value == object_of(written)
        if wants_content:
            assert growing.content == written
    assert "".join(growing.pieces) == growing.content == written


def frame(text: str, **more: object) -> bytes:
    return b"data: " + json.dumps({"index": 0, "delta": {"text": text}, **more}, ensure_ascii=False).encode()


class Learning(FrameDecoder):
    """Takes each frame that it parses for this text."""

    def __init__(self, block: bytes, text: str) -> None:
        super().__init__()
        self._text = text
        self._open, _ = self._assembly.start(Text(text=""))
        self.read(Frame("", b"", block))

    def parse(self, frame: Frame) -> list[Event]:
        return [self.only_grows(self._open).grow(self._text)]

    def text_in(self, block: bytes) -> str | None:
        delta = self.match(block)
        return None if delta is None else delta.text


def test_a_frame_like_the_last_one_gives_its_text() -> None:
    decoder = Learning(frame("one"), "one")
    assert decoder.text_in(frame("two words, äöü 世界")) == "two words, äöü 世界"
    assert decoder.text_in(frame("three") + b"\n\n") is None
    assert decoder.text_in(frame("three") + b"\n\n" + frame("four")) is None
    assert decoder.text_in(frame("three")) == "three"


def test_what_needs_unescaping_is_not_matched() -> None:
    decoder = Learning(frame("one"), "one")
    for text in ('a "quote"', "a\nline", "back\\slash", "", "\u2028", "tab\t"):
        assert decoder.text_in(frame(text)) is None


def test_other_frames_are_not_matched() -> None:
    decoder = Learning(frame("one"), "one")
    assert decoder.text_in(frame("two", usage=None)) is None
    assert decoder.text_in(frame("two")[:-1]) is None
    assert decoder.text_in(frame("two") + frame("three")) is None
    assert decoder.text_in(b"") is None
    assert decoder.text_in(frame("x").replace(b"x", b"\xff")) is None
    whole = frame("")
    assert all(decoder.text_in(whole[:size] + whole[-size:]) is None for size in range(1, len(whole)))


def test_a_text_that_stands_twice_or_needs_escaping_is_not_learned() -> None:
    assert Learning(frame("index"), "index").text_in(frame("two")) is None
    assert Learning(frame("a\nb"), "a\nb").text_in(frame("two")) is None


def test_a_text_that_stands_escaped_is_not_taken_from_another_place() -> None:
    decoder = Learning(b'data: {"id":"hello","text":"h\\u0065llo"}', "hello")
    assert decoder.text_in(b'data: {"id":"other","text":"h\\u0065llo"}') is None


@given(st.text(max_size=12), st.text(max_size=12))
@examples(200)
def test_a_match_agrees_with_parsing(first: str, second: str) -> None:
    first, second = (text.encode("utf-8", "replace").decode() for text in (first, second))
    found = Learning(frame(first), first).text_in(frame(second))
    assert found is None or found == second
    if is_plain(first) and is_plain(second) and frame(first).count(json.dumps(first, ensure_ascii=False).encode()) == 1:
        assert found == second
