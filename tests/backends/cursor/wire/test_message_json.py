"""Messages of the service by the names that the protocol has."""

from __future__ import annotations

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.message_json import as_json, client_message, server_message


def test_only_members_that_are_set_are_there() -> None:
    assert as_json(agent.AgentClientMessage()) == {}
    heartbeat = agent.AgentClientMessage(client_heartbeat=agent.ClientHeartbeat())
    assert client_message(heartbeat.SerializeToString()) == ("client_heartbeat", {"client_heartbeat": {}})


def test_bytes_are_text() -> None:
    kept = agent.KvServerMessage(id=3, set_blob_args=agent.SetBlobArgs(blob_id=b"id", blob_data=b"sk-1 \xff"))
    kind, value = server_message(agent.AgentServerMessage(kv_server_message=kept).SerializeToString())
    assert kind == "kv_server_message"
    assert value == {"kv_server_message": {"id": 3, "set_blob_args": {"blob_id": "id", "blob_data": "sk-1 \ufffd"}}}


def test_what_is_no_message_is_said() -> None:
    assert client_message(b"") == ("an empty message", {})
    assert server_message(b"\xff") == ("something that is no message", None)
