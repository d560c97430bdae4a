"""Flows in files: redacted, readable by their owner alone, bounded in size and age, and deleted on request."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.drafts import begin, end, finish, listed, recorder
from toolwire.errors import ConfigError
from toolwire.flows.disk import FlowFiles
from toolwire.flows.sealed import SealedFlow

Warnings = list[str]


@pytest.fixture
def warnings() -> Iterator[Warnings]:
    found: Warnings = []
    yield found
    assert found == []


def files(
    folder: Path, warnings: Warnings, max_bytes: int = 1 << 20, days: int = 7, now: float | None = None
) -> FlowFiles:
    clock = {} if now is None else {"clock": lambda: now}
    return FlowFiles(folder, max_bytes, days, warnings.append, **clock)


def flow(text: bytes = b"{}") -> SealedFlow:
    flows = recorder("known-secret")
    return end(flows, begin(flows, text))


def test_flows_survive_a_restart(tmp_path: Path, warnings: Warnings) -> None:
    first = recorder("known-secret")
    first.store_in(files(tmp_path / "new" / "flows", warnings))
    for body in (b"one", b"known-secret"):
        draft = begin(first, body, model="m", is_stream=True)
        draft.exchange("chat", "POST", "http://host", {}, b"sent").receive(b"data: 1\n\n")
        finish(draft)
    before = listed(first)
    first.stop()
    second = recorder()
    second.store_in(files(tmp_path / "new" / "flows", warnings))
    assert [(summary.id, summary.model) for summary in listed(second)] == [(one.id, "m") for one in before]
    third = begin(second)
    finish(third)
    assert [summary.seq for summary in listed(second)] == [3, 2, 1]
    second.stop()
    assert not any(b"known-secret" in path.read_bytes() for path in (tmp_path / "new" / "flows").iterdir())


def test_a_stored_flow_is_as_it_was(tmp_path: Path, warnings: Warnings) -> None:
    stored = files(tmp_path, warnings)
    original = flow(b'{"text": "hello"}')
    stored.put(lambda: original, 100)
    stored.close()
    flows = recorder()
    reopened = files(tmp_path, warnings)
    flows.store_in(reopened)
    (summary,) = listed(flows, q="hello")
    assert summary == original.summary
    flows.stop()


def test_only_the_owner_can_read_them(tmp_path: Path, warnings: Warnings) -> None:
    stored = files(tmp_path / "flows", warnings)
    stored.put(flow, 100)
    stored.close()
    (path,) = (tmp_path / "flows").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "flows").stat().st_mode) == 0o700


def test_the_oldest_segments_are_deleted(tmp_path: Path, warnings: Warnings) -> None:
    now = [1e9]
    stored = FlowFiles(tmp_path, 40_000, 7, warnings.append, lambda: now[0])
    for number in range(30):
        now[0] += 1.0
        body = b"x" * 2000 + b"%d" % number
        stored.put(lambda body=body: flow(body), 100)  # type: ignore[misc] # the body of this round
    stored.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 40_000
    loaded = FlowFiles(tmp_path, 40_000, 7, warnings.append, lambda: 1.0).load(1000, 1 << 20)
    assert loaded[-1].client.request.body.endswith("29")
    assert 3 < len(loaded) < 20


def test_old_segments_are_deleted_and_old_flows_are_not_read(tmp_path: Path, warnings: Warnings) -> None:
    stored = files(tmp_path, warnings)
    stored.put(flow, 100)
    stored.close()
    (path,) = tmp_path.iterdir()
    later = path.stat().st_mtime + 8 * 86400
    assert files(tmp_path, warnings, days=30, now=later).load(10, 1 << 20) != []
    assert files(tmp_path, warnings, days=7, now=later).load(10, 1 << 20) == []
    assert list(tmp_path.iterdir()) == []


def test_deleted_flows_are_deleted_from_disk(tmp_path: Path, warnings: Warnings) -> None:
    flows = recorder()
    flows.store_in(files(tmp_path, warnings))
    for body in (b"first", b"second", b"third"):
        finish(begin(flows, body))
    assert flows.delete(flows.id_of(2))
    flows.stop()
    texts = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (b"first" in texts, b"second" in texts, b"third" in texts) == (True, False, True)
    again = recorder()
    again.store_in(files(tmp_path, warnings))
    assert again.delete()
    again.stop()
    assert list(tmp_path.iterdir()) == []


def test_broken_lines_are_left_out(tmp_path: Path, warnings: Warnings) -> None:
    stored = files(tmp_path, warnings)
    stored.put(flow, 100)
    stored.close()
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"{broken\n" + path.read_bytes() + b'{"summary": 1}\n\xff\n{"cut": "')
    assert len(files(tmp_path, warnings).load(10, 1 << 20)) == 1


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError):
        FlowFiles(tmp_path / "file", 1 << 20, 7, print)


def test_a_flow_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    found: Warnings = []
    stored = FlowFiles(tmp_path / "flows", 1 << 20, 7, found.append)
    stored.put(flow, 100)
    stored.put(flow, 1 << 30)
    stored.put(flow, 1 << 30)
    stored.close()
    assert found == ["flows arrive faster than they can be written; some are left out."]
    assert len(os.listdir(tmp_path / "flows")) == 1
