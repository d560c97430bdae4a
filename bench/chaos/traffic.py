"""Conversations that check themselves: the model's last answer is its whole history, which must be what the client has."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from itertools import count
from typing import Any

from msgspec import Struct, field

from tests.plain_http import request

SECONDS = 40.0  # that a request may take
TURNS = 8
# The last turn repeats the history that the model was given.
_PLAYED = [{"text": f"answer {number}", "chunk": 3} for number in range(TURNS - 1)]
_SCRIPT = base64.b64encode(json.dumps({"turns": [*_PLAYED, {"echo": True}]}).encode()).decode()
_MOST_TOKENS = 2000  # of an answer
_numbers = count()


class Acknowledged(Struct, frozen=True):
    """An answer that the gateway claims to have stored."""

    key: str
    id: str
    text: str


class Findings(Struct):
    histories: int = 0  # that were compared
    acknowledged: list[Acknowledged] = []
    problems: list[str] = []
    requests: int = 0
    refused: int = 0  # with an error of the gateway, as is right during an outage
    unstored: int = 0  # answered, with the loss reported
    cut: int = 0  # connections that broke with their gateway
    slowest: float = 0.0


class ClientUsage(Struct):
    """tokens: of the answers that the client received. uncertain: what requests may have used whose answers were cut off."""

    tokens: int = 0
    uncertain: int = 0


class Conversation(Struct):
    """previous: the last acknowledged answer. texts: what the user has said up to it, and what it answered."""

    key: str
    previous: str = ""
    history: list[tuple[str, str]] = field(default_factory=list)


async def converse(
    key: str, ports: list[int], findings: Findings, usage: ClientUsage, stop: asyncio.Event, choice: random.Random
) -> None:
    """One conversation after the other, each turn through another gateway."""
    conversation = Conversation(key)
    while not stop.is_set():
        if len(conversation.history) == TURNS:
            conversation = Conversation(key)
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(SECONDS):
                await _turn(conversation, choice.choice(ports), findings, usage, is_stream=choice.random() < 0.5)
        except TimeoutError:
            findings.problems.append(f"a request took longer than {SECONDS:.0f} seconds")
        except (OSError, asyncio.IncompleteReadError, ValueError):
            findings.cut += 1
            await asyncio.sleep(0.05)
        findings.slowest = max(findings.slowest, asyncio.get_running_loop().time() - begun)


async def _turn(
    conversation: Conversation, port: int, findings: Findings, usage: ClientUsage, *, is_stream: bool
) -> None:
    said = f"turn {next(_numbers)} of {conversation.key}"
    text = said if conversation.history else f"[[script:{_SCRIPT}]] {said}"
    body = {"model": "scripted/x", "input": text, "stream": is_stream, "max_output_tokens": _MOST_TOKENS}
    if conversation.previous:
        body["previous_response_id"] = conversation.previous
    findings.requests += 1
    reserved = len(json.dumps(body)) // 4 + _MOST_TOKENS
    usage.uncertain += reserved
    try:
        status, headers, data = await request(port, "POST", "/v1/responses", conversation.key, body)
    except ConnectionRefusedError:
        usage.uncertain -= reserved  # no gateway received it
        raise
    if status != 200:
        usage.uncertain -= reserved  # a refused request counts for nothing
        if status < 500:
            findings.problems.append(f"a turn was answered {status}: {data[:300]!r}")
            conversation.previous, conversation.history = "", []
        findings.refused += 1
        await asyncio.sleep(0.05)
        return
    response = _last_response(data) if is_stream else json.loads(data)
    if response is None or response["status"] != "completed":
        findings.refused += 1
        return
    used = response["usage"]["total_tokens"]
    if used > reserved:
        findings.problems.append(f"an answer used {used} tokens, more than the {reserved} that it reserves")
    usage.tokens += used
    usage.uncertain -= reserved
    if "store" in headers.get("x-toolwire-loss", "") or (is_stream and b'"feature":"store"' in data):
        findings.unstored += 1
        return
    answer = response["output"][-1]["content"][0]["text"]
    findings.acknowledged.append(Acknowledged(conversation.key, response["id"], answer))
    if len(conversation.history) == TURNS - 1:
        _check_history(conversation, text, answer, findings)
    conversation.history.append((text, answer))
    conversation.previous = response["id"]


def _check_history(conversation: Conversation, text: str, answer: str, findings: Findings) -> None:
    findings.histories += 1
    expected = [part for pair in conversation.history for part in pair] + [text]
    found = ["".join(_texts(message)) for message in json.loads(answer)]
    if found != expected:
        findings.problems.append(
            f"the history of {conversation.key} was altered: {len(found)} for {len(expected)} messages"
        )


def _texts(value: Any) -> list[str]:
    """All texts in a message, however they are nested."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            return [value["text"]]
        return [text for name, part in value.items() if name not in ("role", "type") for text in _texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def _last_response(data: bytes) -> dict[str, Any] | None:
    for frame in reversed(data.split(b"\n\n")):
        for line in frame.split(b"\n"):
            if line.startswith(b"data: {") and b'"response":' in line:
                found: dict[str, Any] = json.loads(line[6:]).get("response")
                return found
    return None
