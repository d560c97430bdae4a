from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspace.box import Box, text_of
from toolwire.tools.workspace import Limits, Shell
from toolwire.tools.workspace.shell import BoundedOutput

pytestmark = pytest.mark.slow

OPEN = Shell(sandbox="never")


def test_output_code_and_whether_it_was_sandboxed(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN)
    output = box.use("shell", command="echo hello; echo oops >&2; exit 3")
    assert not output.is_error
    text = text_of(output)
    assert text.startswith("hello\noops\n[exit code 3; ")
    assert text.endswith("; not sandboxed: it is switched off]")
    assert box.text("shell", command="true").startswith("[exit code 0; ")
    assert box.text("shell", command="printf x").startswith("x\n[exit code 0; ")
    assert "ended by signal 9" in box.text("shell", command="kill -9 $$")


def test_a_command_runs_in_the_root_with_no_input(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN)
    assert box.text("shell", command="pwd; cat").startswith(f"{box.root}\n[exit")


def test_a_command_that_takes_too_long(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN)
    started = time.monotonic()
    output = box.use("shell", command="echo before; sleep 60", timeout_seconds=0.2)
    assert time.monotonic() - started < 2
    assert output.is_error
    assert text_of(output).startswith("before\n[stopped after 0.2 seconds; ask for more with timeout_seconds")


def test_no_command_may_ask_for_more_time_than_there_is(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN, limits=Limits(command_seconds=0.2))
    assert "stopped after 0.2 seconds" in text_of(box.use("shell", command="sleep 60", timeout_seconds=1e300))
    assert box.tools["shell"].timeout is not None
    assert box.tools["shell"].timeout > 0.2


def test_of_much_output_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN, limits=Limits(command_output_bytes=1000))
    text = box.text("shell", command="echo first; seq 100000; echo last")
    assert text.startswith("first\n1\n")
    assert "\nlast\n[exit code 0" in text
    assert "bytes left out ...]" in text
    assert len(text) < 1200


def test_a_flood_is_stopped(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN, limits=Limits(command_output_bytes=100, command_flood_bytes=1_000_000))
    output = box.use("shell", command="yes")
    assert output.is_error
    assert "stopped because it printed more than 1,000,000 bytes" in text_of(output)
    assert len(text_of(output)) < 500


@pytest.mark.parametrize("command", ["", "  ", "a\0b", "\ud800", "x" * 100_001])
def test_invalid_commands_are_refused(tmp_path: Path, command: str) -> None:
    Box(tmp_path, shell=OPEN).refusal("shell", command=command)


def test_a_sandbox_that_is_required_and_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    box = Box(tmp_path, shell=Shell(sandbox="required"))
    assert "only in a sandbox" in box.refusal("shell", command="touch made")
    assert not (box.root / "made").exists()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "no bash" in box.refusal("shell", command="touch made")


def test_a_cancelled_command_is_ended_with_its_children(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN)

    async def main() -> float:
        task = asyncio.create_task(
            box.start("shell", command="(while true; do date +%N > beat; sleep 0.01; done) & wait")
        )
        while not (box.root / "beat").exists():
            await asyncio.sleep(0.01)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(main()) < 1.5
    beat = (box.root / "beat").read_text()
    time.sleep(0.05)
    assert (box.root / "beat").read_text() == beat


def test_many_commands_at_once(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=OPEN)

    async def main() -> None:
        outputs = await asyncio.gather(*(box.start("shell", command=f"echo number {turn}") for turn in range(20)))
        assert all(text_of(output).startswith(f"number {turn}\n") for turn, output in enumerate(outputs))

    asyncio.run(main())


@given(st.lists(st.binary(max_size=30), max_size=10), st.integers(0, 40))
def test_the_beginning_and_the_end_of_an_output_are_stored(pieces: list[bytes], most: int) -> None:
    bounded, whole = BoundedOutput(most, 1 << 20), b"".join(pieces)
    for piece in pieces:
        assert bounded.feed(piece)
    half = most // 2
    assert bounded.size == len(whole)
    if len(whole) <= 2 * half:
        assert bounded.parts() == (decoded(whole), "", 0)
    else:
        head, tail = whole[:half], whole[len(whole) - half :]
        assert bounded.parts() == (decoded(head), decoded(tail), len(whole) - 2 * half)


def decoded(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\0", "\ufffd")
