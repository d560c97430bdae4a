from __future__ import annotations

from typing import Any

from tests.backends.cursor.simulator.client import Client, blobs_of, opening, tool
from tests.backends.cursor.simulator.playing import played
from toolwire.backends.cursor.simulator import Say, Seen
from toolwire.backends.cursor.wire import agent

HISTORY = [{"role": "system", "content": "dropped"}, {"role": "user", "content": "first"}]


class Watching:
    """Keeps what it sees."""

    def __init__(self) -> None:
        self.seen: Seen = Seen()

    def start(self, seen: Seen) -> Any:
        self.seen = seen
        yield Say("ok")


def seen(first: Any, prepare: Any = lambda client: None, **headers: str) -> Seen:
    model = Watching()
    client, _ = played(model=model, first=first, prepare=prepare, **headers)
    assert client.error == {}
    return model.seen


def test_the_prompt_is_the_history_without_its_system_message_and_then_the_users() -> None:
    blobs = blobs_of(HISTORY)
    action = {"user_message_action": {"user_message": {"text": "now"}, "prepend_user_messages": [{"text": "before"}]}}
    found = seen(opening(roots=blobs, action=action, tools=[tool()]), lambda c: c.blobs.update(blobs))
    texts = [message["content"] for message in found.messages]
    assert texts == ["first", [{"type": "text", "text": "before"}], [{"type": "text", "text": "now"}]]
    assert (found.user_text, found.is_resumed) == ("now", False)


def test_a_resumed_run_has_no_new_message() -> None:
    blobs = blobs_of(HISTORY)
    found = seen(opening(roots=blobs, action={"resume_action": {}}, tools=[tool()]), lambda c: c.blobs.update(blobs))
    assert (found.is_resumed, len(found.messages), found.user_text) == (True, 1, "")


def test_images_models_parameters_and_tools() -> None:
    picture: Any = {"selected_images": [{"data": b"png", "mime_type": "image/png"}]}
    message: Any = {"text": "look", "selected_context": picture}
    model: Any = {"model_id": "gpt-5.4", "max_mode": True, "parameters": [{"id": "effort", "value": "high"}]}
    first = opening(action={"user_message_action": {"user_message": message}}, requested_model=model, tools=[tool()])
    found = seen(first, x_cursor_agent_allowed_tools="mcp_tool_call")
    assert found.images == (("image/png", b"png"),)
    assert found.messages[0]["content"][1]["image"] == "data:image/png;base64,cG5n"
    assert (found.model, found.max_mode, found.parameters) == ("gpt-5.4", True, {"effort": "high"})
    assert (found.tools[0].name, found.tools[0].schema) == ("look", {"type": "object"})
    assert found.allowed_tools == ("mcp_tool_call",)


def test_only_rules_that_hold_always_reach_the_model() -> None:
    def rule(content: str, source: int, **kind: Any) -> Any:
        return agent.CursorRule(content=content, source=source, type=agent.CursorRuleType(**kind))

    def prepare(client: Client) -> None:
        client.rules = [rule("yes", 2, **{"global": {}}), rule("team", 1, **{"global": {}}), rule("none", 2)]

    assert seen(opening(tools=[tool()]), prepare).rules == ("yes",)
