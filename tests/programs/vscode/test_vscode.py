"""A real VS Code and `toolwire serve`, both ways: all files of proof in one session, as VS Code takes half a minute to start."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.programs.codex_backend import session
from tests.programs.installed import FOLDER
from tests.programs.vscode.installed import browser, code_server, steering

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PROOFS = (
    "turns",
    "failures",
    "crowds",
    "windows",
    "consent",
    "copilot",
)  # Copilot's extension wakes when it is spoken to
SECONDS = 1200


def test_a_real_editor() -> None:
    code_server()
    steering()
    browser()
    if not session.is_possible():
        print("this machine allows no network of one's own; VS Code runs in the common one, with a proxy that is none")
    files = [str(HERE / f"proof_{proof}.py") for proof in (*PROOFS, *_libraries())]
    # VS Code has sockets beside its files, and a socket's path has room for 107 letters: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory(prefix="tw", ignore_cleanup_errors=True) as short:
        outcome = session.run(files, "", Path(short) / "p", timeout=SECONDS)
    assert outcome.code == 0, f"pytest ended with {outcome.code}\n{outcome.output}"
    assert outcome.counts.get("passed"), f"nothing was proved\n{outcome.output}"
    assert not outcome.counts.get("skipped"), outcome.output


def _libraries() -> list[str]:
    if list((FOLDER / "python" / "lib").glob("python3.*/site-packages/langchain_openai")):
        return ["langchain"]
    print(f"LangChain is not installed in {FOLDER / 'python'}; `make programs` puts it there")
    return []
