from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.transport.goaway import BUDGET, Farewell, Flood, Misfit, Sieve

pytestmark = pytest.mark.slow


def encoded(kind: int, payload: bytes, stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


SETTINGS = encoded(4, b"")
GOODBYE = encoded(7, (5).to_bytes(4, "big") + (11).to_bytes(4, "big") + b"calm down")


def sieved(data: bytes, cuts: list[int]) -> tuple[bytes, list[Farewell]]:
    sieve, passed, farewells = Sieve(), b"", []
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(places):
        plain, found = sieve.feed(data[start:stop])
        passed += plain
        farewells += found
    return passed, farewells


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 6, 7, 8, 200]), st.binary(max_size=30)), max_size=6),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_only_farewells_are_taken_out_however_the_bytes_are_cut(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = SETTINGS + b"".join(encoded(kind, payload) for kind, payload in frames)
    passed, farewells = sieved(data, cuts)
    assert passed == SETTINGS + b"".join(encoded(kind, payload) for kind, payload in frames if kind != 7)
    assert len(farewells) == sum(kind == 7 for kind, _ in frames)


def test_a_farewell_is_read() -> None:
    data = SETTINGS + GOODBYE + encoded(6, b"pingping")
    for cut in range(len(data)):
        assert sieved(data, [cut]) == (SETTINGS + encoded(6, b"pingping"), [Farewell(5, 11, "calm down")])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", Farewell(0, 1)),
        (b"\xff" * 8, Farewell(0x7FFFFFFF, 0xFFFFFFFF)),
        (bytes(8) + b"x" * 5000, Farewell(0, 0, "x" * 200)),
    ],
)
def test_an_odd_farewell_is_bounded(payload: bytes, expected: Farewell) -> None:
    assert sieved(SETTINGS + encoded(7, payload), []) == (SETTINGS, [expected])


@pytest.mark.parametrize("data", [b"SSH-2.0-x", b"\xff" * 9, GOODBYE, SETTINGS + encoded(0, b"x" * 16385)])
def test_what_is_no_http_2_is_found_in_its_first_bytes(data: bytes) -> None:
    with pytest.raises(Misfit):
        Sieve().feed(data)


def test_frames_without_data_are_counted_however_they_are_cut() -> None:
    for kind in (1, 3, 4, 6, 8, 9, 200):
        sieve = Sieve()
        sieve.feed(SETTINGS)
        with pytest.raises(Flood):
            sieve.feed(encoded(kind, b"12345678") * BUDGET)
        sieve = Sieve()
        sieve.feed(SETTINGS)
        for _ in range(BUDGET - 1):
            for place in (slice(0, 4), slice(4, None)):
                sieve.feed(encoded(kind, b"12345678")[place])
        with pytest.raises(Flood):
            sieve.feed(encoded(kind, b"12345678"))


@pytest.mark.parametrize("payload", [b"", b"1234567"])
def test_data_of_a_few_bytes_a_frame_is_a_flood(payload: bytes) -> None:
    sieve = Sieve()
    with pytest.raises(Flood):
        sieve.feed(SETTINGS + encoded(0, payload, 1) * BUDGET)


def test_padding_is_no_data() -> None:
    frame = bytearray(encoded(0, b"\xff" + bytes(255), 1))
    frame[4] = 0x8
    with pytest.raises(Flood):
        Sieve().feed(SETTINGS + bytes(frame) * BUDGET)


def test_data_and_refills_pay_for_frames() -> None:
    sieve = Sieve()
    sieve.feed(SETTINGS)
    for _ in range(10):
        sieve.feed(encoded(6, b"pingping") * 1000)
        sieve.feed(encoded(0, b"x" * 8080, 1))
    for _ in range(3):
        sieve.refill()
        sieve.feed(encoded(6, b"pingping") * BUDGET)
    with pytest.raises(Flood):
        sieve.feed(SETTINGS)
