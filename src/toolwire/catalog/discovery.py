"""Back ends that need no configuration: provider keys in the environment, programs, and servers on this machine."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from ..config.file import BASE_URLS, DEFAULT_PORT, BackendConfig, is_loopback, url_fault
from ..config.secret import Resolver, Secret
from ..errors import ConfigError

Probe: TypeAlias = Callable[
    [str], Awaitable[list[str] | None]
]  # URL -> ids of the model list, None if there is no list

PROBE_SECONDS = 0.3
LOCAL_PORTS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}


class ProviderAccount(Struct, frozen=True, kw_only=True):
    """A provider, recognised by the environment variable of its key."""

    name: str
    kind: str
    key: str
    base_url: str
    base_url_from: str = ""


ACCOUNTS = (
    ProviderAccount(
        name="openai",
        kind="openai-chat",
        key="OPENAI_API_KEY",
        base_url=BASE_URLS["openai-chat"],
        base_url_from="OPENAI_BASE_URL",
    ),
    ProviderAccount(
        name="anthropic",
        kind="anthropic",
        key="ANTHROPIC_API_KEY",
        base_url=BASE_URLS["anthropic"],
        base_url_from="ANTHROPIC_BASE_URL",
    ),
    ProviderAccount(name="gemini", kind="gemini", key="GEMINI_API_KEY", base_url=BASE_URLS["gemini"]),
    ProviderAccount(
        name="openrouter", kind="openai-chat", key="OPENROUTER_API_KEY", base_url="https://openrouter.ai/api/v1"
    ),
)

VSCODE_PROGRAMS = ("code", "code-insiders", "codium", "code-server")
# Of VS Code here, and of its server, which a window on another machine starts here (SSH, WSL, containers).
VSCODE_FOLDERS = (
    ".vscode",
    ".vscode-insiders",
    ".vscode-oss",
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-remote",
    ".local/share/code-server",
)
# VS Code replaces arguments that are not JSON by {}, so the model must correct them.
VSCODE = BackendConfig(name="vscode", kind="vscode", guard="retry")


async def discover(
    environ: Mapping[str, str], probe: Probe, *, own_port: int = DEFAULT_PORT, is_serving: bool = False
) -> tuple[BackendConfig, ...]:
    """Accounts, then programs, then local servers that answer. Skips own_port, where this gateway listens.

    is_serving: this process runs the gateway, so windows of a VS Code on this machine can connect to it.
    """
    accounts = (*_accounts(environ, own_port), *_programs(environ))
    ports = {name: port for name, port in LOCAL_PORTS.items() if port != own_port}
    answers = await asyncio.gather(*(_local(name, port, probe) for name, port in ports.items()))
    found = accounts + tuple(backend for backend in answers if backend is not None)
    return (*found, VSCODE) if is_serving and _has_vscode(environ) else found


def _accounts(environ: Mapping[str, str], own_port: int) -> Iterator[BackendConfig]:
    for account in ACCOUNTS:
        if key := _key(environ, account.key):
            base_url = _base_url(environ, account, own_port)
            yield BackendConfig(name=account.name, kind=account.kind, base_url=base_url, key=key)


def _programs(environ: Mapping[str, str]) -> Iterator[BackendConfig]:
    """Programs with an account of their own. They start with the first request."""
    if shutil.which("codex", path=environ.get("PATH", "")):
        yield BackendConfig(name="codex", kind="codex")


def _has_vscode(environ: Mapping[str, str]) -> bool:
    """A program on the PATH, or a folder that VS Code has created for its extensions."""
    if any(shutil.which(program, path=environ.get("PATH", "")) for program in VSCODE_PROGRAMS):
        return True
    home = environ.get("HOME") or environ.get("USERPROFILE", "")
    return bool(home) and any((Path(home) / folder).is_dir() for folder in VSCODE_FOLDERS)


def _key(environ: Mapping[str, str], name: str) -> Secret:
    try:
        return Secret(Resolver(environ, Path()).resolve(f"env:{name}"))
    except ValueError as error:
        raise ConfigError(f"{error}; expected one line of printable ASCII.", where=name) from None


def _base_url(environ: Mapping[str, str], account: ProviderAccount, own_port: int) -> str:
    url = environ.get(account.base_url_from, "").strip().rstrip("/")
    if not url:
        return account.base_url
    if fault := url_fault(url):
        raise ConfigError(f"{fault}; expected one such as {account.base_url}.", where=account.base_url_from)
    # The same variables point clients at this gateway; using them would make it call itself.
    parts = urlsplit(url)
    is_own = is_loopback(parts.hostname or "") and parts.port == own_port
    return account.base_url if is_own else url


async def _local(name: str, port: int, probe: Probe) -> BackendConfig | None:
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            models = await probe(f"{base_url}/models")
    except (TimeoutError, OSError):
        return None
    if models is None:
        return None
    return BackendConfig(name=name, kind="openai-chat", base_url=base_url, models=tuple(models))
