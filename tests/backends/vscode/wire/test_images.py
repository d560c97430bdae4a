"""Images: whole ones of four types go, all others are named with why they do not."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.vscode.wire.pictures import PNG, _size, image
from toolwire.backends.vscode.wire.images import TYPES, is_plain, objection
from toolwire.types import Media

GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
WEBP = b64decode("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAgA0JaQAA3AA/vuUAAA=")
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    + b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00"
    + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x7f\xff\xd9"
)
WHOLE = {"image/png": PNG, "image/gif": GIF, "image/webp": WEBP, "image/jpeg": JPEG}


@pytest.mark.parametrize("mime", sorted(WHOLE))
def test_whole_images_go(mime: str) -> None:
    assert set(WHOLE) == TYPES
    assert objection(image(mime, WHOLE[mime])) == ""


@pytest.mark.parametrize("mime", sorted(WHOLE))
def test_what_ends_in_its_head_does_not_go(mime: str) -> None:
    for length in range(12):
        assert objection(image(mime, WHOLE[mime][:length])) != ""


@pytest.mark.parametrize(
    "data",
    [
        PNG.replace(_size(1, 1), _size(0, 1)),
        PNG[:33],
        WEBP[:-4],
        JPEG[: JPEG.index(b"\xff\xda")],
        b"\xff\xd8" + b"\xff" * 100,
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 5000,
    ],
    ids=["no width", "no picture", "cut", "no scan", "fill", "endless"],
)
def test_broken_images_do_not_go(data: bytes) -> None:
    assert all(objection(image(mime, data)) for mime in TYPES)


def test_other_types_do_not_go() -> None:
    assert "image/bmp" in objection(image("image/bmp", b"BM"))
    assert objection(Media(kind="image", mime="image/png", data="%%%")) == "its data is no base64"
    assert objection(Media(kind="image", mime="image/png")) != ""


@given(st.sampled_from(sorted(TYPES)), st.binary(max_size=80), st.integers(0, 40))
def test_any_bytes_get_a_verdict(mime: str, data: bytes, kept: int) -> None:
    assert isinstance(objection(image(mime, WHOLE[mime][:kept] + data)), str)


@pytest.mark.parametrize(
    ("data", "is_right"), [("", True), ("QQ==", True), ("QQ =", False), ("Q\n", False), ("é", False)]
)
def test_base64_is_distinguished(data: str, is_right: bool) -> None:
    assert is_plain(data) is is_right
