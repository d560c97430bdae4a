"""Media: addresses both ways, and base64 in any form made plain."""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64encode
from textwrap import wrap
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.shared.media.data import (
    BadMedia,
    data_url,
    file_name,
    from_data,
    from_text,
    from_url,
    normalize,
    plain_base64,
    size_of,
    split_data_url,
    text_in,
)
from toolwire.types import Media

PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(40))).decode()
PDF = b64encode(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n").decode()


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("data:image/png;base64,aGk=", ("image/png", "aGk=")),
        ("DATA:image/png;BASE64,aGk=", ("image/png", "aGk=")),
        ("data:text/plain;charset=utf-8;base64,aGk=", ("text/plain", "aGk=")),
        ("data:text/plain;charset=ISO-8859-1;base64,/A==", ("text/plain", "w7w=")),
        ("data:text/plain;charset=idna;base64,/A==", ("text/plain", "/A==")),
        ("data:text/plain;charset=latin-1;base64,!", ("text/plain", "!")),
        ("data:;base64,aGk=", ("", "aGk=")),
        ("data:,h%69", ("text/plain", "aGk=")),
        ("data:image/svg+xml;utf8,<svg a=','/>", ("image/svg+xml", b64encode(b"<svg a=','/>").decode())),
        ("data:text/plain,\ud800", ("text/plain", b64encode(b"?").decode())),
        ("data:image/png;base64", None),
        ("https://a", None),
        ("", None),
    ],
)
def test_data_urls(url: str, parts: tuple[str, str] | None) -> None:
    assert split_data_url(url) == parts
    medium = from_url("image", url, detail="low")
    assert (medium.data is None) == (parts is None)
    assert medium.detail == "low"
    if parts is None:
        assert data_url(medium) == url


def test_addresses() -> None:
    assert data_url(Media(kind="file", data="aGk=")) == "data:application/octet-stream;base64,aGk="
    assert (
        data_url(Media(kind="image", mime='image/jpg"\n', data="aGk=")) == "data:application/octet-stream;base64,aGk="
    )
    assert data_url(Media(kind="file", file_id="f")) is None


def test_members_for_data_hold_data_urls_bare_base64_or_addresses() -> None:
    assert from_data("file", "aGk=", name="a") == Media(kind="file", data="aGk=", name="a")
    assert from_data("file", "data:text/csv;base64,aGk=") == Media(kind="file", mime="text/csv", data="aGk=")
    assert from_data("file", "HTTPS://a/b.pdf") == Media(kind="file", url="HTTPS://a/b.pdf")


@given(st.binary(max_size=80))
def test_base64_in_any_form_means_the_same_bytes(raw: bytes) -> None:
    plain, safe = b64encode(raw).decode(), urlsafe_b64encode(raw).decode()
    assert plain_base64(plain) is plain
    for form in (
        safe,
        plain.rstrip("="),
        "\r\n".join(wrap(plain, 19)),
        quote(plain, safe=""),
        f" {safe.rstrip('=')}\t",
    ):
        assert plain_base64(form) == plain
    assert size_of(Media(kind="file", data=plain)) == len(raw)


@pytest.mark.parametrize("data", ["a", "aGk!", "aG=k", "aGk=aGk=", "é", "aaaaa", "\ud800", "====a", "%zz"])
def test_what_is_no_base64_is_refused(data: str) -> None:
    with pytest.raises(BadMedia, match="its data"):
        plain_base64(data)


@pytest.mark.parametrize(
    ("given", "kind", "mime"),
    [
        (Media(kind="image", mime="image/jpg", data="aGk="), "image", "image/jpeg"),
        (Media(kind="image", mime="image/jpeg", data=PNG), "image", "image/png"),
        (Media(kind="image", data=PNG), "image", "image/png"),
        (Media(kind="image", url=PNG), "image", "image/png"),
        (Media(kind="image", data=f"data:image/gif;base64,{PNG}"), "image", "image/png"),
        (Media(kind="file", mime="application/octet-stream", data=PNG), "image", "image/png"),
        (Media(kind="image", mime="application/pdf", data=PDF), "file", "application/pdf"),
        (Media(kind="file", name="notes.md", data="aGk="), "file", "text/markdown"),
        (Media(kind="file", name="Makefile", data="aGk="), "file", "text/plain"),
        (Media(kind="file", name="a.bin", data="AAEC"), "file", "application/octet-stream"),
        (Media(kind="file", data=""), "file", "text/plain"),
        (Media(kind="image", data="AAEC"), "image", "application/octet-stream"),
        (Media(kind="file", name="a.svg", data="PHN2Zz4="), "file", "image/svg+xml"),
        (Media(kind="file", mime="audio/mpeg", data="AAEC"), "audio", "audio/mp3"),
        (Media(kind="file", url="https://a/b.png?c=.pdf"), "image", "image/png"),
        (Media(kind="image", url="https://a/b"), "image", ""),
        (Media(kind="image", url="http://[a"), "image", ""),
        (Media(kind="file", file_id="f"), "file", ""),
    ],
)
def test_what_a_medium_really_is(given: Media, kind: str, mime: str) -> None:
    media = normalize(given)
    assert (media.kind, media.mime) == (kind, mime)


@pytest.mark.parametrize(
    "media",
    [Media(kind="image", data=""), Media(kind="audio", data="!"), Media(kind="image", url="data:image/png;base64")],
)
def test_broken_media_say_what_is_wrong(media: Media) -> None:
    with pytest.raises(BadMedia, match=r"expected|base64"):
        normalize(media)


def test_texts() -> None:
    assert text_in(from_text("grüße")) == "grüße"
    for raw in (b"\xef\xbb\xbfhi", "hi".encode("utf-16"), b"hi"):
        assert text_in(Media(kind="file", data=b64encode(raw).decode())) == "hi"
    assert text_in(Media(kind="file", data=b64encode(b"\xff!").decode())) == "\ufffd!"
    assert text_in(Media(kind="file", data="a")) is None


@pytest.mark.parametrize(
    ("name", "mime", "written"),
    [
        ("", "application/pdf", "file.pdf"),
        ("Report 1.2", "application/pdf", "Report 1.2.pdf"),
        ("a.PDF", "application/pdf", "a.PDF"),
        ("", "text/plain", "file.txt"),
        ("", "application/x-sh", "file.txt"),
        ("main.rs", "text/plain", "main.rs"),
        ("", "application/octet-stream", "file"),
        ("n" * 999, "", "n" * 200),
    ],
)
def test_names_end_as_their_type_does(name: str, mime: str, written: str) -> None:
    assert file_name(Media(kind="file", name=name, mime=mime, data="")) == written


@given(
    st.lists(st.sampled_from([b"%", b"%41", b"%c3%A9", b"=", b"=41", b"\r\n", b" ", b"_", b"x", b"\xff", b"\0"])).map(
        b"".join
    )
)
def test_percent_encoding_is_undone_as_everybody_does(raw: bytes) -> None:
    data = split_data_url("data:text/plain," + raw.decode("latin-1"))
    assert data is not None
    assert b64decode(data[1]) == unquote_to_bytes(raw.decode("latin-1").encode())


def test_the_type_of_a_data_url_ends_soon() -> None:
    assert split_data_url("data:" + ";a=b" * 2000 + ",x") is None
