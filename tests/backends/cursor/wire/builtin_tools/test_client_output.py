from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire.builtin_tools.client_output import (
    CommandOutput,
    FileContent,
    command_output,
    file_content,
    is_failed_read,
    is_failed_search,
    is_refusal,
    is_timeout,
    says_numbers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n", CommandOutput("plain\n")),
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 3\nOriginal token count: 5\nOutput:\nx\n", CommandOutput("x\n", 3)),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nx", CommandOutput("x", 0)),
        ("Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 3\nOutput:\n", CommandOutput("", 1)),
        ("Exit code 2\nls: no", CommandOutput("ls: no", 2)),
        ("Error: Exit code 1\nx", CommandOutput("x", 1)),
        ("x\n\nCommand exited with code 7", CommandOutput("x", 7)),
        ("Output: x\nExit Code: 4\n", CommandOutput("Output: x", 4)),
        ('{"output":"x","metadata":{"exit_code":9,"duration_seconds":0.1}}', CommandOutput("x", 9)),
        ('{"output":"x"}', CommandOutput('{"output":"x"}')),
        ("{not json", CommandOutput("{not json")),
        ("Exit code 99999999999999999999999\n", CommandOutput("Exit code 99999999999999999999999\n")),
    ],
)  # fmt: skip
def test_the_exit_code_is_heard(text: str, expected: CommandOutput) -> None:
    assert command_output(text) == expected


def test_what_still_runs_keeps_its_words() -> None:
    text = (
        "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 42\nOriginal token count: 0\nOutput:\nx\n"
    )
    assert command_output(text) == CommandOutput(text)


def test_a_code_in_the_middle_is_output() -> None:
    text = "Exit Code: 4\n" + "x" * 300
    assert command_output("first\n" + text) == CommandOutput("first\n" + text)


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


_LINES = st.lists(
    st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20), min_size=1, max_size=30
)


def tagged(lines: list[str], end: str = "") -> str:
    """As OpenCode 1.18 writes a file."""
    numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
    end = end or f"(End of file - total {len(lines)} lines)"
    return f"<path>/w/a</path>\n<type>file</type>\n<content>\n{numbered}\n\n{end}\n</content>"


@given(_LINES)
def test_a_file_in_tags_is_the_file(lines: list[str]) -> None:
    cut = ("... (line truncated to 2000 chars)", "... [truncated]", "... (line truncated)")
    assert file_content(tagged(lines)) == FileContent(
        "".join(f"{line}\n" for line in lines), is_whole=not any(line.endswith(cut) for line in lines)
    )


@given(_LINES)
def test_a_file_by_cat_is_the_file(lines: list[str]) -> None:
    for form in ("{:>6}\u2192{}", "{:>6}\t{}", "{}\t{}"):
        text = "\n".join(form.format(number, line) for number, line in enumerate(lines, 1))
        found = file_content(text + "\n\n<system-reminder>\nBe careful.\n</system-reminder>\n", is_numbered=True)
        assert found.is_file
        assert found.text.rstrip("\n") == "\n".join(lines).rstrip("\n")


@pytest.mark.parametrize("form", ["{}\t{}", "{:>6}\t{}", "{:>6}\u2192{}"])
def test_an_empty_last_line_may_have_lost_all_but_its_number(form: str) -> None:
    text = "\n".join(form.format(number, line) for number, line in enumerate(["a", "", ""], 1)).rstrip(" \t\u2192")
    assert text.endswith("\n3") or text.endswith(" 3")
    reminder = "\n\n<system-reminder>\n<total_tokens>900 tokens left</total_tokens>\n</system-reminder>"
    assert file_content(text + reminder, is_numbered=True) == FileContent("a\n\n")
    assert not file_content(f"{text}4{reminder}", is_numbered=True).is_file
    assert file_content(text) == FileContent(text)


def test_the_older_form_of_tags() -> None:
    text = "<file>\n00001| a\n00002|   b\n\n(End of file - total 2 lines)\n</file>"
    assert file_content(text) == FileContent("a\n  b\n")


def test_numbers_count_from_where_it_was_asked() -> None:
    assert file_content("     5\u2192a\n     6\u2192b", first=5) == FileContent("a\nb\n")
    assert file_content("     5\u2192a\n     6\u2192b") == FileContent("     5\u2192a\n     6\u2192b")


@pytest.mark.parametrize(
    "text", ["1: a\n3: b\n", "1\ta\nb\n", "     1\u2192a\nplain\n", "2: a\n", "00001| a\n00001| b\n"]
)
def test_numbers_that_do_not_count_on_are_the_files_own(text: str) -> None:
    assert file_content(text) == FileContent(text)


@pytest.mark.parametrize("text", ["1: a\n2: b\n", "1\ta\n2\tb\n", "1 | a\n2 | b\n"])
def test_ordinary_numbers_are_the_files_own_unless_the_tool_says_that_it_numbers(text: str) -> None:
    assert file_content(text) == FileContent(text)
    assert file_content(text, is_numbered=True) == FileContent("a\nb\n")


@pytest.mark.parametrize(
    "end",
    [
        "(Output capped at 50 KB. Showing lines 1-2. Use offset=3 to continue.)",
        "(Showing lines 1-2 of 900. Use offset=3 to continue.)",
        "(File has more lines. Use 'offset' parameter to read beyond line 2)",
    ],
)
def test_a_notice_that_lines_are_missing_is_heeded(end: str) -> None:
    assert file_content(tagged(["a", "b"], end)) == FileContent("a\nb\n", is_whole=False)


@pytest.mark.parametrize(
    "text",
    [
        "a\n\n[Showing lines 1-2 of 50. Use offset=3 to continue.]",
        "a\n... 500 lines truncated ...\nb\n",
        "a\n\u202612000 tokens truncated\u2026\nb",
        "a\n[... omitted 244 of 500 lines ...]\n\nb",
        "IMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 9 total lines.\n",
        "Showing lines 1-2 of 9 total lines.\n\n---\n\na\n",
        "a\nThe tool call succeeded but the output was truncated. Full output saved to: /x\n",
        "     1\u2192a\n<system-reminder>\nNote: the file was too large and has been truncated to 2000 lines.\n</system-reminder>",
        "     1\u2192" + "x" * 2000 + "... [truncated]",
        "\n".join(f"{number:>6}\u2192x" for number in range(1, 2001)),
    ],
)
def test_a_file_that_was_cut_is_never_whole(text: str) -> None:
    assert not file_content(text).is_whole


def test_two_thousand_lines_and_the_word_that_this_is_all() -> None:
    assert file_content(tagged(["x"] * 2000)).is_whole


def test_what_is_no_file_where_lines_are_numbered() -> None:
    assert not file_content("File does not exist.", is_numbered=True).is_file
    assert file_content("File does not exist.").is_file


def test_an_empty_file() -> None:
    warning = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    assert file_content(warning, is_numbered=True) == FileContent("")
    empty = "<path>/w/a</path>\n<type>file</type>\n<content>\n\n\n(End of file - total 0 lines)\n</content>"
    assert file_content(empty) == FileContent("")


def test_a_file_about_reminders_is_kept() -> None:
    text = "<system-reminder>a</system-reminder>\nlast\n"
    assert file_content(text) == FileContent(text)


def test_the_emptiness_behind_the_last_break_may_be_numbered() -> None:
    assert file_content("     1\u2192a\n     2\u2192") == FileContent("a\n")


def test_who_numbers_lines() -> None:
    assert says_numbers("Read", "")
    assert says_numbers("view", "Results are in cat -n format, with line numbers starting at 1")
    assert not says_numbers("read_file", "Reads a file.")


def test_much_of_nothing_takes_no_time() -> None:
    for text in ("\n" * 500_000, "<system-reminder>" * 50_000, "(" * 500_000, "1: \n" * 200_000):
        assert file_content(text, is_numbered=True) is not None
