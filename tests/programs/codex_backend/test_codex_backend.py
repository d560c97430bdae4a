"""The real Codex behind `toolwire serve`: each file of proof in a session of its own, for the oldest version and the newest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.programs.codex_backend import session
from tests.programs.codex_backend.binaries import VERSIONS, codex, plugin_langchain
from tests.programs.installed import python_library

OLD, LONG = "0.89.0", ("failures", "endings", "crowds")

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("version", VERSIONS)]


@pytest.mark.parametrize("proof", ["turns", "tools", "failures", "endings", "crowds"])
def test_codex_as_a_back_end(version: str, proof: str, tmp_path: Path) -> None:
    if version == OLD and proof in LONG and not os.environ.get("TOOLWIRE_THOROUGH"):
        pytest.skip(f"{proof} on {OLD} takes over a minute; TOOLWIRE_THOROUGH=1 runs it")
    codex(version)
    _prove(version, f"proof_{proof}.py", tmp_path)


def test_langchain_as_a_plugin_uses_it(version: str, tmp_path: Path) -> None:
    codex(version)
    plugin_langchain()
    python_library("langchain_openai")
    _prove(version, "proof_langchain.py", tmp_path)


def _prove(version: str, file: str, folder: Path) -> None:
    if not session.is_possible():
        print("this machine allows no network of one's own; Codex runs in the common one")
    outcome = session.run(file, version, folder / "proof", timeout=420)
    assert outcome.code == 0, f"pytest ended with {outcome.code}\n{outcome.output}"
    assert outcome.counts.get("passed"), f"nothing was proved\n{outcome.output}"
    assert not outcome.counts.get("skipped"), outcome.output
