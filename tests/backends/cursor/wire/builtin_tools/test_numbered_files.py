from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire.builtin_tools.numbered_files import Content, content_of, says_numbers

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
    assert content_of(tagged(lines)) == Content(
        "".join(f"{line}\n" for line in lines), is_whole=not any(line.endswith(cut) for line in lines)
    )


@given(_LINES)
def test_a_file_by_cat_is_the_file(lines: list[str]) -> None:
    for form in ("{:>6}\u2192{}", "{:>6}\t{}", "{}\t{}"):
        text = "\n".join(form.format(number, line) for number, line in enumerate(lines, 1))
        found = content_of(text + "\n\n<system-reminder>\nBe careful.\n</system-reminder>\n", is_numbered=True)
        assert found.is_file
        assert found.text.rstrip("\n") == "\n".join(lines).rstrip("\n")


@pytest.mark.parametrize("form", ["{}\t{}", "{:>6}\t{}", "{:>6}\u2192{}"])
def test_an_empty_last_line_may_have_lost_all_but_its_number(form: str) -> None:
    text = "\n".join(form.format(number, line) for number, line in enumerate(["a", "", ""], 1)).rstrip(" \t\u2192")
    assert text.endswith("\n3") or text.endswith(" 3")
    reminder = "\n\n<system-reminder>\n<total_tokens>900 tokens left</total_tokens>\n</system-reminder>"
    assert content_of(text + reminder, is_numbered=True) == Content("a\n\n")
    assert not content_of(f"{text}4{reminder}", is_numbered=True).is_file
    assert content_of(text) == Content(text)


def test_the_older_form_of_tags() -> None:
    text = "<file>\n00001| a\n00002|   b\n\n(End of file - total 2 lines)\n</file>"
    assert content_of(text) == Content("a\n  b\n")


def test_numbers_count_from_where_it_was_asked() -> None:
    assert content_of("     5\u2192a\n     6\u2192b", first=5) == Content("a\nb\n")
    assert content_of("     5\u2192a\n     6\u2192b") == Content("     5\u2192a\n     6\u2192b")


@pytest.mark.parametrize(
    "text", ["1: a\n3: b\n", "1\ta\nb\n", "     1\u2192a\nplain\n", "2: a\n", "00001| a\n00001| b\n"]
)
def test_numbers_that_do_not_count_on_are_the_files_own(text: str) -> None:
    assert content_of(text) == Content(text)


@pytest.mark.parametrize("text", ["1: a\n2: b\n", "1\ta\n2\tb\n", "1 | a\n2 | b\n"])
def test_ordinary_numbers_are_the_files_own_unless_the_tool_says_that_it_numbers(text: str) -> None:
    assert content_of(text) == Content(text)
    assert content_of(text, is_numbered=True) == Content("a\nb\n")


@pytest.mark.parametrize(
    "end",
    [
        "(Output capped at 50 KB. Showing lines 1-2. Use offset=3 to continue.)",
        "(Showing lines 1-2 of 900. Use offset=3 to continue.)",
        "(File has more lines. Use 'offset' parameter to read beyond line 2)",
    ],
)
def test_a_notice_that_lines_are_missing_is_heeded(end: str) -> None:
    assert content_of(tagged(["a", "b"], end)) == Content("a\nb\n", is_whole=False)


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
    assert not content_of(text).is_whole


def test_two_thousand_lines_and_the_word_that_this_is_all() -> None:
    assert content_of(tagged(["x"] * 2000)).is_whole


def test_what_is_no_file_where_lines_are_numbered() -> None:
    assert not content_of("File does not exist.", is_numbered=True).is_file
    assert content_of("File does not exist.").is_file


def test_an_empty_file() -> None:
    warning = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    assert content_of(warning, is_numbered=True) == Content("")
    empty = "<path>/w/a</path>\n<type>file</type>\n<content>\n\n\n(End of file - total 0 lines)\n</content>"
    assert content_of(empty) == Content("")


def test_a_file_about_reminders_is_kept() -> None:
    text = "<system-reminder>a</system-reminder>\nlast\n"
    assert content_of(text) == Content(text)


def test_the_emptiness_behind_the_last_break_may_be_numbered() -> None:
    assert content_of("     1\u2192a\n     2\u2192") == Content("a\n")


def test_who_numbers_lines() -> None:
    assert says_numbers("Read", "")
    assert says_numbers("view", "Results are in cat -n format, with line numbers starting at 1")
    assert not says_numbers("read_file", "Reads a file.")


def test_much_of_nothing_takes_no_time() -> None:
    for text in ("\n" * 500_000, "<system-reminder>" * 50_000, "(" * 500_000, "1: \n" * 200_000):
        assert content_of(text, is_numbered=True) is not None
