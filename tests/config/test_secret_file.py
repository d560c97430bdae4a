"""A random secret in a private file. tests/backends/vscode/test_token.py tests the same file by its first use."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from toolwire.config.secret_file import is_strong, stored_secret


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")
def test_it_is_created_once_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "secret"
    secret = stored_secret(path)
    assert is_strong(secret)
    assert stored_secret(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "short", "blanks in a long text", "é" * 40])
def test_a_weak_text_is_no_secret(text: str) -> None:
    assert not is_strong(text)
