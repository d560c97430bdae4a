"""`[store] url`: kinds, files, references, and errors that do not quote a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.config import file
from toolwire.config.values import StoreConfig
from toolwire.errors import ConfigError

SECRET = "postgresql://ann:hunter2@db/toolwire"


def load(text: str, folder: Path, **environ: str) -> StoreConfig:
    (folder / "toolwire.toml").write_text(text)
    return file.load(folder / "toolwire.toml", environ).store


def test_a_url_of_a_file_is_the_path(tmp_path: Path) -> None:
    found = load('[store]\nurl = "sqlite:///data/state.db"', tmp_path)
    assert (found.kind, found.path) == ("sqlite", str(tmp_path / "data" / "state.db"))
    assert load('[store]\nurl = "sqlite:////var/lib/a%20b.db"', tmp_path).path == "/var/lib/a b.db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_url_of_postgresql_is_hidden(tmp_path: Path, scheme: str) -> None:
    found = load(f'[store]\nurl = "{scheme}://ann:hunter2@db/toolwire"\nconnections = 3', tmp_path)
    assert (found.kind, found.url.reveal(), found.connections) == ("postgres", f"{scheme}://ann:hunter2@db/toolwire", 3)
    assert "hunter2" not in repr(found)


def test_a_url_may_be_in_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(SECRET)
    (tmp_path / "url").chmod(0o600)
    assert load('[store]\nurl = "env:STORE"', tmp_path, STORE=SECRET).url.reveal() == SECRET
    assert load('[store]\nurl = "file:url"', tmp_path).url.reveal() == SECRET


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('url = "env:NOWHERE"', "NOWHERE is not set"),
        ('url = "mysql://ann:hunter2@db/x"', "found no URL of a store"),
        ('url = "hunter2"', "found no URL of a store"),
        ('url = "sqlite://"', "found a url without a file"),
        ('url = "postgresql://ann:hunter2@db/x"\npath = "a.db"', "expected one of them"),
        ('url = "postgresql://ann:hunter2@db/x"\nkind = "memory"', 'found kind "memory" and a url of kind "postgres"'),
        ('kind = "postgres"', "needs a url"),
    ],
)
def test_errors_name_the_key_and_no_password(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"[store]\n{text}", tmp_path)
    assert message in caught.value.message
    assert "hunter2" not in caught.value.sentence()
