"""The list of models: the same but for the tools that they bring along."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from toolwire.backends.codex.model_catalog import catalogue_of, plain

pytestmark = pytest.mark.slow

_KNOWN = {
    "slug": "gpt",
    "base_instructions": "You are",
    "context_window": 272000,
    "tool_mode": "code_mode_only",
    "multi_agent_version": "v2",
    "apply_patch_tool_type": "freeform",
    "use_responses_lite": True,
    "experimental_supported_tools": ["clock"],
}


def _program(folder: Path, body: str) -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_only_what_brings_tools_is_changed() -> None:
    changed = json.loads(plain(json.dumps({"models": [_KNOWN, {"slug": "old"}], "etag": "x"}).encode()))
    assert changed["etag"] == "x"
    assert changed["models"][1] == {"slug": "old"}
    assert changed["models"][0] == {
        "slug": "gpt",
        "base_instructions": "You are",
        "context_window": 272000,
        "tool_mode": None,
        "multi_agent_version": None,
        "apply_patch_tool_type": None,
        "use_responses_lite": False,
        "experimental_supported_tools": [],
    }


@pytest.mark.parametrize(
    "printed", [b"", b"error: no such command", b"[]", b'{"models": []}', b'{"models": "x"}', b"\xff"]
)
def test_what_is_no_list_is_none(printed: bytes) -> None:
    assert plain(printed) == b""


def test_the_program_is_asked_for_it_with_the_options_before_its_command(tmp_path: Path) -> None:
    program = _program(tmp_path, 'echo "{\\"models\\": [{\\"slug\\": \\"$*\\"}]}"')
    command = (program, "-c", "a=1", "app-server", "--listen", "stdio://")
    listed = asyncio.run(catalogue_of(command, tmp_path, dict(os.environ)))
    assert json.loads(listed) == {"models": [{"slug": "-c a=1 debug models"}]}


def test_a_program_without_it_is_no_obstacle(tmp_path: Path) -> None:
    for command in (
        (_program(tmp_path, "exit 2"), "app-server"),
        ("codex-that-is-not-there", "app-server"),
        (_program(tmp_path, "exit 0"),),
    ):
        assert asyncio.run(catalogue_of(command, tmp_path, dict(os.environ))) == b""


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.model_catalog._SECONDS", 0.1)
    since = time.monotonic()
    command = (_program(tmp_path, "sleep 60 & sleep 60"), "app-server")
    assert asyncio.run(catalogue_of(command, tmp_path, dict(os.environ))) == b""
    assert time.monotonic() - since < 5
