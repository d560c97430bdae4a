"""Large tool results by handle: the model gets the beginning of a result, and a function that reads the rest.

Nothing is stored. Results of tools that the gateway runs get a handle for the rest of the request. The client sends its whole history with each request, so the results are there when the model reads them, and no other
client can reach them. A result gets the same handle and the same beginning in each request of a conversation, so that prompt caches survive.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..calls.tools.names import without_prefix
from ..types import Loss, Part, Request, Text, Tool, ToolCall, ToolResult
from .gateway_tools import GatewayTools, Place, StartedCall, ToolOutcome
from .job import Job

_NAME = "read_result"
_USES = 20  # reads in one request
_BYTES_PER_TOKEN = 4
_MATCHES = 20
_AROUND = 200  # characters around a match
_SCHEMA = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "The handle of the result."},
        "offset": {"type": "integer", "minimum": 0, "description": "The first character to read."},
        "find": {
            "type": "string",
            "description": "Instead of an offset: a text whose places in the result are returned.",
        },
    },
    "required": ["handle"],
    "additionalProperties": False,
}


def wants_handles(job: Job) -> bool:
    """Whether large results of this request can be sent by handle. Rounds cannot be added to a conversation that the back end stores."""
    has_rounds = job.request.sampling.choices == 1 and not job.is_stored_upstream
    return has_rounds and (bool(job.request.tools) or job.has_past)


class LargeResults(GatewayTools):
    """The results of one request. limit: characters of a result that is sent whole."""

    def __init__(self, max_tokens: int) -> None:
        self._limit = max_tokens * _BYTES_PER_TOKEN
        self._texts: dict[str, str] = {}
        self._messages = self._results = 0  # that were looked at
        self._function = ""
        self._reads = 0

    def begin(self, request: Request) -> Request:
        self._texts, self._messages, self._results = {}, 0, 0
        return self._with_function(self._with_handles(request))

    def resume(self, request: Request) -> Request:
        """The results of the last round may be large, too."""
        return self._with_function(self._with_handles(request))

    def _with_handles(self, request: Request) -> Request:
        """Handles are numbers of results, so they are the same in each request of a conversation."""
        known, messages = len(self._texts), list(request.messages[: self._messages])
        for message in request.messages[self._messages :]:
            parts = list[Part]()
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self._results += 1
                    if (
                        not self._function or without_prefix(part.name) != self._function
                    ):  # what it reads is short enough
                        part = self._shortened(part, f"result_{self._results}")
                parts.append(part)
            is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
            messages.append(message if is_same else message.with_parts(tuple(parts)))
        self._messages = len(messages)
        if len(self._texts) == known:
            return request
        size = sum(map(len, self._texts.values())) // _BYTES_PER_TOKEN
        why = f"{len(self._texts)} results of {size:,} tokens are sent as their beginning; the model reads more with {_NAME}"
        self.losses = (Loss("results.shortened", "messages", why),)
        return replace(request, messages=tuple(messages), wire=b"")

    def owns(self, call: ToolCall) -> bool:
        return bool(self._function) and self._function in (call.name, without_prefix(call.name))

    def start(self, call: ToolCall, place: Place) -> StartedCall:
        self._reads += 1
        return StartedCall(self._read(call, is_left=self._reads <= _USES))

    def _with_function(self, request: Request) -> Request:
        """The function is offered beside other tools from the start, so that the list does not change with the first large result."""
        taken = {tool.name for tool in request.tools}
        if self._function in taken or (not request.tools and not self._texts) or self._reads >= _USES:
            return request
        self._function = self._function or (_NAME if _NAME not in taken else f"gateway_{_NAME}")
        about = "Reads more of a tool result that was shortened. Shortened results name their handle."
        function = Tool(name=self._function, description=about, schema=_SCHEMA)
        return replace(request, tools=(function, *request.tools), has_new_tools=True, wire=b"")

    def _shortened(self, result: ToolResult, handle: str) -> ToolResult:
        text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
        if len(text) <= self._limit:
            return result
        self._texts[handle] = text
        head = _head(text, self._limit // 2)
        note = (
            f"[Shortened: these are the first {len(head)} of {len(text)} characters. Call {_NAME} with the handle {handle} and an offset, "
            "or a text to find, to read more.]"
        )
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        return replace(result, parts=(Text(text=f"{head}\n\n{note}"), *others))

    async def _read(self, call: ToolCall, *, is_left: bool) -> ToolOutcome:
        if not is_left:
            return _failed(f"No more than {_USES} reads may be made in one turn.", is_refused=True)
        given = call.args or {}
        handle, offset, find = given.get("handle"), given.get("offset", 0), given.get("find")
        text = self._texts.get(handle) if isinstance(handle, str) else None
        if text is None:
            known = ", ".join(list(self._texts)[-20:]) or "none"
            return _failed(f"There is no shortened result with this handle. Handles: {known}.")
        if isinstance(find, str) and find:
            return ToolOutcome(parts=(Text(text=_matches(text, find)[: self._limit]),))
        if type(offset) is not int or not 0 <= offset < len(text):
            return _failed(f"Expected an offset from 0 to {len(text) - 1}.")
        piece = text[offset : offset + self._limit]
        rest = len(text) - offset - len(piece)
        note = (
            f"[{rest} characters follow from offset {offset + len(piece)}.]"
            if rest
            else "[This is the end of the result.]"
        )
        return ToolOutcome(parts=(Text(text=f"{piece}\n\n{note}"),))


def _head(text: str, longest: int) -> str:
    """Up to the end of a line, if that is not too early."""
    cut = text[:longest]
    end = cut.rfind("\n")
    return cut[:end] if end > longest // 2 else cut


def _matches(text: str, wanted: str) -> str:
    places, position = list[int](), text.find(wanted)
    while position >= 0 and len(places) < _MATCHES:
        places.append(position)
        position = text.find(wanted, position + len(wanted))
    if not places:
        return "The result does not contain this text."
    shown = [f"at {place}: {text[max(0, place - _AROUND) : place + len(wanted) + _AROUND]}" for place in places]
    return "\n---\n".join([f"The first {_MATCHES} places:", *shown] if position >= 0 else shown)


def _failed(text: str, *, is_refused: bool = False) -> ToolOutcome:
    return ToolOutcome(parts=(Text(text=text),), is_error=True, is_refused=is_refused)
