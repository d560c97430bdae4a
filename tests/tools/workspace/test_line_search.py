from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.tools.workspace import line_search

pytestmark = pytest.mark.slow


def run(folder: Path, content: bytes, *options: str) -> tuple[int, list[str], str]:
    place = folder / "a"
    place.write_bytes(content)
    file = os.open(place, os.O_RDONLY)
    try:
        program = [sys.executable, "-I", "-S", line_search.__file__, *options, str(file)]
        done = subprocess.run(program, pass_fds=[file], capture_output=True, check=False)
    finally:
        os.close(file)
    lines = done.stdout.decode().split("\n")[:-1]
    return done.returncode, [line.removeprefix(f"{file}\0") for line in lines], done.stderr.decode()


def test_lines_and_what_is_around_them(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfone\r\ntwo\nthree\nfour\nfive"
    assert run(tmp_path, content, "t", "0", "0", "0", "0") == (0, ["2:two", "3:three"], "")
    assert run(tmp_path, content, "^one$|five", "0", "1", "0", "0")[1] == ["1:one", "2-two", "4-four", "5:five"]
    assert run(tmp_path, content, "O", "1", "1", "2", "0")[1] == ["1:one", "2:two", "3-three"]


def test_counts_and_bounds(tmp_path: Path) -> None:
    assert run(tmp_path, b"a\n" * 5, "a", "0", "0", "0", "1")[1] == ["5"]
    assert run(tmp_path, b"a\n" * 5, "a", "0", "0", "2", "0")[1] == ["1:a", "2:a"]
    assert run(tmp_path, b"a\n", "b", "0", "0", "0", "1") == (1, [], "")


def test_an_invalid_pattern_is_reported(tmp_path: Path) -> None:
    code, lines, error = run(tmp_path, b"a\n", "(", "0", "0", "0", "0")
    assert (code, lines) == (2, [])
    assert "unterminated" in error
