"""Defects of servers, and the check of a server that has one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.check.broken_server import Damage, GoodAnswer, broken_server
from toolwire.backends.http.transport import Transport
from toolwire.check.results import DialectReport
from toolwire.check.runner import CheckOptions, check_dialect
from toolwire.config.file import BackendConfig

KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
_MODEL = "demo/echo-tools"


def check(address: str, dialect: str, *, is_quick: bool = True, seconds: float = 5.0) -> DialectReport:
    base = f"{address}/v1" if dialect in ("chat", "responses") else address
    config = BackendConfig(name="checked", kind=KINDS[dialect], base_url=base)

    async def run() -> DialectReport:
        transport = Transport()
        try:
            options = CheckOptions(is_quick=is_quick, seconds=seconds)
            return await check_dialect(config, _MODEL, transport, options, lambda result: None)
        finally:
            await transport.close()

    return asyncio.run(run())


def check_damaged(good: str, dialect: str, damage: Damage) -> DialectReport:
    with broken_server(good, damage) as address:
        return check(address, dialect)


def stream_values(change: Callable[[dict[str, Any]], None]) -> Damage:
    """Changes the JSON of each event of a stream."""

    def damage(answer: GoodAnswer) -> None:
        if answer.is_stream:
            events = answer.events
            for _, value in events:
                if isinstance(value, dict):
                    change(value)
            answer.events = events

    return damage


def without_event(*kinds: str) -> Damage:
    def damage(answer: GoodAnswer) -> None:
        if answer.is_stream:
            answer.events = [event for event in answer.events if _kind(event[1]) not in kinds]

    return damage


def _kind(value: Any) -> str:
    return str(value.get("type")) if isinstance(value, dict) else str(value)


def body_value(change: Callable[[dict[str, Any]], None]) -> Damage:
    """Changes the JSON of whole answers."""

    def damage(answer: GoodAnswer) -> None:
        if answer.status == 200 and not answer.is_stream:
            value = answer.value
            change(value)
            answer.value = value

    return damage


def delta_calls(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for choice in value.get("choices", ()):
        yield from choice.get("delta", {}).get("tool_calls") or ()


def whole_calls(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for choice in value.get("choices", ()):
        yield from choice["message"].get("tool_calls") or ()


def drop_index(value: dict[str, Any]) -> None:
    for call in delta_calls(value):
        call.pop("index", None)


def drop_call_id(value: dict[str, Any]) -> None:
    for call in delta_calls(value):
        call.pop("id", None)


def resend_name(value: dict[str, Any]) -> None:
    for call in delta_calls(value):
        call["function"].setdefault("name", "get_weather")


def arguments_as_object(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])


def cut_arguments(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        call["function"]["arguments"] = call["function"]["arguments"][:-2]


def other_name(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        call["function"]["name"] = f"functions.{call['function']['name']}"


def other_type(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        arguments = json.loads(call["function"]["arguments"])
        call["function"]["arguments"] = json.dumps({name: [inner] for name, inner in arguments.items()})


def stop_reason(reason: str | None) -> Callable[[dict[str, Any]], None]:
    def change(value: dict[str, Any]) -> None:
        for choice in value.get("choices", ()):
            if choice.get("finish_reason"):
                choice["finish_reason"] = reason

    return change


def drop_usage(value: dict[str, Any]) -> None:
    value.pop("usage", None)


def wrong_usage(value: dict[str, Any]) -> None:
    if value.get("usage"):
        value["usage"]["total_tokens"] = 1


def calls_as_text(answer: GoodAnswer) -> None:
    if answer.status != 200 or answer.is_stream:
        return
    value = answer.value
    message = value["choices"][0]["message"]
    if message.pop("tool_calls", None):
        message["content"] = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
        value["choices"][0]["finish_reason"] = "stop"
    answer.value = value


def no_streams(answer: GoodAnswer) -> None:
    if answer.is_stream:
        answer.kind, answer.body = "application/json", b'{"object": "chat.completion", "choices": []}'


def one_line_break(answer: GoodAnswer) -> None:
    if answer.is_stream:
        answer.body = answer.body.replace(b"\n\n", b"\n")


def invalid_utf8(answer: GoodAnswer) -> None:
    answer.body = answer.body.replace("ü".encode(), b"\xfc").replace("東".encode(), b"\xe6\x9d")


def html_errors(answer: GoodAnswer) -> None:
    if answer.status >= 400:
        answer.kind, answer.body = "text/html", b"<html>Bad Request</html>"


def errors_as_200(answer: GoodAnswer) -> None:
    if answer.status >= 400:
        answer.status = 200


def short_body(answer: GoodAnswer) -> None:
    if answer.request.get("tools"):
        answer.length = len(answer.body) + 10


def silent_close(answer: GoodAnswer) -> None:
    answer.close_silently = True


def refuse_tools(answer: GoodAnswer) -> None:
    if answer.request.get("tools"):
        answer.status, answer.kind = 400, "application/json"
        answer.value = {"error": {"message": "tools are not supported", "type": "invalid_request_error"}}


def refuse_results(answer: GoodAnswer) -> None:
    if any(message.get("role") == "tool" for message in answer.request.get("messages", ())):
        answer.status, answer.kind = 400, "application/json"
        answer.value = {"error": {"message": "unknown role tool", "type": "invalid_request_error"}}


def ignore_none(answer: GoodAnswer) -> None:
    if answer.request.get("tool_choice") == "none" and answer.status == 200:
        call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
        answer.value = answer.value | {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                }
            ]
        }


def new_ids(value: dict[str, Any]) -> None:
    if value.get("object") == "chat.completion.chunk":
        value["id"] = f"chatcmpl-{id(value)}"


def faults_of(good: str, dialect: str, damage: Damage) -> frozenset[str]:
    return check_damaged(good, dialect, damage).faults
