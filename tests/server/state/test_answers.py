"""Stored answers end to end: chains, branches, references, deletion, and that nobody sees another's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from tests.server.harness import (
    HOLD,
    LONG,
    Process,
    Upstream,
    chunk,
    connected,
    gateway,
    process,
    read_until,
    server_config,
    stream_head,
)
from tests.server.state_harness import (
    BACKENDS,
    ECHO,
    KEEPER,
    KEY,
    OTHER_KEY,
    Site,
    backend,
    echoed,
    roles,
    scripted,
    site,
    texts,
)
from toolwire.config.file import Config, with_backends
from toolwire.config.secret import Secret
from toolwire.dialects import DIALECTS
from toolwire.errors import InternalError
from toolwire.memory.store import Entry, MemoryStore
from toolwire.server.exchange import ClientGone, while_here
from toolwire.server.reply import Reply
from toolwire.server.state.answers import send_pieces

WAYS = [pytest.param(True, id="stream"), pytest.param(False, id="whole")]
ALL = (*BACKENDS, KEEPER)
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
WORD = 'é中😀 "quoted" \\ \t'


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as running:
        yield running


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("backend", ALL)
def test_five_turns_of_which_each_sends_only_what_is_new(place: Site, backend: str, stream: bool) -> None:
    model = f"{backend}/m"
    call = {"name": "look", "arguments": {"at": WORD}}
    prompt = scripted({"text": "wait", "calls": [call]}, {"text": "two"}, {"text": "three"}, {"text": "four"}, ECHO)
    answer = place.respond(model, prompt, stream=stream, tools=[TOOL])
    item = next(item for item in answer["output"] if item["type"] == "function_call")
    assert json.loads(item["arguments"]) == {"at": WORD}
    given: Any = [{"type": "function_call_output", "call_id": item["call_id"], "output": WORD}]
    for number in range(4):
        before, answer = answer["id"], place.respond(model, given, stream=stream, previous_response_id=answer["id"])
        assert answer["previous_response_id"] == before
        assert answer["store"] is True
        given = f"and {number}"
    parts = [part for message in echoed(answer) for part in message["parts"]]
    assert [part["text"] for part in parts if part["kind"] == "text"][1:] == [
        "wait",
        "two",
        "and 0",
        "three",
        "and 1",
        "four",
        "and 2",
    ]
    assert [json.loads(part["raw"]) for part in parts if part["kind"] == "tool_call"] == [{"at": WORD}]
    assert [part["parts"][0]["text"] for part in parts if part["kind"] == "tool_result"] == [WORD]


@pytest.mark.parametrize("backend", ALL)
def test_two_ways_on_from_one_answer(place: Site, backend: str) -> None:
    first = place.respond(f"{backend}/m", scripted({"text": "root"}, ECHO))
    left, right = (place.respond(f"{backend}/m", word, previous_response_id=first["id"]) for word in ("left", "right"))
    assert texts(left)[1:] == ["root", "left"]
    assert texts(right)[1:] == ["root", "right"]
    assert left["id"] != right["id"]


@pytest.mark.parametrize("backend", ALL)
def test_instructions_and_tools_are_not_inherited(place: Site, backend: str) -> None:
    first = place.respond(f"{backend}/m", scripted({"text": "a"}, ECHO), instructions="be brief", tools=[TOOL])
    second = place.respond(f"{backend}/m", "b", previous_response_id=first["id"])
    assert roles(second)[0] == "user"
    assert second["tools"] == []


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("backend", ALL)
def test_what_is_stored_is_what_the_client_saw(place: Site, backend: str, stream: bool) -> None:
    call = {"name": "look", "arguments": '{"at":  1.50}'}
    prompt = scripted({"reasoning": "hm", "text": "well", "calls": [call]})
    answer = place.respond(f"{backend}/m", prompt, stream=stream, tools=[TOOL], metadata={"k": "v"})
    stored = place.ask("GET", f"/responses/{answer['id']}")
    assert stored.status == 200
    assert stored.json | {"store": answer["store"]} == answer
    listed = place.ask("GET", f"/responses/{answer['id']}/input_items").json
    assert [item["content"] for item in listed["data"]] == [[{"type": "input_text", "text": prompt}]]
    assert listed["first_id"] == listed["last_id"] == listed["data"][0]["id"]
    assert not listed["has_more"]


@pytest.mark.parametrize("backend", ALL)
def test_a_deleted_answer_is_gone(place: Site, backend: str) -> None:
    answer = place.respond(f"{backend}/m", "hello")
    path = f"/responses/{answer['id']}"
    assert place.ask("DELETE", path).json == {"id": answer["id"], "object": "response", "deleted": True}
    assert place.refused(404, "GET", path)["type"] == "invalid_request_error"
    place.refused(404, "DELETE", path)
    asked = {"model": f"{backend}/m", "input": "x", "previous_response_id": answer["id"]}
    error = place.refused(400, "POST", "/responses", asked)
    assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


def test_an_answer_in_the_middle_deleted_takes_what_follows_with_it(place: Site) -> None:
    first = place.respond("scripted/m", "one")
    second = place.respond("scripted/m", "two", previous_response_id=first["id"])
    place.ask("DELETE", f"/responses/{first['id']}")
    asked = {"model": "scripted/m", "input": "x", "previous_response_id": second["id"]}
    assert place.refused(400, "POST", "/responses", asked)["code"] == "previous_response_not_found"


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_stored_that_shall_not_be(place: Site, backend: str) -> None:
    answer = place.respond(f"{backend}/m", "hello", store=False)
    assert answer["store"] is False
    place.refused(404, "GET", f"/responses/{answer['id']}")
    first = place.respond(f"{backend}/m", scripted({"text": "kept"}, ECHO))
    second = place.respond(f"{backend}/m", "on", previous_response_id=first["id"], store=False)
    assert texts(second)[1:] == ["kept", "on"]
    place.refused(404, "GET", f"/responses/{second['id']}")


@pytest.mark.parametrize("backend", ALL)
def test_references_stand_for_their_items(place: Site, backend: str) -> None:
    first = place.respond(f"{backend}/m", scripted({"text": "the word is xyzzy"}))
    for reference in ({"type": "item_reference"}, {}):
        given = [
            {"role": "user", "content": "say"},
            {**reference, "id": first["output"][0]["id"]},
            {"role": "user", "content": scripted(ECHO)},
        ]
        answer = place.respond(f"{backend}/m", given)
        assert roles(answer) == ["user", "assistant", "user"]
        assert texts(answer)[1] == "the word is xyzzy"
    third = place.respond(f"{backend}/m", "more", previous_response_id=answer["id"])
    assert texts(third)[0].startswith("No script") or "the word is xyzzy" in texts(third)
    asked = {"model": f"{backend}/m", "input": [{"type": "item_reference", "id": "msg_of_nobody"}]}
    assert "msg_of_nobody" in place.refused(404, "POST", "/responses", asked)["message"]


@pytest.mark.parametrize("backend", ALL)
def test_another_key_finds_nothing(place: Site, backend: str) -> None:
    answer = place.respond(f"{backend}/m", "secret")
    path = f"/responses/{answer['id']}"
    for key in (OTHER_KEY, ""):
        asked = {"model": f"{backend}/m", "input": "x"}
        place.refused(404, "GET", path, key=key)
        place.refused(404, "GET", f"{path}/input_items", key=key)
        place.refused(404, "POST", f"{path}/cancel", key=key)
        place.refused(404, "DELETE", path, key=key)
        place.refused(400, "POST", "/responses", asked | {"previous_response_id": answer["id"]}, key)
        reference = {"type": "item_reference", "id": answer["output"][0]["id"]}
        place.refused(404, "POST", "/responses", asked | {"input": [reference]}, key)
        place.refused(400, "POST", "/responses/input_tokens", asked | {"previous_response_id": answer["id"]}, key)
    assert place.ask("GET", path).status == 200


def test_a_server_with_keys_passes_no_unknown_id_on() -> None:
    with site(keys=(KEY, OTHER_KEY)) as place:
        answer = place.respond(f"{KEEPER}/m", "secret")
        assert place.ask("GET", f"/responses/{answer['id']}").status == 200
        place.refused(404, "GET", f"/responses/{answer['id']}", key=OTHER_KEY)
        asked = {"model": f"{KEEPER}/m", "input": "x", "previous_response_id": "resp_made_elsewhere"}
        assert "no stored response" in place.refused(400, "POST", "/responses", asked)["message"]
        place.refused(404, "GET", "/responses/resp_made_elsewhere")
        reference = [{"type": "item_reference", "id": "msg_made_elsewhere"}]
        place.refused(404, "POST", "/responses", {"model": f"{KEEPER}/m", "input": reference})
        place.refused(401, "GET", f"/responses/{answer['id']}", key="wrong")


def test_what_one_back_end_keeps_another_cannot_go_on_from(place: Site) -> None:
    answer = place.respond(f"{KEEPER}/m", "hello")
    asked = {"model": "chat/m", "input": "x", "previous_response_id": answer["id"]}
    error = place.refused(400, "POST", "/responses", asked)
    assert KEEPER in error["message"]
    assert "chat" in error["message"]


def test_a_stored_conversation_continues_at_any_back_end(place: Site) -> None:
    first = place.respond("chat/m", scripted({"text": "from chat"}, ECHO))
    for name in ALL:
        assert texts(place.respond(f"{name}/m", "on", previous_response_id=first["id"]))[1:] == ["from chat", "on"]


def test_input_items_come_in_pages(place: Site) -> None:
    given = [{"role": "user", "content": str(number)} for number in range(5)]
    answer = place.respond("scripted/m", given)
    path = f"/responses/{answer['id']}/input_items"
    page = place.ask("GET", f"{path}?order=asc&limit=2").json
    assert [item["content"][0]["text"] for item in page["data"]] == ["0", "1"]
    assert page["has_more"]
    rest = place.ask("GET", f"{path}?order=asc&limit=100&after={page['last_id']}").json
    assert [item["content"][0]["text"] for item in rest["data"]] == ["2", "3", "4"]
    assert not rest["has_more"]
    assert place.ask("GET", path).json["data"][0]["content"][0]["text"] == "4"
    for wrong in ("limit=0", "limit=101", "limit=x", "order=up", "after=nothing"):
        place.refused(400, "GET", f"{path}?{wrong}")


def test_every_page_of_items_with_the_same_id_comes_once(place: Site) -> None:
    given = [{"type": "message", "role": "user", "content": str(number), "id": "msg_same"} for number in range(7)]
    path = f"/responses/{place.respond('scripted/m', given)['id']}/input_items?order=asc&limit=3"
    seen, after = list[str](), ""
    for _ in range(3):
        page = place.ask("GET", path + after).json
        seen += [item["content"][0]["text"] for item in page["data"]]
        after = f"&after={page['last_id']}"
    assert seen == list("0123456")
    assert not page["has_more"]


def test_only_what_runs_in_the_background_can_be_cancelled(place: Site) -> None:
    answer = place.respond("scripted/m", "hello")
    assert "background" in place.refused(400, "POST", f"/responses/{answer['id']}/cancel")["message"]


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", "..%3Fx", "a%0d%0ax:%20y", "a%20b", "a%23b", "x" * 300])
def test_no_id_leads_elsewhere_on_another_server(place: Site, name: str) -> None:
    error = place.refused(404, "GET", f"/responses/{name}/input_items")
    assert error["code"] in ("response_not_found", "not_found")
    assert "back end" not in error["message"]


def test_references_are_bounded(place: Site) -> None:
    references = [{"type": "item_reference", "id": f"msg_{number}"} for number in range(1001)]
    place.refused(400, "POST", "/responses", {"model": "scripted/m", "input": references})


def test_paths_and_methods(place: Site) -> None:
    answer = place.respond("scripted/m", "hello")
    place.refused(405, "POST", f"/responses/{answer['id']}", {})
    place.refused(405, "GET", f"/responses/{answer['id']}/cancel")
    place.refused(404, "GET", f"/responses/{answer['id']}/other")
    place.refused(404, "GET", f"/responses/{answer['id']}/input_items/more")


def test_a_stored_answer_can_be_replayed_as_events(place: Site) -> None:
    answer = place.respond("scripted/m", scripted({"text": "told again", "calls": [{"name": "look"}]}), tools=[TOOL])
    events = place.ask("GET", f"/responses/{answer['id']}?stream=true").events
    assert [name for name, _ in events][:2] == ["response.created", "response.in_progress"]
    assert events[-1][0] == "response.completed"
    assert events[-1][1]["response"]["output"] == answer["output"]
    [(name, last)] = place.ask("GET", f"/responses/{answer['id']}?stream=true&starting_after=7").events
    assert (name, last["sequence_number"]) == ("response.completed", 8)
    assert last["response"]["output"] == answer["output"]


@pytest.mark.parametrize("stream", WAYS)
def test_a_failed_answer_is_stored_as_failed_and_skipped_by_the_next(place: Site, stream: bool) -> None:
    prompt = scripted({"text": "one two three", "chunk": 4, "error": {"status": 500, "after": 1}})
    answer = place.ask("POST", "/responses", {"model": "scripted/m", "input": prompt, "stream": stream})
    if not stream:
        assert answer.status == 500
        return
    failed = answer.events[-1][1]["response"]
    assert failed["status"] == "failed"
    assert place.ask("GET", f"/responses/{failed['id']}").json["status"] == "failed"
    second = place.respond("scripted/m", scripted(ECHO), previous_response_id=failed["id"])
    assert roles(second) == ["user", "user"]


def test_the_count_of_tokens_knows_the_history(place: Site) -> None:
    answer = place.respond("scripted/m", "x" * 4000)
    asked = {"model": "scripted/m", "input": "y"}
    short = place.ask("POST", "/responses/input_tokens", asked).json
    assert short["object"] == "response.input_tokens"
    asked["previous_response_id"] = answer["id"]
    assert place.ask("POST", "/responses/input_tokens", asked).json["input_tokens"] > short["input_tokens"] + 900


def test_what_is_sent_is_closed_before_the_sender_has_ended() -> None:
    """The generator is held here too, so no collector could have closed it."""

    async def main() -> None:
        closed: list[str] = []
        stuck = asyncio.Event()

        async def pieces() -> AsyncGenerator[bytes, None]:
            try:
                yield b"data: 1\n\n"
            finally:
                closed.append("closed")

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                stuck.set()
                await asyncio.Event().wait()  # a client that reads nothing

        held = pieces()
        sending = asyncio.create_task(send_pieces(held, Reply(send, DIALECTS["responses"], "r", None), 15.0))
        await stuck.wait()
        sending.cancel()
        await asyncio.wait({sending})
        assert closed == ["closed"]

    asyncio.run(main())


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_relaying_back_end_is_stopped_when_the_client_disconnects(is_stream: bool) -> None:
    upstream = Upstream()
    try:
        path = "/v1/responses/resp_a"
        kind = "text/event-stream" if is_stream else "application/json"
        frame = b'event: e\ndata: {"type":"e","filler":"%s"}\n\n' % (b"x" * 60_000)
        upstream.on(path, [stream_head(kind), *[chunk(frame if is_stream else b"{")] * (80 if is_stream else 1), HOLD])
        config = backend(KEEPER, "openai-responses", upstream.port, state="upstream", key=Secret("sk"))
        with gateway(with_backends(Config(server=server_config()), [config])) as running:
            client = connected(running.port, buffer=4096)
            client.sendall(b"GET /v1/responses/resp_a HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            received = upstream.wait_request(path)
            if is_stream:
                read_until(client, b"filler")
            client.close()
            assert received.left.wait(LONG)
    finally:
        upstream.close()


def test_work_has_ended_when_the_client_is_gone() -> None:
    async def main() -> None:
        ended: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append("work")

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        with pytest.raises(ClientGone):
            await while_here(receive, work())
        assert ended == ["work"]

    asyncio.run(main())


class Broken(MemoryStore):
    """A store whose disk has gone."""

    def __init__(self) -> None:
        super().__init__(max_bytes=1 << 20, max_age=1e9)

    async def put(self, entry: Entry) -> None:
        raise InternalError("the disk has no room left.", status=503, code="store_unavailable")

    async def get(self, owner: str, id: str) -> Entry | None:
        raise InternalError("the disk cannot be read.", status=503, code="store_unavailable")


def test_a_failing_store_costs_no_answer() -> None:
    with site(store=Broken()) as place:
        answer = place.ask("POST", "/responses", {"model": "scripted/m", "input": "hello"})
        assert answer.status == 200
        assert answer.headers["x-toolwire-loss"] == "store"
        streamed = place.respond("scripted/m", "hello", stream=True)
        assert streamed["status"] == "completed"
        asked = {"model": "scripted/m", "input": "x", "previous_response_id": "resp_1"}
        assert place.refused(503, "POST", "/responses", asked)["code"] == "store_unavailable"
        place.refused(503, "GET", "/responses/resp_1")
        thread = {"model": "scripted/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        thread["thread"] = {"type": "continue", "previous_message_id": "msg_1"}
        assert place.refused(503, "POST", "/messages", thread)["type"] == "api_error"


TOML = """
[server]
log = "warning"
[store]
path = "state.db"
[backends.model]
kind = "scripted"
"""


def talk(running: Process) -> Site:
    return Site(running.port)


@pytest.mark.slow
@pytest.mark.parametrize("stream", WAYS)
def test_a_killed_gateway_resumes_after_a_restart(tmp_path: Any, stream: bool) -> None:
    prompt = scripted({"text": "one"}, {"text": "two"}, {"text": "three"}, ECHO)
    ids: list[str] = []
    for word in (prompt, "b", "c", "d"):
        with process(tmp_path, TOML) as running:  # which ends by SIGKILL
            more = {"previous_response_id": ids[-1]} if ids else {}
            answer = talk(running).respond("model/m", word, stream=stream, **more)
            ids.append(answer["id"])
    assert texts(answer)[1:] == ["one", "b", "two", "c", "three", "d"]


@pytest.mark.slow
def test_two_workers_share_one_memory(tmp_path: Any) -> None:
    with process(tmp_path, TOML, "--workers", "2") as running:
        place = talk(running)
        prompt = scripted(*[{"text": str(number)} for number in range(12)], ECHO)
        answer = place.respond("model/m", prompt)
        for number in range(12):
            answer = place.respond("model/m", f"after {number}", previous_response_id=answer["id"])
        assert [text for text in texts(answer) if text.isdigit()] == [str(number) for number in range(12)]
        ids = [place.respond("model/m", scripted({"text": "x", "delay": 30}), background=True)["id"] for _ in range(4)]
        for name in ids:
            assert place.ask("POST", f"/responses/{name}/cancel").json["status"] == "cancelled"
            assert place.ask("GET", f"/responses/{name}").json["status"] == "cancelled"
