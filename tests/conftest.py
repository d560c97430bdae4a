"""Which tests wait for `make test`: `make check` is what people run between two edits, so it must end within a minute.

Sockets, processes, disks and thousands of generated cases take time; every module keeps quick tests beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.frozen_histories import FrozenRecent, check_used
from tests.thorough import is_thorough
from toolwire import keeping

# How long one example takes says more about the machine than about us; and what was green stays so until somebody changes it: new
# examples are looked for where somebody waits for what they find.
settings.register_profile("toolwire", deadline=None, derandomize=not is_thorough())
settings.load_profile("toolwire")

keeping.Recent = FrozenRecent  # type: ignore[misc] # the cache of every gateway in this process

_HERE = Path(__file__).parent
_SLOW = frozenset(
    _HERE / name
    for name in (
        "agent/test_agent.py",
        "backends/codex",
        "backends/cursor",
        "backends/vscode",
        "backends/test_connection.py",
        "backends/test_correcting.py",
        "backends/test_demo.py",
        "backends/test_examples.py",
        "backends/test_schema_check.py",
        "backends/test_transport.py",
        "calls/arguments",
        "calls/formats",
        "calls/schemas",
        "calls/test_ids.py",
        "calls/test_ledger.py",
        "calls/test_retelling.py",
        "calls/test_sentinel.py",
        "clients",
        "cli/chatting",
        "cli/test_chat.py",
        "cli/test_connect.py",
        "cli/test_found.py",
        "contract/test_broken_histories.py",
        "contract/test_codex_held.py",
        "contract/test_dialect_requests.py",
        "contract/test_dialects.py",
        "contract/test_guard_hostile.py",
        "contract/test_hazards_answers.py",
        "contract/test_hazards_requests.py",
        "contract/test_judge.py",
        "contract/test_matrix.py",
        "contract/test_tool_kinds.py",
        "contract/test_web_search.py",
        "contract/test_examples.py",
        "contract/test_hazards_transport.py",
        "contract/test_loop.py",
        "contract/test_loop_cost.py",
        "contract/test_media_pairs.py",
        "contract/test_openrouter.py",
        "contract/test_reasoning_kept.py",
        "dialects/codex/test_answer_in.py",
        "dialects/responses/test_state.py",
        "dialects/test_renaming.py",
        "programs",
        "server/test_app.py",
        "server/test_background.py",
        "server/test_exchange.py",
        "server/test_launch.py",
        "server/test_outlet.py",
        "server/test_recording.py",
        "server/test_state.py",
        "server/test_stored.py",
        "store/test_sqlite.py",
        "test_runtime.py",
        "tools/mcp",
        "tools/workspace",
    )
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is not run need not be imported either: that alone took a third of the minute."""
    is_quick = config.getoption("markexpr") == "not slow"
    return True if is_quick and collection_path in _SLOW else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _frozen_histories() -> Iterator[None]:
    yield
    check_used()


@cache
def _is_slow(path: Path) -> bool:
    return path in _SLOW or not _SLOW.isdisjoint(path.parents)
