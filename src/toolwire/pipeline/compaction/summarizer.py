"""Asks a model for the summary of a conversation.

The model gets the conversation without tools: calls and results are text, reasoning and media are left out. If that does not fit into its
context window, the first half is summarized by itself, and the second half together with that summary.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...backends.base import Backend
from ...calls.written.history_text import HistoryRenderer
from ...errors import UpstreamError
from ...events import Failed, Finished, Folder
from ...types import Loss, Media, Message, Opaque, Part, Reasoning, Refusal, Request, Text, ToolResult, Usage
from ..answer import ReplyReader
from ..wrapper import Rounds
from .history import size_of
from .summary import text_message

_SYSTEM = (
    "You write summaries of conversations between a user and an assistant with tools. You do not take part in them."
)
_TASK = """Summarize the conversation above, so that another assistant can continue it with nothing but your summary. Include:
1. what the user wants, in full: every request, rule and correction, and word for word what must not be lost, such as code words, names, numbers, paths and commands;
2. what was done and found: files, changes, results of tools that still matter, decisions and their reasons, errors and their solutions;
3. the state now: what is complete, what is in progress, and the next step.
Do not continue the conversation and do not call tools. Answer with the summary only."""
_MAX_REQUESTS = 16
_LEAST = 4000  # characters of a single message that is not shortened any more
_OVERFLOW = "context_length_exceeded"


class Summarizer:
    """For one compaction. usage and losses are those of all requests."""

    def __init__(self, backend: Backend, request: Request, instructions: str) -> None:
        self._backend = backend
        self._task = instructions or _TASK
        self._base = Request(
            model=request.model, messages=(), owner=request.owner, user=request.user, size=request.size
        )
        self._rounds = Rounds()
        self._count = 0
        self.losses: list[Loss] = []

    @property
    def usage(self) -> Usage | None:
        return self._rounds.usage

    async def summarize(self, conversation: tuple[Message, ...]) -> str:
        """Raises UpstreamError, as the back end sent it or for a summary without text."""
        try:
            return await self._ask(conversation)
        except UpstreamError as error:
            if error.code != _OVERFLOW or self._count >= _MAX_REQUESTS:
                raise
            if len(conversation) < 2:
                if size_of(conversation[0]) <= _LEAST:
                    raise
                self.losses.append(Loss("compaction", "messages", "a message is too long for the summary, and was cut"))
                return await self.summarize((_shortened(conversation[0]),))
        middle = _middle(conversation)
        first = await self.summarize(conversation[:middle])
        return await self.summarize((text_message(first), *conversation[middle:]))

    async def _ask(self, conversation: tuple[Message, ...]) -> str:
        self._count += 1
        rendered = HistoryRenderer().render(tuple(map(_plain, conversation))).messages
        system = Message(role="system", parts=(Text(text=_SYSTEM),), is_head=True)
        task = Message(role="user", parts=(Text(text=self._task),))
        request = replace(self._base, messages=(system, *rendered, task))
        reply = await self._backend.open(request, is_verbatim=False)
        reader, folder = ReplyReader(reply, self._backend.dialect, request), Folder()
        try:
            async for events in reader.events():
                for event in events:
                    folder.send(event)
                    if isinstance(event, Failed):
                        raise event.error.fresh()
        finally:
            await reader.release(is_over=folder.is_done)
        return self._text(folder)

    def _text(self, folder: Folder) -> str:
        answer = folder.answer()
        finished: Finished = answer.finished
        self._rounds.add_usage(finished.usage)
        reason = finished.choices[0]
        if reason.raw_reason == "model_context_window_exceeded":
            raise UpstreamError("the conversation fills the context window.", status=400, code=_OVERFLOW)
        text = "\n\n".join([part.text for part in answer.parts_of(0) if isinstance(part, Text) and part.text]).strip()
        if not text:
            raise UpstreamError(
                "the model answered the request for a summary without text.",
                code="compaction_failed",
                hint="Try again, or use another model.",
            )
        if reason.reason == "length":
            self.losses.append(Loss("compaction", "answer", "the summary reached the token limit of the model"))
        return text


def _plain(message: Message) -> Message:
    """What a summary needs: text, calls and results. It has no source, so every back end gets the same."""
    parts = [piece for part in message.parts for piece in _readable(part)]
    role = "user" if message.role in ("system", "developer") else message.role
    return Message(role=role, parts=tuple(parts))


def _readable(part: Part) -> list[Part]:
    match part:
        case Reasoning() | Opaque():
            return []
        case Media():
            return [Text(text=f"[{part.kind}{f' {part.name}' if part.name else ''}]")]
        case Refusal():
            return [Text(text=part.text)]
        case ToolResult():
            inner = tuple([piece for inner in part.parts for piece in _readable(inner) if isinstance(piece, Text)])
            return [replace(part, parts=inner, extra={})]
        case Text():
            return [Text(text=part.text)]
        case _:
            return [part]


def _middle(conversation: tuple[Message, ...]) -> int:
    """Where the second half begins, by size; both have a message."""
    half, size = sum(map(size_of, conversation)) / 2, 0
    for index, message in enumerate(conversation):
        size += size_of(message)
        if size >= half:
            return min(max(1, index), len(conversation) - 1)
    return len(conversation) - 1


def _shortened(message: Message) -> Message:
    """Half as long: the middle of each long text is cut out."""
    return message.with_parts(tuple(map(_cut, message.parts)))


def _cut(part: Part) -> Part:
    match part:
        case Text() if len(part.text) > _LEAST // 2:
            quarter = len(part.text) // 4
            return replace(part, text=f"{part.text[:quarter]}\n[...]\n{part.text[-quarter:]}")
        case ToolResult():
            parts = [cut for inner in part.parts if isinstance(cut := _cut(inner), Text | Media | Opaque)]
            return replace(part, parts=tuple(parts))
        case _:
            return part
