"""What starts servers of the SDK, or many of others, waits for `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SLOW = {_HERE / name for name in ("test_http.py", "test_session.py", "test_stdio.py")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in _SLOW:
            item.add_marker(pytest.mark.slow)
