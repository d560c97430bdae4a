"""What can be said to `toolwire chat`, as the command line reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.cli.app import app
from toolwire.cli.chat.options import DEFAULTS, Options

pytestmark = pytest.mark.slow


def read(*arguments: str) -> tuple[str | None, Options]:
    _, bound, _ = app.parse_args(["chat", *arguments], exit_on_error=False, print_error=False)
    return (bound.args[0] if bound.args else None), bound.kwargs.get("options", DEFAULTS)


def test_nothing_is_allowed_by_itself() -> None:
    assert read() == (None, DEFAULTS)
    assert not any((DEFAULTS.yes, DEFAULTS.allow_shell, DEFAULTS.allow_write, DEFAULTS.workspace, DEFAULTS.mcp))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--mcp", "one --flag", "--mcp", "two"], Options(mcp=("one --flag", "two"))),
        (
            ["--workspace", "a", "--allow-shell", "--allow-write"],
            Options(workspace=Path("a"), allow_shell=True, allow_write=True),
        ),
        (
            ["--model", "m", "--yes", "--json", "--max-iterations", "3"],
            Options(model="m", yes=True, json=True, max_iterations=3),
        ),
        (["--resume", "a", "--save", "b", "--effort", "low"], Options(resume=Path("a"), save=Path("b"), effort="low")),
    ],
)
def test_options_and_a_prompt(arguments: list[str], options: Options) -> None:
    assert read("what is this?", *arguments) == ("what is this?", options)
