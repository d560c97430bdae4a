"""Inflating: whole, in any pieces, cut, joined, and never more at once than a piece."""

from __future__ import annotations

import gzip
import zlib

import pytest

from toolwire.backends.http.inflate import CODINGS, Inflater

TEXT = b"one line of text, " * 500


def inflated(coding: str, *pieces: bytes) -> bytes:
    inflater, found = Inflater(coding), []
    for piece in pieces:
        inflater.feed(piece)
        while data := inflater.take():
            found.append(data)
    inflater.finish()
    return b"".join(found)


def packed(coding: str) -> bytes:
    return zlib.compress(TEXT) if coding == "deflate" else gzip.compress(TEXT)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_pieces_of_any_size_give_the_whole(coding: str, size: int) -> None:
    data = packed(coding)
    assert inflated(coding, *(data[at : at + size] for at in range(0, len(data), size))) == TEXT


def test_deflate_without_its_header() -> None:
    assert inflated("deflate", zlib.compress(TEXT)[2:-4]) == TEXT


def test_members_joined_and_padding_behind_them() -> None:
    assert inflated("gzip", packed("gzip") + packed("gzip") + b"\0\0") == TEXT * 2


def test_data_that_ends_early_is_an_error() -> None:
    with pytest.raises(zlib.error, match="ends early"):
        inflated("gzip", packed("gzip")[:-9])


def test_a_bomb_comes_in_pieces() -> None:
    inflater = Inflater("gzip")
    inflater.feed(gzip.compress(bytes(5_000_000)))
    assert len(inflater.take()) == 256 * 1024
