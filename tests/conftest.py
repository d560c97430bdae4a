"""Which tests wait for `make test`: `make check` is what people run between two edits, so it must end within a minute.

Sockets, processes, disks and thousands of generated cases take time; every module keeps quick tests beside them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SLOW = tuple(
    _HERE / name
    for name in (
        "agent/test_agent.py",
        "backends/test_connection.py",
        "backends/test_correcting.py",
        "backends/test_demo.py",
        "backends/test_examples.py",
        "backends/test_schema_check.py",
        "backends/test_transport.py",
        "calls/arguments",
        "calls/schemas",
        "calls/test_ids.py",
        "calls/test_ledger.py",
        "cli/chatting",
        "cli/test_chat.py",
        "cli/test_connect.py",
        "contract/test_dialect_requests.py",
        "contract/test_dialects.py",
        "contract/test_examples.py",
        "contract/test_hazards_transport.py",
        "contract/test_loop.py",
        "contract/test_loop_cost.py",
        "contract/test_media_pairs.py",
        "contract/test_openrouter.py",
        "dialects/responses/test_state.py",
        "dialects/test_renaming.py",
        "server/test_exchange.py",
        "server/test_outlet.py",
        "server/test_recording.py",
        "store/test_sqlite.py",
        "tools/mcp",
        "tools/workspace",
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(place == item.path or place in item.path.parents for place in _SLOW):
            item.add_marker(pytest.mark.slow)
