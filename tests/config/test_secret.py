"""Secrets: found where they are kept, and shown nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from toolwire.config.secret import Resolver, Secret


def test_a_secret_is_shown_only_by_reveal() -> None:
    secret = Secret("sk-hidden")
    assert secret.reveal() == "sk-hidden"
    for text in (repr(secret), str(secret), f"{secret}", f"{[secret]}"):
        assert "sk-" not in text
    assert "dden" not in f"{secret!r}".removeprefix("Secret(hidden)")


def test_an_empty_secret_is_false() -> None:
    assert not Secret()
    assert Secret("x")


def test_secrets_compare_by_what_they_hold_and_survive_a_new_process() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert pickle.loads(pickle.dumps(Secret("a"))) == Secret("a")


def test_a_reference_to_the_environment(tmp_path: Path) -> None:
    resolver = Resolver({"KEY": " sk-1\n"}, tmp_path)
    assert resolver.resolve("env:KEY") == "sk-1"
    assert resolver.missing == []


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": "  "}])
def test_a_variable_that_is_not_set_is_noted(environ: dict[str, str], tmp_path: Path) -> None:
    resolver = Resolver(environ, tmp_path)
    assert resolver.resolve("env:KEY") == ""
    assert resolver.missing == ["KEY is not set"]


def test_a_text_stands_for_itself(tmp_path: Path) -> None:
    resolver = Resolver({}, tmp_path)
    assert resolver.resolve("sk-inline:with-colon") == "sk-inline:with-colon"
    assert resolver.resolve("") == ""


def test_a_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-2\n")
    file.chmod(0o600)
    resolver = Resolver({}, tmp_path)
    assert resolver.resolve("file:key") == resolver.resolve(f"file:{file}") == "sk-2"
    assert resolver.warnings == []


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_that_others_can_read_is_used_with_a_warning(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-2")
    file.chmod(mode)
    resolver = Resolver({}, tmp_path)
    assert resolver.resolve("file:key") == "sk-2"
    [warning] = resolver.warnings
    assert "chmod 600" in warning
    assert "sk-2" not in warning


@pytest.mark.parametrize(("content", "why"), [(None, "cannot be read"), (b"\n", "empty"), (b"x" * 70_000, "too long")])
def test_a_file_without_a_secret_is_noted(content: bytes | None, why: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    resolver = Resolver({}, tmp_path)
    assert resolver.resolve("file:key") == ""
    [missing] = resolver.missing
    assert why in missing


@pytest.mark.parametrize("reference", ["file:", "file:a\x00b", "file:."])
def test_a_path_that_is_no_file_is_noted(reference: str, tmp_path: Path) -> None:
    resolver = Resolver({}, tmp_path)
    assert resolver.resolve(reference) == ""
    assert len(resolver.missing) == 1


@pytest.mark.parametrize("text", ["sk-a\r\nx-evil: 1", "sk-ключ", "sk\x00"])
def test_a_secret_that_cannot_stand_in_a_header_is_refused_unseen(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        Resolver({"KEY": text}, tmp_path).resolve("env:KEY")
    assert "sk" not in str(caught.value)


def test_a_secret_from_a_file_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "token").chmod(0o600)
    resolver = Resolver({"T": "env"}, tmp_path)
    secret = resolver.secret("file:token")
    assert secret.reveal() == "one"
    (tmp_path / "token").write_text("two\n")
    assert secret.read_again().reveal() == "two"
    assert secret.read_again().read_again().reveal() == "two"
    for bad in (b"", b"a\nb", b"\xff"):
        (tmp_path / "token").write_bytes(bad)
        assert secret.read_again().reveal() == "one"
    assert resolver.secret("env:T").read_again().reveal() == "env"
    assert resolver.secret("plain").read_again().reveal() == "plain"
    assert resolver.secret("file:missing").read_again().reveal() == ""
