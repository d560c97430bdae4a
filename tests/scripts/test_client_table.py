"""scripts/client_table.py: the table of docs/clients.md is the table of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.client_table import BEGIN, END, inserted, main, table
from toolwire.cli.clients.table import clients

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"


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


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert inserted(text) == text, "run python scripts/client_table.py"
