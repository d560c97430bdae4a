"""A gateway that remembers, before scripted models behind each kind of back end, and a client for the tests of its memory."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.server.harness import Answer, Gateway, ask, gateway, server_config
from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.memory.store import Store

# In this process, through each dialect, and through one whose back end remembers for itself.
BACKENDS = ("scripted", "chat", "responses", "messages")
KEEPER = "keeper"
KEY, OTHER_KEY = "key-one", "key-two"
ECHO = {"echo": True}


class Site:
    """One gateway, asked by whoever has which key."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: Any = None, key: str = KEY) -> Answer:
        return ask(self.port, method, f"/v1{path}", body, {"authorization": f"Bearer {key}"} if key else {})

    def respond(self, model: str, given: Any, key: str = KEY, **more: Any) -> Any:
        """The response object, streamed or not."""
        answer = self.ask("POST", "/responses", {"model": model, "input": given, **more}, key)
        assert answer.status == 200, answer.body
        return answer.events[-1][1]["response"] if more.get("stream") else answer.json

    def refused(self, status: int, method: str, path: str, body: Any = None, key: str = KEY) -> Any:
        """The error object."""
        answer = self.ask(method, path, body, key)
        assert answer.status == status, answer.body
        return answer.json["error"]


def scripted(*turns: dict[str, Any]) -> str:
    """A prompt that tells the scripted model what to say in each of its turns."""
    script = turns[0] if len(turns) == 1 else {"turns": list(turns)}
    return f"[[script:{base64.b64encode(json.dumps(script).encode()).decode()}]]"


def echoed(response: Any) -> list[Any]:
    """What the model was given, as it tells itself."""
    return list(json.loads(response["output"][-1]["content"][0]["text"]))


def roles(response: Any) -> list[str]:
    return [message["role"] for message in echoed(response)]


def texts(response: Any) -> list[str]:
    return [part["text"] for message in echoed(response) for part in message["parts"] if "text" in part]


def backend(name: str, kind: str, port: int, **more: Any) -> BackendConfig:
    url = f"http://127.0.0.1:{port}" + ("" if kind == "anthropic" else "/v1")
    return BackendConfig(name=name, kind=kind, base_url=url, models=("m",), retries=0, **more)  # type: ignore[arg-type] # one of the kinds


@contextlib.contextmanager
def site(*, store: Store | None = None, keys: tuple[str, ...] = ()) -> Iterator[Site]:
    fields: dict[str, Any] = {"default": "scripted"}
    with gateway(with_backends(Config(server=server_config(**fields)), [_model()])) as upstream:
        backends = [
            _model(),
            backend("chat", "openai-chat", upstream.port),
            backend("responses", "openai-responses", upstream.port),
            backend("messages", "anthropic", upstream.port),
            backend(KEEPER, "openai-responses", upstream.port, state="upstream", key=Secret("sk-of-the-gateway")),
            backend("thread-keeper", "anthropic", upstream.port, state="upstream", key=Secret("sk-of-the-gateway")),
        ]
        server: ServerConfig = server_config(keys=tuple(Secret(key) for key in keys))
        with gateway(with_backends(Config(server=server), backends), store) as running:
            yield Site(running.port)


def running_site(running: Gateway) -> Site:
    return Site(running.port)


def _model() -> BackendConfig:
    return BackendConfig(name="scripted", kind="scripted")
