"""VS Code bridge: encodes a conversation as turns of the user and of the assistant.

Turns alternate. An assistant turn has one text, because older versions of Copilot read only the first, and then its other parts. The
pipeline has repaired the history: every call has its result at the start of the next user turn, and ids and names are legal.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from msgspec.structs import replace

from ....dialects.shared.media.policy import MediaAdapter, MediaSupport
from ....dialects.shared.media.text import placeholder
from ....dialects.shared.requests import with_failure
from ....profiles import VSCODE
from ....types import Loss, Media, Message, Opaque, Part, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from ....wire.exact_json import object_of
from .frames import DIGITS, loses_digits
from .images import is_plain, objection
from .shapes import NAME, CallPart, ChatMessage, DataPart, ResultPart, TextPart
from .shapes import Part as WirePart

_MEDIA = MediaSupport(file_types=frozenset(), image_schemes=frozenset())
_BLIND = "this model sees no images"


class ChatHistory:
    """Takes the conversation message by message; messages() returns the turns."""

    def __init__(self, request: Request, losses: list[Loss], *, can_see: bool = True) -> None:
        # Without the origin, so that media of VS Code's own requests are checked, too.
        self._media = MediaAdapter(replace(request, origin=""), VSCODE, NAME, _MEDIA, losses)
        self._losses = losses
        self._can_see = can_see
        self._turns: list[tuple[Literal["user", "assistant"], list[WirePart]]] = []

    @property
    def ends_with(self) -> str:
        """The role of the last turn; "" if there is none."""
        return self._turns[-1][0] if self._turns else ""

    def add(self, message: Message, where: str) -> None:
        """A message that is no instruction."""
        if message.role == "assistant":
            parts = [made for part in message.parts for made in self._assistant_parts(part, where)]
            # Data of the provider, from a client that returns it beside the text.
            data = message.extra.get(NAME, {}).get("data")
            parts += [made for value in (data if isinstance(data, list) else ()) for made in _data_parts(value)]
            self._extend("assistant", parts)
        else:
            self._extend("user", [made for part in message.parts for made in self._user_parts(part, where)])

    def note(self, text: str) -> None:
        """Adds text to the user's turn."""
        self._extend("user", [TextPart(text=text)] if text.strip() else [])

    def messages(self) -> tuple[ChatMessage, ...]:
        return tuple(
            ChatMessage(role=role, parts=tuple(parts if role == "user" else _with_one_text(parts)))
            for role, parts in self._turns
        )

    def _extend(self, role: Literal["user", "assistant"], parts: list[WirePart]) -> None:
        if parts and role == self.ends_with:
            self._turns[-1][1].extend(parts)
        elif parts:
            self._turns.append((role, parts))

    def _assistant_parts(self, part: Part, where: str) -> list[WirePart]:
        match part:
            case ToolCall():
                args = part.args if part.args is not None else object_of(part.raw)
                if loses_digits(args):
                    self._losses.append(Loss("call.integer", where, DIGITS))
                return [CallPart(id=part.id, name=part.name, input=args)]
            case Reasoning():
                self._losses.append(Loss("reasoning", where, "VS Code accepts no reasoning"))
                return []
            case Refusal():
                texts = [part.text]
            case Opaque(dialect="vscode"):
                return _data_parts(part.value)
            case _:
                pieces = self._media.adapt(part, where, "an assistant message has only text")
                texts = [piece.text for piece in pieces if isinstance(piece, Text)]
        return [TextPart(text=text) for text in texts if text.strip()]

    def _user_parts(self, part: Part, where: str) -> list[WirePart]:
        if isinstance(part, ToolResult):
            return [ResultPart(id=part.call_id, parts=self._result_parts(part, where))]
        if isinstance(part, ToolCall | Reasoning):
            self._losses.append(Loss("part", where, "only an assistant message has calls and reasoning"))
            return []
        given = Text(text=part.text) if isinstance(part, Refusal) else part
        return [one for one in self._shown([given], where) if isinstance(one, DataPart) or one.text.strip()]

    def _result_parts(self, result: ToolResult, where: str) -> tuple[TextPart | DataPart, ...]:
        """Consecutive texts are joined with line breaks: Copilot joins them with nothing."""
        parts: list[TextPart | DataPart] = []
        for is_text, group in groupby(self._shown(result.parts, where), lambda part: isinstance(part, TextPart)):
            pieces = list(group)
            texts = [part.text for part in pieces if isinstance(part, TextPart)]
            parts += [TextPart(text="\n".join(texts))] if is_text else pieces
        first = parts[0] if parts else TextPart(text="")
        if result.is_error and isinstance(first, TextPart):
            first = TextPart(text=with_failure(first.text))
        return (first, *parts[1:])

    def _shown(self, parts: Iterable[Part], where: str) -> list[TextPart | DataPart]:
        shown: list[TextPart | DataPart] = []
        for part in parts:
            for piece in self._media.adapt(part, where):
                if isinstance(piece, Text):
                    shown.append(TextPart(text=piece.text))
                elif isinstance(piece, Media):
                    shown.append(self._image(piece, where))
        return shown

    def _image(self, media: Media, where: str) -> TextPart | DataPart:
        if why := objection(media) if self._can_see else _BLIND:
            return TextPart(text=placeholder(media, where, self._losses, why))
        return DataPart(mime=media.mime, data=media.data or "")


def _data_parts(value: object) -> list[WirePart]:
    match value:
        case {"mime": str(mime), "data": str(data)} if is_plain(data):
            return [DataPart(mime=mime, data=data)]
        case _:
            return []


def _with_one_text(parts: list[WirePart]) -> list[WirePart]:
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    texts = [TextPart(text=text)] if text else []
    return [*texts, *(part for part in parts if not isinstance(part, TextPart))]
