"""Connect streams at byte level: any cut, zipped or not, ends that are there, wrong, or missing."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.wire.connect import (
    BROKE_OFF,
    MAX_FRAME,
    BadConnectStream,
    ConnectDecoder,
    ConnectEnd,
    ConnectFault,
    ConnectFrame,
    Detail,
    end,
    fault_object,
    fault_of,
    frame,
)

FAULT = ConnectFault("resource_exhausted", "Grüße", (Detail("a.v1.B", b"\x08\xff", {"x": [1]}), Detail("c", b"")))
STREAM = (
    frame(b"one")
    + frame(b"")
    + frame(b"x" * 300, is_zipped=True)
    + frame(b"", is_zipped=True)
    + end(FAULT, is_zipped=True)
)
ITEMS = [ConnectFrame(b"one"), ConnectFrame(b""), ConnectFrame(b"x" * 300), ConnectFrame(b""), ConnectEnd(FAULT)]


def read(*pieces: bytes) -> list[ConnectFrame | ConnectEnd]:
    decoder = ConnectDecoder()
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return [*items, *decoder.close()]


def head(flags: int, size: int) -> bytes:
    return bytes([flags]) + size.to_bytes(4, "big")


def test_a_frame_is_flags_length_and_payload() -> None:
    assert frame(b"ab").hex(" ") == "00 00 00 00 02 61 62"
    assert end().hex(" ") == "02 00 00 00 02 7b 7d"
    assert gzip.decompress(frame(b"ab", is_zipped=True)[5:]) == b"ab"
    assert frame(b"ab", is_zipped=True)[0] == 1
    assert end(is_zipped=True)[0] == 3


def test_any_two_cuts_give_the_same() -> None:
    for first in range(len(STREAM) + 1):
        assert read(STREAM[:first], STREAM[first:]) == ITEMS
        second = (first * 7) % (len(STREAM) + 1)
        low, high = sorted((first, second))
        assert read(STREAM[:low], STREAM[low:high], b"", STREAM[high:]) == ITEMS
    assert read(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == ITEMS


@examples(100)
@given(
    st.lists(st.tuples(st.binary(max_size=70), st.booleans()), max_size=8),
    st.lists(st.integers(0, 600), max_size=12),
)
def test_cutting_does_not_matter(messages: list[tuple[bytes, bool]], cuts: list[int]) -> None:
    wire = b"".join(frame(data, is_zipped=is_zipped) for data, is_zipped in messages) + end()
    places = sorted({0, len(wire), *(min(cut, len(wire)) for cut in cuts)})
    pieces = [wire[start:stop] for start, stop in itertools.pairwise(places)]
    assert read(*pieces) == [*(ConnectFrame(data) for data, _ in messages), ConnectEnd()]


def test_H157_a_stream_without_its_end_frame_is_an_error_however_whole_it_looks() -> None:
    *frames, last = read(frame(b"one") + frame(b"two"))
    assert frames == [ConnectFrame(b"one"), ConnectFrame(b"two")]
    assert last == ConnectEnd(ConnectFault("unavailable", "the stream broke off without its end frame"))
    assert read() == [last]


def test_H157_every_prefix_of_a_stream_ends_in_an_error() -> None:
    for length in range(len(STREAM)):
        *frames, last = read(STREAM[:length])
        assert frames == ITEMS[: len(frames)]
        assert isinstance(last, ConnectEnd)
        assert last.fault is not None
        assert last.fault.code == "unavailable"
        assert last.fault.message.startswith(BROKE_OFF)
    assert "with 3 of 5 bytes" in str(read(STREAM[:3])[-1])
    assert "with 7 of 8 bytes" in str(read(STREAM[:7])[-1])


def test_the_end_is_sent_once_and_nothing_after_it() -> None:
    decoder = ConnectDecoder()
    assert decoder.feed(end() + frame(b"late") + b"\xff" * 9) == [ConnectEnd()]
    assert decoder.is_ended
    assert decoder.feed(b"\xff" * 9) == []
    assert decoder.close() == []
    cut = ConnectDecoder()
    assert len(cut.close()) == 1
    assert cut.close() == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"{}", ConnectEnd()),
        (b"", ConnectEnd()),
        (b' {"metadata": {"a": ["b"]}}', ConnectEnd(None, {"a": ["b"]})),
        (b'{"error": null, "metadata": 7}', ConnectEnd()),
        (b'{"error": {}}', ConnectEnd(ConnectFault("unknown"))),
        (b'{"error": "words"}', ConnectEnd(ConnectFault("unknown", "words"))),
        (b'{"error": {"code": 16, "message": ["x"], "details": {}}}', ConnectEnd(ConnectFault("unknown"))),
        (
            b'{"error": {"code": "internal", "details": [1, {}]}}',
            ConnectEnd(ConnectFault("internal", "", (Detail(""),))),
        ),
    ],
)
def test_what_an_end_frame_may_say(payload: bytes, expected: ConnectEnd) -> None:
    assert read(head(2, len(payload)) + payload) == [expected]


@pytest.mark.parametrize("payload", [b"[]", b"{", b"\xff\xfe", b'"x"', b"[" * 100_000, b'{"a": NaN}'])
def test_an_end_frame_that_is_no_object_is_a_fault_and_an_end(payload: bytes) -> None:
    (item,) = read(head(2, len(payload)) + payload)
    assert isinstance(item, ConnectEnd)
    assert item.fault is not None
    assert item.fault.code == "internal"
    assert len(item.fault.message) < 400


@pytest.mark.parametrize("text", ["CP8=", "CP8", "CP8==="])
def test_base64_is_read_with_and_without_padding(text: str) -> None:
    fault = fault_of({"code": "x", "details": [{"type": "type.googleapis.com/a.B", "value": text}]})
    assert fault.details == (Detail("a.B", b"\x08\xff"),)


def test_base64_is_written_without_padding_and_read_in_either_alphabet() -> None:
    value = bytes(range(256))
    written = fault_object(ConnectFault("x", "", (Detail("t", value),)))
    assert written["details"][0]["value"] == base64.b64encode(value).decode().rstrip("=")
    row = {"type": "t", "value": base64.urlsafe_b64encode(value).decode()}
    assert fault_of({"code": "x", "details": [row]}).details[0].value == value


@pytest.mark.parametrize("value", ["A", "****", "CP8\n", "Grüße", "=", 7, None, ["CP8"]])
def test_what_is_not_base64_is_nothing(value: object) -> None:
    assert fault_of({"code": "x", "details": [{"type": 1, "value": value}]}).details == (Detail("", b""),)


def test_details_are_bounded() -> None:
    assert len(fault_of({"code": "x", "details": [{"type": "t"}] * 10_000}).details) == 16


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
NAMED = st.dictionaries(st.sampled_from(["code", "message", "details", "type", "value", "debug", "error"]), JSON)


@examples(60)
@given(NAMED | JSON, st.booleans())
def test_no_end_frame_raises(value: object, is_error: bool) -> None:
    payload = json.dumps({"error": value} if is_error else value).encode()
    (item,) = read(head(2, len(payload)) + payload)
    assert isinstance(item, ConnectEnd)


@given(st.text(min_size=1), st.text(), st.lists(st.tuples(st.text(), st.binary()), max_size=4))
def test_a_fault_comes_back_as_it_was(code: str, message: str, details: list[tuple[str, bytes]]) -> None:
    fault = ConnectFault(code, message, tuple(Detail(kind.replace("/", ""), value) for kind, value in details))
    assert read(end(fault)) == [ConnectEnd(fault)]


@pytest.mark.parametrize("wire", [b"<html>", b'{"code":"x"}', b"HTTP/1.1 400", b"\x04\0\0\0\0", b"\x80\0\0\0\x01x"])
def test_flags_that_are_not_connects_break_the_stream(wire: bytes) -> None:
    with pytest.raises(BadConnectStream, match="flags are not Connect's"):
        ConnectDecoder().feed(wire)


def test_a_huge_length_is_refused_before_its_bytes_come() -> None:
    for size in (MAX_FRAME + 1, 1 << 30, (1 << 32) - 1):
        with pytest.raises(BadConnectStream, match=f"claims {size} bytes"):
            ConnectDecoder().feed(head(0, size))
    assert ConnectDecoder().feed(head(0, MAX_FRAME)) == []
    with pytest.raises(BadConnectStream, match="at most"):
        frame(bytes(MAX_FRAME + 1))


def test_what_was_whole_before_the_break_is_given_first_and_the_break_is_kept() -> None:
    wire = frame(b"one") + head(0, MAX_FRAME + 1)
    decoder = ConnectDecoder()
    assert decoder.feed(wire) == [ConnectFrame(b"one")]
    for call in (lambda: decoder.feed(b"x"), decoder.close, decoder.close):
        with pytest.raises(BadConnectStream, match="claims"):
            call()
    cut = ConnectDecoder()
    assert [item for at in range(len(wire) - 1) for item in cut.feed(wire[at : at + 1])] == [ConnectFrame(b"one")]
    with pytest.raises(BadConnectStream, match="claims"):
        cut.feed(wire[-1:])


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(bytes(2 * MAX_FRAME), compresslevel=9, mtime=0)
    assert len(bomb) < 70_000
    tracemalloc.start()
    with pytest.raises(BadConnectStream, match="unzips to more than"):
        ConnectDecoder().feed(head(1, len(bomb)) + bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_FRAME


def test_the_limit_itself_fits_zipped_and_bare() -> None:
    data = bytes(1000)
    decoder = ConnectDecoder(limit=1000)
    assert decoder.feed(frame(data) + frame(data, is_zipped=True)) == [ConnectFrame(data), ConnectFrame(data)]
    with pytest.raises(BadConnectStream):
        ConnectDecoder(limit=1000).feed(frame(bytes(1001), is_zipped=True))


@pytest.mark.parametrize(
    "payload",
    [
        b"plain",
        gzip.compress(b"x" * 99, mtime=0)[:-4],
        gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0),
        gzip.compress(b"a", mtime=0) + b"\0",
    ],
)
def test_gzip_that_is_none_or_not_whole_breaks_the_stream(payload: bytes) -> None:
    with pytest.raises(BadConnectStream, match="gzip"):
        ConnectDecoder().feed(head(1, len(payload)) + payload)


@examples(200)
@given(st.binary(max_size=60), st.integers(0, 60))
def test_garbage_is_broken_or_read_and_the_same_however_cut(wire: bytes, place: int) -> None:
    assert outcome(wire) == outcome(wire[:place], wire[place:]) == outcome(*(bytes([byte]) for byte in wire))


def outcome(*pieces: bytes) -> tuple[list[ConnectFrame | ConnectEnd], str]:
    decoder = ConnectDecoder()
    items: list[ConnectFrame | ConnectEnd] = []
    try:
        for piece in pieces:
            items += decoder.feed(piece)
        return [*items, *decoder.close()], ""
    except BadConnectStream as broken:
        return items, str(broken)


def test_work_is_linear_in_the_input() -> None:
    """One large frame in small pieces, and many small frames in one piece: eight times as much takes about eight times as long."""

    def seconds(size: int) -> float:
        large, small = frame(bytes(size)), frame(b"y") * (size // 64)
        started = time.perf_counter()
        decoder = ConnectDecoder()
        got = sum(len(decoder.feed(large[at : at + 64])) for at in range(0, len(large), 64))
        got += len(decoder.feed(small))
        assert got == 1 + size // 64
        return time.perf_counter() - started

    one = min(seconds(250_000) for _ in range(3))
    eight = min(seconds(2_000_000) for _ in range(2))
    assert eight < 40 * one
