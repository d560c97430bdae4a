"""VS Code bridge: the conversation so far, in the messages that VS Code has: of the user and of the assistant, and of nobody else.

Turns alternate. The assistant's has one text, because older versions of Copilot read only the first, then what else it held. The
user's begins with the results of all calls that the assistant's turn before it made, in their order: a result that is missing is said
to be missing, one that answers nothing is told in the user's words. Copilot passes pairs on unseen, and its servers refuse broken ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from ....dialects.shared.media.policy import Courier, Takes
from ....dialects.shared.media.text import placeholder
from ....dialects.shared.requests import fit_id, with_failure
from ....profiles import Profile
from ....types import (
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from ....wire.exact_json import encode, object_of
from .frames import DIGITS, loses_digits
from .images import TYPES, is_plain, objection
from .names import VSCodeToolNames
from .shapes import NAME, CallPart, ChatMessage, DataPart, ResultPart, TextPart
from .shapes import Part as WirePart

_PROFILE = Profile(name=NAME, image_types=TYPES)
_TAKES = Takes(file_types=frozenset(), image_schemes=frozenset())
_LONGEST_ID = 40  # letters that Copilot's servers take
_NUMBERED = 30  # letters of an id that needs a number behind it
_MISSING = "No result of this call was recorded."
_BLIND = "this model sees no images"


class _Call(Struct, kw_only=True):
    id: str  # as it is written
    name: str
    result: ResultPart | None = None


class _Turn(Struct, kw_only=True):
    """Of the user or of the assistant, under construction."""

    role: str
    texts: list[str] = field(default_factory=list)  # of the assistant
    parts: list[WirePart] = field(default_factory=list)


class ChatHistory:
    """Told message by message; messages() is the whole."""

    def __init__(self, request: Request, names: VSCodeToolNames, losses: list[Loss], *, can_see: bool = True) -> None:
        # As from another dialect, whoever asks: what a window can show is ours to see to.
        self._courier = Courier(replace(request, origin=""), _PROFILE, NAME, _TAKES, losses)
        self._names = names
        self._losses = losses
        self._can_see = can_see
        self._messages: list[ChatMessage] = []
        self._turn = _Turn(role="user")
        self._calls: list[_Call] = []  # of the assistant's last turn
        self._waiting: dict[str, deque[_Call]] = {}  # those without a result, by the client's id
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    @property
    def ends_with(self) -> str:
        """Whose the last turn is; "" before the first word."""
        if self._calls:
            return "user"  # their results, or the word that there are none
        is_begun = bool(self._turn.parts or self._turn.texts)
        return self._turn.role if is_begun else self._messages[-1].role if self._messages else ""

    def tell(self, message: Message, where: str) -> None:
        """A message that is no instruction."""
        is_assistants = message.role == "assistant"
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._result(part, where)
            elif is_assistants:
                self._say(part, where)
            else:
                self._hear(part, where)
        if is_assistants:
            self._give_back(message)

    def note(self, text: str) -> None:
        """Words of the user's."""
        if text.strip():
            self._as_user().parts.append(TextPart(text=text))

    def messages(self) -> tuple[ChatMessage, ...]:
        self._end_turn()
        if self._calls:  # the assistant spoke last, and waits for results
            self._end_turn()
        return tuple(self._messages)

    def _as_user(self) -> _Turn:
        if self._turn.role != "user":
            self._end_turn()
        return self._turn

    def _as_assistant(self) -> _Turn:
        if self._turn.role != "assistant":
            self._end_turn()
        return self._turn

    def _end_turn(self) -> None:
        """The other one's begins. The user's has the results of the assistant's before it, whether he says anything or not."""
        turn = self._turn
        if turn.role == "assistant":
            text = "\n".join(turn.texts)
            self._add("assistant", [*([TextPart(text=text)] if text.strip() else []), *turn.parts])
            self._turn = _Turn(role="user")
            return
        results = [call.result or _missing(call) for call in self._calls]
        self._calls, self._waiting = [], {}
        self._add("user", [*results, *turn.parts])
        self._turn = _Turn(role="assistant")

    def _add(self, role: str, parts: list[WirePart]) -> None:
        if parts:
            self._messages.append(ChatMessage(role="user" if role == "user" else "assistant", parts=tuple(parts)))

    def _say(self, part: Part, where: str) -> None:
        match part:
            case ToolCall():
                self._call(part, where)
            case Reasoning():
                self._losses.append(Loss("reasoning", where, "VS Code takes no reasoning back"))
            case Refusal():
                self._say_text(part.text)
            case Opaque(dialect="vscode"):
                self._keep(part.value)
            case _:
                for piece in self._courier.deliver(part, where, "an assistant's message holds words only"):
                    self._say_text(piece.text if isinstance(piece, Text) else "")

    def _say_text(self, text: str) -> None:
        if text.strip():
            self._as_assistant().texts.append(text)

    def _give_back(self, message: Message) -> None:
        """What came with this message from the same kind of back end, in a client that keeps it beside the text."""
        kept = message.extra.get(NAME, {}).get("data")
        for value in kept if isinstance(kept, list) else ():
            self._keep(value)

    def _keep(self, value: object) -> None:
        match value:
            case {"mime": str(mime), "data": str(data)} if is_plain(data):
                self._as_assistant().parts.append(DataPart(mime=mime, data=data))

    def _call(self, call: ToolCall, where: str) -> None:
        made = _Call(id=self._fresh_id(call.id), name=self._names.wire(call.name))
        turn = self._as_assistant()
        self._calls.append(made)
        self._waiting.setdefault(call.id, deque()).append(made)
        args = call.args if call.args is not None else object_of(call.raw or "{}")
        if loses_digits(args):
            self._losses.append(Loss("call.integer", where, DIGITS))
        turn.parts.append(CallPart(id=made.id, name=made.name, input=args if args is not None else {"_raw": call.raw}))

    def _result(self, result: ToolResult, where: str) -> None:
        parts = self._result_parts(result, where)
        waiting = self._waiting.get(result.call_id)
        if not waiting:
            self._stray(result, parts, where)
            return
        self._as_user()
        call = waiting.popleft()
        if not waiting:
            del self._waiting[result.call_id]
        call.result = ResultPart(id=call.id, parts=parts)

    def _result_parts(self, result: ToolResult, where: str) -> tuple[TextPart | DataPart, ...]:
        """Texts that follow each other as one: Copilot puts nothing between them."""
        parts: list[TextPart | DataPart] = []
        for is_text, group in groupby(self._shown(result.parts, where), lambda part: isinstance(part, TextPart)):
            pieces = list(group)
            texts = [part.text for part in pieces if isinstance(part, TextPart)]
            parts += [TextPart(text="\n".join(texts))] if is_text else pieces
        if not result.is_error:
            return tuple(parts) or (TextPart(text=""),)
        first = parts[0] if parts else None
        if isinstance(first, TextPart):
            return (TextPart(text=with_failure(first.text)), *parts[1:])
        return (TextPart(text=with_failure("")), *parts)

    def _stray(self, result: ToolResult, parts: Iterable[TextPart | DataPart], where: str) -> None:
        self._losses.append(Loss("result", where, "it answers no call, and is told in the user's words"))
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        line: JsonObject = {"name": self._names.wire(result.name)} if result.name else {}
        words = encode(line | {"output": "\n".join(texts)}).decode().replace("<", "\\u003c")
        self._as_user().parts.append(TextPart(text=f"<tool_result>{words}</tool_result>"))
        self._turn.parts += [part for part in parts if isinstance(part, DataPart)]

    def _hear(self, part: Part, where: str) -> None:
        if isinstance(part, ToolCall | Reasoning):
            self._losses.append(Loss("part", where, "only an assistant calls and reasons"))
            return
        given = Text(text=part.text) if isinstance(part, Refusal) else part
        shown = [one for one in self._shown([given], where) if isinstance(one, DataPart) or one.text.strip()]
        if shown:
            self._as_user().parts += shown

    def _shown(self, parts: Iterable[Part], where: str) -> list[TextPart | DataPart]:
        shown: list[TextPart | DataPart] = []
        for part in parts:
            for piece in self._courier.deliver(part, where):
                if isinstance(piece, Text):
                    shown.append(TextPart(text=piece.text))
                elif isinstance(piece, Media):
                    shown.append(self._image(piece, where))
        return shown

    def _image(self, media: Media, where: str) -> TextPart | DataPart:
        why = objection(media) if self._can_see else _BLIND
        if why:
            return TextPart(text=placeholder(media, where, self._losses, why))
        return DataPart(mime=media.mime, data=media.data or "")

    def _fresh_id(self, call_id: str) -> str:
        """Legal, and no other call's: an id that is used again gets a number."""
        written = fit_id(call_id, _LONGEST_ID) or "call"
        stem = written[:_NUMBERED]
        while written in self._given:
            self._numbers[stem] = self._numbers.get(stem, 1) + 1
            written = f"{stem}_{self._numbers[stem]}"
        self._given.add(written)
        return written


def _missing(call: _Call) -> ResultPart:
    return ResultPart(id=call.id, parts=(TextPart(text=with_failure(_MISSING)),))
