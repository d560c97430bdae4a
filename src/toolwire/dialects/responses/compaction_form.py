"""OpenAI Responses: the form of compaction by the gateway, and requests of its endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import Compaction, Json, JsonObject, Media, Message, Opaque, Request, Text, Tool
from ...wire.exact_json import object_of
from .request_in import declares, decode_request, tools_in
from .shapes import NAME

members = frozenset({"context_management"})
replaces_past = False
refuses_open_calls = False
reason = ""
_MAX_RETAINED = 256_000  # characters; Codex retains 64,000 tokens of such messages itself


def decode_compact(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request of the endpoint: the same members, of which only some matter. Its model is required: no default replaces it."""
    top = object_of(body.decode("utf-8", "replace"))
    if top is not None and not top.get("model"):
        raise BadRequest("it is missing; expected the name of a model.", where="model", code="missing_model")
    request = decode_request(body, headers)
    found = request.compaction or Compaction()
    return replace(
        request,
        compaction=replace(found, is_now=True, is_endpoint=True, threshold=None),
        state=replace(request.state, is_kept=False) if request.state is not None and request.state.field else None,
        stream=False,
    )


def part(summary: str, sealed: str, new_id: Callable[[str], str]) -> Opaque:
    return Opaque(dialect=NAME, value={"type": "compaction", "id": new_id("cmp_"), "encrypted_content": sealed})


def management(edits: Sequence[JsonObject]) -> Json:
    return list(edits)


def notes(part: Opaque) -> list[Opaque]:
    event = {"type": "response.compaction.compacting", "item_id": part.value["id"], "output_index": 0}
    return [Opaque(dialect=NAME, value=event)]


def found_tools(messages: Sequence[Message]) -> tuple[Tool, ...]:
    sources = [
        message.source.value for message in messages if message.source is not None and message.source.dialect == NAME
    ]
    items = [value for value in sources if isinstance(value, dict) and declares([value])]
    return tools_in({"input": items}) if items else ()


def retained(messages: Sequence[Message], new_id: Callable[[str], str]) -> list[Opaque]:
    """The newest ones, up to a limit, in their order."""
    found, size = list[Opaque](), 0
    for message in reversed(messages):
        if message.role != "user" or not all(isinstance(part, Text | Media) for part in message.parts):
            continue
        size += sum(len(part.text) for part in message.parts if isinstance(part, Text))
        if size > _MAX_RETAINED:
            break
        source = message.source.value if message.source is not None and message.source.dialect == NAME else None
        if not isinstance(source, dict):
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            source = {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}
        content = source["content"]
        content = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        item_id = source.get("id") or new_id("msg_")
        item = {"type": "message", "id": item_id, "role": "user", "status": "completed", "content": content}
        found.append(Opaque(dialect=NAME, value=item))
    return found[::-1]
