"""Back ends are found by their entry points and imported when they are built."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolwire.backends import Backend, EventReply, build, registry
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.cursor.backend import CursorBackend
from toolwire.backends.demo.backend import Demo
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.backends.scripted.backend import Scripted
from toolwire.backends.vscode.backend import VSCodeBackend
from toolwire.config.file import BackendConfig, load
from toolwire.errors import ConfigError
from toolwire.installation import install_command
from toolwire.types import Request

EXPECTED = {
    "openai-chat": (HttpBackend, "chat"),
    "openai-responses": (HttpBackend, "responses"),
    "anthropic": (HttpBackend, "messages"),
    "gemini": (HttpBackend, "gemini"),
    "cursor": (CursorBackend, ""),
    "codex": (CodexBackend, ""),
    "vscode": (VSCodeBackend, ""),
    "demo": (Demo, ""),
    "scripted": (Scripted, ""),
}


class Parrot(Backend):
    """A back end of another package."""

    def __init__(self, config: BackendConfig) -> None:
        self.name = config.name
        self.settings = config.config

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise NotImplementedError


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with three kinds: one that works, one that cannot be imported, one that has a name of ours."""
    sys.modules["parrot_package"] = sys.modules[__name__]
    installed = tmp_path / "parrot-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\nProvides-Extra: mute\n")
    (installed / "entry_points.txt").write_text(
        "[toolwire.backends]\nparrot = parrot_package:Parrot\nmute = no_such_module:Mute\ndemo = parrot_package:Parrot\n"
        "lost = parrot_package:Lost\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._foreign.cache_clear()
    yield
    registry._foreign.cache_clear()
    del sys.modules["parrot_package"]


@pytest.mark.parametrize("kind", EXPECTED)
def test_every_kind_is_built(kind: str) -> None:
    async def main() -> None:
        transport = Transport()
        backend = build(BackendConfig(name="x", kind=kind, base_url="http://h"), transport)
        expected, dialect = EXPECTED[kind]
        assert type(backend) is expected
        assert (backend.name, backend.dialect) == ("x", dialect)
        await backend.close()
        await transport.close()

    asyncio.run(main())


def test_the_project_declares_exactly_these_kinds() -> None:
    assert set(registry._declared()) == {*EXPECTED, "replay"}
    assert all(registry.is_own(kind) for kind in EXPECTED)


def test_a_script_that_is_not_there_is_the_owners_mistake(tmp_path: Path) -> None:
    config = BackendConfig(name="x", kind="scripted", script=str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        build(config, Transport())


@pytest.mark.slow
def test_only_built_kinds_are_imported() -> None:
    program = (
        "import sys\n"
        "from toolwire.backends import build\n"
        "from toolwire.backends.http.transport import Transport\n"
        "from toolwire.config.file import BackendConfig\n"
        "build(BackendConfig(name='demo', kind='demo'), Transport())\n"
        "print(sorted({name.split('.')[2] for name in sys.modules if name.startswith('toolwire.backends.')}))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "demo" in found
    assert not any(kind in found for kind in ("cursor", "codex", "vscode", "scripted"))


@pytest.mark.usefixtures("foreign")
def test_a_kind_of_another_package_is_configured_and_built(tmp_path: Path) -> None:
    file = tmp_path / "toolwire.toml"
    file.write_text('[backends.polly]\nkind = "parrot"\n[backends.polly.config]\nvoice = "loud"\n')
    config = load(file, {}).backends[0]
    backend = build(config, Transport())
    assert isinstance(backend, Parrot)
    assert (backend.name, backend.settings) == ("polly", {"voice": "loud"})
    assert "parrot" in registry.kinds()
    assert not registry.is_own("parrot")


@pytest.mark.usefixtures("foreign")
def test_another_package_cannot_replace_a_kind_of_ours() -> None:
    assert registry.load("demo") is Demo


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize(
    ("kind", "command"), [("mute", "pip install 'parrot[mute]'"), ("lost", "pip install --force-reinstall parrot")]
)
def test_a_kind_that_cannot_be_imported_names_the_command_that_installs_it(kind: str, command: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.load(kind)
    assert caught.value.hint == f"Install what they need: {command}"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["h2", "google.protobuf"])
def test_cursor_without_its_extra_names_the_command(module: str) -> None:
    """As after an upgrade from 0.1, which installed everything."""
    program = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        "from toolwire.backends import registry\n"
        "from toolwire.errors import ConfigError\n"
        "try:\n    registry.load('cursor')\n"
        "except ConfigError as error:\n    print(error.sentence())\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.startswith('kind: back ends of kind "cursor" cannot be imported: ')
    assert found.endswith(f"Install what they need: {install_command('cursor')}\n")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match='no installed package has a back end of kind "nothing"'):
        registry.load("nothing")
