"""Paths of back ends on the gateway's port."""

from __future__ import annotations

from toolwire.backends.mounts import mount_kinds


def test_mounts_are_found_by_their_entry_points() -> None:
    assert [kind.path for kind in mount_kinds()] == ["/bridge"]
