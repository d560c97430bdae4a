"""The model's answers in each scene, as data. A scene is named in the prompt: SC=name TAG=letters, and the tag comes back in the answer.

Results of the tests' tools contain words such as FOUND_alpha; a scene counts them to find its position, wherever they are in the
request: in outputs of calls or in text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_SCENE = re.compile(r"SC=(\w+)")
_TAG = re.compile(r"TAG=(\w+)")
_NAME = re.compile(r"NAME=(\w+)")
_FOUND = re.compile(r"FOUND_[a-z0-9]+")
_INSIDE = 'a </tool_call> b "q" \\ é中😀'

CROWD = 50
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}


class Say(NamedTuple):
    """A message in these chunks, with a pause after each."""

    pieces: tuple[str, ...]
    pause: float = 0.0


class Call(NamedTuple):
    """pause: before the call. raw: text instead of the arguments."""

    name: str
    arguments: dict[str, Any]
    pause: float = 0.0
    raw: str = ""


class Think(NamedTuple):
    summary: str


class Refuse(NamedTuple):
    """An HTTP error instead of a stream."""

    status: int
    error: dict[str, Any]


class End(NamedTuple):
    """How the stream fails; kind "" breaks the connection."""

    kind: str
    members: dict[str, Any] = {}


class Wait(NamedTuple):
    """Sends nothing until the client disconnects."""


class Meet(NamedTuple):
    """Sends nothing until that many requests are at this point at the same time."""

    number: int


Step = Say | Call | Think | Refuse | End | Wait | Meet


class SceneRequest(NamedTuple):
    """The parts of a request that a scene uses."""

    scene: str
    tag: str
    name: str  # of the tool that the prompt names
    found: tuple[str, ...]
    tools: dict[str, tuple[str, str]]  # name -> (namespace, name) to call it by
    writes_calls: bool  # write calls into the text


def read_request(body: dict[str, Any]) -> SceneRequest:
    words = json.dumps(body.get("input"), ensure_ascii=False)
    scenes, tags = list(_SCENE.finditer(words)), _TAG.findall(words)
    since = words[scenes[-1].start() :] if scenes else words
    return SceneRequest(
        scenes[-1][1] if scenes else "plain",
        tags[-1] if tags else "",
        next(iter(_NAME.findall(since)), ""),
        tuple(dict.fromkeys(_FOUND.findall(since))),
        _tools(body),
        "<tool_call>" in _instructions(body),
    )


def play(request: SceneRequest) -> list[Step]:
    """The steps of the scene; for a model with only text, calls are written as text."""
    steps = _SCENES.get(request.scene, _plain)(request)
    return [_possible(request, step) if isinstance(step, Call) else step for step in steps]


def _possible(request: SceneRequest, call: Call) -> Step:
    if request.writes_calls:
        return _written(call)
    return call if call.name in request.tools else Say((f"There is no tool {call.name}.",))


def _instructions(body: dict[str, Any]) -> str:
    items = body.get("input")
    told = [item for item in items if item.get("role") in ("developer", "system")] if isinstance(items, list) else []
    return json.dumps([body.get("instructions"), told], ensure_ascii=False)


def _tools(body: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found = {}
    for tool in body.get("tools") or ():
        for inner in tool.get("tools") or (tool,):
            name = str(inner.get("name") or inner.get("type"))
            namespace = tool["name"] if inner is not tool else ""
            found[name.rpartition("__")[2].removeprefix("client_")] = (namespace, name)
    return found


def _written(call: Call) -> Say:
    text = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    whole = f"<tool_call>{text}</tool_call>\n"
    return Say(tuple(whole[at : at + 5] for at in range(0, len(whole), 5)))


def _plain(request: SceneRequest) -> list[Step]:
    return [Say(("Hel", "lo ", request.tag, " wor", "ld."))]


def _split(request: SceneRequest) -> list[Step]:
    """Written calls only: tags are split in the middle, and one is inside an argument."""
    if request.found:
        return _done(request)
    block = json.dumps({"name": "localSearch", "arguments": {"query": _INSIDE}}, ensure_ascii=False)
    text = f"I will look that up.\n<tool_call>{block}</tool_call>\nDone."
    marks = ("<to", "ol_c", "all>", "</tool_", "call> b", "</tool", "_call>")
    cut = re.split("|".join(f"(?<={re.escape(mark)})" for mark in marks), text)
    return [Say(tuple(piece for piece in cut if piece), 0.005)]


def _pair(request: SceneRequest) -> list[Step]:
    if request.found:
        return _done(request)
    rome = Call("get_weather", {"city": "Rome"}, pause=0.1)
    return [Say(("Let me ", "check.\n")), Call("get_weather", {"city": "Paris"}), rome]


def _loop(request: SceneRequest) -> list[Step]:
    if not request.found:
        return [Say(("Notes first.\n",)), Call("localSearch", {"query": f"notes {request.tag}", "limit": 3})]
    if len(request.found) == 1:
        return [Call("webSearch", {"query": f'{request.found[0]} é中 "q"', "deep": {"pages": [1, 2]}})]
    return _done(request)


def _commands(request: SceneRequest) -> list[Step]:
    """The commands of an agent with a shell: read a file, write another one."""
    if not request.found:
        return [Say(("I will read it.\n",)), Call("exec_command", {"cmd": "cat README.md"})]
    if len(request.found) == 1:
        return [Call("exec_command", {"cmd": f"echo {request.found[0][:-1]}1 > OUT.md && cat OUT.md"})]
    return _done(request)


def _contested(request: SceneRequest) -> list[Step]:
    return _done(request) if request.found else [Call(request.name, {"cmd": request.tag})]


def _done(request: SceneRequest) -> list[Step]:
    return [Say(("ALLDONE ", request.tag, " ", " ".join(request.found)))]


def _slow(request: SceneRequest) -> list[Step]:
    return [Say(tuple(f"w{number} " for number in range(2000)), 0.05)]


def _refusal(status: int, message: str, kind: str, code: str | None) -> Callable[[SceneRequest], list[Step]]:
    return lambda request: [Refuse(status, {"message": message, "type": kind, "code": code})]


def _failure(code: str, message: str) -> Callable[[SceneRequest], list[Step]]:
    return lambda request: [End("failed", {"error": {"code": code, "message": message}})]


_SCENES: dict[str, Callable[[SceneRequest], list[Step]]] = {
    "plain": _plain,
    "split": _split,
    "pair": _pair,
    "loop": _loop,
    "commands": _commands,
    "contested": _contested,
    "slow": _slow,
    "think": lambda request: [Think("Thinking hard"), *_plain(request)],
    "crowd": lambda request: [Meet(CROWD), *_plain(request)],
    "drip": lambda request: [Say(("half ",) * 200, 0.7)],
    "wait": lambda request: [Wait()],
    "half": lambda request: [Say(("half ",)), Wait()],
    "cut": lambda request: [Say(("half ",)), End("")],
    "e500": _refusal(500, "boom", "server_error", "server_error"),
    "e429": _refusal(429, "Rate limit reached for requests", "rate_limit_error", "rate_limit_exceeded"),
    "equota": _refusal(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
    "e401": _refusal(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"),
    "e404": _refusal(404, "The model does not exist", "invalid_request_error", "model_not_found"),
    "e400": _refusal(400, "Unsupported parameter", "invalid_request_error", None),
    "context": _failure("context_length_exceeded", "Your input exceeds the context window"),
    "failed": _failure("server_error", "model failed inside stream"),
    "incomplete": lambda request: [
        Say(("partial ",)),
        End("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}),
    ],
    "filter": lambda request: [
        Say(("partial ",)),
        End("incomplete", {"incomplete_details": {"reason": "content_filter"}}),
    ],
    "broken": lambda request: [Call("get_weather", {}, raw='{"city": ')],
}
