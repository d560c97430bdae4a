"""scripts/hazard_table.py: the page about hazards is made from the tests, and every hazard has a test or a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.hazard_table import DATA, DOCUMENT, document, faults, hazards_in, main, numbered_tests

ROOT = Path(__file__).resolve().parents[2]
TOML = """
["Streams"]
H001 = { wrong = "a", answer = "A." }
H002 = { wrong = "b", reason = "B." }
["Calls"]
H003 = { wrong = "c", answer = "C." }
"""
TESTS = '''
"""About H002."""
def test_H001_H003_x(): ...  # H002
class TestAll:
    async def test_H001_y(self): ...
def helper_H002(): ...
def test_H0021_and_XH002_are_no_numbers(): ...
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in ((DATA, TOML), ("tests/a/test_b.py", TESTS), ("tests/a/stage.py", "def test_H002(): ...")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_only_names_of_tests_count(tree: Path) -> None:
    place = "tests/a/test_b.py::"
    assert numbered_tests(tree) == {"H001": [f"{place}test_H001_H003_x", f"{place}test_H001_y"], "H003": [f"{place}test_H001_H003_x"]}  # fmt: skip


def test_the_document_has_a_row_for_each(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tree)]) == 0
    text = (tree / DOCUMENT).read_text()
    assert "3 hazards: 2 with tests, 1 with a reason why not." in text
    assert (
        "## Streams\n\n| | what goes wrong | what toolwire does | tests |\n|---|---|---|---|\n| H001 | a | A. | `"
        in text
    )
    assert "test_H001_H003_x`<br>`tests/a/test_b.py::test_H001_y` |\n| H002 | b | No test: B. |  |\n" in text
    assert text.endswith("|\n")
    assert "every hazard" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('answer = "C."', 'reason = "C."', "H003: has a reason in docs/hazards.toml and a test, tests/a/test_b.py::"),
        ('reason = "B."', 'answer = "B."', "H002: no test carries this number"),
        ('answer = "C."', 'answer = "C.", reason = "D."', "H003: expected an answer or a reason"),
        ('reason = "B."', 'comment = "B."', "H002: expected an answer or a reason"),
        ("H003", "H001", "H001: stands in docs/hazards.toml twice."),
        ("H003", "H009", "H003: tests/a/test_b.py::test_H001_H003_x carries it, docs/hazards.toml does not know it."),
    ],
)
def test_what_is_wrong_is_said(tree: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str) -> None:
    (tree / DATA).write_text(TOML.replace(old, new))
    assert main([str(tree)]) == 1
    assert words in capsys.readouterr().out


def test_every_hazard_has_a_test_or_a_reason() -> None:
    areas = hazards_in((ROOT / DATA).read_text(encoding="utf-8"))
    assert list(faults(areas, numbered_tests(ROOT))) == []
    numbers = sorted(hazard.number for rows in areas.values() for hazard in rows)
    assert numbers == [f"H{number:03}" for number in range(1, 170)]


def test_the_document_is_up_to_date() -> None:
    areas = hazards_in((ROOT / DATA).read_text(encoding="utf-8"))
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == document(areas, numbered_tests(ROOT)), (
        "run python scripts/hazard_table.py"
    )
