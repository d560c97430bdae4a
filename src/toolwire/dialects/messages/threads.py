"""Anthropic Messages: threads stored by the server, where each request sends only new messages. Without I/O.

A thread is a chain of answers. The first one stores system and tools; each stores the messages of its request and the
assistant's message as the client received it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ...errors import BadRequest, quote
from ...types import Compaction, Json, JsonObject, Message, Request, State
from ..shared.memory import PastTurns, StoredAnswer
from .compaction import has_summaries
from .request_in import THREAD_MEMBERS, history_reader, is_continuing, messages_in, system_in
from .shapes import NAME
from .tools_in import tools_in

prefix = "msg_"
_BETA = "message-threads"


def own_items(source: JsonObject, found: Mapping[str, Json]) -> list[Json]:
    messages: Json = source["messages"]
    return messages if isinstance(messages, list) else [messages]


def messages_of(items: list[Json]) -> tuple[Message, ...]:
    return tuple(messages_in(items, history_reader()))


def complete(request: Request, own: list[Json], past: PastTurns, *, looks_up: bool) -> Request:
    top = {key: value for key, value in request.source.items() if key != "thread"} | past.head
    top["messages"] = [*past.items, *own]
    heads = tuple([one for one in request.messages if one.is_head])
    mine = tuple([one for one in request.messages if not one.is_head])
    members = {key: value for key, value in request.extra.get(NAME, {}).items() if key != "thread"}
    return replace(
        request,
        messages=(*heads, *system_in(past.head.get("system")), *past.messages, *mine),
        tools=tools_in(top) if past.items else request.tools,
        extra={NAME: members} if members else {},
        state=None,
        compaction=_with_past(request.compaction, past.items),
        source=top,
        wire=b"",
        headers=_without_beta(request.headers),
    )


def _with_past(wanted: Compaction | None, items: list[Json]) -> Compaction | None:
    if not has_summaries(items):
        return wanted
    return replace(wanted, has_items=True) if wanted is not None else Compaction(has_items=True)


def remembered(request: Request, answer: JsonObject) -> StoredAnswer | None:
    """None for a refused or unfinished answer: a thread cannot continue from it."""
    answer_id, source = answer.get("id"), request.source
    if not isinstance(answer_id, str) or not answer_id or answer.get("stop_reason") in (None, "refusal"):
        return None
    head = {} if is_continuing(source) else {name: source[name] for name in THREAD_MEMBERS if source.get(name)}
    message = {"role": "assistant", "content": answer.get("content")}
    return StoredAnswer(id=answer_id, status="completed", output=[(answer_id, message)], head=head)


def not_found(state: State, missing: str) -> BadRequest:
    """With this code the official tool runners send the whole history again, as a new thread."""
    return BadRequest(
        f"there is no thread that ends in {quote(missing)}; expected the id of an answer that was stored for this key.",
        status=404,
        where="thread.previous_message_id",
        code="thread_not_found",
        details={"details": {"error_code": "thread_not_found"}},
    )


def _without_beta(headers: Mapping[str, str]) -> dict[str, str]:
    """Without the beta feature for threads, which the back end does not need."""
    kept = dict(headers)
    if _BETA in kept.get("anthropic-beta", ""):
        words = [word.strip() for word in kept["anthropic-beta"].split(",")]
        kept["anthropic-beta"] = ",".join(word for word in words if not word.startswith(_BETA))
        if not kept["anthropic-beta"]:
            del kept["anthropic-beta"]
    return kept
