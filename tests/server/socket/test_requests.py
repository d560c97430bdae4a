"""Requests of a WebSocket are recorded as those of POST."""

from __future__ import annotations

from tests.server.answers import streamed
from tests.server.harness import Gateway, Upstream, ask
from tests.server.socket.client import SocketClient


def test_each_request_is_a_flow_with_its_messages(server: Gateway, upstream: Upstream) -> None:
    upstream.on("socket-flow", streamed("chat", call='{"city": "Oslo", "password": "hunter2hunter2"}'))
    with SocketClient(server.port) as client:
        client.answer("chat/socket-flow", input="a question to record", store=False)
        client.answer("chat/socket-flow", input=7, store=False)
    flows = ask(server.port, "GET", "/ui/api/flows?model=chat/socket-flow").json["flows"]
    good = next(flow for flow in flows if flow["outcome"] == "ok")
    assert (good["dialect"], good["backend"], good["stream"], good["status"]) == ("responses", "chat", True, 200)
    detail = ask(server.port, "GET", f"/ui/api/flows/{good['id']}").json
    assert detail["client"]["request"]["method"] == "WEBSOCKET"
    assert "a question to record" in detail["client"]["request"]["body"]
    assert any("response.completed" in frame["data"] for frame in detail["client"]["response"]["frames"])
    assert "hunter2" not in str(detail)
    assert "[hidden]" in str(detail["client"]["response"]["frames"])
    bad = next(flow for flow in ask(server.port, "GET", "/ui/api/flows").json["flows"] if flow["outcome"] == "error")
    assert bad["status"] == 400
