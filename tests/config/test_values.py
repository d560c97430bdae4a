"""What settings are when nobody writes them, and that they keep secrets to themselves."""

from __future__ import annotations

from toolwire.config.secret import Secret
from toolwire.config.values import DEFAULT_PORT, BackendConfig, Config, ServerConfig


def test_nothing_is_open_or_unofficial_by_default() -> None:
    assert (ServerConfig().host, ServerConfig().port, ServerConfig().keys) == ("127.0.0.1", DEFAULT_PORT, ())
    backend = BackendConfig(name="x", kind="cursor")
    assert (backend.local_tools, backend.client_version, backend.privacy) == ((), "", True)
    assert Config().backends == ()


def test_what_may_be_a_secret_is_not_shown() -> None:
    backend = BackendConfig(
        name="x",
        kind="cursor",
        key=Secret("sk-1"),
        token=Secret("tok-2"),
        headers={"x-key": "val-3"},
        config={"sk": "cfg-4"},
    )
    assert not any(secret in repr(backend) for secret in ("sk-1", "tok-2", "val-3", "cfg-4"))
    assert "x-key" in repr(backend)


def test_tools_are_simulated_by_either_setting() -> None:
    assert BackendConfig(name="x", kind="openai-chat", tools="simulate").is_simulated
    assert BackendConfig(name="x", kind="codex", tier="sentinel").is_simulated
    assert not BackendConfig(name="x", kind="cursor").is_simulated
