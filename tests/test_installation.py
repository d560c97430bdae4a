"""The command that installs an extra fits how and from where the package was installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from toolwire.installation import install_command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On sys.path, with an installed package "parrot"."""
    about = tmp_path / "parrot-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def came_from(folder: Path, url: str) -> None:
    (folder / "parrot-1.0.dist-info" / "direct_url.json").write_text(json.dumps({"url": url, "dir_info": {}}))


def test_a_package_of_an_index_is_installed_by_name(folder: Path) -> None:
    assert install_command("mute", "parrot") == "pip install 'parrot[mute]'"
    assert install_command(package="parrot") == "pip install --force-reinstall parrot"
    assert install_command("mute", "not-installed") == "pip install 'not-installed[mute]'"


def test_a_package_of_a_checkout_is_installed_from_there(folder: Path) -> None:
    checkout = folder / "check out"
    checkout.mkdir()
    came_from(folder, checkout.as_uri())
    assert install_command("mute", "parrot") == f"pip install '{checkout}[mute]'"
    checkout.rmdir()
    assert install_command("mute", "parrot") == "pip install 'parrot[mute]'"


def test_other_sources_and_broken_files_count_as_an_index(folder: Path) -> None:
    came_from(folder, "https://example.com/parrot.whl")
    assert install_command("mute", "parrot") == "pip install 'parrot[mute]'"
    (folder / "parrot-1.0.dist-info" / "direct_url.json").write_text("[]")
    assert install_command("mute", "parrot") == "pip install 'parrot[mute]'"
    (folder / "parrot-1.0.dist-info" / "direct_url.json").write_text("{")
    assert install_command("mute", "parrot") == "pip install 'parrot[mute]'"


def test_the_tools_that_made_the_environment_are_used(folder: Path) -> None:
    ours = install_command("mcp").removeprefix("pip install ")
    (folder / "uv-receipt.toml").touch()
    assert install_command("mcp", prefix=folder) == f"uv tool install --force {ours}"
    assert install_command("mute", "parrot", folder).endswith(" --with 'parrot[mute]'")
    (folder / "uv-receipt.toml").rename(folder / "pipx_metadata.json")
    assert install_command("mcp", prefix=folder) == f"pipx install --force {ours}"
    assert install_command("mute", "parrot", folder) == "pipx inject --force toolwire 'parrot[mute]'"


def test_an_environment_without_pip_gets_uv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr("sys.path", [str(folder)])
    assert install_command("mute", "parrot") == "uv pip install 'parrot[mute]'"
