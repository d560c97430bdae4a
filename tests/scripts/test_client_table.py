"""scripts/client_table.py: the README's table is the table of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.client_table import BEGIN, END, inserted, main, table
from toolwire.cli.clients.table import clients

README = Path(__file__).resolve().parents[2] / "README.md"


def test_every_client_has_a_row() -> None:
    rows = table().splitlines()[2:]
    assert len(rows) == len(clients())
    assert all(row.count("|") == 5 for row in rows)
    assert "| Codex CLI | responses | `toolwire connect codex --write` |" in table()


def test_the_table_goes_between_the_markers_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"# a\n{BEGIN}\nold\n{END}\nb\n")
    assert main([str(path)]) == 0
    assert path.read_text() == f"# a\n{BEGIN}\n{table()}\n{END}\nb\n"
    assert inserted(path.read_text()) == path.read_text()


def test_a_document_without_markers_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"# a\n{BEGIN}\n")
    assert main([str(path)]) == 1
    assert path.read_text() == f"# a\n{BEGIN}\n"
    assert "expected both" in capsys.readouterr().out


def test_the_readme_is_up_to_date() -> None:
    text = README.read_text(encoding="utf-8")
    if BEGIN not in text:
        pytest.skip("README.md has no place for the table")
    assert inserted(text) == text, "run python scripts/client_table.py"
