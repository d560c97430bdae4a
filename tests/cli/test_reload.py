"""`toolwire reload` against a running gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import gateway
from toolwire.cli.app import run
from toolwire.config.file import Config, load
from toolwire.server.assembly.reload import Reload

FILE = '[server]\nport = {port}\nkeys = ["{key}"]\n[backends.demo]\nkind = "demo"\n'


def written(folder: Path, port: int, key: str = "the-first-key", more: str = "") -> Path:
    path = folder / "toolwire.toml"
    path.write_text(FILE.format(port=port, key=key) + more, encoding="utf-8")
    return path


def read(path: Path) -> Config:
    return load(path, {})


def test_it_prints_what_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, free_port())
    with gateway(read(path), reload=Reload(lambda: read(path))) as server:
        written(tmp_path, server.port, more='[backends.two]\nkind = "scripted"\n')
        assert run(["reload", "--config", str(path)]) == 0
        assert "added: two" in capsys.readouterr().out
        path.write_text(path.read_text() + "[models]\na = 7\n", encoding="utf-8")
        assert run(["reload", "--config", str(path)]) == 2
        assert "expected a model" in capsys.readouterr().err


def test_a_key_that_the_gateway_does_not_know_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, free_port())
    with gateway(read(path), reload=Reload(lambda: read(path))) as server:
        written(tmp_path, server.port, key="another-key")
        assert run(["reload", "--config", str(path)]) == 1
        assert "TOOLWIRE_KEY" in capsys.readouterr().err


def test_no_gateway_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, free_port())
    assert run(["reload", "--config", str(path)]) == 1
    assert "no gateway answers" in capsys.readouterr().err
