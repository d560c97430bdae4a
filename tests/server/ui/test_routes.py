"""The inspector over real connections: recorded flows of every dialect, secrets, errors, and its own protection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.answers import ARGUMENTS, DIALECTS, PATHS, cut_stream, question, streamed, whole
from tests.server.conftest import backends_of
from tests.server.harness import (
    HOLD,
    Gateway,
    Upstream,
    ask,
    chunk,
    connected,
    gateway,
    raw,
    read_until,
    reply,
    request_bytes,
    server_config,
    stream_head,
    wait_until,
)
from toolwire.config.file import Config, FlowsConfig, with_backends
from toolwire.config.secret import Secret

KEY = "tw-client-key-4711"
UPSTREAM_KEY = "up-stream-key-0815"
UI = {"x-toolwire-ui": "1"}


@pytest.fixture(scope="module")
def recorded(upstream: Upstream) -> Iterator[Gateway]:
    backends = backends_of(upstream, key=Secret(UPSTREAM_KEY))
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running


@pytest.fixture(scope="module")
def locked(upstream: Upstream) -> Iterator[Gateway]:
    config = Config(server=server_config(keys=(Secret(KEY),)), flows=FlowsConfig(enabled=True))
    with gateway(with_backends(config, backends_of(upstream, key=Secret(UPSTREAM_KEY)))) as running:
        yield running


def listed(running: Gateway, **query: str) -> list[Any]:
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return list(ask(running.port, "GET", f"/ui/api/flows?{words}").json["flows"])


def shown(running: Gateway, model: str) -> Any:
    """The last flow with this model, after it has ended."""

    def found() -> list[Any]:
        return [flow for flow in listed(running, model=model) if flow["outcome"] != "open"]

    wait_until(lambda: bool(found()))
    return ask(running.port, "GET", f"/ui/api/flows/{found()[0]['id']}").json


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("backend", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_both_wires_of_every_dialect_are_recorded(
    recorded: Gateway, upstream: Upstream, dialect: str, backend: str, stream: bool
) -> None:
    model = f"{dialect}-{backend}-{stream}"
    upstream.on(model, (streamed if stream else whole)(backend, call=ARGUMENTS))
    body = question(dialect, f"{backend}/{model}", stream=stream)
    answer = ask(recorded.port, "POST", PATHS[dialect], body)
    flow = shown(recorded, model)
    assert (flow["dialect"], flow["backend"], flow["backend_dialect"]) == (dialect, backend, backend)
    assert (flow["outcome"], flow["status"], flow["stream"]) == ("ok", 200, stream)
    assert json.loads(flow["client"]["request"]["body"]) == body
    assert _text(flow["client"]["response"]).encode() == answer.body
    (wire,) = flow["upstream"]
    assert wire["request"]["body"].encode() == upstream.requests(model)[-1].body
    assert "Hello" in _text(wire["response"])
    assert [call["name"] for call in flow["calls"]] == ["weather"]
    assert [event["type"] for event in flow["events"]][-1] == "finished"
    assert flow["verbatim"] == (dialect == backend)
    assert (flow["usage"]["input"], flow["preview"]) == (7, "What is the weather?")
    assert flow["timings"]["queue"] <= flow["timings"]["first_byte"] <= flow["timings"]["total"]


def _text(response: Any) -> str:
    frames = response["frames"]
    return str(response["body"]) if frames is None else "".join(frame["data"] for frame in frames)


def test_no_secret_is_recorded(recorded: Gateway, upstream: Upstream) -> None:
    key, other = "client-own-key-123456", "sk-inside-the-text-123"
    model = upstream.on("secrets", [reply(200, json.dumps({"error": UPSTREAM_KEY}).encode(), set_cookie="a=secret123")])
    body = question("chat", f"chat/{model}", metadata={"api_key": "hunter2hunter2"}, user=f"{other} {key}")
    ask(recorded.port, "POST", f"/v1/chat/completions?api_key={key}", body, {"authorization": f"Bearer {key}"})
    flow = json.dumps(shown(recorded, model))
    for secret in (key, other, "hunter2hunter2", UPSTREAM_KEY, "secret123"):
        assert secret not in flow


@pytest.mark.parametrize("backend", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_secret_in_streamed_arguments_is_shown(
    recorded: Gateway, upstream: Upstream, dialect: str, backend: str
) -> None:
    """Each frame has a piece of the arguments. The events have them whole."""
    arguments = json.dumps({"city": "Oslo", "password": "hunter2hunter2", "note": f"{UPSTREAM_KEY} sk-abcdef123456"})
    model = upstream.on(f"split-{dialect}-{backend}", streamed(backend, call=arguments))
    ask(recorded.port, "POST", PATHS[dialect], question(dialect, f"{backend}/{model}", stream=True))
    flow = shown(recorded, model)
    (call,) = [event["part"] for event in flow["events"] if event["type"] == "part_ended" and "raw" in event["part"]]
    assert json.loads(call["raw"]) == {"city": "Oslo", "password": "[hidden]", "note": "[hidden] [hidden]"}
    for secret in ("hunter2", UPSTREAM_KEY, "abcdef123456"):
        assert secret not in json.dumps(flow)


def test_retries_and_errors_are_recorded(upstream: Upstream) -> None:
    backends = backends_of(upstream, key=Secret(UPSTREAM_KEY), retries=1)
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        model = upstream.on("busy", [reply(503, b'{"error":{"message":"busy"}}')], whole("chat"))
        ask(running.port, "POST", PATHS["chat"], question("chat", f"chat/{model}"))
        assert [wire["response"]["status"] for wire in shown(running, model)["upstream"]] == [503, 200]


def test_a_repaired_call_has_its_arguments_before_and_after(recorded: Gateway, upstream: Upstream) -> None:
    model = upstream.on("repaired", streamed("chat", call='{"city": "Paris", "days": [1, 2, 3],}'))
    ask(recorded.port, "POST", PATHS["messages"], question("messages", f"chat/{model}", stream=True))
    flow = shown(recorded, model)
    (report,) = [report for report in flow["reports"] if report["kind"] == "repair"]
    assert (report["tool"], report["before"]) == ("weather", '{"city": "Paris", "days": [1, 2, 3],}')
    assert json.loads(report["after"]) == {"city": "Paris", "days": [1, 2, 3]}
    assert (flow["repairs"], flow["calls"][0]["valid_before"], flow["calls"][0]["valid_after"]) == (1, False, True)
    assert flow["timings"]["first_byte"] <= flow["timings"]["first_token"] <= flow["timings"]["total"]


def test_the_previous_request_of_a_conversation_is_compared(recorded: Gateway, upstream: Upstream) -> None:
    model = upstream.on("turns", whole("chat"))
    for system in ("Today is Monday", "Today is Tuesday"):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "Tell me about turns"}]
        ask(recorded.port, "POST", PATHS["chat"], {"model": f"chat/{model}", "messages": messages})
        first = shown(recorded, model)
    flow = shown(recorded, model)
    assert flow["previous"] == listed(recorded, conversation=flow["conversation"])[1]["id"]
    change = flow["changes"]["first_change"]
    assert change["part"] == "system"
    assert ("Monday" in change["before"], "Tuesday" in change["after"]) == (True, True)
    assert first["id"] == flow["id"]


def test_an_answer_that_breaks_off_has_its_reason(recorded: Gateway, upstream: Upstream) -> None:
    model = upstream.on("cut", cut_stream("chat"))
    ask(recorded.port, "POST", PATHS["messages"], question("messages", f"chat/{model}", stream=True))
    flow = shown(recorded, model)
    assert (flow["outcome"], flow["error"]) == ("error", "upstream_cut")
    assert "closed the connection" in flow["message"]
    assert flow["upstream"][0]["error"].startswith("upstream_cut")
    assert [report["kind"] for report in flow["reports"]][-1] == "fault"


def test_requests_that_are_refused_are_recorded(recorded: Gateway) -> None:
    ask(recorded.port, "POST", PATHS["chat"], b"{no json", {"x-request-id": "refused-1"})
    wait_until(lambda: bool([flow for flow in listed(recorded, q="refused-1") if flow["outcome"] == "error"]))
    (flow,) = listed(recorded, q="refused-1")
    detail = ask(recorded.port, "GET", f"/ui/api/flows/{flow['id']}").json
    assert (flow["status"], detail["client"]["request"]["body"]) == (400, "{no json")
    assert "error" in detail["client"]["response"]["body"]


def test_a_flow_is_visible_while_it_streams_and_when_the_client_leaves(recorded: Gateway, upstream: Upstream) -> None:
    model = upstream.on("slow", [stream_head(), chunk(b": nothing yet\n\n"), HOLD])
    with connected(recorded.port) as client, connected(recorded.port) as live:
        live.sendall(b"GET /ui/api/flows/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        read_until(live, b": live\n\n")
        client.sendall(request_bytes(PATHS["chat"], question("chat", f"chat/{model}", stream=True)))
        read_until(live, b'"outcome":"open"')
        wait_until(lambda: [flow["outcome"] for flow in listed(recorded, model=model)] == ["open"])
        client.close()
        read_until(live, b'"outcome":"client_gone"')
    assert shown(recorded, model)["status"] == 499


def test_flows_can_be_deleted(upstream: Upstream) -> None:
    with gateway(with_backends(Config(server=server_config()), backends_of(upstream))) as running:
        for _ in range(3):
            ask(running.port, "POST", PATHS["chat"], question("chat", "demo/echo-tools"))
        first = listed(running)[0]["id"]
        assert ask(running.port, "DELETE", f"/ui/api/flows/{first}").status == 403
        assert ask(running.port, "DELETE", f"/ui/api/flows/{first}", headers=UI).status == 204
        assert ask(running.port, "GET", f"/ui/api/flows/{first}").status == 404
        assert len(listed(running)) == 2
        assert ask(running.port, "DELETE", "/ui/api/flows", headers=UI).status == 204
        assert listed(running) == []


def test_the_list_has_pages_and_bad_numbers_are_refused(recorded: Gateway) -> None:
    for _ in range(3):
        ask(recorded.port, "POST", PATHS["chat"], question("chat", "demo/echo-tools"))
    page = ask(recorded.port, "GET", "/ui/api/flows?limit=2").json
    assert len(page["flows"]) == 2
    assert page["next"] == page["flows"][-1]["seq"]
    assert (page["enabled"], page["limits"]["max_mb"]) == (True, 64)
    older = ask(recorded.port, "GET", f"/ui/api/flows?before={page['next']}").json
    assert older["flows"][0]["seq"] < page["next"]
    assert ask(recorded.port, "GET", "/ui/api/flows?limit=many").status == 400


def test_html_of_a_model_is_only_data(recorded: Gateway, upstream: Upstream) -> None:
    model = upstream.on("html", whole("chat", text="<script>alert(1)</script>"))
    ask(recorded.port, "POST", PATHS["chat"], question("chat", f"chat/{model}"))
    answer = ask(recorded.port, "GET", f"/ui/api/flows/{shown(recorded, model)['id']}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/ui/", "/ui/api/flows", "/ui/api/session", "/ui/nowhere", "/ui/api/flows/nothing"])
def test_every_answer_is_protected(recorded: Gateway, path: str) -> None:
    headers = ask(recorded.port, "GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-frame-options"], headers["cross-origin-resource-policy"]) == ("DENY", "same-origin")


@pytest.mark.parametrize("path", ["/ui/api/flows", "/ui/api/stats", "/ui/api/session", "/ui/api/flows/live", "/ui/"])
@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://example.com", "null"])
def test_no_answer_is_for_another_origin(recorded: Gateway, path: str, origin: str) -> None:
    for method in ("GET", "OPTIONS", "DELETE"):
        answer = ask(recorded.port, method, path, headers={"origin": origin, "access-control-request-method": "GET"})
        assert answer.status in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_rebound_name_gets_nothing(recorded: Gateway) -> None:
    for path in ("/ui/", "/ui/api/flows", "/"):
        answer = ask(recorded.port, "GET", path, headers={"host": "evil.example", "accept": "text/html"})
        assert (answer.status, "flows" in answer.body.decode()) == (403, False)


def test_a_browser_is_sent_to_the_page_and_programs_get_json(recorded: Gateway) -> None:
    assert ask(recorded.port, "GET", "/", headers={"accept": "text/html,*/*"}).headers["location"] == "/ui/"
    assert ask(recorded.port, "GET", "/ui").headers["location"] == "/ui/"
    assert ask(recorded.port, "GET", "/").json["name"] == "toolwire"
    page = ask(recorded.port, "GET", "/ui/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert ask(recorded.port, "HEAD", "/ui/").body == b""


@pytest.mark.parametrize("path", ["/ui/../server/app.py", "/ui/%2e%2e/config/file.py", "/ui//etc/passwd"])
def test_no_other_file_is_served(recorded: Gateway, path: str) -> None:
    answer = raw(recorded.port, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    assert b"404" in answer.split(b"\r\n")[0]


def test_with_keys_nothing_is_shown_without_one(locked: Gateway) -> None:
    for path in ("/ui/api/flows", "/ui/api/flows/x", "/ui/api/flows/live", "/ui/api/stats"):
        assert ask(locked.port, "GET", path).status == 401
    assert ask(locked.port, "DELETE", "/ui/api/flows", headers=UI).status == 401
    assert ask(locked.port, "GET", "/ui/").status == 200
    session = ask(locked.port, "GET", "/ui/api/session").json
    assert (session["needs_key"], session["logged_in"]) == (True, False)
    assert ask(locked.port, "GET", "/ui/api/flows", headers={"authorization": f"Bearer {KEY}"}).status == 200


def test_a_login_opens_the_inspector_and_the_playground(locked: Gateway) -> None:
    own = {"origin": f"http://127.0.0.1:{locked.port}"}
    assert ask(locked.port, "POST", "/ui/login", {"key": "wrong"}, own).status == 401
    assert ask(locked.port, "POST", "/ui/login", {"key": KEY}, {"origin": "http://localhost:1"}).status == 403
    answer = ask(locked.port, "POST", "/ui/login", {"key": KEY}, own)
    cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert ask(locked.port, "GET", "/ui/api/flows", headers=cookie).status == 200
    assert ask(locked.port, "GET", "/ui/api/session", headers=cookie).json["logged_in"] is True
    body = question("chat", "demo/echo-tools")
    assert ask(locked.port, "POST", PATHS["chat"], body, cookie).status == 401
    assert ask(locked.port, "POST", PATHS["chat"], body, cookie | UI).status == 401
    assert ask(locked.port, "POST", PATHS["chat"], body, cookie | UI | own).status == 200
    forged = cookie | UI | {"origin": "http://127.0.0.1:1"}
    assert ask(locked.port, "POST", PATHS["chat"], body, forged).status == 401
    assert (
        ask(locked.port, "POST", "/ui/logout", b"", own | cookie).headers["set-cookie"].startswith("toolwire_session=;")
    )


def test_a_form_logs_in(locked: Gateway) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    good = ask(locked.port, "POST", "/ui/login", f"key={KEY}".encode(), kind)
    assert (good.status, good.headers["location"]) == (303, "/ui/")
    assert "HttpOnly" in good.headers["set-cookie"]
    bad = ask(locked.port, "POST", "/ui/login", b"key=no", kind)
    assert (bad.headers["location"], "set-cookie" in bad.headers) == ("/ui/?login=failed", False)


def test_a_wrong_key_is_not_recorded(locked: Gateway) -> None:
    wrong = "wrong-key-of-a-client"
    ask(locked.port, "POST", PATHS["chat"], question("chat", "m"), {"x-api-key": wrong, "x-request-id": "wrong-1"})
    answer = ask(locked.port, "GET", "/ui/api/flows?q=wrong-1", headers={"x-api-key": KEY})
    (flow,) = answer.json["flows"]
    assert flow["status"] == 401
    detail = ask(locked.port, "GET", f"/ui/api/flows/{flow['id']}", headers={"x-api-key": KEY})
    assert wrong not in detail.body.decode()
    assert KEY not in detail.body.decode()


def test_a_gateway_with_keys_records_nothing_by_default() -> None:
    with gateway(with_backends(Config(server=server_config(keys=(Secret(KEY),))), ())) as running:
        key = {"x-api-key": KEY}
        ask(running.port, "POST", PATHS["chat"], question("chat", "demo/echo-tools"), key)
        page = ask(running.port, "GET", "/ui/api/flows", headers=key).json
        assert (page["enabled"], page["flows"]) == (False, [])
        assert ask(running.port, "GET", "/ui/api/flows/live", headers=key).status == 404


def test_the_charts_have_the_counts_of_the_store(recorded: Gateway) -> None:
    ask(recorded.port, "POST", PATHS["chat"], question("chat", "demo/echo-tools"))
    lines = ask(recorded.port, "GET", "/ui/api/stats?hours=2").json["hours"]
    assert any(line["backend"] == "demo" and line["requests"] for line in lines)


def test_an_open_stream_of_changes_does_not_delay_the_end() -> None:
    with gateway(with_backends(Config(server=server_config(shutdown_seconds=60.0)), ())) as running:
        live = connected(running.port)
        live.sendall(b"GET /ui/api/flows/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        read_until(live, b": live\n\n")
        running.close()
        assert live.recv(100) in (b"0\r\n\r\n", b"")
        live.close()
