from __future__ import annotations

from toolwire.ids import new_id


def test_ids_have_their_prefix_and_differ() -> None:
    ids = {new_id("call_") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(one.startswith("call_") for one in ids)
