"""Log lines: what is in them, what never is, and a reader that does not read."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import select
import threading
import time
from typing import Any

import pytest

from tests.server.answers import ARGUMENTS, PATHS, question, streamed
from tests.server.conftest import backends_of
from tests.server.harness import Upstream, ask, gateway, server_config, wait_until
from toolwire.calls.validation import CallTally
from toolwire.config.file import Config, with_backends
from toolwire.errors import UpstreamError
from toolwire.server.logs import Log
from toolwire.telemetry import Record
from toolwire.types import Loss, ToolCall, Usage


def lines_of(form: str = "text", level: str = "info", *records: Record) -> list[str]:
    target = io.StringIO()
    log = Log(level, form, target)
    log.requests(records)
    log.close()
    return target.getvalue().split("\n")[:-1]


def test_a_log_line_as_text() -> None:
    record = Record(
        request_id="req_1",
        dialect="chat",
        model="openai/gpt",
        backend="openai",
        status=200,
        started=1.0,
        ended=1.25,
        is_verbatim=True,
        took_over="a cut",
        tally=CallTally(made=2, invalid=1),
        usage=Usage(input=7, output=5),
        losses=[Loss("b", "", ""), Loss("a", "", "")],
        error="upstream_cut",
        outcome="error",
    )
    (line,) = lines_of("text", "info", record)
    assert line.split(" ", 1)[1] == (
        "warning req_1 chat model=openai/gpt backend=openai 200 error 250.0ms "
        'verbatim-until="a cut" calls=2 invalid=1 tokens=7+5 lost=a,b error=upstream_cut'
    )


@pytest.mark.parametrize(
    ("asked", "sent", "words"),
    [("claude-x-20250929", "claude-x", " sent-as=claude-x"), ("b/m", "m", ""), ("m", "m", ""), ("m", "", "")],
)
def test_a_name_that_was_read_as_another_is_reported(asked: str, sent: str, words: str) -> None:
    record = Record(request_id="req_1", dialect="chat", model=asked, backend="b", sent_model=sent, status=200)
    (line,) = lines_of("text", "info", record)
    assert line.endswith(f"0.0ms{words}")
    assert json.loads(lines_of("json", "info", record)[0])["sent_model"] == (sent or None)


def test_models_of_a_group_that_failed_are_named() -> None:
    record = Record(dialect="chat", model="fast", backend="b", status=200, hops=["a/x:429", "c/z:stall"])
    (line,) = lines_of("text", "info", record)
    assert 'fallback="a/x:429,c/z:stall"' in line
    (line,) = lines_of("json", "info", record)
    assert json.loads(line)["fallback"] == ["a/x:429", "c/z:stall"]


def test_what_is_harmless_is_not_called_lost() -> None:
    losses = [Loss("role.system", "", ""), Loss("sampling.top_k", "", ""), Loss("history.order", "", "")]
    record = Record(request_id="req_1", dialect="chat", model="m", backend="b", status=200, losses=losses)
    (line,) = lines_of("text", "info", record)
    assert line.endswith(" adapted=history.order,role.system lost=sampling.top_k")
    value = json.loads(lines_of("json", "info", record)[0])
    assert value["losses"] == ["history.order", "role.system", "sampling.top_k"]
    assert value["adapted"] == ["history.order", "role.system"]
    record.losses = losses[:1]
    assert "lost=" not in lines_of("text", "info", record)[0]


def test_the_message_of_an_error_is_one_field_without_keys() -> None:
    error = UpstreamError('wrong key "sk-abcdef123456"\nin the request', status=401, hint='This is from "openai".')
    record = Record(
        request_id="req_1", dialect="chat", path="/v1/responses", key="laptop", backend="openai", status=401
    )
    record.fail(error)
    (line,) = lines_of("text", "info", record)
    assert " chat path=/v1/responses key=laptop model= backend=openai 401 error " in line
    words = "wrong key '[hidden]'\\u000ain the request This is from 'openai'."
    assert line.endswith(f'error=upstream_error message="{words}"')
    assert json.loads(lines_of("json", "info", record)[0])["message"] == words


def test_debug_explains_the_route_and_each_loss() -> None:
    losses = [Loss("role.system", "messages[1]", "written as a note"), Loss("thinking", "thinking", "it has no effect")]
    record = Record(request_id="req_1", backend="b", sent_model="m", route='only "b" lists it', losses=losses)
    assert len(lines_of("text", "info", record)) == 1
    shown = [line.partition("req_1 ")[2] for line in lines_of("text", "debug", record)[:-1]]
    assert shown == [
        'route b/m: only "b" lists it',
        "adapted role.system at messages[1]: written as a note",
        "lost thinking at thinking: it has no effect",
    ]


def test_a_line_in_json() -> None:
    record = Record(request_id="req_1", dialect="chat", status=200, model="m", started=1.0, first_byte=1.1, ended=1.25)
    (line,) = lines_of("json", "info", record)
    value = json.loads(line)
    assert value["request"] == "req_1"
    assert value["seconds"] == 0.25
    assert value["first_byte"] == 0.1
    assert value["level"] == "info"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "name", ["a\n2026-01-01T00:00:00Z info req_0 forged", "a\r\nb", "\x1b[2J", "\ud800", "a b=c", "\u2028", 'q"q', "é"]
)
def test_names_that_clients_choose_stay_in_their_line(form: str, name: str) -> None:
    record = Record(request_id="req_1", model=name, losses=[Loss(f"request.{name}", "", "")])
    lines = lines_of(form, "info", record, record)
    assert len(lines) == 2
    assert "\x1b" not in lines[0]
    if form == "json":
        json.loads(lines[0])
        return
    assert lines[0].isprintable()
    assert "req_0" not in lines[0] or 'model="' in lines[0]


def _calls() -> CallTally:
    tally = CallTally()
    tally.note(ToolCall(id="call_1", name="weather", raw="{}"), "right")
    tally.note(ToolCall(id="call 2", name="wether", raw="{}"), "unknown")
    tally.note(ToolCall(id="c3", name="rm -rf /", raw="{}"), "unknown")
    return tally


@pytest.mark.parametrize("level", ["warning", "info", "debug", "trace"])
def test_tools_that_were_not_offered_are_named_at_every_level(level: str) -> None:
    lines = lines_of("text", level, Record(request_id="req_1", tally=_calls()))
    assert lines[-1].endswith(' unknown-tools=wether,"a name that no tool can have"')
    named = json.loads(lines_of("json", level, Record(tally=_calls()))[-1])["unknown_tools"]
    assert named == ["wether", "a name that no tool can have"]


@pytest.mark.parametrize(("level", "count"), [("warning", 0), ("info", 0), ("debug", 3), ("trace", 3)])
def test_each_call_has_a_line_at_debug(level: str, count: int) -> None:
    lines = lines_of("text", level, Record(request_id="req_1", tally=_calls()))[:-1]
    expected = ["weather id=call_1 right", 'wether id="call 2" unknown', '"a name that no tool can have" id=c3 unknown']
    assert [line.partition(" debug req_1 call ")[2] for line in lines] == expected[:count]


def test_a_quiet_log_has_only_what_went_wrong() -> None:
    assert lines_of("text", "warning", Record(outcome="ok")) == []
    assert len(lines_of("text", "warning", Record(outcome="error"), Record(outcome="client_gone"))) == 2


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_other_libraries_say_is_among_the_lines(form: str) -> None:
    target = io.StringIO()
    log = Log("info", form, target)
    logger = logging.Logger("some.library")
    logger.addHandler(log.handler())
    try:
        raise ValueError("inner")
    except ValueError:
        logger.exception("it broke: %s", 7)
    log.close()
    assert "it broke: 7" in target.getvalue()
    assert "ValueError: inner" in target.getvalue()


def test_a_pipe_without_reader_costs_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    log = Log("info", "text", os.fdopen(writing, "w"))
    since = time.monotonic()
    for number in range(25_000):
        log.requests([Record(request_id=f"req_{number}", model="m" * 50)])
    assert time.monotonic() - since < 5
    drained: list[bytes] = []
    is_over = threading.Event()

    def drain() -> None:
        while not is_over.is_set():
            try:
                drained.append(os.read(reading, 1 << 20))
            except BlockingIOError:
                time.sleep(0.005)

    reader = threading.Thread(target=drain)
    reader.start()
    time.sleep(0.2)
    log.requests([Record(request_id="req_last")])
    log.close()
    time.sleep(0.1)
    is_over.set()
    reader.join()
    text = b"".join(drained).decode()
    assert "log lines were dropped" in text
    assert "req_last" in text
    assert all(line.startswith("2") for line in text.splitlines())
    log._target.close()
    os.close(reading)


def test_a_full_pipe_that_does_not_block_costs_no_line() -> None:
    """Another process may make stderr non-blocking for all that share it: writing then fails with EAGAIN."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    with os.fdopen(writing, "w") as target:
        log = Log("info", "text", target)
        for number in range(2000):
            log.requests([Record(request_id=f"req_{number}", model="m" * 50)])
        wait_until(lambda: not is_writable(writing))
        pieces: list[bytes] = []
        wait_until(lambda: pieces.append(read_now(reading)) or b"req_1999 " in b"".join(pieces))
        log.requests([Record(request_id="req_last")])
        log.close()
        pieces.append(read_now(reading))
    os.close(reading)
    names = [line.split()[2] for line in b"".join(pieces).decode().splitlines()]
    assert names == [*(f"req_{number}" for number in range(2000)), "req_last"]


def read_now(number: int) -> bytes:
    try:
        return os.read(number, 1 << 16)
    except BlockingIOError:
        return b""


def is_writable(number: int) -> bool:
    return bool(select.select([], [number], [], 0)[1])


class Fragile(io.StringIO):
    """A file on a disk that is full at times."""

    is_full = True
    tries = 0

    def write(self, text: str) -> int:
        self.tries += 1
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space left")
        return super().write(text)


def test_the_log_continues_after_an_error() -> None:
    target = Fragile()
    log = Log("info", "text", target)
    log.requests([Record(request_id="req_1")])
    wait_until(lambda: target.tries == 1)
    log.requests([Record(request_id="req_2")])
    wait_until(lambda: target.tries == 2)
    target.is_full = False
    log.requests([Record(request_id="req_3")])
    log.close()
    assert "req_3" in target.getvalue()
    assert "2 log lines were dropped" in target.getvalue()


def test_a_pipe_that_is_closed_ends_the_log_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    file = os.fdopen(writing, "w")
    log = Log("info", "text", file)
    log.requests([Record()])
    time.sleep(0.15)
    log.requests([Record()])
    log.close()
    file.close()


def served(upstream: Upstream, capfd: pytest.CaptureFixture[str], **fields: Any) -> list[str]:
    """The lines of a gateway that answered four requests."""
    upstream.on("logged", streamed("chat", text="SECRET WORDS", call=ARGUMENTS))
    capfd.readouterr()
    with gateway(with_backends(Config(server=server_config(log="info", **fields)), backends_of(upstream))) as server:
        for dialect in ("chat", "messages"):
            body = question(dialect, "chat/logged", stream=True, metadata={"user_id": "SECRET NAME"})
            ask(server.port, "POST", PATHS[dialect], body, {"x-request-id": f"mine-{dialect}"})
        ask(server.port, "POST", PATHS["chat"], b'{"messages": "SECRET WORDS"', {"x-request-id": "mine-broken"})
        ask(server.port, "GET", "/v1/nothing?key=SECRET", headers={"x-request-id": "mine-lost"})
        ask(server.port, "GET", "/healthz")
    return capfd.readouterr().err.splitlines()


def test_each_model_request_has_one_line_with_its_id(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    lines = served(upstream, capfd)
    assert len(lines) == 4
    for line, name in zip(lines, ("chat", "messages", "broken", "lost"), strict=True):
        assert f" mine-{name} " in line
        assert "SECRET" not in line
    assert "verbatim" in lines[0]
    assert "calls=1" in lines[0]
    assert "tokens=7+5" in lines[1]
    assert " 400 error " in lines[2]
    assert " 404 error " in lines[3]
    assert " path=/v1/chat/completions " in lines[0]
    assert " path=/v1/nothing " in lines[3]
    assert lines[3].endswith("error=not_found message=\"there is nothing at '/v1/nothing'.\"")


def test_each_model_request_has_one_json_object(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in served(upstream, capfd, log_format="json")]
    assert [line["request"] for line in lines] == ["mine-chat", "mine-messages", "mine-broken", "mine-lost"]
    assert [line["status"] for line in lines] == [200, 200, 400, 404]
    assert lines[0]["calls"] == 1
    assert lines[0]["backend"] == "chat"
    assert lines[1]["path"] == "/v1/messages"
    assert (lines[0]["message"], lines[3]["message"]) == (None, "there is nothing at '/v1/nothing'.")
    assert "SECRET" not in str(lines)


def test_a_quiet_log_omits_information() -> None:
    target = io.StringIO()
    log = Log("warning", "text", target)
    log.say("info", "a window came")
    log.say("warning", "a window was refused")
    log.close()
    assert "came" not in target.getvalue()
    assert "was refused" in target.getvalue()
