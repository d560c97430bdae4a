"""Servers to calibrate the check with: each broken one with all its faults, and others that are only unusual."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.check.broken_server import Damage, GoodAnswer
from tests.check.damages import body_value, delta_calls, stop_reason, stream_values, whole_calls, without_event

Change = Callable[[dict[str, Any]], None]


def on_success(change: Callable[[GoodAnswer], None]) -> Damage:
    return lambda answer: change(answer) if answer.status == 200 and answer.body else None


def on_body(change: Callable[[GoodAnswer], None]) -> Damage:
    return lambda answer: change(answer) if answer.status == 200 and not answer.is_stream else None


def on_stream(change: Callable[[GoodAnswer], None]) -> Damage:
    return lambda answer: change(answer) if answer.is_stream else None


def everywhere(change: Change) -> Damage:
    def damage(answer: GoodAnswer) -> None:
        stream_values(change)(answer)
        body_value(change)(answer)

    return damage


def messages_of(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message of a whole answer, the deltas of a stream."""
    for choice in value.get("choices", ()):
        yield choice.get("message") or choice.get("delta") or {}


def send(status: int, kind: str, body: bytes, **headers: str) -> Damage:
    def damage(answer: GoodAnswer) -> None:
        answer.status, answer.kind, answer.body = status, kind, body
        answer.headers.update(headers)

    return damage


def compress(answer: GoodAnswer) -> None:
    answer.body = gzip.compress(answer.body)
    answer.headers["content-encoding"] = "gzip"


def content_type(kind: str) -> Callable[[GoodAnswer], None]:
    return lambda answer: setattr(answer, "kind", kind)


def cumulative(answer: GoodAnswer) -> None:
    events, text = answer.events, ""
    for _, value in events:
        for message in messages_of(value) if isinstance(value, dict) else ():
            if message.get("content"):
                text += message["content"]
                message["content"] = text
    answer.events = events


def without_text(answer: GoodAnswer) -> None:
    events = answer.events
    for _, value in events:
        for message in messages_of(value) if isinstance(value, dict) else ():
            message.pop("content", None)
    answer.events = events


def empty_content(value: dict[str, Any]) -> None:
    for message in messages_of(value):
        if message.get("content"):
            message["content"] = ""


def add_text(text: str) -> Change:
    def change(value: dict[str, Any]) -> None:
        for message in messages_of(value):
            if isinstance(message.get("content"), str):
                message["content"] += text

    return change


def mangle(answer: GoodAnswer) -> None:
    answer.body = answer.body.decode().encode("utf-8").decode("latin-1").encode("utf-8")


def split_pairs(answer: GoodAnswer) -> None:
    answer.body = answer.body.replace("ü".encode(), b"\\ud83c")


def repeat_ids(value: dict[str, Any]) -> None:
    for call in (*delta_calls(value), *(whole_calls(value) if "message" in str(value) else ())):
        if call.get("id"):
            call["id"] = "call_1"


def share_index(value: dict[str, Any]) -> None:
    for call in delta_calls(value):
        call["index"] = 0


def count_from_one(value: dict[str, Any]) -> None:
    for call in delta_calls(value):
        call["index"] += 1


def new_call_ids() -> Change:
    numbers = itertools.count()

    def change(value: dict[str, Any]) -> None:
        for call in delta_calls(value):
            call["id"] = f"call_{next(numbers)}"

    return change


def drop_name(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        call["function"].pop("name")


def drop_arguments(value: dict[str, Any]) -> None:
    for call in whole_calls(value):
        call["function"].pop("arguments")


def legacy_call(value: dict[str, Any]) -> None:
    for message in messages_of(value):
        for call in message.pop("tool_calls", None) or ():
            message["function_call"] = call["function"]


def text_in_parts(value: dict[str, Any]) -> None:
    for message in messages_of(value):
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]


def usage_in_words(value: dict[str, Any]) -> None:
    if value.get("usage"):
        value["usage"] = {name: str(count) for name, count in value["usage"].items()}


def negative_usage(value: dict[str, Any]) -> None:
    if value.get("usage"):
        value["usage"]["completion_tokens"] = -1


def error_in_stream(answer: GoodAnswer) -> None:
    answer.events = [*answer.events[:1], ("", {"error": {"message": "overloaded", "type": "server_error"}})]


def after_done(answer: GoodAnswer) -> None:
    answer.events = [*answer.events, answer.events[0]]


def cut_stream(answer: GoodAnswer) -> None:
    """Without the finish reason and all that follows it."""
    events = answer.events
    place = next(
        place
        for place, (_, value) in enumerate(events)
        if isinstance(value, dict) and value.get("choices") and value["choices"][0].get("finish_reason")
    )
    answer.events = events[:place]


def finish_twice(answer: GoodAnswer) -> None:
    events = answer.events
    last = next(value for _, value in reversed(events) if isinstance(value, dict) and value.get("choices"))
    copy = json.loads(json.dumps(last))
    stop_reason("length")(copy)
    answer.events = [*events[:-1], ("", copy), events[-1]]


def finish_first(answer: GoodAnswer) -> None:
    events = answer.events
    place = next(
        place
        for place, (_, value) in enumerate(events)
        if isinstance(value, dict) and value.get("choices") and value["choices"][0].get("finish_reason")
    )
    answer.events = [events[place], *events[:place], *events[place + 1 :]]


def broken_json(answer: GoodAnswer) -> None:
    answer.body = answer.body.replace(b'"choices":', b'"choices" ')


def stream_always(answer: GoodAnswer) -> None:
    if not answer.is_stream:
        answer.kind, answer.body = "text/event-stream", b"data: " + answer.body + b"\n\ndata: [DONE]\n\n"


def text_errors(answer: GoodAnswer) -> None:
    if answer.status >= 400:
        answer.kind, answer.body = "application/json", b'{"error": "bad request"}'


def go_on(answer: GoodAnswer) -> None:
    answer.is_endless = True


def swapped(answer: GoodAnswer) -> None:
    """Answers of simultaneous requests reach the wrong client."""
    text = str(answer.request)
    for number in range(4):
        if f"number{number}" in text:
            answer.body = answer.body.replace(f"number{number}".encode(), f"number{(number + 1) % 4}".encode())


def _refused(wanted: Callable[[dict[str, Any]], bool], status: int, message: str) -> Damage:
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
    return lambda answer: send(status, "application/json", body)(answer) if wanted(answer.request) else None


CHAT: dict[str, tuple[Damage, set[str]]] = {
    "an HTML page": (send(200, "text/html", b"<!doctype html><title>Welcome</title>"), {"body.html"}),
    "a redirect": (send(307, "text/plain", b"", location="https://127.0.0.1:9/"), {"http.redirect"}),
    "an empty body": (send(200, "application/json", b""), {"body.empty"}),
    "no content": (send(204, "application/json", b""), {"body.empty"}),
    "a JSON list": (on_body(lambda answer: setattr(answer, "body", b"[]")), {"body.not_json"}),
    "JSON as text/plain": (
        on_success(lambda answer: None if answer.is_stream else content_type("text/plain")(answer)),
        {"http.content_type"},
    ),
    "a stream as JSON": (on_stream(content_type("application/json")), {"http.content_type"}),
    "an endless stream": (on_stream(go_on), {"stream.endless"}),
    "always a stream": (on_success(stream_always), {"body.is_stream"}),
    "fragments that repeat": (on_stream(cumulative), {"stream.cumulative"}),
    "a stream without text": (on_stream(without_text), {"stream.differs"}),
    "no text": (everywhere(empty_content), {"body.no_content"}),
    "a token of the template": (everywhere(add_text("<|im_end|>")), {"body.template_token"}),
    "letters in Latin-1": (on_success(mangle), {"body.encoding"}),
    "half of a pair": (on_success(split_pairs), {"body.encoding"}),
    "one index for all calls": (stream_values(share_index), {"call.index_shared"}),
    "indexes from one": (stream_values(count_from_one), {"call.index_gap"}),
    "one id for all calls": (everywhere(repeat_ids), {"call.id_repeated"}),
    "a new id in each fragment": (stream_values(new_call_ids()), {"call.id_changes"}),
    "calls without a name": (body_value(drop_name), {"call.name_missing"}),
    "calls without arguments": (body_value(drop_arguments), {"call.arguments_missing"}),
    "calls of 2023": (everywhere(legacy_call), {"call.legacy"}),
    "text in parts": (everywhere(text_in_parts), {"body.member_type"}),
    "usage in words": (everywhere(usage_in_words), {"usage.type"}),
    "negative usage": (everywhere(negative_usage), {"usage.wrong"}),
    "an error in each stream": (on_stream(error_in_stream), {"stream.error"}),
    "events after the end": (on_stream(after_done), {"stream.after_end"}),
    "a cut stream": (on_stream(cut_stream), {"stream.end_missing"}),
    "two finish reasons": (on_stream(finish_twice), {"finish.changes"}),
    "the finish reason first": (on_stream(finish_first), {"stream.order"}),
    "broken JSON in events": (on_stream(broken_json), {"stream.bad_json"}),
    "a stop with calls": (body_value(stop_reason("stop")), {"finish.calls_unreported"}),
    "errors as strings": (text_errors, {"error.form"}),
    "answers of other requests": (on_success(swapped), {"http.concurrency"}),
    "streams refused": (_refused(lambda request: bool(request.get("stream")), 400, "no streams"), {"http.status"}),
    "two calls refused": (
        _refused(lambda request: str(request.get("messages")).count("call_check") > 2, 400, "one call only"),
        {"history.refused"},
    ),
}


def inputs_as_text(value: dict[str, Any]) -> None:
    for block in value.get("content", ()):
        if block["type"] == "tool_use":
            block["input"] = json.dumps(block["input"])


def partial_json_as_object(value: dict[str, Any]) -> None:
    if value.get("delta", {}).get("type") == "input_json_delta":
        value["delta"]["partial_json"] = {}


def input_in_start(answer: GoodAnswer) -> None:
    """The whole input of a call in the start of its block, as older servers send it."""
    events, inputs = [], dict[int, str]()
    for name, value in answer.events:
        if value.get("delta", {}).get("type") == "input_json_delta":
            inputs[value["index"]] = inputs.get(value["index"], "") + value["delta"]["partial_json"]
        else:
            events.append((name, value))
    for _, value in events:
        if value["type"] == "content_block_start" and value["index"] in inputs:
            value["content_block"]["input"] = json.loads(inputs[value["index"]])
    answer.events = events


def other_error_form(answer: GoodAnswer) -> None:
    if answer.status >= 400:
        answer.value = {"error": {"message": "wrong", "type": "invalid_request_error"}}


MESSAGES: dict[str, tuple[Damage, set[str]]] = {
    "blocks without an end": (without_event("content_block_stop"), {"stream.part_end_missing"}),
    "blocks without a start": (without_event("content_block_start"), {"stream.order"}),
    "no start": (without_event("message_start"), {"stream.start_missing"}),
    "inputs in the start": (on_stream(input_in_start), {"call.arguments_in_start"}),
    "inputs as text": (body_value(inputs_as_text), {"call.arguments_type"}),
    "objects as fragments": (stream_values(partial_json_as_object), {"call.arguments_type"}),
    "end_turn with calls": (
        body_value(lambda value: value.update(stop_reason="end_turn") if value.get("stop_reason") else None),
        {"finish.calls_unreported"},
    ),
    "errors of another dialect": (other_error_form, {"error.form"}),
    "an HTML page": (send(200, "text/html", b"<html></html>"), {"body.html"}),
    "content as text": (body_value(lambda value: value.update(content="hello")), {"body.structure"}),
}


def arguments_as_object(value: dict[str, Any]) -> None:
    for item in value.get("output", ()):
        if item["type"] == "function_call":
            item["arguments"] = json.loads(item["arguments"])


def empty_end(value: dict[str, Any]) -> None:
    if value.get("type") == "response.completed":
        value["response"]["output"] = []


def renumbered(*kinds: str) -> Damage:
    """Without these events, and without a gap in the sequence numbers."""

    def change(answer: GoodAnswer) -> None:
        without_event(*kinds)(answer)
        events = answer.events
        for number, (_, value) in enumerate(events):
            value["sequence_number"] = number
        answer.events = events

    return on_stream(change)


RESPONSES: dict[str, tuple[Damage, set[str]]] = {
    "no start": (renumbered("response.created", "response.in_progress"), {"stream.start_missing"}),
    "no end": (renumbered("response.completed"), {"stream.end_missing"}),
    "parts that are not announced": (renumbered("response.content_part.added"), {"stream.part_missing"}),
    "items without an end": (renumbered("response.output_item.done"), {"stream.part_end_missing"}),
    "an empty end": (stream_values(empty_end), {"stream.mismatch"}),
    "arguments as objects": (body_value(arguments_as_object), {"call.arguments_type"}),
    "no status": (body_value(lambda value: value.pop("status", None) and None), {"finish.missing"}),
}


def candidates_role(value: dict[str, Any]) -> None:
    for candidate in value.get("candidates", ()):
        candidate.get("content", {}).update(role="assistant")


GEMINI: dict[str, tuple[Damage, set[str]]] = {
    "no finish reason": (
        everywhere(lambda value: [one.pop("finishReason", None) for one in value.get("candidates", ())] and None),
        {"finish.missing"},
    ),
    "another role": (everywhere(candidates_role), {"body.member_type"}),
    "a list as the stream": (
        on_stream(
            lambda answer: send(200, "application/json", json.dumps([value for _, value in answer.events]).encode())(
                answer
            )
        ),
        {"stream.not_streamed"},
    ),
}

BROKEN = {
    f"{dialect}: {name}": (dialect, damage, expected)
    for dialect, servers in (("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES), ("gemini", GEMINI))
    for name, (damage, expected) in servers.items()
}


def flat_errors(answer: GoodAnswer) -> None:
    if answer.status >= 400:
        answer.value = {"object": "error", "message": "wrong", "type": "BadRequestError", "param": None, "code": 400}


def server_errors(answer: GoodAnswer) -> None:
    if 400 <= answer.status < 500:
        answer.status = 500


def refuse_named(answer: GoodAnswer) -> None:
    _refused(lambda request: isinstance(request.get("tool_choice"), dict), 400, "tool_choice must be a string")(answer)


def empty_finish(value: dict[str, Any]) -> None:
    for choice in value.get("choices", ()):
        choice["finish_reason"] = choice.get("finish_reason") or ""


def more_members(value: dict[str, Any]) -> None:
    value.update(timings={"predicted_ms": 1.5}, prompt_filter_results=[], x_provider="local")
    for choice in value.get("choices", ()):
        choice.update(stop_reason=None, logprobs=None, content_filter_results={})
    for message in messages_of(value):
        message.update(reasoning_content=None, refusal=None, audio=None)
        message.setdefault("tool_calls", [])


def few_members(value: dict[str, Any]) -> None:
    for member in ("id", "object", "created", "model", "system_fingerprint"):
        value.pop(member, None)


def float_date(value: dict[str, Any]) -> None:
    if "created" in value:
        value["created"] += 0.5


def one_fragment(answer: GoodAnswer) -> None:
    """Each call in one fragment, as older servers send it."""
    events, whole = [], {}
    for name, value in answer.events:
        calls = list(delta_calls(value)) if isinstance(value, dict) else []
        for call in calls:
            if call["index"] in whole:
                whole[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
            else:
                whole[call["index"]] = call
                events.append((name, value))
        if not calls:
            events.append((name, value))
    answer.events = events


def busy() -> Damage:
    numbers = itertools.count()

    def damage(answer: GoodAnswer) -> None:
        if answer.body and next(numbers) % 3 == 2:
            send(429, "application/json", b'{"error": {"message": "slow down"}}', **{"retry-after": "0"})(answer)

    return damage


def usage_in_each_event(answer: GoodAnswer) -> None:
    events = answer.events
    usage = next((value["usage"] for _, value in events if isinstance(value, dict) and value.get("usage")), None)
    for _, value in events:
        if isinstance(value, dict):
            value["usage"] = usage
    answer.events = events


def lines(old: bytes, new: bytes) -> Damage:
    return on_stream(lambda answer: setattr(answer, "body", answer.body.replace(old, new)))


VALID: dict[str, Damage] = {
    "compressed": on_success(compress),
    "flat errors": flat_errors,
    "errors with status 500": server_errors,
    "no named tool choice": refuse_named,
    "an empty finish reason before the end": stream_values(empty_finish),
    "unknown members": everywhere(more_members),
    "only members that clients read": everywhere(few_members),
    "a date with a fraction": everywhere(float_date),
    "calls in one fragment": on_stream(one_fragment),
    "a rate limit": busy(),
    "usage in each event": on_stream(usage_in_each_event),
    "no blank after the colon": lines(b"data: ", b"data:"),
    "names, ids and comments in the stream": lines(b"data: ", b": ping\nid: 7\nretry: 100\nevent: message\ndata: "),
    "a byte order mark": on_stream(lambda answer: setattr(answer, "body", b"\xef\xbb\xbf" + answer.body)),
    "escaped letters": on_body(lambda answer: setattr(answer, "body", json.dumps(answer.value).encode())),
    "content types with parameters": on_success(lambda answer: content_type(f"{answer.kind}; charset=utf-8")(answer)),
}
