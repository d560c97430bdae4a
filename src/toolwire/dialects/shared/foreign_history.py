"""Messages that are not in the form of their dialect, as other clients, gateways and frameworks write them.

A decoder reads messages strictly. Where that fails, it passes the message to a HistoryReader, which knows the forms of all dialects and
of some frameworks, and reads part by part: first with the decoder's own rules, then with these. What it makes has no source, so
that encoders write it in a valid form, and each deviation is a loss `history.<kind>`. Nothing that was said is dropped: what has no other
meaning becomes text. Only a message without any meaning is refused, with the decoder's error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...errors import BadRequest
from ...types import JsonObject, Loss, Media, Message, Opaque, Part, Reasoning, Refusal, Role, Text, ToolCall
from ...types import ToolResult as Result
from ...wire.exact_json import BadJson, decode, object_of
from ...wire.fields import need_list
from .foreign_forms import (
    ARGUMENTS,
    CALL_IDS,
    CALL_MEMBERS,
    CALLS,
    CUSTOM_CALLS,
    IDLE,
    ITEM_CALLS,
    ITEMS,
    LEFTOVERS,
    MEDIA,
    NAMES,
    OUTPUTS,
    REASONING,
    RESULT_IDS,
    ROLES,
    TEXTS,
    THOUGHT_TEXTS,
    WRAPPED_CALLS,
    WRAPPED_RESULTS,
    as_text,
    first_text,
    holds_results,
    is_call,
    is_part,
    is_result,
    is_thought,
    medium_in,
    names_tool,
    type_name,
)
from .requests import split_result

ReadPart = Callable[[Any, str, Role], Part]
NAMELESS = "unknown_tool"  # the name of a call that has none
OPENING = "(The conversation begins here.)"
CHOICES = ("tool_choice", "parallel_tool_calls")
_DEEPEST = 8  # lists in lists
_MEANINGLESS = BadRequest("it has no meaning.")


class HistoryReader(Struct):
    """dialect: the name under which members that it knows alone are stored. read_part: the decoder's own reading of a part.
    members: those of a message that are kept without being read. result_parts: types of such parts in results.
    has_text_arguments: the dialect writes arguments as text. keeps_thoughts: reasoning may be sent back without its proof.
    error: the decoder's, of the message that is read."""

    dialect: str
    read_part: ReadPart
    members: tuple[str, ...] = ()
    result_parts: frozenset[str] = frozenset()
    has_text_arguments: bool = True
    keeps_thoughts: bool = True
    losses: list[Loss] = []
    error: BadRequest = _MEANINGLESS

    def note(self, kind: str, where: str, why: str) -> None:
        self.losses.append(Loss(f"history.{kind}", where, why))

    def listed(self, top: JsonObject, key: str) -> list[Any]:
        """The messages of a request; a lone one need not be in a list."""
        given = top.get(key)
        if isinstance(given, list):
            return given
        if isinstance(given, str | dict) and given:
            self.note("form", key, "a message in place of a list of messages")
            return [given]
        return need_list(top, key, "")

    def messages(self, item: Any, where: str, error: BadRequest) -> list[Message]:
        """The messages that an item means, with at least one loss. Raises the decoder's error if it means nothing."""
        count, self.error = len(self.losses), error
        messages = self._messages(item, where, 0)
        if len(self.losses) == count:
            kind = "item_id" if error.where.endswith(".id") else "form"
            self.note(kind, error.where or where, error.message.rstrip("."))
        return messages

    def head_text(self, value: Any, where: str) -> str:
        """Instructions in any form, as text."""
        self.note("form", where, "instructions in another form than the dialect's are sent as text")
        parts = self._content(value, where, "system")
        texts = [part.text for part in parts if isinstance(part, Text | Refusal)]
        return "\n\n".join(filter(None, texts))

    def opening(self, where: str) -> Message:
        """For a request with instructions and no message at all."""
        self.note("opening", where, "there were instructions and no message")
        return Message(role="user", parts=(Text(text=OPENING),))

    def _messages(self, item: Any, where: str, depth: int) -> list[Message]:
        if isinstance(item, str):
            self.note("form", where, "a text in place of a message is sent as a message of the user")
            return [Message(role="user", parts=(Text(text=item),))]
        is_idle = isinstance(item, dict) and item.keys() <= IDLE and item.get("type") in (None, "", "message")
        if item is None or item in ({}, []) or is_idle:
            self.note("empty", where, "a message without anything was dropped")
            return []
        if isinstance(item, list) and depth < _DEEPEST:
            self.note("form", where, "a list in place of a message is read as messages")
            return [one for inner in item for one in self._messages(inner, where, depth + 1)]
        if not isinstance(item, dict):
            raise self.error
        if type_name(item) in ITEMS or ("role" not in item and (is_call(item) or is_result(item) or is_thought(item))):
            return self._item(item, where)
        return self._message(item, where)

    def _item(self, item: JsonObject, where: str) -> list[Message]:
        """A call, a result or reasoning that is no part of a message. A call has no content of its own."""
        role: Role = "tool" if is_result(item) else "assistant"
        parts = self._part(item, where, role)
        if item.get("content") and is_call(item):
            parts = [*self._content(item["content"], f"{where}.content", role), *parts]
        if not LEFTOVERS.isdisjoint(item) or "role" in item:
            self.note("form", where, "members that an item does not have were dropped")
        return self._split(role, parts)

    def _message(self, item: JsonObject, where: str) -> list[Message]:
        role = self._role(item, where)
        parts: list[Part] = []
        if role == "assistant":
            parts += self._reasoning(item, where)
        if role == "tool" and not holds_results(item):
            return self._split(role, [self._result(item, where), *self._calls(item, where)])
        for key in ("content", "parts", "text"):
            if item.get(key) is not None:
                parts += self._content(item[key], f"{where}.{key}", role)
                break
        else:
            if not any(item.get(key) for key in ("tool_calls", "function_call", "refusal", "toolCalls")):
                self.note("empty", where, "a message without content")
        if isinstance(refusal := item.get("refusal"), str) and refusal:
            parts.append(Refusal(text=refusal))
        parts += self._calls(item, where)
        messages = self._split(role, parts)
        members = self.members if role == "assistant" else tuple({*self.members} & {"name"})
        if kept := {key: item[key] for key in members if item.get(key) is not None}:
            messages[0] = replace(messages[0], extra={self.dialect: kept})
        if not LEFTOVERS.isdisjoint(item):
            self.note("form", where, "members of an answer that a message does not have were dropped")
        return messages

    def _role(self, item: JsonObject, where: str) -> Role:
        given = item.get("role") or None
        if isinstance(given, str) and (known := ROLES.get(given)) is not None:
            return known
        if given is None and isinstance(kind := item.get("type"), str) and kind in ROLES:
            given = kind
        if isinstance(given, str) and (known := ROLES.get(given.strip().lower())) is not None:
            role: Role = known
        elif any(item.get(key) for key in ("tool_calls", "toolCalls", "function_call")) or _has_calls(item):
            role = "assistant"
        elif any(item.get(key) is not None for key in ("tool_call_id", "tool_use_id", "toolCallId")):
            role = "tool"
        elif any(item.get(key) is not None for key in ("content", "parts", "text")):
            role = "user"
        else:
            raise self.error
        self.note("role", f"{where}.role", f"the dialect has no such role; it is sent as {role}")
        return role

    def _split(self, role: Role, parts: list[Part]) -> list[Message]:
        """Each part in a message of a role that may have it, in order; the ledger finds the places of results."""
        messages: list[Message] = []
        for part in parts:
            owner = _owner(part, role)
            if messages and messages[-1].role == owner and owner != "tool":
                messages[-1] = Message(role=owner, parts=(*messages[-1].parts, part))
            else:
                messages.append(Message(role=owner, parts=(part,)))
        return messages or [Message(role="user" if role == "tool" else role, parts=())]

    def _reasoning(self, item: JsonObject, where: str) -> list[Part]:
        given = next((item[key] for key in REASONING if item.get(key)), None)
        if given is None:
            return []
        if not isinstance(given, str):
            self.note("form", where, "reasoning that is no text is sent as JSON")
        return [Reasoning(text=as_text(given))]

    def _calls(self, item: JsonObject, where: str) -> list[Part]:
        found: list[Part] = []
        for key in ("tool_calls", "toolCalls"):
            given = item.get(key)
            if isinstance(given, str) and isinstance(parsed := _decoded(given), list | dict):
                given = parsed
            if given is None or given in ([], {}, ""):
                if key in item:
                    self.note("empty", f"{where}.{key}", "an empty list of calls was dropped")
                continue
            if isinstance(given, dict):
                self.note("form", f"{where}.{key}", "a call in place of a list of calls")
                given = [given] if names_tool(given) else list(given.values())
            if not isinstance(given, list):
                found.append(self._unknown(given, f"{where}.{key}"))
                continue
            for index, call in enumerate(given):
                found += self._listed_call(call, f"{where}.{key}[{index}]")
        if legacy := item.get("function_call"):
            found += self._legacy_call(legacy, f"{where}.function_call")
        return found

    def _listed_call(self, call: Any, where: str) -> list[Part]:
        if call is None or call == {}:
            self.note("empty", where, "a call without anything was dropped")
            return []
        if not isinstance(call, dict):
            return [self._unknown(call, where)]
        return [self._call(call, where)]

    def _legacy_call(self, legacy: Any, where: str) -> list[Part]:
        """A call of old clients has no id; its result has the name of the function."""
        if isinstance(legacy, str):
            legacy = {"name": legacy}
        if not isinstance(legacy, dict):
            return [self._unknown(legacy, where)]
        call = self._call(legacy, where)
        self.note("form", where, "a function call of the old form is sent as a tool call")
        return [ToolCall(id=call.name, name=call.name, raw=call.raw, args=call.args)]

    def _call(self, given: JsonObject, where: str) -> ToolCall:
        kind = type_name(given)
        inner = next((given[key] for key in ("function", *WRAPPED_CALLS, "custom") if given.get(key)), given)
        if isinstance(inner, str):  # the name alone
            inner = {"name": inner}
        value: JsonObject = {**given, **inner} if isinstance(inner, dict) else given
        is_custom = kind in CUSTOM_CALLS and "arguments" not in value
        name = first_text(value, NAMES)
        if not name:
            if kind in ITEM_CALLS and not (given.get("call_id") or given.keys() & {*ARGUMENTS}):
                raise self.error  # nothing is known of it, and no result can be its own
            self.note("form", where, "a call without a name got one")
        if (kind not in CALLS and kind != "custom") or kind == "tool-call":
            self.note("form", where, "a call without a type, or with an unknown one")
        own = given if first_text(given, CALL_IDS) else value
        arguments = next((value[key] for key in ARGUMENTS if value.get(key) is not None), None)
        if not name and arguments is None:  # all that is not known is what was said
            rest = {key: item for key, item in value.items() if key not in CALL_MEMBERS}
            arguments = (rest or None) if isinstance(inner, dict) else inner
        if is_custom:
            return ToolCall(id=first_text(own, CALL_IDS), name=name or NAMELESS, raw=as_text(arguments), kind="custom")
        raw, args = self._arguments(arguments, where)
        return ToolCall(id=first_text(own, CALL_IDS), name=name or NAMELESS, raw=raw, args=args)

    def _arguments(self, given: Any, where: str) -> tuple[str, JsonObject | None]:
        """As text, and as an object if they are one. The ledger gives other values a place."""
        if given is None or (isinstance(given, str) and not given.strip()):
            self.note("arguments", where, "a call without arguments got empty ones")
            return "{}", {}
        if isinstance(given, dict):
            if self.has_text_arguments:
                self.note("arguments", where, "arguments that were an object are sent as text")
            return as_text(given), given
        if not isinstance(given, str):
            return as_text(given), None
        if (args := object_of(given)) is not None:
            if not self.has_text_arguments:
                self.note("arguments", where, "arguments that were text are sent as an object")
            return given, args
        if isinstance(inner := _decoded(given), str) and (args := object_of(inner)) is not None:
            self.note("arguments", where, "arguments that were encoded twice")
            return inner, args
        return given, None

    def _result(self, item: JsonObject, where: str) -> Result:
        inner = next((item[key] for key in WRAPPED_RESULTS if isinstance(item.get(key), dict)), item)
        value: JsonObject = {**item, **inner}
        key = next((key for key in OUTPUTS if value.get(key) is not None), "")
        if not key:
            self.note("empty", where, "a result without output")
        output = list(self._output(value.get(key), f"{where}.{key}")) if key else []
        if key == "content" and value.get("output") is not None:
            output += self._output(value["output"], f"{where}.output")
        is_error, parts = split_result(tuple(output))
        failed = value.get("is_error", value.get("isError"))
        name = first_text(value, NAMES)
        call_id = first_text(value, RESULT_IDS)
        if not call_id and item.get("role") == "function":
            call_id = name
        return Result(
            call_id=call_id,
            parts=parts,
            is_error=is_error
            or failed in (True, "true", 1)
            or value.get("status") in ("error", "failed", "incomplete"),
            name=name,
            kind="custom" if item.get("type") == "custom_tool_call_output" else "function",
        )

    def _output(self, given: Any, where: str) -> Iterable[Text | Media | Opaque]:
        """A list of parts is read as such, any other value is sent as JSON."""
        if isinstance(given, str):
            return [Text(text=given)]
        if isinstance(given, dict) and set(given) == {"type", "value"} and isinstance(given["type"], str):
            given = given["value"]  # the AI SDK's {"type": "json", "value": ...}
        pieces = [given] if isinstance(given, dict) else given
        if not isinstance(pieces, list) or not pieces or not all(map(is_part, pieces)):
            if given != []:
                self.note("form", where, "a result that is no text is sent as JSON")
            return [Text(text=as_text(given))] if given not in ([], None) else []
        found = [part for index, piece in enumerate(pieces) for part in self._part(piece, f"{where}[{index}]", "tool")]
        return [part if isinstance(part, Text | Media) else self._as_words(part, where) for part in found]

    def _as_words(self, part: Part, where: str) -> Text | Opaque:
        match part:
            case Refusal() | Reasoning():
                return Text(text=part.text)
            case Opaque():
                return part if type_name(part.value) in self.result_parts else self._unknown(part.value, where)
            case ToolCall():
                return Text(text=f"[{part.name} {part.raw}]")
            case Result():
                return Text(text="\n".join(piece.text for piece in part.parts if isinstance(piece, Text)))
            case _:
                return Text(text="")

    def _content(self, given: Any, where: str, role: Role) -> list[Part]:
        if isinstance(given, str):
            return [Text(text=given)]
        if isinstance(given, dict):
            self.note("form", where, "a part in place of a list of parts")
            return self._part(given, where, role)
        if not isinstance(given, list):
            self.note("form", where, "content that is no text is sent as JSON")
            return [Text(text=as_text(given))]
        return [part for index, piece in enumerate(given) for part in self._part(piece, f"{where}[{index}]", role)]

    def _part(self, piece: Any, where: str, role: Role) -> list[Part]:
        try:
            part = self.read_part(piece, where, role)
        except BadRequest:
            return self._foreign_part(piece, where, role)
        return [Text(text=part.text) if isinstance(part, Refusal) and role != "assistant" else part]

    def _foreign_part(self, piece: Any, where: str, role: Role) -> list[Part]:
        if isinstance(piece, str):
            self.note("form", where, "a text in place of a part")
            return [Text(text=piece)]
        if piece is None or piece in ({}, []):
            self.note("empty", where, "a part without anything was dropped")
            return []
        if not isinstance(piece, dict):
            return [self._unknown(piece, where)]
        kind = type_name(piece)
        if is_call(piece):
            self.note("form", where, "a call in another form than the dialect's")
            return [self._call(piece, where)]
        if is_result(piece):
            self.note("form", where, "a result in another form than the dialect's")
            return [self._result(piece, where)]
        if is_thought(piece):
            return self._thought(piece, where, role)
        if kind in MEDIA or any(key in piece for key in ("image_url", "inlineData", "inline_data", "fileData")):
            if (medium := medium_in(piece, MEDIA.get(kind, "image"))) is not None:
                self.note("form", where, "an image or file in another form than the dialect's")
                return [medium]
            return [self._unknown(piece, where)]
        if kind == "refusal":
            self.note("form", where, "a refusal in another form than the dialect's")
            text = as_text(piece.get("refusal", piece.get("text")))
            return [Refusal(text=text) if role == "assistant" else Text(text=text)]
        return self._text(piece, where)

    def _text(self, piece: JsonObject, where: str) -> list[Part]:
        key = next((key for key in ("text", "content", "value") if isinstance(piece.get(key), str)), "")
        if key:
            self.note("form", where, "a part of an unknown or foreign type is sent as text")
            return [Text(text=piece[key])]
        if type_name(piece) in TEXTS:
            given = piece.get("text")
            if given is None:
                self.note("empty", where, "a text part without text was dropped")
                return []
            self.note("form", where, "a text that is no string is sent as JSON")
            return [Text(text=as_text(given))]
        return [self._unknown(piece, where)]

    def _thought(self, piece: JsonObject, where: str, role: Role) -> list[Part]:
        given = next((piece[key] for key in THOUGHT_TEXTS if piece.get(key)), None)
        texts = [as_text(one.get("text")) if isinstance(one, dict) else as_text(one) for one in given] if isinstance(given, list) else [as_text(given)]  # fmt: skip
        text = "\n".join(filter(None, texts))
        if role != "assistant" and text:
            return [self._unknown(piece, where)]
        if not text or not self.keeps_thoughts:
            self.note("reasoning", where, "reasoning without its text or its proof was dropped")
            return []
        self.note("reasoning", where, "reasoning in another form than the dialect's lost its signature")
        return [Reasoning(text=text)]

    def _unknown(self, value: Any, where: str) -> Text:
        self.note("form", where, "a part that the dialect does not know is sent as JSON text")
        return Text(text=as_text(value))


def without_choice(top: JsonObject, reader: HistoryReader) -> JsonObject:
    """The body without a choice among tools, for a request that has no tools; providers refuse it."""
    idle = [key for key in CHOICES if top.get(key) is not None]
    for key in idle:
        reader.note("tool_choice", key, "it was dropped, because the request has no tools")
    return {key: value for key, value in top.items() if key not in idle} if idle else top


def _owner(part: Part, role: Role) -> Role:
    """Whose message a part belongs in. Only users send media, in every dialect."""
    if isinstance(part, ToolCall):
        return "assistant"
    if isinstance(part, Result):
        return "user" if role == "user" else "tool"
    return "user" if role == "tool" or isinstance(part, Media) else role


def _has_calls(item: JsonObject) -> bool:
    pieces = item.get("parts", item.get("content"))
    return isinstance(pieces, list) and any(isinstance(piece, dict) and is_call(piece) for piece in pieces)


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except BadJson:
        return None
