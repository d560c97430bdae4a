"""The commands in the documentation exist with their options, and those that need no network and end by themselves work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import CycloptsError, MissingArgumentError

from tests.free_port import free_port
from toolwire.cli.app import COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELLS = ("", "sh", "bash", "console", "text")
_LINE = re.compile(r"(?:\$ )?(?:\w+=\S* )*(toolwire( .*|$))")
_SHELL = ("|", "&&", "&", ">", ">>", ";", "2>&1", "<")
NAMES = [place.rpartition(":")[2] for place in COMMANDS]

# Each runs in one folder with a new home, in this order.
RUN = (
    "toolwire --version",
    "toolwire models",
    "toolwire doctor",
    "toolwire stats",
    "toolwire stats --json",
    "toolwire connect codex",
    "toolwire connect opencode",
    "toolwire connect pydantic-ai",
    "toolwire key new ann",
    "toolwire key new ci --rpm 60 --tpm 100000 --streams 4",
    "toolwire key new bob --budget 2000000 --period month --expires 90d",
    "toolwire key new eve --max-cost 25 --period month",
    "toolwire key new bot --model 'local/*' --route '/chat/*'",
    "toolwire key list",
    "toolwire key rotate ann --grace 1h",
    "toolwire key revoke ann",
    'toolwire chat --model demo/echo-tools --workspace . "list"',
    "toolwire tools --file request.json",
    'toolwire tools --file request.json --find "rename a file"',
    "toolwire completion fish > ~/.config/fish/completions/toolwire.fish",
)
REQUEST = '{"tools": [{"name": "rename_file", "description": "Rename a file", "input_schema": {"type": "object"}}]}'


def words_of(command: str) -> list[str]:
    """The words after `toolwire`, up to a comment or what belongs to the shell."""
    words = shlex.split(command, comments=True)[1:]
    ends = [number for number, word in enumerate(words) if word in _SHELL]
    return words[: min(ends, default=len(words))]


def in_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                if language in _SHELLS and (found := _LINE.fullmatch(line.strip())):
                    yield page.name, found[1]


def in_text() -> Iterator[tuple[str, str]]:
    """Mentioned with a subcommand; forms such as `toolwire connect [CLIENT]` describe a command instead of being one."""
    for page in PAGES:
        for code in re.findall(r"`(toolwire [a-z-][^`\n]*)`", _BLOCK.sub("", page.read_text(encoding="utf-8"))):
            if code.split()[1] in NAMES and not re.search(r"[\[|]|\.\.\.", code):
                yield page.name, code


def faults(commands: Iterator[tuple[str, str]], *, may_be_short: bool) -> list[str]:
    found = []
    for page, command in dict.fromkeys(commands):
        try:
            app.parse_args(words_of(command), exit_on_error=False, print_error=False)
        except MissingArgumentError as error:
            if not may_be_short:
                found.append(f"{page}: {command}: {error}")
        except CycloptsError as error:
            # A mention may stop before the value of its last option: `toolwire tools --mcp`.
            if not (may_be_short and words_of(command)[-1].startswith("--") and "requires" in str(error)):
                found.append(f"{page}: {command}: {' '.join(str(error).split())}")
    return found


def test_every_command_in_a_block_exists_with_its_options() -> None:
    commands = list(in_blocks())
    assert len(commands) > 30
    assert faults(iter(commands), may_be_short=False) == []


def test_every_command_in_a_sentence_exists_with_its_options() -> None:
    assert len(list(in_text())) > 40
    assert faults(in_text(), may_be_short=True) == []


def test_a_wrong_command_would_be_found() -> None:
    wrong = [("page", "toolwire serve --prot 1"), ("page", "toolwire connectt codex"), ("page", "toolwire replay")]
    assert len(faults(iter(wrong), may_be_short=False)) == 3


def test_the_commands_that_are_run_are_those_of_the_pages() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [command for command in RUN if command not in pages] == []


@pytest.mark.slow
def test_commands_that_need_no_network_work(tmp_path: Path) -> None:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "NO_COLOR": "1",
    }
    (tmp_path / ".config" / "fish" / "completions").mkdir(parents=True)
    # A configuration, so that servers that happen to run on this machine are not asked.
    settings = f'[server]\nport = {free_port()}\n\n[backends.demo]\nkind = "demo"\n'
    (tmp_path / "toolwire.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "request.json").write_text(REQUEST, encoding="utf-8")
    for command in RUN:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stdout or ">" in command, command
    assert (tmp_path / ".config" / "fish" / "completions" / "toolwire.fish").stat().st_size > 1000
