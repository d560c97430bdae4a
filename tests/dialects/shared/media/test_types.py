"""What a medium is: its first bytes count more than what was said of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.shared.media.types import (
    ending_of,
    is_text,
    looks_like_text,
    normalize_type,
    sniff,
    type_by_name,
    type_of,
)

STARTS = {
    b"\x89PNG\r\n\x1a\n....": "image/png",
    b"\xff\xd8\xff\xe0....": "image/jpeg",
    b"GIF89a....": "image/gif",
    b"RIFF\x10\0\0\0WEBPVP8 ": "image/webp",
    b"RIFF\x10\0\0\0WAVEfmt ": "audio/wav",
    b"RIFF\x10\0\0\0AVI LIST": "",
    b"%PDF-1.4\n": "application/pdf",
    b"\0\0\0\x18ftypheic": "image/heic",
    b"\0\0\0\x18ftypmp42": "",
    b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0": "image/bmp",
    b"BM, said the sergeant": "",
    b"II*\0": "image/tiff",
    b"PK\x03\x04": "",
    b"": "",
}


@pytest.mark.parametrize("head", STARTS)
def test_first_bytes(head: bytes) -> None:
    assert sniff(head) == STARTS[head]


@pytest.mark.parametrize(
    ("declared", "name", "head", "found"),
    [
        ("image/png", "", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("application/octet-stream", "", b"%PDF-1.7", "application/pdf"),
        ("text/plain", "", b"GIF89a is a format.", "text/plain"),
        ("text/plain", "", b"GIF89a\0\1", "image/gif"),
        ("text/plain", "", b"a\0b", "application/octet-stream"),
        ("text/plain", "", b"\xe9t\xe9", "text/plain"),
        ("application/json", "", b"{}", "application/json"),
        ("application/zip", "a.docx", b"PK\x03\x04", "application/zip"),
        ("", "a.docx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("", "a.csv", b"a,b", "text/csv"),
        ("", "a.ts", b"G@\0\0", "application/octet-stream"),
        ("nonsense", "", b"words", "text/plain"),
    ],
)
def test_bytes_before_text_before_names(declared: str, name: str, head: bytes, found: str) -> None:
    assert type_of(declared, name, head) == found


@given(st.text(), st.text(), st.binary(max_size=30))
def test_any_text_and_bytes_have_some_type(declared: str, name: str, head: bytes) -> None:
    found = type_of(declared, name, head)
    assert normalize_type(found) == found != ""


def test_declared_types_lose_their_parameters() -> None:
    assert normalize_type(" Text/Plain; charset=utf-8") == "text/plain"
    assert normalize_type("image/jpg") == "image/jpeg"
    for mime in ("", "image", "image/", "a/b\nc", 'a/"b"', "x" * 70 + "/y"):
        assert normalize_type(mime) == ""


def test_texts_by_type_name_and_look() -> None:
    assert all(map(is_text, ["text/x-anything", "application/json", "application/ld+json", "image/svg+xml"]))
    assert not any(map(is_text, ["", "application/pdf", "image/png", "application/octet-stream"]))
    assert type_by_name("src/main.rs") == "text/plain"
    assert type_by_name("a.PNG") == "image/png"
    assert type_by_name("no-dot") == type_by_name("a.unheard") == ""
    assert looks_like_text("grüße 😀".encode()[:-2])
    assert not looks_like_text(b"\x00")
    assert not looks_like_text(b"\xff\xff")


def test_endings() -> None:
    assert ending_of("image/jpeg") == ".jpg"
    assert ending_of("text/plain") == ending_of("text/x-rust") == ".txt"
    assert ending_of("application/octet-stream") == ""
