"""The child process: how it cannot start, how it ends, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.backends.codex.processes import all_gone, marked, zombies
from tests.backends.codex.starting import environment, fake
from toolwire.backends.codex.transport.process import ChildProcess, start
from toolwire.backends.sessions import SessionLost
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow

_HELLO = b'{"id":1,"method":"initialize","params":{}}\n'


def test_a_program_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match='"no-such-codex" is not on PATH') as caught:
        asyncio.run(start(("no-such-codex", "app-server"), tmp_path, {"PATH": "/usr/bin:/bin"}))
    assert "npm install -g @openai/codex" in caught.value.hint
    assert caught.value.code == "codex_not_started"


def test_a_path_that_leads_to_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "codex").write_text("no program")
    for path in (tmp_path, tmp_path / "codex", tmp_path / "nothing"):
        with pytest.raises(UpstreamError, match="is not there, or no program"):
            asyncio.run(start((str(path),), tmp_path, {"PATH": "/usr/bin"}))


def test_where_the_owner_keeps_programs_is_not_reported(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match='the command "nothing" is not there') as caught:
        asyncio.run(start((str(tmp_path / "nothing"),), tmp_path, {"PATH": "/usr/bin"}))
    assert str(tmp_path) not in caught.value.sentence()


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "codex").write_bytes(b"\x7fELF nothing")
    (tmp_path / "codex").chmod(0o755)
    with pytest.raises(UpstreamError, match="cannot be started"):
        asyncio.run(start((str(tmp_path / "codex"),), tmp_path, {"PATH": "/usr/bin"}))


async def _asked(child: ChildProcess) -> bytes:
    await child.send(_HELLO)
    return await child.receive()


def test_it_answers_and_leaves_when_its_input_ends(tmp_path: Path) -> None:
    environ, mark = environment()

    async def main() -> tuple[bytes, float]:
        child = await start(fake(), tmp_path, environ)
        answer = await _asked(child)
        since = time.monotonic()
        await child.close()
        await child.close()
        return answer, time.monotonic() - since

    answer, seconds = asyncio.run(main())
    assert b'"userAgent"' in answer
    assert seconds < 1.5  # before any signal
    assert marked(mark) == zombies() == []


def test_one_behind_a_launcher_that_will_not_leave_is_killed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The npm package is such a launcher."""
    monkeypatch.setattr("toolwire.backends.codex.transport.process._EXIT_SECONDS", 0.1)
    environ, mark = environment()

    async def main() -> int:
        child = await start(("sh", "-c", f"{' '.join(fake('--stubborn'))}; true"), tmp_path, environ)
        await _asked(child)
        running = len(marked(mark))
        await child.close()
        return running

    assert asyncio.run(main()) == 2
    assert all_gone(mark)
    assert zombies() == []


def test_what_it_said_last_is_reported_to_the_log_alone_and_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ, _ = environment()
    (tmp_path / "starts").write_text("1")

    async def main() -> str:
        child = await start(
            fake("--starts", str(tmp_path / "starts")), tmp_path, environ | {"OPENAI_API_KEY": "secret-secret"}
        )
        assert await child.receive() == b""
        story = child.exit_reason()
        await child.close()
        with pytest.raises(SessionLost, match="code 3"):
            await child.send(_HELLO)
        return story

    assert asyncio.run(main()) == "the app-server has ended with code 3."
    [line] = caplog.messages
    assert "fake_app_server.py" in line
    assert "ended with code 3. Its last output was" in line
    assert "no start today, OPENAI_API_KEY=***" in line


def test_a_kill_is_reported_as_one(tmp_path: Path) -> None:
    async def main() -> str:
        child = await start(fake(), tmp_path, environment()[0])
        os.kill(child.pid, signal.SIGKILL)
        assert await child.receive() == b""
        await child.close()
        return child.exit_reason()

    assert "was ended by signal 9" in asyncio.run(main())


def test_closing_goes_on_when_the_one_who_waits_for_it_is_cancelled(tmp_path: Path) -> None:
    environ, mark = environment()

    async def main() -> None:
        child = await start(fake(), tmp_path, environ)
        await _asked(child)
        waiting = asyncio.create_task(child.close())
        await asyncio.sleep(0)
        waiting.cancel()
        await child.close()

    asyncio.run(main())
    assert marked(mark) == zombies() == []


def test_a_gateway_that_is_killed_leaves_no_orphan(tmp_path: Path) -> None:
    environ, mark = environment()
    program = f"""
import asyncio, os, signal
from pathlib import Path
from toolwire.backends.codex.transport.process import start
async def main():
    child = await start(("sh", "-c", {" ".join(fake())!r} + "; true"), Path({str(tmp_path)!r}), dict(os.environ))
    await child.send({_HELLO!r})
    await child.receive()
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    source = str(Path(__file__).parents[4] / "src")
    done = subprocess.run([sys.executable, "-c", program], env=environ | {"PYTHONPATH": source}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert all_gone(mark)


def test_a_command_is_found_from_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    program = tmp_path / "bin" / "codex"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    async def main(command: str, path: str) -> bytes:
        child = await start((command,), tmp_path / "work", {"PATH": path})
        said = await child.receive()
        await child.close()
        return said

    assert asyncio.run(main("bin/codex", "")) == b"here\n"
    assert asyncio.run(main("codex", "bin")) == b"here\n"


@pytest.mark.parametrize("long", [0, 8192])
def test_secrets_that_are_no_variables_are_not_reported_either_nor_their_ends(
    tmp_path: Path, long: int, caplog: pytest.LogCaptureFixture
) -> None:
    words = f"token-of-the-config {'s' * long}"

    async def main() -> None:
        (tmp_path / "words").write_text(words)
        command = ("sh", "-c", "cat words >&2", "-c", "key=token-of-the-command", "sk-of-the-command")
        child = await start(command, tmp_path, environment()[0], ["token-of-the-config"])
        assert await child.receive() == b""
        await child.close()

    asyncio.run(main())
    [line] = caplog.messages
    assert line.startswith(
        'Codex, started as "sh -c cat words >&2 -c key=*** ***": the app-server has ended with code 0.'
    )
    assert "token-of" not in line
    assert "ssss" not in line
    assert ("Its last output was" in line) == (long == 0)


def test_nothing_is_written_to_one_that_was_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        child = await start(fake(), tmp_path, environment()[0])
        await child.close()
        for _ in range(20):
            with pytest.raises(SessionLost):
                await child.send(_HELLO)

    asyncio.run(main())
    assert caplog.records == []
