from __future__ import annotations

import pytest

from toolwire.tools.workspace.files import EditedFile, WrittenFile
from toolwire.tools.workspace.folders import FoundFiles, SearchLimit, Tree, TreeFolder, TreeItem
from toolwire.tools.workspace.grep import Hit, Matches
from toolwire.tools.workspace.limits import Limits
from toolwire.tools.workspace.render import (
    cut_line,
    fit_lines,
    render_command,
    render_edited,
    render_found_files,
    render_matches,
    render_size,
    render_tree,
    render_written,
)
from toolwire.tools.workspace.shell import CommandResult
from toolwire.types import Text


def test_sizes_lines_and_cuts() -> None:
    assert [render_size(999), render_size(1500), render_size(2_500_000)] == ["999 B", "1.5 kB", "2.5 MB"]
    assert fit_lines(["abc", "de", "f"], 7) == ["abc", "de"]
    assert cut_line("abcdef", 6) == "abcdef"
    assert cut_line("abcdef", 2) == "ab [... 4 more characters in this line]"


def test_a_tree_shows_what_an_entry_is() -> None:
    items = (
        TreeItem(name="a", parts=("a",), kind="folder", is_ignored=True),
        TreeItem(name="b\n", parts=("b\n",), kind="file", is_ignored=False, size=1500),
        TreeItem(name="c", parts=("c",), kind="link", is_ignored=False, target="b"),
        TreeItem(name="d", parts=("d",), kind="gone", is_ignored=True),
    )
    tree = Tree(path=".", base=(), folders={(): TreeFolder(items, 3)}, is_cut=True)
    assert render_tree(tree, Limits()).splitlines() == [
        "./",
        "  a/ (ignored)",
        "  b\\x0a  1.5 kB",
        "  c -> b",
        "  d (gone)",
        "  [3 more here; use glob with a pattern]",
        "[not every folder is shown; list a folder below, or ask for less depth]",
    ]


def test_changes_are_reported_in_one_sentence() -> None:
    assert render_written(WrittenFile(path="a", size=3, replaced_bytes=None)) == "wrote a (3 B, new)."
    assert render_written(WrittenFile(path="a", size=3, replaced_bytes=0)) == "wrote a (3 B, replaced, before 0 B)."
    assert render_edited(EditedFile(path="a", count=1, line=1200)) == "edited a: 1 passage, in line 1,200."


@pytest.mark.parametrize(
    ("stopped", "note"),
    [
        ("seconds", "stopped after 20 seconds"),
        ("scanned", "stopped after 1,000,000 files and folders"),
        ("depth", "folders more than 32 deep were left out"),
    ],
)
def test_the_limit_that_ended_a_search_is_a_note(stopped: SearchLimit, note: str) -> None:
    found = FoundFiles(paths=["a"], count=1, stopped=stopped)
    assert render_found_files(found, Limits()) == f"a\n[{note}; there may be more, so give a folder as path]"
    matches = Matches(files={}, is_cut=False, stopped=stopped, too_large=2)
    assert render_matches(matches, "files", Limits()).splitlines() == [
        "[no line matches]",
        f"[{note}; give a folder as path, or a simpler pattern]",
        "[2 files of more than 16,777,216 bytes were not searched]",
    ]


def test_matches_are_lines_files_or_counts() -> None:
    hits = [Hit(0, 1, False, "x"), Hit(0, 2, True, "y")]
    found = Matches(files={"a": hits}, is_cut=True, stopped="", too_large=0)
    more = "[there are more; use a narrower pattern, a glob or a folder as path]"
    assert render_matches(found, "lines", Limits()).splitlines() == ["a-1-x", "a:2:y", more]
    assert render_matches(found, "files", Limits()).splitlines() == ["a", more]
    assert render_matches(found, "count", Limits()).splitlines() == ["a:2", more]


def test_the_end_of_a_command_is_its_last_line() -> None:
    result = CommandResult(
        head="x",
        tail="y",
        left_out=1234,
        code=-9,
        stopped="",
        limit=1,
        seconds=0.25,
        confinement="sandboxed",
        left_running=True,
    )
    output = render_command(result, Limits())
    assert output.parts == (
        Text(
            text="x\n[... 1,234 bytes left out ...]\ny\n"
            "[ended by signal 9; 0.2 s; sandboxed; what it had left running in the background was ended]"
        ),
    )
    assert not output.is_error
