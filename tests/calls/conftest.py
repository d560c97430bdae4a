"""What takes long here (thousands of damaged calls and broken histories) waits for `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SLOW = (_HERE / "arguments", _HERE / "schemas", _HERE / "test_ledger.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(place == item.path or place in item.path.parents for place in _SLOW):
            item.add_marker(pytest.mark.slow)
