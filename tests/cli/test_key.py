from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolwire.cli.app import run


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolwire.toml").write_text('[store]\npath = "store.db"\n')


def test_a_key_is_made_listed_rotated_and_revoked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["key", "new", "ann", "--rpm", "60", "--budget", "5000", "--period", "day", "--expires", "30d"]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("tw-")
    assert run(["key", "list"]) == 0
    shown = capsys.readouterr().out
    assert "ann: 0 tokens used this day of 5000; 60 requests per minute; expires " in shown
    assert run(["key", "rotate", "ann", "--grace", "1h"]) == 0
    assert capsys.readouterr().out.strip() != secret
    assert run(["key", "list", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert line["name"] == "ann"
    assert "hash" not in line
    assert run(["key", "revoke", "ann"]) == 0
    capsys.readouterr()
    assert run(["key", "list"]) == 0
    assert "There are no named keys" in capsys.readouterr().out
    assert secret.encode() not in (tmp_path / "store.db").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new", "a b"], "expected letters, digits"),
        (["new", "ann", "--expires", "soon"], "such as 30d"),
        (["new", "ann", "--rpm", "-1"], "expected 0 or more"),
        (["revoke", "bob"], 'there is no key "bob"'),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_keys_need_a_store_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "toolwire.toml").write_text('[store]\nkind = "memory"\n')
    assert run(["key", "new", "ann"]) == 2
    assert "keys need a store that outlives the process" in capsys.readouterr().err
