"""Codex app-server: encodes the conversation so far, in the form that the version accepts.

inject: raw items of the Responses dialect are injected into a new thread, and an empty turn continues from them. inject_before: the
same, with the last user message as the input of the turn, for versions that refuse an empty one. resume: a thread is resumed from such
items, and the last user message is the input. text: everything is one message with a JSON object per line, so that no text can imitate
another role: line breaks inside strings are escaped.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ....dialects.responses.request_out import body_of
from ....dialects.shared.requests import with_listener
from ....profiles import RESPONSES, Profile
from ....types import JsonObject, Loss, OutputFormat, Request, Sampling
from ....wire.exact_json import encode
from .names import CodexToolNames
from .versions import Abilities

HistoryForm: TypeAlias = Literal["inject", "inject_before", "resume", "text"]

# Codex accepts texts and images, and drops a message with anything else.
_PROFILE: Profile = replace(RESPONSES, has_files=False, reasoning_models="")
_PREFACE = (
    "What follows is a conversation so far, one JSON object per line, oldest first. "
    'Answer its last line as the assistant; do not repeat or mention this form. "image": N is the Nth image below.'
)
_GO_ON = "Go on."


class CodexHistory(Struct, frozen=True, kw_only=True):
    instructions: str
    items: list[JsonObject]
    losses: tuple[Loss, ...]


def form_of(abilities: Abilities, *, has_tools: bool) -> HistoryForm:
    """A resumed thread accepts no tools of clients."""
    if abilities.inject:
        return "inject" if abilities.empty_turn else "inject_before"
    return "resume" if abilities.resume_history and not (has_tools and abilities.dynamic_tools) else "text"


def history_of(request: Request, names: CodexToolNames) -> CodexHistory:
    """Encoded by the Responses dialect, without sources, because Codex does not know all their members."""
    losses: list[Loss] = []
    listened = with_listener(request.messages, losses)
    messages = tuple(replace(message, source=None, extra={}) for message in listened)
    bare = Request(model=request.model, messages=messages, sampling=Sampling(), output=OutputFormat())
    body = body_of(bare, _PROFILE, losses)
    items = [_for_codex(item, names) for item in body["input"]]
    return CodexHistory(instructions=body.get("instructions", ""), items=items, losses=tuple(losses))


def split_input(items: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The items before the turn, and its input: the last user message, or a request to continue if a result is last."""
    if items and items[-1].get("role") == "user":
        return items[:-1], inputs_of(items[-1])
    return items, [text_input(_GO_ON)]


def as_text_input(items: list[JsonObject]) -> list[JsonObject]:
    """One text with a line per item, followed by the images. A single message of the user is sent as it is."""
    if len(items) == 1 and items[0].get("role") == "user":
        return inputs_of(items[0])
    images: list[JsonObject] = []
    lines = [encode(_line(item, images)).decode() for item in items]
    return [text_input("\n".join([_PREFACE, "", *lines])), *images]


def losses_of_form(items: list[JsonObject], form: HistoryForm) -> list[Loss]:
    """What versions without a history, or without empty turns, cannot express."""
    ends_with_user = bool(items) and items[-1].get("role") == "user"
    if form == "text" and not (len(items) == 1 and ends_with_user):
        return [
            Loss("history", "messages", "this version of Codex accepts no history; it is sent as text, in one message")
        ]
    if form in ("inject_before", "resume") and not ends_with_user:
        return [Loss("history.last", "messages", f'a turn needs a message of the user; "{_GO_ON}" was added')]
    return []


def inputs_of(item: JsonObject) -> list[JsonObject]:
    """The contents of a message as inputs of a turn."""
    return [_input(piece) for piece in item["content"]]


def text_input(text: str) -> JsonObject:
    return {"type": "text", "text": text, "text_elements": []}


def _for_codex(item: JsonObject, names: CodexToolNames) -> JsonObject:
    if item.get("type") == "function_call":
        return {**item, "name": names.wire(item["name"])}
    if item.get("role") == "system":
        return {**item, "role": "developer"}  # some servers refuse the other role
    return item


def _input(piece: JsonObject) -> JsonObject:
    if piece.get("type") == "input_image":
        return {"type": "image", "url": piece["image_url"]}
    return text_input(str(piece.get("text", "")))


def _line(item: JsonObject, images: list[JsonObject]) -> JsonObject:
    match item:
        case {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}:
            return {"role": "assistant", "call": call_id, "name": name, "arguments": arguments}
        case {"type": "function_call_output", "call_id": call_id, "output": output}:
            return {"role": "tool", "result_of": call_id, "content": _content(output, images)}
        case {"role": str(role), "content": content}:
            return {"role": role, "content": _content(content, images)}
        case _:
            return {"role": "assistant", "item": item}


def _content(content: object, images: list[JsonObject]) -> object:
    if not isinstance(content, list):
        return content
    pieces: list[object] = []
    for piece in content:
        if piece.get("type") == "input_image":
            images.append(_input(piece))
            pieces.append({"image": len(images)})
        else:
            pieces.append(piece.get("text", piece.get("refusal", "")))
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces
