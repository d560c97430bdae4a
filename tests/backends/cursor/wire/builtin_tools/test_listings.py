from __future__ import annotations

from typing import Any

import pytest

from toolwire.backends.cursor.wire.builtin_tools.listings import extension, files_in, folder_in, grep_result, tree_in
from toolwire.backends.cursor.wire.builtin_tools.requests import ToolRequest


def request_for(**values: Any) -> ToolRequest:
    return ToolRequest("grep", {"pattern": "x", **values})


def lines(text: str, **values: Any) -> list[tuple[str, int, str]]:
    content = grep_result(text, request_for(**values)).success.workspace_results["."].content
    return [(file.file, line.line_number, line.content) for file in content.matches for line in file.matches]


@pytest.mark.parametrize(
    "text",
    [
        "- /w/\n  - src/\n    - a.py\n    - b.py\n  - c.txt\n",
        "/w/\n  src/\n    a.py\n    b.py\n  c.txt",
        "/w\n  src/\n    a.py\n    b.py\n  c.txt\n\n(Results are truncated)",
    ],
)
def test_a_tree_by_its_indents(text: str) -> None:
    root = tree_in(text, "/w")
    assert [file.name for file in root.children_files] == ["c.txt"]
    (source,) = root.children_dirs
    assert (source.abs_path, [file.name for file in source.children_files]) == ("/w/src", ["a.py", "b.py"])
    assert (root.num_files, dict(root.full_subtree_extension_counts)) == (3, {".txt": 1, ".py": 2})


def test_a_flat_list() -> None:
    root = tree_in("Directory listing for /w:\n[DIR] src\na.py\n", "/w")
    assert [inner.abs_path for inner in root.children_dirs] == ["/w/src"]
    assert not root.children_dirs[0].children_were_processed
    assert [file.name for file in root.children_files] == ["a.py"]


def test_names_alone_are_taken_as_they_are() -> None:
    root = folder_in(" odd\n...\nsub/\n", "/w")
    assert [file.name for file in root.children_files] == [" odd", "..."]
    assert [inner.abs_path for inner in root.children_dirs] == ["/w/sub"]


def test_a_tree_that_is_too_deep_is_no_fault() -> None:
    text = "\n".join(" " * depth + f"d{depth}/" for depth in range(300))
    assert tree_in(text, "/w").num_files == 0
    assert tree_in(text, "/w").SerializeToString()


@pytest.mark.parametrize(
    "text",
    [
        "a.py:3:one\nb.py:4:two: 5\n",
        "Found 2 matches\na.py:\n  Line 3: one\n\nb.py:\n  Line 4: two: 5\n",
        'Found 2 matches for pattern "x":\n---\nFile: a.py\nL3: one\n---\nFile: b.py\nL4: two: 5\n---\n',
    ],
)
def test_lines_by_file_in_the_words_of_several_clients(text: str) -> None:
    assert lines(text) == [("a.py", 3, "one"), ("b.py", 4, "two: 5")]


def test_lines_around_are_distinguished() -> None:
    found = grep_result("a.py-2-before\na.py:3:x\n--\n", request_for(context=1)).success.workspace_results["."].content
    assert [(line.line_number, line.is_context_line) for line in found.matches[0].matches] == [(2, True), (3, False)]
    assert (found.total_lines, found.total_matched_lines) == (2, 1)


def test_lines_become_what_was_asked_for() -> None:
    text = "a.py:3:x\na.py:4:x\nb.py:1:x\n"
    files = grep_result(text, request_for(mode="files_with_matches")).success.workspace_results["."].files
    assert (list(files.files), files.total_files) == (["a.py", "b.py"], 2)
    counts = grep_result(text, request_for(mode="count")).success.workspace_results["."].count
    assert ([(one.file, one.count) for one in counts.counts], counts.total_matches) == ([("a.py", 2), ("b.py", 1)], 3)
    found = grep_result("a.py:7\nb.py:0\n", request_for(mode="count")).success.workspace_results["."].count
    assert [(one.file, one.count) for one in found.counts] == [("a.py", 7)]


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count", "odd"])
def test_nothing_found_is_a_success(mode: str) -> None:
    for text in ("", "No files found", "No matches found for pattern", "Found 0 files"):
        found = grep_result(text, request_for(mode=mode, path="/w")).success.workspace_results["/w"]
        assert not found.content.matches
        assert not found.files.files
        assert not found.count.counts


def test_what_cannot_be_distinguished_is_passed_as_it_is() -> None:
    assert lines("something else\nentirely") == [(".", 0, "something else\nentirely")]


def test_files_without_the_words_around_them() -> None:
    text = "Found 2 files\n/w/a.py\n/w/b.py\n/w/a.py\n(Results are truncated. Consider a narrower path.)\n"
    success = files_in(text, ToolRequest("glob", {"pattern": "*.py", "path": "/w"})).success
    found = success.workspace_results["/w"].files
    assert (list(found.files), found.client_truncated, success.output_mode) == (
        ["/w/a.py", "/w/b.py"],
        True,
        "files_with_matches",
    )


def test_extensions() -> None:
    assert [extension(name) for name in ("a.py", ".bashrc", "a", "a.", "a.tar.gz")] == [".py", "", "", "", ".gz"]
