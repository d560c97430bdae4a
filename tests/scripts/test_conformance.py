from __future__ import annotations

import pytest

from scripts.conformance import PAGE, own_rows


@pytest.mark.slow
def test_the_page_of_results_is_current_and_the_gateway_has_no_fault_on_any_path() -> None:
    """If it fails: `python scripts/conformance.py`."""
    rows = own_rows()
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(rows) == 20
    assert [row for row in rows if row not in page] == []
    assert all(row.endswith("| none |") for row in rows)
