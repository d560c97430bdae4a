"""Reports of the provider: dropped thinking, and members that the client's dialect does not have."""

from __future__ import annotations

from toolwire.dialects.messages.reports import reports
from toolwire.events import Noted
from toolwire.types import Loss


def test_dropped_thinking_is_one_loss() -> None:
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    allowed = {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    (event,) = reports({"input_transformations": [allowed, dropped, dropped, None]}, "messages")
    assert isinstance(event, Noted)
    assert event.note == Loss(
        "reasoning.dropped", "messages.1.content.0", "the back end dropped it: prefix_binding_mismatch (2 times)"
    )
    for nothing in ([allowed], [], None, "x"):
        assert reports({"input_transformations": nothing}, "messages") == []


def test_clients_of_other_dialects_learn_what_they_do_not_get() -> None:
    answer = {"diagnostics": {"cache_miss_reason": {"type": "tools_changed"}}, "container": None}
    assert reports(answer, "messages") == []
    (event,) = reports(answer, "chat")
    assert isinstance(event, Noted)
    assert isinstance(event.note, Loss)
    assert event.note.feature == "answer.diagnostics"
