"""What a server keeps between requests, seen from outside: threads of the Messages dialect, and the end of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import Answer, process
from tests.server.state_harness import BACKENDS, ECHO, KEY, OTHER_KEY, Site, scripted, site
from toolwire.memory.store import Entry, SqliteStore
from toolwire.server.auth import owner_of
from toolwire.server.state import is_stateful
from toolwire.wire.exact_json import decode

WAYS = [pytest.param(True, id="stream"), pytest.param(False, id="whole")]
ALL = (*BACKENDS, "thread-keeper")
TOOL = {"name": "look", "input_schema": {"type": "object"}}


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as running:
        yield running


def send_messages(place: Site, model: str, given: Any, key: str = KEY, **more: Any) -> Answer:
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    body = {"model": model, "max_tokens": 99, "messages": messages, **more}
    return place.ask("POST", "/messages", body, key)


def message_in(answer: Answer, *, stream: bool) -> dict[str, Any]:
    """The message, put together from its events if it was streamed."""
    assert answer.status == 200, answer.body
    if not stream:
        return dict(answer.json)
    events = [data for _, data in answer.events]
    message = dict(next(data["message"] for data in events if data["type"] == "message_start"))
    blocks: list[dict[str, Any]] = []
    for data in events:
        if data["type"] == "content_block_start":
            blocks.append(dict(data["content_block"]))
        if data["type"] == "content_block_delta":
            delta = data["delta"]
            for key in ("text", "thinking", "signature"):
                if key in delta:
                    blocks[-1][key] = blocks[-1].get(key, "") + delta[key]
            if "partial_json" in delta:
                blocks[-1]["raw"] = blocks[-1].get("raw", "") + delta["partial_json"]
        if data["type"] == "message_delta":
            message |= data["delta"]
    for block in blocks:
        if "raw" in block:
            block["input"] = decode(block.pop("raw") or "{}")
    return message | {"content": blocks}


def go_on(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "continue", "previous_message_id": message["id"]}


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("backend", ALL)
def test_a_thread_remembers_messages_system_and_tools(place: Site, backend: str, stream: bool) -> None:
    call = {"name": "look", "arguments": {"at": 'é中😀 "x"'}}
    thought = {"reasoning": "hm", "signature": "signed"}
    prompt = scripted({**thought, "text": "wait", "calls": [call]}, {"text": "two"}, ECHO)
    model = f"{backend}/m"
    create = {"system": "be kind", "tools": [TOOL], "thread": {"type": "create"}, "stream": stream}
    first = message_in(send_messages(place, model, prompt, **create), stream=stream)
    use = first["content"][-1]
    result = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "sunny"}]}]
    second = message_in(send_messages(place, model, result, thread=go_on(first), stream=stream), stream=stream)
    third = message_in(send_messages(place, model, "and", thread=go_on(second), stream=stream), stream=stream)
    parts = [(message["role"], part) for message in decode(third["content"][-1]["text"]) for part in message["parts"]]
    said = [(role, part["kind"]) for role, part in parts if part["kind"] != "reasoning"]
    assert said[0] == ("system", "text")
    assert [kind for _, kind in said[1:]] == ["text", "text", "tool_call", "tool_result", "text", "text"]
    assert [decode(part["raw"]) for _, part in parts if part["kind"] == "tool_call"] == [call["arguments"]]
    if backend in ("scripted", "messages", "thread-keeper"):
        [kept] = [part for _, part in parts if part["kind"] == "reasoning"]
        assert (kept["text"], kept["signature"]) == ("hm", "signed")


@pytest.mark.parametrize("backend", ALL)
def test_two_ways_on_from_one_message(place: Site, backend: str) -> None:
    model = f"{backend}/m"
    first = message_in(
        send_messages(place, model, scripted({"text": "root"}, ECHO), thread={"type": "create"}), stream=False
    )
    for word in ("left", "right"):
        second = message_in(send_messages(place, model, word, thread=go_on(first)), stream=False)
        spoken = [part["text"] for message in decode(second["content"][0]["text"]) for part in message["parts"]]
        assert spoken[1:] == ["root", word]


@pytest.mark.parametrize("backend", ALL)
def test_what_is_not_there_makes_runners_replay(place: Site, backend: str) -> None:
    first = message_in(send_messages(place, f"{backend}/m", "hello", thread={"type": "create"}), stream=False)
    refusals = [send_messages(place, f"{backend}/m", "x", key, thread=go_on(first)) for key in (OTHER_KEY, "")]
    if backend != "thread-keeper":  # of which one person alone may have threads from elsewhere
        refusals.append(send_messages(place, f"{backend}/m", "x", thread=go_on({"id": "msg_of_nobody"})))
    for answer in refusals:
        assert answer.status == 404
        assert answer.json["error"]["type"] == "not_found_error"
        assert answer.json["error"]["details"] == {"error_code": "thread_not_found"}


def test_a_message_without_a_thread_is_not_kept(place: Site) -> None:
    first = message_in(send_messages(place, "scripted/m", "hello"), stream=False)
    assert send_messages(place, "scripted/m", "x", thread=go_on(first)).status == 404


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("turn", [{"refusal": "no"}, {"text": "a b c d", "chunk": 2, "cut": 2}])
def test_refused_and_cut_answers_cannot_be_continued(place: Site, turn: dict[str, Any], stream: bool) -> None:
    answer = send_messages(place, "scripted/m", scripted(turn), thread={"type": "create"}, stream=stream)
    if not stream and answer.status != 200:
        return
    name = answer.events[0][1]["message"]["id"] if stream else answer.json["id"]
    assert send_messages(place, "scripted/m", "x", thread=go_on({"id": name})).status == 404


def test_a_thread_is_not_a_response(place: Site) -> None:
    first = message_in(send_messages(place, "scripted/m", "hello", thread={"type": "create"}), stream=False)
    place.refused(404, "GET", f"/responses/{first['id']}")
    body = {"model": "scripted/m", "input": "x", "previous_response_id": first["id"]}
    place.refused(400, "POST", "/responses", body)
    response = place.respond("scripted/m", "hello")
    assert send_messages(place, "scripted/m", "x", thread=go_on(response)).status == 404
    kept_there = message_in(send_messages(place, "thread-keeper/m", "hello", thread={"type": "create"}), stream=False)
    place.refused(404, "GET", f"/responses/{kept_there['id']}")
    place.refused(404, "DELETE", f"/responses/{kept_there['id']}")


def test_what_is_wrong_is_named(place: Site) -> None:
    first = message_in(send_messages(place, "scripted/m", "hello", thread={"type": "create"}), stream=False)
    for more in ({"system": "other"}, {"tools": [TOOL]}):
        answer = send_messages(place, "scripted/m", "x", thread=go_on(first), **more)
        assert answer.status == 400
        assert next(iter(more)) in answer.json["error"]["message"]
    for thread in ({"type": "other"}, {}, {"type": "continue"}, "thread"):
        assert send_messages(place, "scripted/m", "x", thread=thread).status == 400


def test_tokens_are_counted_with_the_thread(place: Site) -> None:
    first = message_in(send_messages(place, "scripted/m", "x" * 4000, thread={"type": "create"}), stream=False)
    body = {"model": "scripted/m", "messages": [{"role": "user", "content": "y"}], "thread": go_on(first)}
    assert place.ask("POST", "/messages/count_tokens", body).json["input_tokens"] > 1000


@pytest.mark.slow
def test_a_thread_survives_kill_and_restart(tmp_path: Path) -> None:
    toml = '[server]\nlog = "warning"\n[store]\npath = "state.db"\n[backends.model]\nkind = "scripted"\n'
    prompt = scripted({"text": "one"}, {"text": "two"}, ECHO)
    more: dict[str, Any] = {"thread": {"type": "create"}, "system": "be kind"}
    for word in (prompt, "b", "c"):
        with process(tmp_path, toml) as running:  # which ends by SIGKILL
            message = message_in(send_messages(Site(running.port), "model/m", word, **more), stream=False)
        more = {"thread": go_on(message)}
    spoken = [part["text"] for one in decode(message["content"][0]["text"]) for part in one["parts"]]
    assert [spoken[0], *spoken[2:]] == ["be kind", "one", "b", "two", "c"]


def test_the_end_of_the_server_ends_what_it_was_answering(tmp_path: Path) -> None:
    def store() -> SqliteStore:
        return SqliteStore(tmp_path / "state.db", max_bytes=1 << 24, max_age=1e9)

    with site(store=store()) as place:
        answer = place.respond("scripted/m", scripted({"text": "x", "delay": 60}), background=True)

    async def look() -> Entry | None:
        opened = store()
        try:
            return await opened.get(owner_of({"authorization": f"Bearer {KEY}"}), answer["id"])
        finally:
            await opened.close()

    entry = asyncio.run(look())
    assert entry is not None
    assert entry.status == "failed"
    assert "stopped" in decode(entry.body)["error"]["message"]


def test_which_paths_lead_here() -> None:
    assert is_stateful("/responses/resp_1")
    assert is_stateful("/conversations")
    assert is_stateful("/conversations/conv_1/items")
    assert not is_stateful("/responses")
    assert not is_stateful("/messages/count_tokens")
