"""Server-sent events at byte level: any chunking, any line end, nothing but CR and LF ends a line."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.wire.sse import Frame, FrameTooLarge, SseReader, frame_bytes, plain_frame


def read(*chunks: bytes) -> list[Frame]:
    reader = SseReader()
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return frames + reader.close()


def data_of(*chunks: bytes) -> list[bytes]:
    return [frame.data for frame in read(*chunks)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_H148_every_line_end_and_every_cut(end: bytes) -> None:
    wire = end.join(
        [b"event: a", b"data: Gr\xc3\xbc\xc3\x9fe", b"", b": comment", b"", b"data:x", b"data: y", b"", b""]
    )
    expected = [("a", "Grüße".encode()), ("", b"x\ny")]
    for first in range(len(wire) + 1):
        for second in range(first, len(wire) + 1):
            frames = read(wire[:first], wire[first:second], wire[second:])
            assert [(frame.event, frame.data) for frame in frames] == expected
    assert [(frame.event, frame.data) for frame in read(*(wire[at : at + 1] for at in range(len(wire))))] == expected


def test_H149_only_cr_and_lf_end_a_line() -> None:
    text = json.dumps({"text": "a\u2028b\u2029c\u0085d\x0be\x0cf"}, ensure_ascii=False).encode()
    assert data_of(b"data: " + text + b"\n\n") == [text]


def test_H150_many_events_in_one_read_and_one_event_in_many() -> None:
    assert data_of(b"data: 1\n\ndata: 2\n\nda", b"ta: ", b"3", b"\n", b"\n") == [b"1", b"2", b"3"]


def test_a_byte_order_mark_is_no_data() -> None:
    mark = b"\xef\xbb\xbf"
    assert data_of(mark + b"data: x\n\n") == [b"x"]
    assert data_of(mark[:1], mark[1:2], mark[2:] + b"data: x\n\n") == [b"x"]
    assert data_of(b"\xef\xbb", b"data: x\n\n") == []
    assert data_of(b"data: x\n\n" + mark + b"data: y\n\n") == [b"x"]


def test_one_blank_is_taken_from_a_value_and_no_more() -> None:
    assert data_of(b"data:  x\n\ndata\n\ndata:\n\n") == [b" x", b"", b""]


def test_other_fields_and_comments_carry_nothing() -> None:
    assert read(b": ping\n\nid: 7\nretry: 10\n\nevent: only\n\n") == []


def test_an_end_without_its_blank_line_is_given_back() -> None:
    assert data_of(b"data: 1\n\ndata: last") == [b"1", b"last"]
    assert data_of(b"data: last\n") == [b"last"]
    assert data_of(b"data: last\r") == [b"last"]


def test_empty_reads_change_nothing() -> None:
    assert data_of(b"", b"data: x\r", b"", b"\n\r", b"", b"\n", b"") == [b"x"]


def test_an_event_has_a_limit() -> None:
    reader = SseReader(limit=100)
    assert len(reader.feed(b"data: " + b"x" * 80 + b"\n\n")) == 1
    assert reader.feed(b"data: " + b"x" * 80) == []
    with pytest.raises(FrameTooLarge, match="larger than 100 bytes"):
        reader.feed(b"x" * 20)


@pytest.mark.parametrize("name", ["plain", "a\nb", "a\r\ndata: {}\n\n", "\ud800", "é"])
def test_a_name_stays_on_its_line(name: str) -> None:
    (frame,) = read(frame_bytes(name, b"x"))
    assert frame.data == b"x"


@given(
    st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b"")), max_size=5),
    st.data(),
)
@examples(60)
def test_what_was_written_is_read(values: list[bytes], data: st.DataObject) -> None:
    wire = b"".join(b"data: " + value + b"\n\n" for value in values)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=5)))
    places = [0, *cuts, len(wire)]
    chunks = [wire[start:end] for start, end in itertools.pairwise(places)]
    assert data_of(*chunks) == values


@pytest.mark.parametrize("blank", [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_a_document_comes_out_whole_at_the_end_however_it_is_cut(blank: bytes) -> None:
    body = b'{"a":\n\n"data: x\r\n"}\n\n'
    for size in (1, 2, 7, 1000):
        reader = SseReader()
        wire = blank + body
        for place in range(0, len(wire), size):
            assert reader.feed(wire[place : place + size]) == []
        (frame,) = reader.close()
        assert reader.is_document
        assert frame.data.strip() == body.strip()


def test_a_document_is_bounded_too() -> None:
    reader = SseReader(limit=100)
    reader.feed(b"{" * 90)
    with pytest.raises(FrameTooLarge):
        reader.feed(b"{" * 20)


def test_what_begins_with_blank_lines_or_a_field_is_a_stream() -> None:
    for wire in (b"\n\n \ndata: {}\n\n", b"data: {}\n\n", b": {\n\ndata: {}\n\n"):
        for size in (1, 1000):
            reader = SseReader()
            found = [frame for place in range(0, len(wire), size) for frame in reader.feed(wire[place : place + size])]
            assert [frame.data for frame in found] == [b"{}"]
            assert not reader.is_document


@pytest.mark.parametrize("piece", [b"\n" * 256, b" " * 256, b"\r\n" * 128, b"\n" * 255 + b" "])
def test_blanks_before_the_first_event_cost_linear_time(piece: bytes) -> None:
    def seconds(count: int) -> float:
        reader = SseReader()
        since = time.process_time()
        for _ in range(count):
            assert reader.feed(piece) == []
        assert [frame.data for frame in reader.feed(b"\ndata: x\n\n")] == [b"x"]
        return time.process_time() - since

    seconds(100)
    assert seconds(4_000) < 10 * (seconds(1_000) + 0.001)  # if each piece were joined to all before: 16 times as long


def test_only_the_first_byte_order_mark_is_dropped_however_it_is_cut() -> None:
    mark = b"\xef\xbb\xbf"
    for wire, expected in ((mark * 2 + b"data: x\n\ndata: y\n\n", [b"y"]), (mark + b"\n \ndata: x\n\n", [b"x"])):
        for cut in range(len(wire) + 1):
            assert data_of(wire[:cut], wire[cut:]) == expected, cut
        assert data_of(*(wire[at : at + 1] for at in range(len(wire)))) == expected


@given(st.lists(st.sampled_from([b"data: ", b"data:", b"x", b"\n", b"\r", b": c", b"event: e"]), max_size=8))
def test_a_plain_frame_is_what_a_reader_gives(pieces: list[bytes]) -> None:
    wire = b"".join(pieces)
    frame = plain_frame(wire)
    assert frame is None or [frame] == read(b"data: before\n\n", wire)[1:]


def test_only_one_line_of_data_is_a_plain_frame() -> None:
    assert plain_frame(b'data: {"a":1}\n\n') == Frame("", b'{"a":1}', b'data: {"a":1}')
    for wire in (
        b"data: a\ndata: b\n\n",
        b"event: e\ndata: a\n\n",
        b"data: a\n",
        b"data: a\rb\n\n",
        b"data: a\n\n\n",
        b"",
    ):
        assert plain_frame(wire) is None
