from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.tools.workspace.using import Box, text_of
from toolwire.tools.workspace import Limits
from toolwire.types import Media

pytestmark = pytest.mark.slow

_IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 ",
}


def test_lines_have_numbers(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt", "one\ntwo\n\nfour")
    assert box.text("read", path="a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"


def test_a_piece_says_where_to_go_on(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.txt", "".join(f"{number}\n" for number in range(1, 11)))
    assert (
        box.text("read", path="a.txt", offset=3, limit=2)
        == "     3\t3\n     4\t4\n[lines 3 to 4 of 10; go on with offset 5]"
    )
    assert "go on" not in box.text("read", path="a.txt", offset=9.0, limit=20)
    assert "has 10 lines, found offset 11" in box.refusal("read", path="a.txt", offset=11)


def test_every_line_of_a_long_file_is_reached_by_going_on(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(lines=7, output_characters=60))
    lines = [f"line {number} " + "x" * (number % 13) for number in range(100)]
    box.file("a.txt", "\n".join(lines))
    seen, offset = list[str](), 1
    while True:
        text = box.text("read", path="a.txt", offset=offset)
        seen += [line.split("\t", 1)[1] for line in text.splitlines() if "\t" in line]
        if "go on" not in text:
            break
        offset = int(text.rpartition("offset ")[2].rstrip("]"))
    assert seen == lines


def test_a_long_line_is_cut_and_told(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(line_characters=10))
    box.file("a.txt", "x" * 5000)
    assert box.text("read", path="a.txt") == "     1\txxxxxxxxxx [... 4,990 more characters in this line]"


def test_one_line_comes_however_little_may_be_given(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(output_characters=1))
    box.file("a.txt", "one\ntwo\n")
    assert box.text("read", path="a.txt").startswith("     1\tone\n[lines 1 to 1 of 2")


@pytest.mark.parametrize(
    ("data", "shown", "note"),
    [
        (b"", "[the file is empty]", ""),
        (b"\xef\xbb\xbfone\n", "     1\tone", "byte order mark"),
        (b"one\r\ntwo\r\n", "     1\tone\n     2\ttwo", "CRLF"),
        (b"caf\xe9\n", "     1\tcaf\ufffd", "no UTF-8"),
        ("\ufeffhé\n".encode("utf-16-le"), "     1\thé", "UTF-16"),
        (b"GIF89a is a format\n", "     1\tGIF89a is a format", ""),
    ],
)
def test_texts_of_all_kinds(tmp_path: Path, data: bytes, shown: str, note: str) -> None:
    box = Box(tmp_path)
    box.file("a", data)
    text = box.text("read", path="a")
    assert text.startswith(shown)
    assert note in text[len(shown) :]


@pytest.mark.parametrize(("mime", "data"), _IMAGES.items())
def test_images_come_as_images(tmp_path: Path, mime: str, data: bytes) -> None:
    box = Box(tmp_path, limits=Limits(image_bytes=1000))
    box.file("pictures/a.dat", data)
    output = box.use("read", path="pictures/a.dat")
    assert output.parts[1] == Media(kind="image", mime=mime, data=base64.b64encode(data).decode(), name="a.dat")
    assert text_of(output).startswith(f"pictures/a.dat: {mime}, ")
    box.file("b", data + b"\0" * 1000)
    assert "not shown" in text_of(box.use("read", path="b"))
    assert len(box.use("read", path="b").parts) == 1


def test_other_binary_files_are_told_by_type_and_size(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a.pdf", b"%PDF-1.7\n\0\1\2")
    box.file("a.bin", b"ab\0cd")
    assert "application/pdf, 12 B" in box.text("read", path="a.pdf")
    assert "application/octet-stream, 5 B" in box.text("read", path="a.bin")


def test_too_large_a_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    box = Box(tmp_path, limits=Limits(file_bytes=10))
    box.file("a", "x" * 11)
    assert "expected at most 10" in box.refusal("read", path="a")
    assert "is a folder" in box.refusal("read", path="")
    (box.root / "f").mkdir()
    assert "is a folder" in box.refusal("read", path="f")
