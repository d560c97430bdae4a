from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.cursor.local_running import answer, is_declined, workspace_in
from toolwire.backends.cursor.wire import agent

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return workspace_in(tmp_path)


def test_lines_are_found_by_file(place: Path) -> None:
    (place / "a.py").write_text("x\nneedle 1\ny\n")
    (place / "b.txt").write_text("needle 2\nNeedle 3\n")
    found = answer(place, "grep", agent.GrepArgs(pattern="needle", context=1)).success
    content = found.workspace_results[str(place)].content
    assert [file.file for file in content.matches] == ["a.py", "b.txt"]
    assert [(line.line_number, line.is_context_line) for line in content.matches[0].matches] == [
        (1, True),
        (2, False),
        (3, True),
    ]
    assert content.total_matched_lines == 2
    counted = answer(
        place, "grep", agent.GrepArgs(pattern="needle", output_mode="count", case_insensitive=True)
    ).success
    assert counted.workspace_results[str(place)].count.total_matches == 3
    files = answer(place, "grep", agent.GrepArgs(pattern="needle", output_mode="files_with_matches", glob="*.py"))
    assert list(files.success.workspace_results[str(place)].files.files) == ["a.py"]
    typed = answer(place, "grep", agent.GrepArgs(pattern="needle", type="python", path="."))
    assert typed.success.workspace_results[str(place)].content.total_matched_lines == 1
    pi = answer(place, "pi_grep", agent.PiGrepExecArgs(pattern="needle 1", literal=True))
    assert pi.success.output == "a.py:2:needle 1"


def test_a_search_without_pattern_is_for_names(place: Path) -> None:
    (place / "src").mkdir()
    (place / "src/a.py").touch()
    (place / "b.txt").touch()
    found = answer(place, "grep", agent.GrepArgs(glob="**/*.py")).success
    assert list(found.workspace_results[str(place)].files.files) == ["src/a.py"]
    assert answer(place, "pi_find", agent.PiFindExecArgs(pattern="*.txt")).success.output == "b.txt"


def test_a_pattern_that_cannot_be_read_is_an_error(place: Path) -> None:
    (place / "a.txt").write_text("x\n")
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="(")))
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="a\nb")))
    assert is_declined(answer(place, "grep", agent.GrepArgs(pattern="x", output_mode="poem")))
