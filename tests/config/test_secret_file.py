"""A random secret in a private file. tests/backends/vscode/test_token.py tests the same file by its first use."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from toolwire.config.secret import Secret
from toolwire.config.secret_file import FILE_NAME, is_strong, seal_secrets, sealing_secrets, stored_secret
from toolwire.config.values import ClusterConfig, Config, ServerConfig
from toolwire.errors import ConfigError


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


def test_secrets_of_the_owner_take_precedence_over_the_file(tmp_path: Path) -> None:
    assert seal_secrets((Secret("new"), Secret("old")), tmp_path)() == (b"new", b"old")
    assert not list(tmp_path.iterdir())


def test_the_file_is_created_when_the_secret_is_first_needed(tmp_path: Path) -> None:
    secrets = seal_secrets((), tmp_path)
    assert not list(tmp_path.iterdir())
    assert secrets() == seal_secrets((), tmp_path)() == (stored_secret(tmp_path / FILE_NAME).encode(),)


def test_without_a_folder_the_secret_ends_with_the_process() -> None:
    secrets = seal_secrets((), None)
    assert secrets() == secrets()
    assert secrets() != seal_secrets((), None)()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be stored") as caught:
        seal_secrets((), tmp_path / "file")()
    assert "[server] secrets" in caught.value.hint


def test_gateways_of_a_cluster_derive_the_same_secret() -> None:
    cluster = ClusterConfig(secret=Secret("0123456789abcdef"))
    (derived,) = sealing_secrets(Config(cluster=cluster))
    assert (derived,) == tuple(sealing_secrets(Config(cluster=cluster)))
    assert derived != cluster.secret
    assert tuple(sealing_secrets(Config(cluster=replace(cluster, is_own=True)))) == ()
    own = ServerConfig(secrets=(Secret("a" * 16),))
    assert tuple(sealing_secrets(Config(server=own, cluster=cluster))) == own.secrets
