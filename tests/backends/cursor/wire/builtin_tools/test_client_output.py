from __future__ import annotations

import pytest

from toolwire.backends.cursor.wire.builtin_tools.client_output import (
    Said,
    is_failed_read,
    is_failed_search,
    is_refusal,
    is_timeout,
    said,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n", Said("plain\n")),
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 3\nOriginal token count: 5\nOutput:\nx\n", Said("x\n", 3)),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nx", Said("x", 0)),
        ("Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 3\nOutput:\n", Said("", 1)),
        ("Exit code 2\nls: no", Said("ls: no", 2)),
        ("Error: Exit code 1\nx", Said("x", 1)),
        ("x\n\nCommand exited with code 7", Said("x", 7)),
        ("Output: x\nExit Code: 4\n", Said("Output: x", 4)),
        ('{"output":"x","metadata":{"exit_code":9,"duration_seconds":0.1}}', Said("x", 9)),
        ('{"output":"x"}', Said('{"output":"x"}')),
        ("{not json", Said("{not json")),
        ("Exit code 99999999999999999999999\n", Said("Exit code 99999999999999999999999\n")),
    ],
)  # fmt: skip
def test_the_exit_code_is_heard(text: str, expected: Said) -> None:
    assert said(text) == expected


def test_what_still_runs_keeps_its_words() -> None:
    text = (
        "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOriginal token count: 0\nOutput:\nx\n"
    )
    assert said(text) == Said(text)


def test_a_code_in_the_middle_is_output() -> None:
    text = "Exit Code: 4\n" + "x" * 300
    assert said("first\n" + text) == Said("first\n" + text)


@pytest.mark.parametrize(
    "text",
    ["Error: no", "<tool_use_error>File has not been read yet</tool_use_error>", "File not found: /x", "You must read the file first",
     "The user doesn't want to proceed", "ENOENT: no such file or directory, open '/x'"],
)  # fmt: skip
def test_words_of_refusal(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ["Wrote file successfully.", "errors.py", "", "Error: " + "long " * 1000, "a\nerror"])
def test_words_of_success(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error: the disk is on fire",
        "Error: file not found\n",
        "Error: a\nError: b\n",
        "error.log",
        "invalid = 5\n",
        "<error>\n<code>5</code>\n</error>",
        "Failed tests:\n  a not found",
        "",
    ],
)
def test_a_file_may_begin_like_an_error(text: str) -> None:
    assert not is_failed_read(text, "/w/notes.txt")


@pytest.mark.parametrize(
    "text",
    [
        "Error: File not found: /w/notes.txt",
        "Error: notes.txt is locked",
        "Error: Cannot read binary file",
        "ENOENT: no such file or directory, open '/w/notes.txt'",
        "<tool_use_error>File does not exist.\nNote: look around.</tool_use_error>",
    ],
)
def test_an_error_message_in_the_place_of_a_file(text: str) -> None:
    assert is_failed_read(text, "/w/notes.txt")


@pytest.mark.parametrize(
    "text", ["error.log", "error.py:1:x", "error/a.py\nfailed/b.py", "Error handling\nin Go", "invalid"]
)
def test_names_lines_and_pages_may_begin_like_an_error(text: str) -> None:
    assert not is_failed_search(text)


@pytest.mark.parametrize("text", ["Error: Directory not found: /w", "Failed to list", "ENOENT: no such file\n"])
def test_an_error_message_in_the_place_of_a_list(text: str) -> None:
    assert is_failed_search(text)


def test_words_about_time() -> None:
    assert is_timeout("x\n<bash_metadata>\nbash tool terminated command after exceeding timeout 5 ms\n</bash_metadata>")
    assert is_timeout("Command timed out after 2m 0.0s")
    assert not is_timeout("in time")
