"""The file of a trace: its owner's alone, bounded, and never in the way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from toolwire.telemetry.trace_file import TraceFile


def written(path: Path, *lines: bytes, most: int = 1 << 20) -> None:
    file = TraceFile(path, most)
    for line in lines:
        file.put(line)
    file.close()


def test_lines_are_appended_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.jsonl"
    written(path, b"one", b"two")
    written(path, b"three")
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_theirs_no_more(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.touch(mode=0o644)
    written(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"."):
        TraceFile(tmp_path / "trace.jsonl", 1000)
    assert not (tmp_path / "elsewhere").exists()


def test_both_files_together_stay_below_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    written(path, *(b"%04d" % number + b"x" * 95 for number in range(500)), most=10_000)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["trace.jsonl", "trace.jsonl.1"]
    assert all(file.stat().st_size <= 5000 for file in files)
    lines = (files[1].read_bytes() + files[0].read_bytes()).splitlines()
    assert [int(line[:4]) for line in lines] == list(range(500 - len(lines), 500))
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_two_writers_share_a_file_and_its_turning_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    first, second = TraceFile(path, 2000), TraceFile(path, 2000)
    for number in range(100):
        (first if number % 2 else second).put(b"%03d" % number + b"y" * 47)
    first.close()
    second.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 4000
    assert all(len(line) == 50 for file in tmp_path.iterdir() for line in file.read_bytes().splitlines())


def test_closing_twice_is_no_error_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    file = TraceFile(tmp_path / "trace.jsonl", 1000)
    file.close()
    file.close()
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before
