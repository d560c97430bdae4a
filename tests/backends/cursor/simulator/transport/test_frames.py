from __future__ import annotations

import gzip

import pytest

from toolwire.backends.cursor.simulator.transport.frames import BadFrame, Frames, enveloped


def test_frames_cut_anywhere_are_the_same() -> None:
    data = enveloped(b"one") + enveloped(b"") + enveloped(b"three", is_zipped=True)
    for size in range(1, len(data) + 1):
        frames = Frames(may_zip=True)
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert [found for piece in pieces for found in frames.feed(piece)] == [b"one", b"", b"three"]
        assert frames.is_between


def test_what_is_left_is_known() -> None:
    frames = Frames(may_zip=False)
    assert frames.feed(b"\x00\x00\x00\x00\x02a") == []
    assert not frames.is_between


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x40\x00\x00\x00",
        b"\x02\x00\x00\x00\x02{}",
        enveloped(b"x", is_zipped=True),
    ],
)
def test_what_no_client_may_send(data: bytes) -> None:
    with pytest.raises(BadFrame):
        Frames(may_zip=False).feed(data)


def test_a_bomb_is_refused() -> None:
    bomb = gzip.compress(b"\x00" * (17 * 1024 * 1024))
    with pytest.raises(BadFrame):
        Frames(may_zip=True).feed(enveloped(bomb, 1))


def test_an_envelope_to_the_byte() -> None:
    assert enveloped(b"ab") == b"\x00\x00\x00\x00\x02ab"
    assert enveloped(b"{}", 2) == b"\x02\x00\x00\x00\x02{}"
