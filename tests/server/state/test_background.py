"""Answers in the background: polled, followed, left, cancelled, and lost with their process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.harness import (
    Broken,
    ask,
    connected,
    gateway,
    process,
    read_until,
    request_bytes,
    server_config,
    wait_until,
)
from tests.server.state_harness import BACKENDS, ECHO, KEEPER, KEY, OTHER_KEY, Site, scripted, site, texts
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.dialects import BACKGROUNDS
from toolwire.errors import InternalError
from toolwire.memory.store import Entry, Item, MemoryStore
from toolwire.server.state.background import BackgroundRun, heard_of, shown
from toolwire.wire.exact_json import encode

SLOW = scripted({"text": "one two three four five six seven", "chunk": 4, "pace": 0.05})
ENDLESS = scripted({"text": "never", "delay": 60})


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as running:
        yield running


def state_of(place: Site, answer: Any) -> str:
    return str(place.ask("GET", f"/responses/{answer['id']}").json["status"])


@pytest.mark.parametrize("backend", [*BACKENDS, KEEPER])
def test_it_is_queued_at_once_and_found_when_it_is_done(place: Site, backend: str) -> None:
    begun = time.monotonic()
    answer = place.respond(f"{backend}/m", scripted({"text": "done", "delay": 0.3}), background=True)
    assert answer["status"] in ("queued", "in_progress")
    assert answer["background"] is True
    assert time.monotonic() - begun < 0.25
    wait_until(lambda: state_of(place, answer) == "completed")
    stored = place.ask("GET", f"/responses/{answer['id']}").json
    assert stored["output"][0]["content"][0]["text"] == "done"
    after = place.respond(f"{backend}/m", scripted(ECHO), previous_response_id=answer["id"])
    assert texts(after)[1] == "done"


@pytest.mark.parametrize("backend", [*BACKENDS, KEEPER])
def test_a_cancelled_run_stops_and_is_reported(place: Site, backend: str) -> None:
    answer = place.respond(f"{backend}/m", ENDLESS, background=True)
    path = f"/responses/{answer['id']}"
    place.refused(404, "POST", f"{path}/cancel", key=OTHER_KEY)
    assert place.ask("POST", f"{path}/cancel").json["status"] == "cancelled"
    assert place.ask("POST", f"{path}/cancel").json["status"] == "cancelled"
    assert state_of(place, answer) == "cancelled"


def test_what_has_ended_cannot_be_cancelled(place: Site) -> None:
    answer = place.respond("scripted/m", "hello", background=True)
    wait_until(lambda: state_of(place, answer) == "completed")
    place.refused(400, "POST", f"/responses/{answer['id']}/cancel")


def test_a_running_answer_cannot_be_continued(place: Site) -> None:
    answer = place.respond("scripted/m", ENDLESS, background=True)
    asked = {"model": "scripted/m", "input": "x", "previous_response_id": answer["id"]}
    assert "still" in place.refused(400, "POST", "/responses", asked)["message"]
    assert place.ask("DELETE", f"/responses/{answer['id']}").json["deleted"]
    place.refused(404, "GET", f"/responses/{answer['id']}")


def test_faults_are_reported_at_once(place: Site) -> None:
    asked = {"model": "scripted/m", "input": "x", "background": True}
    place.refused(400, "POST", "/responses", asked | {"store": False})
    place.refused(400, "POST", "/responses", asked | {"previous_response_id": "resp_of_nobody"})


def test_a_model_that_refuses_ends_it_as_failed(place: Site) -> None:
    prompt = scripted({"error": {"status": 429, "message": "slow down"}})
    answer = place.respond("chat/m", prompt, background=True)
    wait_until(lambda: state_of(place, answer) == "failed")
    error = place.ask("GET", f"/responses/{answer['id']}").json["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert "slow down" in error["message"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["x", "at once"])
def test_an_internal_error_is_in_the_log_and_the_answer_has_failed(
    model: str, stream: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    config = Config(server=server_config(log="info"))
    with gateway(with_backends(config, (BackendConfig(name="broken", kind="scripted"),))) as server:
        server.app._running().backends["broken"] = Broken()
        asked = {"model": f"broken/{model}", "input": "x", "background": True, "stream": stream}
        answer = ask(server.port, "POST", "/v1/responses", asked, {"x-request-id": "mine"})
        assert answer.status == 200
        if stream:
            assert answer.events[-1][0] == "response.failed"
        begun = answer.events[0][1]["response"] if stream else answer.json
        place = Site(server.port)
        path = f"/responses/{begun['id']}"
        wait_until(lambda: place.ask("GET", path, key="").json["status"] == "failed")
        stored = place.ask("GET", path, key="").json
        assert "inside the gateway" in stored["error"]["message"]
        assert "mistake" not in json.dumps(stored)
        wait_until(lambda: server.app._requests.count == 0)
    log = capfd.readouterr().err
    assert log.count("ZeroDivisionError: a mistake") == 1
    assert "error mine Traceback" in log
    assert log.count("error=internal_error") == 1


class Forgetful(MemoryStore):
    """A store that takes an answer while it is queued, and has no room for it when it is complete."""

    async def replace_running(self, entry: Entry) -> bool:
        if entry.status == "completed":
            raise InternalError("the disk has no room left.", status=503, code="store_unavailable")
        return await super().replace_running(entry)


def test_an_answer_that_cannot_be_stored_has_failed_at_once() -> None:
    with site(store=Forgetful(max_bytes=1 << 20, max_age=1e9)) as place:
        answer = place.respond("scripted/m", "hello", background=True)
        wait_until(lambda: state_of(place, answer) == "failed")
        stored = place.ask("GET", f"/responses/{answer['id']}").json
        assert "could not be stored" in stored["error"]["message"]


@pytest.mark.parametrize("backend", [*BACKENDS, KEEPER])
def test_a_client_may_leave_and_take_up_where_it_was(place: Site, backend: str) -> None:
    asked = {"model": f"{backend}/m", "input": SLOW, "background": True, "stream": True}
    connection = connected(place.port)
    connection.sendall(request_bytes("/v1/responses", asked, authorization="Bearer key-one"))
    head = read_until(connection, b'"one ')
    connection.close()
    name = head.split(b'"resp_')[1].split(b'"')[0].decode()
    seen = max(int(piece.split(b",")[0]) for piece in head.split(b'"sequence_number":')[1:])
    events = place.ask("GET", f"/responses/resp_{name}?stream=true&starting_after={seen}").events
    assert [data["sequence_number"] for _, data in events] == list(range(seen + 1, seen + 1 + len(events)))
    assert events[-1][0] == "response.completed"
    rest = "".join(data["delta"] for kind, data in events if kind == "response.output_text.delta")
    assert "one two three four five six seven".endswith(rest)
    assert rest.startswith("two")
    again = place.ask("GET", f"/responses/resp_{name}?stream=true&starting_after={seen}").events
    assert again == events


@pytest.mark.slow
def test_where_the_server_has_keys_what_its_back_end_works_on_is_found_by_its_owner_alone() -> None:
    with site(keys=(KEY, OTHER_KEY)) as place:
        asked = {"model": f"{KEEPER}/m", "input": SLOW, "background": True, "stream": True}
        connection = connected(place.port)
        connection.sendall(request_bytes("/v1/responses", asked, authorization=f"Bearer {KEY}"))
        head = read_until(connection, b'"one ')
        connection.close()
        name = head.split(b'"resp_')[1].split(b'"')[0].decode()
        path = f"/responses/resp_{name}"
        place.refused(404, "GET", path, key=OTHER_KEY)
        place.refused(404, "GET", f"{path}?stream=true&starting_after=1", key=OTHER_KEY)
        events = place.ask("GET", f"{path}?stream=true&starting_after=1").events
        assert events[-1][0] == "response.completed"


@pytest.mark.slow
def test_who_follows_it_when_the_server_ends_gets_an_end_too() -> None:
    with site() as place:
        asked = {"model": "scripted/m", "input": ENDLESS, "background": True, "stream": True}
        following = connected(place.port)
        following.sendall(request_bytes("/v1/responses", asked, authorization="Bearer key-one"))
        answer = place.respond("scripted/m", ENDLESS, background=True)
        assert state_of(place, answer) in ("queued", "in_progress")
    with following:
        said = b"".join(iter(lambda: following.recv(65536), b""))
    assert b"event: response.failed" in said
    assert said.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.slow
def test_killed_with_its_process_it_has_failed(tmp_path: Any) -> None:
    toml = '[server]\nlog = "warning"\n[store]\npath = "state.db"\n[backends.model]\nkind = "scripted"\n'
    with process(tmp_path, toml) as running:
        answer = Site(running.port).respond("model/m", ENDLESS, background=True)
    with process(tmp_path, toml) as running:
        assert state_of(Site(running.port), answer) in ("queued", "in_progress")  # not long enough ago


def test_silence_for_long_is_death() -> None:
    entry = Entry(
        owner="o",
        id="resp_1",
        kind="responses",
        created=0.0,
        status="in_progress",
        alive=100.0,
        body=b'{"id":"resp_1"}',
    )
    assert heard_of(entry, 110.0) is entry
    dead = heard_of(entry, 116.0)
    assert dead.status == "failed"
    assert b"stopped or killed" in dead.body


def test_the_whole_is_put_together_from_its_pieces() -> None:
    entry = Entry(
        owner="o",
        id="r",
        kind="responses",
        created=0.0,
        body=encode({"id": "r"}),
        output=(Item("a", b'{"id":"a"}'), Item("b", b'{"id":"b"}')),
    )
    assert shown(entry) == b'{"id":"r","output":[{"id":"a"},{"id":"b"}]}'


def test_followers_get_every_event_behind_theirs() -> None:
    frames = [b'event: e\ndata: {"type":"e","sequence_number":%d}\n\n' % number for number in range(6)]

    async def main() -> list[bytes]:
        job = BackgroundRun("o", "r", BACKGROUNDS["responses"].event_number)
        await job.write(frames[0] + frames[1])
        got: list[bytes] = []

        async def follow() -> None:
            async for wire in job.follow(0):
                got.append(wire)

        task = asyncio.create_task(follow())
        await asyncio.sleep(0)
        for frame in frames[2:]:
            await job.write(frame)
        job.close()
        await task
        return got

    assert b"".join(asyncio.run(main())) == b"".join(frames[1:])


def test_of_an_answer_too_long_to_hold_the_end_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.server.state.background._MAX_HELD", 1000)

    async def main() -> tuple[int, list[bytes]]:
        job = BackgroundRun("o", "r", BACKGROUNDS["responses"].event_number)
        for number in range(100):
            await job.write(b"%04d" % number * 10)
        job.close()
        assert not job.is_whole
        return job.size, [wire async for wire in job.follow()]

    size, got = asyncio.run(main())
    assert size == len(b"".join(got)) <= 1000
    assert got == [b"%04d" % number * 10 for number in range(100 - len(got), 100)]


def test_one_event_larger_than_all_that_is_held_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.server.state.background._MAX_HELD", 10)

    async def main() -> list[bytes]:
        job = BackgroundRun("o", "r", BACKGROUNDS["responses"].event_number)
        for wire in (b"small", b"larger than ten"):
            await job.write(wire)
        job.close()
        return [wire async for wire in job.follow()]

    assert asyncio.run(main()) == [b"larger than ten"]
