"""The command line as a person meets it: help, version, and errors in one sentence."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cyclopts import App

from toolwire import __version__
from toolwire.cli.app import COMMANDS, EXAMPLES, app, run


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"toolwire {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_without_arguments_there_is_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: toolwire COMMAND")
    assert all(command in shown for command in ("serve", "models", "doctor"))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["serv"], '"serve"'),
        (["serve", "--port", "x"], "--port"),
        (["serve", "--port", "0"], "--port: found 0"),
        (["serve", "--prot", "1"], "--prot"),
        (["serve", "--host", "0.0.0.0"], "no keys"),
        (["serve", "--workers", "0"], "--workers: found 0"),
        (["serve", "--workers", "100000"], "--workers: found 100000"),
        (["models", "--config", "not-there.toml"], "not-there.toml: this file cannot be read"),
        (["doctor", "extra"], "extra"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolwire.catalog.discovery.LOCAL_PORTS", {})
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("toolwire: ")
    assert part in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["serve", "--prot", "1"], "Run `toolwire serve --help` for help. Example: toolwire serve --port 18800\n"),
        (
            ["key", "new", "--x"],
            "Run `toolwire key new --help` for help. Example: toolwire key new laptop --expires 30d\n",
        ),
        (
            ["vscode", "status", "--x"],
            "Run `toolwire vscode status --help` for help. Example: toolwire vscode status\n",
        ),
        (["serv"], "Run `toolwire --help` for help. Example: toolwire serve\n"),
    ],
)
def test_wrong_usage_points_to_the_help_of_the_command(
    arguments: list[str], end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.endswith(end)


@pytest.mark.parametrize("name", [place.rpartition(":")[2] for place in COMMANDS])
def test_each_command_has_an_example_that_can_be_parsed(name: str) -> None:
    for example in (text for key, text in EXAMPLES.items() if key.partition(" ")[0] == name):
        words = shlex.split(example)
        assert words[:2] == ["toolwire", name]
        app.parse_args(words[1:], exit_on_error=False, print_error=False)
    assert name in EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("module", ["toolwire", "toolwire.cli"])
def test_a_mistake_in_the_file_shows_no_traceback(module: str, tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text('[server]\nport = "x"\n')
    command = [sys.executable, "-m", module, "serve"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        'toolwire: toolwire.toml, line 2, server.port: found "x"; expected a whole number from 1 to 65535.\n'
    )


@pytest.mark.parametrize("place", COMMANDS)
def test_the_list_of_commands_shows_what_each_says_of_itself(place: str) -> None:
    module, _, name = place.partition(":")
    command = getattr(importlib.import_module(f"toolwire.cli.{module}"), name)
    described = command.help if isinstance(command, App) else command.__doc__
    assert described == COMMANDS[place]


def test_the_list_of_commands_is_shown_without_importing_them() -> None:
    code = (
        "import sys; from toolwire.cli.app import run; run(['--help']); "
        "sys.exit(any(name.startswith('toolwire.config') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=30)
