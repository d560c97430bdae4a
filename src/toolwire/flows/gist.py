"""What a request is about: its conversation, and the beginning of the last text of the user."""

from __future__ import annotations

from hashlib import blake2b

from ..telemetry.flow_draft import FlowDraft, Gist
from ..types import Message, Request, Text

_PREVIEW = 160
_HASHED = 10_000


def gist_of(draft: FlowDraft) -> Gist:
    """From the request as it was decoded, or from its body."""
    if draft.gist is not None:
        return draft.gist
    request = draft.request
    if request is None and draft.decode is not None and draft.client.body:
        try:
            request = draft.decode(draft.client.body, {})
        except Exception:  # any body is recorded, also one that no request can be read from
            return Gist()
    return Gist() if request is None else Gist(conversation=conversation_of(request), preview=_preview(request))


def needs_gist(draft: FlowDraft) -> bool:
    """Whether the body alone will not tell."""
    return draft.request is not None and (draft.client.has_cut_request or draft.decode is None)


def conversation_of(request: Request) -> str:
    """The same for all requests that repeat one history: a hash of its first user message. "" where there is none."""
    first = next((message for message in request.messages if message.role == "user"), None)
    text = _text(first)[:_HASHED] if first is not None else ""
    if not text:
        return ""
    return blake2b(f"{request.owner}\0{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def _preview(request: Request) -> str:
    """The last text of the user."""
    for message in reversed(request.messages):
        if message.role == "user" and (text := _text(message, is_last=True)):
            return " ".join(text[: 4 * _PREVIEW].split())[:_PREVIEW]
    return ""


def _text(message: Message, *, is_last: bool = False) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return (texts[-1] if is_last else "\n".join(texts)) if texts else ""
