"""One back end for each kind of the configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import pytest

from toolwire.backends import build
from toolwire.backends.codex.backend import CodexBackend
from toolwire.backends.cursor.backend import CursorBackend
from toolwire.backends.demo.backend import Demo
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.backends.scripted.backend import Scripted
from toolwire.backends.vscode.backend import VSCodeBackend
from toolwire.config.file import BackendConfig, Kind
from toolwire.errors import ConfigError

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


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_is_built(kind: Kind) -> None:
    async def main() -> None:
        transport = Transport()
        backend = build(
            BackendConfig(name="x" if kind != "demo" else "demo", kind=kind, base_url="http://h"), transport
        )
        expected, dialect = EXPECTED[kind]
        assert isinstance(backend, expected)
        assert backend.dialect == dialect
        assert backend.name in ("x", "demo")
        await backend.close()
        await transport.close()

    asyncio.run(main())


def test_a_script_that_is_not_there_is_the_owners_mistake(tmp_path: Path) -> None:
    config = BackendConfig(name="x", kind="scripted", script=str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        build(config)
