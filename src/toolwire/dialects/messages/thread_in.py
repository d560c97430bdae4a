"""Anthropic Messages: the member by which a request creates a thread on the server or continues one."""

from __future__ import annotations

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import JsonObject, State
from ...wire.fields import need_name, need_text, object_or_none, wrong

SETTLED = ("system", "tools")  # by the first request, for the whole thread


def state_in(top: JsonObject) -> State | None:
    """Where nobody keeps threads, the refusal makes the official tool runners replay the whole history."""
    thread = object_or_none(top, "thread")
    if thread is None:
        return None
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    why = "this back end keeps no threads"
    state = State(field="thread", why=why, refusal={"details": details}, is_leaning=True, is_kept=True)
    match need_text(thread, "type", "thread"):
        case "create":
            return state
        case "continue":
            previous = need_name(thread, "previous_message_id", "thread")
            for name in SETTLED:
                _refuse(top, name)
            return replace(state, previous=previous)
        case other:
            raise wrong("thread.type", other, "create or continue")


def is_continuing(top: JsonObject) -> bool:
    thread = top.get("thread")
    return isinstance(thread, dict) and thread.get("type") == "continue"


def _refuse(top: JsonObject, name: str) -> None:
    if top.get(name):
        message = "found it in a request that continues a thread; expected it only in the one that creates the thread."
        raise BadRequest(message, where=name)
