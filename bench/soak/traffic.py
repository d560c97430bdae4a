"""What the clients of the soak do: every kind of request, and what must come of it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

KEY = "sk-soak"
HTTP = ("chat", "messages")  # back ends on loopback
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
DIALECTS = (*PATHS, "gemini")


@dataclass
class Job:
    """leaves_after: the client closes when so many bytes of the answer have come; -1 stays to the end."""

    kind: str
    method: str
    path: str
    body: bytes = b""
    status: tuple[int, ...] = (200,)
    leaves_after: int = -1
    is_fresh: bool = False
    key: str = KEY
    headers: dict[str, str] = field(default_factory=dict)
    then: Callable[[bytes], None] | None = None

    def wire(self, port: int) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", f"host: 127.0.0.1:{port}", f"authorization: Bearer {self.key}"]
        if self.body:
            lines += ["content-type: application/json", f"content-length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body


Make: TypeAlias = Callable[["Traffic"], Job]


class Traffic:
    """A reproducible mix. Stored answers are continued, read and deleted later by any client."""

    def __init__(self, seed: int, only: str = "", body_mb: int = 0) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.stored: list[str] = []
        wanted = {name: KINDS[name] for name in only.split(",")} if only else KINDS
        self._kinds = [make for make, weight in wanted.values() for _ in range(weight)]
        self._pictures = 1.0 if body_mb else 0.05  # how many questions have one
        self._picture = base64.b64encode(self.random.randbytes((body_mb << 20) * 3 // 4 or 60_000)).decode()

    def next(self) -> Job:
        self.count += 1
        return self.random.choice(self._kinds)(self)

    def asked(self, kind: str, dialect: str, model: str, *, is_stream: bool = False, **more: Any) -> Job:
        text = f"What is the weather in place {self.count}? " + "Think about it. " * self.random.randrange(40)
        schema = _schema(self.count) if self.random.random() < 0.1 else _schema(0)
        body = _question(dialect, model, text, schema, self._picture if self.random.random() < self._pictures else "")
        body |= more
        path = PATHS.get(dialect, "")
        if dialect == "gemini":
            path = f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if is_stream else 'generateContent'}"
        else:
            body["stream"] = is_stream
        return Job(kind, "POST", path, json.dumps(body).encode(), is_fresh=self.random.random() < 0.2)

    def keep(self, answer: bytes) -> None:
        self.stored.append(json.loads(answer)["id"])
        del self.stored[:-200]


def _schema(number: int) -> Any:
    """Caches of schemas must not grow with each new one."""
    city = {"type": "string", "description": f"A city of region {number}"}
    return {"type": "object", "properties": {"city": city, "days": {"type": "integer"}}}


def _question(dialect: str, model: str, text: str, schema: Any, picture: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{picture}"
    tools: list[Any]
    if dialect == "gemini":
        parts: list[Any] = [{"text": text}]
        parts += [{"inlineData": {"mimeType": "image/png", "data": picture}}] if picture else []
        tools = [{"functionDeclarations": [{"name": "weather", "parameters": schema}]}]
        return {"contents": [{"role": "user", "parts": parts}], "tools": tools}
    if dialect == "responses":
        content: list[Any] = [{"type": "input_text", "text": text}]
        content += [{"type": "input_image", "image_url": url}] if picture else []
        tools = [{"type": "function", "name": "weather", "parameters": schema}]
        return {"model": model, "input": [{"role": "user", "content": content}], "tools": tools, "store": False}
    content = [{"type": "text", "text": text}]
    if dialect == "chat":
        content += [{"type": "image_url", "image_url": {"url": url}}] if picture else []
        tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
        return {"model": model, "messages": [{"role": "user", "content": content}], "tools": tools}
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    content += [{"type": "image", "source": source}] if picture else []
    tools = [{"name": "weather", "input_schema": schema}]
    return {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": content}], "tools": tools}


def _answered(what: str) -> Make:
    def make(traffic: Traffic) -> Job:
        pick = traffic.random.choice
        model = f"{pick(HTTP)}/{what}" if what != "demo" else "demo/echo-tools"
        return traffic.asked(what, pick(DIALECTS), model, is_stream=traffic.random.random() < 0.6)

    return make


def _failing(what: str, *status: int) -> Make:
    def make(traffic: Traffic) -> Job:
        pick = traffic.random.choice
        is_stream = what == "cut" or traffic.random.random() < 0.5
        job = traffic.asked(what, pick(DIALECTS), f"{pick(HTTP)}/{what}", is_stream=is_stream)
        job.status = status
        return job

    return make


def _leaving(traffic: Traffic) -> Job:
    pick = traffic.random.choice
    job = traffic.asked("client leaves", pick(DIALECTS), f"{pick(HTTP)}/slow", is_stream=True)
    job.leaves_after, job.is_fresh = pick((0, 1, 300)), True
    return job


def _not_json(traffic: Traffic) -> Job:
    return Job("not JSON", "POST", traffic.random.choice(list(PATHS.values())), b'{"model": "x", "messages": [', (400,))


def _wrong_field(traffic: Traffic) -> Job:
    job = traffic.asked("wrong field", "chat", "chat/text", messages=[])
    job.status = (400,)
    return job


def _wrong_key(traffic: Traffic) -> Job:
    job = traffic.asked("wrong key", traffic.random.choice(DIALECTS), "chat/text")
    job.status, job.key, job.is_fresh = (401,), "sk-wrong", True
    return job


def _too_large(traffic: Traffic) -> Job:
    """It is refused by its announced length; a client that sends it all the same may find the connection closed."""
    size = str(1 << 40)
    return Job("too large", "POST", PATHS["chat"], status=(413,), is_fresh=True, headers={"content-length": size})


def _no_model(traffic: Traffic) -> Job:
    job = traffic.asked("no such model", "chat", f"none/{traffic.count}")
    job.status = (404,)
    return job


def _new_name(traffic: Traffic) -> Job:
    """Clients choose model names: what is counted by model must not grow with them."""
    return traffic.asked("new model name", "chat", f"chat/text-{traffic.count}")


def _stored(traffic: Traffic) -> Job:
    more: dict[str, Any] = {"store": True}
    if traffic.stored and traffic.random.random() < 0.5:
        more["previous_response_id"] = traffic.random.choice(traffic.stored)
    model = f"{traffic.random.choice(HTTP)}/text"
    job = traffic.asked("stored", "responses", model, **more)
    job.status, job.then = (200, 400, 404), traffic.keep  # what it continues may have been deleted
    return job


def _read(traffic: Traffic) -> Job:
    name = traffic.random.choice(traffic.stored or ["resp_none"])
    return Job("read", "GET", f"/v1/responses/{name}", status=(200, 404))


def _deleted(traffic: Traffic) -> Job:
    name = traffic.stored.pop(0) if traffic.stored else "resp_none"
    return Job("delete", "DELETE", f"/v1/responses/{name}", status=(200, 404))


def _page(path: str) -> Make:
    return lambda traffic: Job(path, "GET", path)


# By name: how one is made, and how often of all.
KINDS: dict[str, tuple[Make, int]] = {
    "text": (_answered("text"), 24),
    "tools": (_answered("tools"), 20),
    "demo": (_answered("demo"), 12),
    "400": (_failing("400", 400), 5),
    "500": (_failing("500", 500), 5),
    "cut": (_failing("cut", 200, 502), 4),
    "garbage": (_failing("garbage", 502), 3),
    "leaving": (_leaving, 6),
    "not-json": (_not_json, 2),
    "wrong-field": (_wrong_field, 2),
    "wrong-key": (_wrong_key, 2),
    "too-large": (_too_large, 1),
    "no-model": (_no_model, 2),
    "new-name": (_new_name, 2),
    "stored": (_stored, 8),
    "read": (_read, 3),
    "deleted": (_deleted, 1),
    "models": (_page("/v1/models"), 1),
    "metrics": (_page("/metrics"), 1),
    "health": (_page("/healthz"), 1),
}
