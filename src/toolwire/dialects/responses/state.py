"""OpenAI Responses: what is remembered of an answer, and a request made whole from what is remembered. Without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from ...errors import BadRequest, GatewayError, quote
from ...events import Started
from ...types import Compaction, Json, JsonObject, Message, Request, State
from ..base import AnswerContext
from ..shared.memory import Ending, PastTurns, StoredAnswer
from .compaction import has_summaries
from .items_in import history_reader, is_reference, messages_in
from .request_in import declares, settings_in, tools_in
from .resource import failed, resource
from .shapes import NAME

prefix = "resp_"
output_member = "output"
event_number = rb'"sequence_number":(\d+)'
_MEMORY = frozenset({"previous_response_id", "conversation", "background", "store"})
_ENCRYPTED = "reasoning.encrypted_content"
_ENDINGS: dict[str, Ending] = {"completed": "completed", "incomplete": "incomplete", "failed": "failed"}
_PREFIXES = {
    "message": "msg_",
    "compaction": "cmp_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "tool_search_call": "tsc_",
    "tool_search_output": "tso_",
    "local_shell_call": "lsh_",
    "local_shell_call_output": "lsho_",
    "shell_call": "sh_",
    "shell_call_output": "sho_",
    "apply_patch_call": "apc_",
    "apply_patch_call_output": "apco_",
}
_INPUT_ROLES = ("user", "developer", "system")
_WITH_STATUS = ("message", "function_call", "function_call_output")


def own_items(source: JsonObject, found: Mapping[str, Json]) -> list[Json]:
    given = source.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    items: list[Json] = [given] if isinstance(given, dict) else given or []
    if not all(isinstance(item, dict) for item in items):
        items = [{"role": "user", "content": item} if isinstance(item, str) else item for item in items if item]
    return [found[item["id"]] if is_reference(item) else item for item in items] if found else items


def messages_of(items: list[Json]) -> tuple[Message, ...]:
    return tuple(messages_in(items, history_reader()))


def complete(request: Request, own: list[Json], past: PastTurns, *, looks_up: bool) -> Request:
    """Instructions and tools are never inherited. The back end must not store the answer: no request would refer to it."""
    top = {key: value for key, value in request.source.items() if key not in _MEMORY}
    items, messages = past.items, past.messages
    if has_summaries(items):
        items = _from_summary(items)
        messages = messages_of(items)
    if looks_up and items:
        items = _replayable(items)
        messages = messages_of(items)
    if looks_up and request.thinking is not None:  # else the next turn could not hand the reasoning back (H083)
        top["include"] = list(dict.fromkeys([*(top.get("include") or ()), _ENCRYPTED]))
    top |= {"input": [*items, *own], "store": False}
    is_referring = request.state is not None and bool(request.state.references)
    mine = messages_of(own) if is_referring else tuple([one for one in request.messages if not one.is_head])
    heads = tuple([one for one in request.messages if one.is_head])
    is_declared = declares(items) or (is_referring and declares(own))
    members = {key: value for key, value in request.extra.get(NAME, {}).items() if key not in _MEMORY}
    history = (*heads, *messages, *mine)
    thinking, output = settings_in(request.source, history)
    return replace(
        request,
        messages=history,
        thinking=thinking,
        output=output,
        tools=tools_in(top) if is_declared else request.tools,
        extra={NAME: members} if members else {},
        state=None,
        compaction=_with_past(request.compaction, items),
        source=top,
        wire=b"",
    )


def _with_past(wanted: Compaction | None, items: list[Json]) -> Compaction | None:
    if not has_summaries(items):
        return wanted
    return replace(wanted, has_items=True) if wanted is not None else Compaction(has_items=True)


def _from_summary(items: list[Json]) -> list[Json]:
    """The client cannot drop what the newest summary covers: messages to the model stay, answers, calls and results do not."""
    last = max(index for index, item in enumerate(items) if has_summaries([item]))
    return [item for item in items[:last] if item.get("role") in _INPUT_ROLES] + items[last:]


def _replayable(items: list[Json]) -> list[Json]:
    """Without ids, which the back end does not know, and without reasoning that consists of such an id only."""
    return [
        {key: value for key, value in item.items() if key != "id"}
        for item in items
        if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content")
    ]


def remembered(request: Request, answer: JsonObject) -> StoredAnswer | None:
    answer_id, status = answer.get("id"), _ENDINGS.get(str(answer.get("status")))
    if not isinstance(answer_id, str) or not answer_id or status is None:
        return None
    output: dict[str, JsonObject] = {}
    given = answer.get("output")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if isinstance(item, dict):
            output[_key_of(item, output) or f"{answer_id}_{index}"] = item
    body = {key: value for key, value in answer.items() if key != "output"}
    body["store"] = True
    return StoredAnswer(id=answer_id, status=status, output=list(output.items()), body=body)


def _key_of(item: JsonObject, taken: Mapping[str, JsonObject]) -> str:
    item_id = item.get("id")
    return item_id if isinstance(item_id, str) and item_id not in taken else ""


def not_found(state: State, missing: str) -> BadRequest:
    details = {"type": "invalid_request_error"}
    if missing == state.previous:
        return BadRequest(
            f"there is no stored response {quote(missing)} with all that came before it; "
            "expected the id of one that was stored for this key.",
            where="previous_response_id",
            code="previous_response_not_found",
            details=details,
        )
    if missing == state.conversation:
        message = f"there is no conversation {quote(missing)}; expected the id of one that was made with this key."
        return BadRequest(message, status=404, where="conversation", code="conversation_not_found", details=details)
    return BadRequest(
        f"Item with id {quote(missing)} not found; expected an item of a stored response or conversation.",
        status=404,
        where="input",
        code="item_not_found",
        hint="Send the item itself; a response with store false is not stored.",
        details=details,
    )


def queued_body(context: AnswerContext) -> JsonObject:
    body = resource(context, Started(id="", model="")) | {"status": "queued"}
    body.pop("output")
    return body


def body_with_status(body: JsonObject, status: str, error: GatewayError | None) -> JsonObject:
    body = body | {"status": status}
    return body | {"error": failed(error)} if error is not None and status == "failed" else body


def shown_item(item: Json, new_id: Callable[[str], str]) -> JsonObject:
    """An input item as the API lists it: with an id, a type, and content as parts."""
    given = item.get("id")
    kind = item["type"] if isinstance(item.get("type"), str) else "message"
    item_id = given if isinstance(given, str) and given else new_id(_PREFIXES.get(kind, "item_"))
    shown: JsonObject = {"id": item_id, "type": kind, **item}
    shown["id"], shown["type"] = item_id, kind
    if kind in _WITH_STATUS and not shown.get("status"):
        shown["status"] = "completed"
    if kind == "message" and isinstance(item.get("content"), str):
        shown["content"] = [_text_part(item["content"], is_answer=item.get("role") == "assistant")]
    return shown


def _text_part(text: str, *, is_answer: bool) -> JsonObject:
    if is_answer:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}
