"""A gateway for one session: it answers on a free port, writes nothing to the home, and ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolwire.cli.clients.gateway import look
from toolwire.cli.start.own_gateway import own_gateway
from toolwire.config.file import load
from toolwire.errors import ConfigError

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def test_it_answers_on_a_free_port_and_ends(home: Path, tmp_path: Path) -> None:
    former = dict(os.environ)
    with own_gateway(load(None, {}), tmp_path / "place", tmp_path / "log") as address:
        assert look(address, "", 30.0).models == ("demo/echo-tools",)
        assert address.startswith("http://127.0.0.1:")
    assert look(address, "").status == 0
    assert dict(os.environ) == former
    assert list(home.rglob("*")) == []


def test_its_keys_are_those_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text('[server]\nport = 1\nkeys = ["k-secret-1"]\n')
    config = load(tmp_path / "toolwire.toml", {})
    with own_gateway(config, tmp_path / "place", tmp_path / "log") as address:
        assert look(address, "", 30.0).status == 401
        assert look(address, "k-secret-1", 30.0).status == 200


def test_a_configured_store_stays(tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text(f'[store]\npath = "{tmp_path}/state.db"\n')
    with own_gateway(load(tmp_path / "toolwire.toml", {}), tmp_path / "place", tmp_path / "log") as address:
        assert look(address, "", 30.0).status == 200
    assert (tmp_path / "state.db").exists()


def test_a_start_that_fails_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text(f'[store]\npath = "{tmp_path}/log/state.db"\n')
    with (
        pytest.raises(ConfigError, match=r"the gateway did not start: .*state\.db"),
        own_gateway(load(tmp_path / "toolwire.toml", {}), tmp_path / "place", tmp_path / "log"),
    ):
        pass


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="this file cannot be written"),
        own_gateway(load(None, {}), tmp_path / "place", tmp_path / "nowhere" / "log"),
    ):
        pass
