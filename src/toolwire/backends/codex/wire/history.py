"""Codex app-server: the conversation so far, in the forms that its versions take.

inject: raw items of the Responses dialect are put into a new thread, and an empty turn goes on from them. inject_before: the same,
with the last message of the user as the turn's input, for versions that refuse an empty one. resume: a thread is
resumed from such items, and the last message of the user is the turn's input. text: everything is sent in one message, one JSON
object per line, so that no text can pose as another speaker: line breaks inside strings are escaped.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ....dialects.responses.request_out import body_of
from ....dialects.shared.requests import with_listener
from ....profiles import RESPONSES, Profile
from ....types import JsonObject, Loss, Message, OutputFormat, Request, Sampling
from ....wire.exact_json import encode
from .names import CodexToolNames
from .versions import Abilities

Way: TypeAlias = Literal["inject", "inject_before", "resume", "text"]

# Codex knows texts and images; a message with anything else in it would be dropped whole.
_PROFILE: Profile = replace(RESPONSES, has_files=False, reasoning_models="")
_PREFACE = (
    "What follows is a conversation so far, one JSON object per line, oldest first. "
    'Answer its last line as the assistant; do not repeat or mention this form. "image": N is the Nth image below.'
)
_GO_ON = "Go on."


class CodexHistory(Struct, frozen=True, kw_only=True):
    """instructions stand before all else; items are the rest of the conversation."""

    instructions: str
    items: list[JsonObject]
    losses: tuple[Loss, ...]


def way_of(abilities: Abilities, *, has_tools: bool) -> Way:
    """A resumed thread takes no tools of clients."""
    if abilities.inject:
        return "inject" if abilities.empty_turn else "inject_before"
    return "resume" if abilities.resume_history and not (has_tools and abilities.dynamic_tools) else "text"


def history_of(request: Request, names: CodexToolNames) -> CodexHistory:
    """The Responses dialect writes it; sources are left out, because what they hold is not all known to Codex."""
    losses: list[Loss] = []
    messages = tuple(_plain(message) for message in with_listener(request.messages, losses))
    bare = Request(model=request.model, messages=messages, sampling=Sampling(), output=OutputFormat())
    body = body_of(bare, _PROFILE, losses)
    items = [_written(item, names) for item in body["input"]]
    return CodexHistory(instructions=body.get("instructions", ""), items=items, losses=tuple(losses))


def split_input(items: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """What comes before, and the input of the turn: the user's last words, or a word to go on where a result came last."""
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


def losses_of_way(items: list[JsonObject], way: Way) -> list[Loss]:
    """What a version without a history, or without empty turns, makes of the conversation."""
    has_last_word = bool(items) and items[-1].get("role") == "user"
    if way == "text" and not (len(items) == 1 and has_last_word):
        return [
            Loss("history", "messages", "this version of Codex takes no history; it is sent as text, in one message")
        ]
    if way in ("inject_before", "resume") and not has_last_word:
        return [Loss("history.last", "messages", f'a turn needs a message of the user; "{_GO_ON}" was added')]
    return []


def inputs_of(item: JsonObject) -> list[JsonObject]:
    """The contents of a message as inputs of a turn."""
    return [_input(piece) for piece in item["content"]]


def text_input(text: str) -> JsonObject:
    return {"type": "text", "text": text, "text_elements": []}


def _plain(message: Message) -> Message:
    return replace(message, source=None, extra={})


def _written(item: JsonObject, names: CodexToolNames) -> JsonObject:
    if item.get("type") == "function_call":
        return {**item, "name": names.wire(item["name"])}
    if item.get("role") == "system":
        return {**item, "role": "developer"}  # which is what it is called there, and some servers refuse the other
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
