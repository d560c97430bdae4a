"""The real Codex behind `toolwire serve`: the proof_* files, several per session, for the oldest and the newest version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.codex_backend import session
from tests.programs.codex_backend.binaries import NEWEST, VERSIONS, codex, plugin_langchain
from tests.programs.installed import python_library
from tests.thorough import some

pytestmark = pytest.mark.slow

SESSIONS = (
    "turns tools codex_client",
    "failures crowds",
    "endings",
)  # starting a session takes as long as a dozen turns
LONG = SESSIONS[1:]  # on the newest version only
PAIRS = [(proofs, version) for proofs in SESSIONS for version in VERSIONS]
KEPT = [(proofs, version) for proofs, version in PAIRS if version == NEWEST or proofs not in LONG]


@pytest.mark.parametrize(("proofs", "version"), some(PAIRS, KEPT))
def test_codex_as_a_back_end(version: str, proofs: str, tmp_path: Path) -> None:
    codex(version)
    _prove(version, proofs, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_langchain_as_a_plugin_uses_it(version: str, tmp_path: Path) -> None:
    codex(version)
    plugin_langchain()
    python_library("langchain_openai")
    _prove(version, "langchain", tmp_path)


def _prove(version: str, proofs: str, folder: Path) -> None:
    if not session.is_possible():
        print("this machine allows no network of one's own; Codex runs in the common one")
    files = [f"proof_{proof}.py" for proof in proofs.split()]
    outcome = session.run(files, version, folder / "proof", timeout=600)
    assert outcome.code == 0, f"pytest ended with {outcome.code}\n{outcome.output}"
    assert outcome.counts.get("passed"), f"nothing was proved\n{outcome.output}"
    assert not outcome.counts.get("skipped"), outcome.output
