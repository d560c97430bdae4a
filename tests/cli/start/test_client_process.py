"""A client in this terminal: its exit code and its signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.cli.start.client_process import run_client
from toolwire.errors import ConfigError

pytestmark = pytest.mark.slow
RUN = "import os, sys; from toolwire.cli.start.client_process import run_client; sys.exit(run_client(sys.argv[1:], os.environ))"
TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
# Reports that its handlers are there, and ends with the number of the signal.
WAITING = """
import signal, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: sys.exit(number))
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("code", [0, 7])
def test_its_exit_code_is_ours(code: int) -> None:
    assert run_client([sys.executable, "-c", f"raise SystemExit({code})"], os.environ) == code


def test_a_client_that_a_signal_ended() -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    assert run_client(command, os.environ) == 137


def test_it_gets_the_environment_and_the_streams(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_client([sys.executable, "-c", "import os; print(os.environ['ONLY'])"], {"ONLY": "this"}) == 0
    assert capfd.readouterr().out == "this\n"


def test_handlers_are_restored() -> None:
    former = signal.getsignal(signal.SIGINT)
    run_client([sys.executable, "-c", ""], os.environ)
    assert signal.getsignal(signal.SIGINT) is former


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("no program")
    with pytest.raises(ConfigError, match="this program cannot be started"):
        run_client([str(tmp_path / "program")], os.environ)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_forwarded(number: signal.Signals) -> None:
    """Without a terminal also SIGINT, which then comes to us alone."""
    command = [sys.executable, "-c", RUN, sys.executable, "-c", WAITING]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (number, b"")


def test_a_terminal_sends_an_interrupt_to_the_client_only_once() -> None:
    """The client counts the interrupts that arrive before it ends by SIGTERM."""
    counting = """
import signal, sys
count = 0
def interrupted(number, frame):
    global count
    count += 1
    print("interrupted", count, flush=True)
signal.signal(signal.SIGINT, interrupted)
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(count))
print("ready", flush=True)
while True:
    signal.pause()
"""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", f"{TERMINAL}\n{RUN}", sys.executable, "-c", counting],
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.write(leader, b"\x03")
    assert process.stdout.readline() == b"interrupted 1\n"
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    os.close(leader)
    assert (process.returncode, rest) == (1, b"")
