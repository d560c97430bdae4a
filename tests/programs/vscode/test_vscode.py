"""A real VS Code and `toolwire serve`, in both directions: all proof_* files in one session, because VS Code takes half a minute to start."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.programs.codex_backend import session
from tests.programs.installed import python_library
from tests.programs.vscode.installed import browser, code_server, framework, steering

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PROOFS = (
    "turns",
    "failures",
    "crowds",
    "windows",
    "consent",
    "copilot",
    "newcomers",
)  # Copilot's extension wakes when it is spoken to
_FRAMEWORKS = HERE / "proof_frameworks.py"
LIBRARIES = {
    "langchain": str(HERE / "proof_langchain.py"),
    **{name: f"{_FRAMEWORKS}::test_{name}" for name in ("autogen", "crewai", "semantic_kernel")},
}
SECONDS = 1200


def test_a_real_editor() -> None:
    code_server()
    steering()
    browser()
    if not session.is_possible():
        print("this machine allows no network of one's own; VS Code runs in the common one, with a proxy that is none")
    files = [str(HERE / f"proof_{proof}.py") for proof in PROOFS]
    files += [proof for name, proof in LIBRARIES.items() if _is_installed(name)]
    # VS Code has sockets beside its files, and a socket's path has room for 107 letters: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory(prefix="tw", ignore_cleanup_errors=True) as short:
        outcome = session.run(files, "", Path(short) / "p", timeout=SECONDS)
    assert outcome.code == 0, f"pytest ended with {outcome.code}\n{outcome.output}"
    assert outcome.counts.get("passed"), f"nothing was proved\n{outcome.output}"
    assert not outcome.counts.get("skipped"), outcome.output


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_is_tried_on_it_is_installed(name: str) -> None:
    """Or the summary says that it was not tried."""
    assert _find(name).exists()


def _find(name: str) -> Path:
    return python_library("langchain_openai") if name == "langchain" else framework(name)


def _is_installed(name: str) -> bool:
    try:
        return _find(name).exists()
    except pytest.skip.Exception:
        return False
