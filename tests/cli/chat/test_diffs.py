from __future__ import annotations

from toolwire.cli.chat.diffs import diff_lines
from toolwire.tools.workspace.files import FilePreview


def test_a_change_a_new_file_and_no_change() -> None:
    change = FilePreview(path="a.txt", before=b"one\ntwo\n", after=b"one\n2\n")
    assert diff_lines(change) == [
        ("a.txt (changed)", "bold"),
        ("@@ -1,2 +1,2 @@", "cyan"),
        (" one", ""),
        ("-two", "red"),
        ("+2", "green"),
    ]
    assert diff_lines(FilePreview(path="b", before=None, after=b"x"))[2:] == [("+x", "green")]
    assert diff_lines(FilePreview(path="b", before=b"x", after=b"x"))[1] == ("no line changes", "dim")


def test_files_that_cannot_be_compared_are_described() -> None:
    assert "no UTF-8" in diff_lines(FilePreview(path="b", before=b"\xff", after=b"x"))[1][0]
    long = b"\n" * 6000
    assert "too many" in diff_lines(FilePreview(path="b", before=long, after=b"x"))[1][0]
