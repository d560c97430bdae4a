"""From configuration to back ends: one line a kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..config.file import BackendConfig
from .base import Backend
from .demo.backend import Demo
from .http.backend import HttpBackend
from .http.transport import Transport
from .scripted.backend import Scripted

_KINDS: dict[str, Callable[[BackendConfig, Transport], Backend]] = {
    "openai-chat": HttpBackend,
    "openai-responses": HttpBackend,
    "anthropic": HttpBackend,
    "gemini": HttpBackend,
    "cursor": lambda config, transport: _cursor(config, transport),
    "codex": lambda config, transport: _codex(config),
    "vscode": lambda config, transport: _vscode(config),
    "demo": lambda config, transport: Demo(),
    "scripted": lambda config, transport: Scripted(config.name, Path(config.script) if config.script else None),
}


def _cursor(config: BackendConfig, transport: Transport) -> Backend:
    from .cursor.backend import CursorBackend  # only for those who have it

    return CursorBackend(config, transport)


def _codex(config: BackendConfig) -> Backend:
    from .codex.backend import CodexBackend  # only for those who have it

    return CodexBackend(config)


def _vscode(config: BackendConfig) -> Backend:
    from .vscode.backend import VSCodeBackend

    return VSCodeBackend(config)


def build(config: BackendConfig, transport: Transport | None = None) -> Backend:
    """A back end ready to be asked; those of one process share a transport and so its kept connections."""
    return _KINDS[config.kind](config, transport or Transport())
