"""WebSocket frames: any cutting gives the same messages, and what breaks the rules is refused."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.server_frames import served
from toolwire.wire.websocket import (
    BINARY,
    CLOSE,
    PING,
    TEXT,
    BadFrame,
    FrameReader,
    Incoming,
    accept_of,
    accepted_extension,
    close_payload,
    compressed_frame,
    frame,
    is_key,
    parse_close,
)


def test_the_answer_to_a_key_is_that_of_the_standard() -> None:
    assert accept_of("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_a_client_masks_as_in_the_standard() -> None:
    assert frame(TEXT, b"Hello", bytes.fromhex("37fa213d")) == bytes.fromhex("818537fa213d7f9f4d5158")


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(1, 97))
def test_cutting_does_not_matter(messages: list[bytes], step: int) -> None:
    stream = b"".join(served(TEXT, message) + served(PING, b"x") for message in messages)
    frames = FrameReader()
    found = [got for start in range(0, len(stream), step) for got in frames.feed(stream[start : start + step])]
    assert found == [got for message in messages for got in (Incoming(TEXT, message), Incoming(PING, b"x"))]


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 70000])
def test_every_way_to_write_a_length(size: int) -> None:
    assert list(FrameReader().feed(served(BINARY, b"a" * size))) == [Incoming(BINARY, b"a" * size)]


def test_pieces_are_put_together_around_a_ping() -> None:
    stream = served(TEXT, b"on", is_last=False) + served(PING, b"p") + served(0, b"e")
    assert list(FrameReader().feed(stream)) == [Incoming(PING, b"p"), Incoming(TEXT, b"one")]


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (frame(TEXT, b"a", b"abcd"), "masked"),
        (b"\xc1\x00", "extension"),
        (served(0, b"a"), "continues before its start"),
        (served(TEXT, b"a", is_last=False) + served(TEXT, b"b"), "begins inside another"),
        (served(CLOSE, b"a" * 126), "control frame"),
        (served(0xB, b""), "control frame"),
        (served(0x3, b""), "begins inside another"),
        (b"\x81\x7f" + (1 << 40).to_bytes(8, "big"), "longer than"),
        (served(TEXT, b"a" * 150, is_last=False) + served(0, b"a" * 150), "longer than"),
    ],
)
def test_what_breaks_the_rules_is_refused(stream: bytes, why: str) -> None:
    with pytest.raises(BadFrame, match=why):
        list(FrameReader(longest=200).feed(stream))


def test_empty_pieces_take_no_room() -> None:
    frames = FrameReader(longest=10)
    assert list(frames.feed(served(TEXT, b"a", is_last=False))) == []
    tracemalloc.start()
    for _ in range(5):
        assert list(frames.feed(served(0, b"", is_last=False) * 5000)) == []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000
    assert list(frames.feed(served(0, b"b"))) == [Incoming(TEXT, b"ab")]


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(1, 97), st.binary(min_size=4, max_size=4))
def test_a_server_reads_what_clients_mask(messages: list[bytes], step: int, mask: bytes) -> None:
    stream = b"".join(frame(TEXT, message, mask) for message in messages)
    frames = FrameReader(is_server=True)
    found = [got for start in range(0, len(stream), step) for got in frames.feed(stream[start : start + step])]
    assert found == [Incoming(TEXT, message) for message in messages]


def test_a_server_refuses_what_is_not_masked_or_too_long() -> None:
    with pytest.raises(BadFrame, match="not masked") as plain:
        list(FrameReader(is_server=True).feed(frame(TEXT, b"a")))
    with pytest.raises(BadFrame, match="longer than") as long:
        list(FrameReader(10, is_server=True).feed(frame(TEXT, b"a" * 11, b"abcd")[:6]))
    assert (plain.value.code, long.value.code) == (1002, 1009)


def test_frames_of_a_server_are_not_masked() -> None:
    assert frame(TEXT, b"Hello") == served(TEXT, b"Hello")


def test_a_close_frame_has_a_short_reason() -> None:
    assert parse_close(close_payload(1001, "later")) == (1001, "later")
    assert parse_close(b"") == (1005, "")
    code, reason = parse_close(close_payload(4000, "ä" * 100))
    assert (code, reason) == (4000, "ä" * 61)
    assert len(close_payload(4000, "ä" * 100)) <= 125


@pytest.mark.parametrize(
    ("key", "is_one"), [("dGhlIHNhbXBsZSBub25jZQ==", True), ("", False), ("dGhl", False), ("not base64!", False)]
)
def test_what_a_key_is(key: str, is_one: bool) -> None:
    assert is_key(key) is is_one


@pytest.mark.parametrize(
    ("offer", "bits"),
    [
        ("permessage-deflate", 15),
        ("permessage-deflate; client_max_window_bits", 15),
        ("permessage-deflate; server_max_window_bits=12; client_max_window_bits=12", 12),
        ("permessage-deflate; server_max_window_bits=8, permessage-deflate", 15),
        ("permessage-deflate; server_max_window_bits=8", 0),
        ("x-webkit-deflate-frame", 0),
        ("", 0),
    ],
)
def test_compression_is_accepted_where_zlib_can_write_it(offer: str, bits: int) -> None:
    extension, found = accepted_extension(offer)
    assert found == bits
    assert bool(extension) == bool(bits)


@given(st.text(max_size=3000), st.integers(9, 15))
def test_a_compressed_message_arrives_as_it_was(text: str, bits: int) -> None:
    frames = FrameReader()
    frames.is_deflating = True
    data = text.encode() * 3
    assert list(frames.feed(compressed_frame(TEXT, data, bits))) == [Incoming(TEXT, data)]


def test_the_limit_counts_the_message_and_not_its_compressed_form() -> None:
    frames = FrameReader(longest=100_000)
    frames.is_deflating = True
    bomb = compressed_frame(TEXT, b"a" * 10_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(BadFrame, match="longer than 100000") as caught:
        list(frames.feed(bomb))
    assert caught.value.code == 1009


@pytest.mark.parametrize("head", [b"\xc9\x00", b"\xa1\x00", b"\x41\x00\xc0\x00"])
def test_the_mark_of_compression_is_only_on_the_first_frame_of_a_message(head: bytes) -> None:
    frames = FrameReader()
    frames.is_deflating = True
    with pytest.raises(BadFrame):
        list(frames.feed(head))


def test_garbage_is_no_compressed_message() -> None:
    frames = FrameReader()
    frames.is_deflating = True
    with pytest.raises(BadFrame, match="cannot be decompressed"):
        list(frames.feed(b"\xc1\x03abc"))
