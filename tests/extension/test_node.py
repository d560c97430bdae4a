"""The extension's own tests, in Node, and the type checker on the stable API of VS Code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "vscode"
pytestmark = pytest.mark.skipif(
    shutil.which("npm") is None or not (SOURCE / "node_modules").is_dir(), reason="needs npm, and `npm ci` in vscode/"
)


def npm(script: str) -> str:
    # A test runner of Node says less where it believes to run inside another one.
    environment = {name: value for name, value in os.environ.items() if name != "NODE_TEST_CONTEXT"}
    command = [str(shutil.which("npm")), "run", "--silent", script]
    done = subprocess.run(
        command, cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_its_unit_tests_pass() -> None:
    shown = npm("test")
    counted = {name: int(number) for name, number in re.findall(r"^ℹ (\w+) (\d+)$", shown, re.MULTILINE)}
    assert counted["fail"] == counted["cancelled"] == counted["skipped"] == 0
    assert counted["pass"] == counted["tests"] > 50


def test_every_test_file_is_run() -> None:
    index = (SOURCE / "test/all.ts").read_text(encoding="utf-8")
    written = {path.name.removesuffix(".ts") for path in SOURCE.glob("test/*.test.ts")}
    assert set(re.findall(r"import '\./(.+)';", index)) == written


def test_every_module_has_its_tests() -> None:
    modules = {path.stem for path in SOURCE.glob("src/*.ts")} - {"extension"}
    assert {path.name.removesuffix(".test.ts") for path in SOURCE.glob("test/*.test.ts")} == modules


@pytest.mark.slow
def test_its_types_are_those_of_the_stable_api() -> None:
    npm("check")


def test_nothing_in_it_goes_around_the_types() -> None:
    for path in SOURCE.glob("src/*.ts"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bas (?!const\b)(?:any|unknown|[A-Z{])|@ts-|: any\b|<any>", text), path.name
