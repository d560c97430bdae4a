"""Who may ask: keys, hosts, origins, over real connections."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from tests.server.answers import DIALECTS, PATHS, error_in, question, streamed, whole
from tests.server.conftest import backends_of
from tests.server.harness import Gateway, Upstream, ask, chunk, gateway, raw, reply, server_config, stream_head
from toolwire.config.file import Config, with_backends
from toolwire.config.secret import Secret
from toolwire.errors import BadRequest
from toolwire.server.auth import Guard, key_in, owner_of

CLIENT_KEY = "tw-client-key-4711"
SECOND_KEY = "tw-other-key-0815"
UPSTREAM_KEY = "sk-upstream-key-1234"
ROUTES = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/demo/echo-tools"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/nowhere"),
    ("DELETE", "/v1/responses"),
]


def locked_config(upstream: Upstream) -> Config:
    server = server_config(keys=(Secret(CLIENT_KEY), Secret(SECOND_KEY)))
    backends = backends_of(upstream, key=Secret(UPSTREAM_KEY), headers={"x-extra": f"{UPSTREAM_KEY}-extra"})
    return with_backends(Config(server=server), backends)


@pytest.fixture(scope="module")
def locked(upstream: Upstream) -> Iterator[Gateway]:
    with gateway(locked_config(upstream)) as running:
        yield running


def dialect_at(path: str) -> str:
    return next((name for name in DIALECTS if path.startswith(PATHS[name])), "chat")


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": ""},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {CLIENT_KEY}"},
        {"authorization": CLIENT_KEY},
        {"authorization": f"Bearer {CLIENT_KEY}x"},
        {"authorization": f"Bearer {CLIENT_KEY[:-1]}"},
        {"authorization": "Bearer \xff\xfe"},
        {"cookie": f"key={CLIENT_KEY}"},
    ],
)
def test_no_route_answers_without_a_key(locked: Gateway, method: str, path: str, headers: dict[str, str]) -> None:
    answer = ask(locked.port, method, path, b"{}" if method == "POST" else None, headers)
    assert answer.status == 401
    error = error_in(dialect_at(path), answer.json)
    assert error["type"] == "authentication_error"
    assert CLIENT_KEY not in str(answer.headers) + answer.body.decode()


def test_the_key_may_not_come_in_the_query(locked: Gateway) -> None:
    assert ask(locked.port, "GET", f"/metrics?key={CLIENT_KEY}&api-key={CLIENT_KEY}").status == 401


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "wrong"}, {"x-api-key": CLIENT_KEY}])
@pytest.mark.parametrize(
    "host", ["localhost:18741", "127.0.0.1", "10.1.2.3:18741", "[::1]", "[fd00::7]:18741"]
)  # an orchestrator addresses what it has started
@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready"), ("/v1/healthz/", "ok")])
def test_probes_need_no_key(locked: Gateway, path: str, status: str, host: str, headers: dict[str, str]) -> None:
    answer = ask(locked.port, "GET", path, headers=headers | {"host": host})
    assert (answer.status, answer.json) == (200, {"status": status})
    assert ask(locked.port, "HEAD", path, headers=headers | {"host": host}).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("host", ["evil.example", "10.1.2.3.evil.example", "[", "a b"])
def test_a_probe_under_a_foreign_name_needs_a_key(locked: Gateway, server: Gateway, path: str, host: str) -> None:
    assert ask(locked.port, "GET", path, headers={"host": host}).status == 401
    assert ask(locked.port, "GET", path, headers={"host": host, "x-api-key": CLIENT_KEY}).status == 200
    assert ask(server.port, "GET", path, headers={"host": host}).status == 403


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_from_a_page_elsewhere_is_refused(locked: Gateway, path: str) -> None:
    assert ask(locked.port, "GET", path, headers={"origin": "https://evil.example"}).status == 403


def test_a_probe_may_use_the_name_of_the_server() -> None:
    guard = Guard(server_config(host="gateway.internal", keys=(Secret(CLIENT_KEY),)))
    guard.admit({"host": "Gateway.internal:18741"}, is_probe=True)
    with pytest.raises(BadRequest):
        guard.admit({"host": "gateway.internal:18741"})


@pytest.mark.parametrize("path", ["/healthzz", "/healthz/x", "/readyz%00", "/metrics"])
def test_nothing_else_is_a_probe(locked: Gateway, path: str) -> None:
    assert ask(locked.port, "GET", path).status == 401


@pytest.mark.parametrize("key", [CLIENT_KEY, SECOND_KEY])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_either_header_opens_every_route(locked: Gateway, method: str, path: str, key: str) -> None:
    given = [
        {"authorization": f"Bearer {key}"},
        {"authorization": f"bearer   {key} "},
        {"x-api-key": key},
        {"authorization": "Bearer ", "x-api-key": key},
    ]
    for headers in given:
        answer = ask(locked.port, method, path, b"{}" if method == "POST" else None, headers)
        assert answer.status in (200, 400, 404, 405), answer.body


def test_a_wrong_key_for_anthropic_paths_and_clients(locked: Gateway) -> None:
    answer = ask(locked.port, "GET", "/v1/models", headers={"anthropic-version": "2023-06-01", "x-api-key": "no"})
    assert answer.status == 401
    assert error_in("messages", answer.json)["type"] == "authentication_error"


def test_without_keys_any_key_is_accepted(server: Gateway) -> None:
    for headers in ({}, {"authorization": "Bearer anything"}, {"x-api-key": "x"}, {"authorization": "Bearer \xff"}):
        assert ask(server.port, "GET", "/v1/models", headers=headers).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:18741", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "10.0.0.1",
     "[::1", "]", "[", "@", "#", "evil.example@", "127.0.0.1@evil.example", "[::ffff:10.0.0.1]", "\xff", "a b"],
)  # fmt: skip
def test_a_foreign_host_is_refused(server: Gateway, host: str) -> None:
    """DNS rebinding: a web page whose name leads to this machine."""
    for dialect in DIALECTS:
        answer = ask(server.port, "POST", PATHS[dialect], b"{}", {"host": host})
        assert answer.status == 403
        error_in(dialect, answer.json)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:18741"])
def test_a_host_of_this_machine_is_welcome(server: Gateway, host: str) -> None:
    assert ask(server.port, "GET", "/healthz", headers={"host": host}).status == 200


def test_a_request_without_a_host_comes_from_no_browser(server: Gateway) -> None:
    assert raw(server.port, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_with_keys_any_host_is_served(locked: Gateway) -> None:
    headers = {"host": "gateway.example", "x-api-key": CLIENT_KEY}
    assert ask(locked.port, "GET", "/healthz", headers=headers).status == 200


FOREIGN = [
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://[",
    "http://[::1",
    "http://",
    "app://obsidian.md.evil.example",
    "app://evil",
    "capacitor://localhost.evil",
    "vscode-file://vscode-app.evil",
    "file://",
    "chrome-extension://abc",
    "javascript:1",
    "http://localhost@evil.example",
    "\xff",
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_page_from_elsewhere_is_refused(server: Gateway, locked: Gateway, origin: str) -> None:
    for port, headers in ((server.port, {}), (locked.port, {"x-api-key": CLIENT_KEY})):
        answer = ask(port, "POST", PATHS["messages"], b"{}", headers | {"origin": origin})
        assert answer.status == 403
        error_in("messages", answer.json)
        assert "access-control-allow-origin" not in answer.headers
        preflight = {"origin": origin, "access-control-request-method": "POST"}
        answer = ask(port, "OPTIONS", PATHS["chat"], headers=preflight)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "https://localhost", "http://127.0.0.1:8080", "http://[::1]:5173", "app://obsidian.md",
     "capacitor://localhost", "vscode-webview://0a1b2c", "vscode-file://vscode-app"],
)  # fmt: skip
def test_a_page_of_this_machine_is_welcome(server: Gateway, locked: Gateway, origin: str) -> None:
    answer = ask(server.port, "GET", "/v1/models", headers={"origin": origin})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "origin"
    for port in (server.port, locked.port):  # a preflight never carries the key
        preflight = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": "x"}
        answer = ask(port, "OPTIONS", PATHS["chat"], headers=preflight)
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == origin
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert answer.body == b""


def test_errors_can_be_read_by_the_page_that_sent_the_request(locked: Gateway) -> None:
    answer = ask(locked.port, "POST", PATHS["chat"], b"{}", {"origin": "app://obsidian.md"})
    assert answer.status == 401
    assert answer.headers["access-control-allow-origin"] == "app://obsidian.md"


def test_origins_of_the_configuration_are_welcome() -> None:
    guard = Guard(server_config(origins=("https://ui.example",)))
    guard.admit({"origin": "https://ui.example", "host": "localhost"})
    with pytest.raises(BadRequest):
        guard.admit({"origin": "https://ui.example.evil", "host": "localhost"})


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer a"}, "a"),
        ({"authorization": "BEARER  a  "}, "a"),
        ({"authorization": "Bearer ", "x-api-key": "b"}, "b"),
        ({"authorization": "Basic c", "x-api-key": "b"}, "b"),
        ({"authorization": "Bearer a", "x-api-key": "b"}, "a"),
        ({}, ""),
    ],
)
def test_where_a_key_is_found(headers: dict[str, str], key: str) -> None:
    assert key_in(headers) == key


def test_no_secret_is_ever_printed_or_sent(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    """Everything that can go wrong, and all that the gateway said while it did."""
    with gateway(locked_config(upstream)) as locked:
        outputs = all_output(locked, upstream)
    captured = capfd.readouterr()
    assert "authentication_failed" in captured.err
    everything = "\n".join([*outputs, captured.out, captured.err])
    assert UPSTREAM_KEY not in everything
    assert CLIENT_KEY not in everything
    assert any(UPSTREAM_KEY in str(request.headers) for request in upstream.received)
    for request in upstream.received:
        assert CLIENT_KEY not in str(request.headers) + request.body.decode()


def all_output(locked: Gateway, upstream: Upstream) -> list[str]:
    outputs: list[str] = []
    echo = f'{{"error": {{"message": "bad key {UPSTREAM_KEY}, x-extra {UPSTREAM_KEY}-extra"}}}}'.encode()
    for dialect in DIALECTS:
        upstream.on("secret-1", [reply(401, echo)])
        upstream.on("secret-2", [reply(200, b"<html>")])
        upstream.on("secret-3", [stream_head(), chunk(b"data: nonsense\n\n"), "close"])
        upstream.on("secret-4", streamed(dialect))
        upstream.on("secret-5", whole(dialect))
        for number in range(1, 7):
            for stream in (True, False):
                body = question(dialect, f"{dialect}/secret-{number}", stream=stream)
                for headers in (
                    {"x-api-key": CLIENT_KEY},
                    {"authorization": f"Bearer {CLIENT_KEY}"},
                    {"x-api-key": f"{CLIENT_KEY}2"},
                ):
                    answer = ask(locked.port, "POST", PATHS[dialect], body, headers)
                    outputs += [str(answer.headers), answer.body.decode()]
    for path in ("/metrics", "/v1/models", "/", "/nowhere"):
        answer = ask(locked.port, "GET", path, headers={"x-api-key": CLIENT_KEY})
        outputs += [str(answer.headers), answer.body.decode()]
    return [*outputs, repr(locked.app), repr(vars(locked.app)), repr(locked.app._config), str(locked.app._config)]


def test_an_error_has_no_secret_in_its_trace() -> None:
    guard = Guard(server_config(keys=(Secret(CLIENT_KEY),)))
    with pytest.raises(BadRequest) as raised:
        guard.admit({"x-api-key": "guess"})
    assert CLIENT_KEY not in "".join(traceback.format_exception(raised.value))


def test_the_owner_of_state_is_a_hash_of_the_key() -> None:
    owner = owner_of({"authorization": "Bearer secret-key"})
    assert owner == owner_of({"x-api-key": "secret-key"})
    assert len(owner) == 16
    assert "secret" not in owner
    assert owner != owner_of({"authorization": "Bearer other-key"})
    assert owner_of({}) == owner_of({"authorization": "Bearer "}) == ""
