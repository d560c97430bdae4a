"""Sealed boxes: they open with their secret and context, and with nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.sealed_box import NONCE, open_box, seal

OLD, NEW = b"a secret of the past", b"a secret of today"
NONCE_1 = b"0" * NONCE


@given(st.binary(max_size=300), st.binary(min_size=NONCE, max_size=NONCE))
def test_a_box_opens_with_its_secret_and_does_not_show_its_content(data: bytes, nonce: bytes) -> None:
    box = seal(data, NEW, b"tenant", nonce)
    assert open_box(box, [NEW], b"tenant") == data
    assert len(data) < 8 or data not in box[NONCE:]


def test_after_a_rotation_old_boxes_open() -> None:
    box = seal(b"text", OLD, b"tenant", NONCE_1)
    assert open_box(box, [NEW, OLD], b"tenant") == b"text"
    assert open_box(box, [NEW], b"tenant") is None


def test_a_box_of_one_tenant_is_useless_to_another() -> None:
    assert open_box(seal(b"text", NEW, b"tenant", NONCE_1), [NEW], b"other") is None


def test_one_changed_bit_anywhere_is_noticed() -> None:
    box = seal(b"text", NEW, b"tenant", NONCE_1)
    for place in range(len(box)):
        for bit in range(8):
            changed = bytearray(box)
            changed[place] ^= 1 << bit
            assert open_box(bytes(changed), [NEW], b"tenant") is None


def test_what_is_too_short_is_no_box() -> None:
    box = seal(b"", NEW, b"", NONCE_1)
    assert open_box(box, [NEW], b"") == b""
    for size in range(len(box)):
        assert open_box(box[:size], [NEW], b"") is None
