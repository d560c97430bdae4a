"""A back end that answers by a script, errors and cut streams included: the fake model of the tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ...config.values import BackendConfig
from ...errors import BadRequest, ConfigError, GatewayError, UpstreamError, quote
from ...events import Event, Failed, Finished, PartDelta, Started
from ...ids import new_id
from ...types import (
    Choice,
    Json,
    Part,
    Reason,
    Reasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from ...wire.exact_json import encode, object_of
from ..base import Backend, EventReply, Model
from ..http.transport import Transport
from ..synthesis import (
    batches,
    choice_events,
    chunk_splitter,
    estimated_usage,
    plausible_logprobs,
    requested_choices,
    results_of,
    text_of,
)
from .judge import altered, tool_called, unpaired
from .regex_process import BadPattern, search
from .script import (
    Cue,
    ScriptedCall,
    ScriptedError,
    ScriptedPart,
    ScriptedTurn,
    ScriptedUsage,
    ScriptFile,
    answers_in,
    cue_in_prompt,
    parse_file,
)

# Braces inside the expression must pair (as in {2}), so that a brace of JSON can follow the mark at once.
_RESULT = re.compile(r"\{\{result:(\d{1,6})(?::((?:[^{}]|\{[^{}]{0,20}\}){1,200}))?\}\}")
_SEARCHED = 100 * 1024
_MOST_PATTERNS = 64  # in one request
_SHOWN = 200
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})

_T = TypeVar("_T")


class Scripted(Backend):
    """A script in the prompt takes precedence over the one in the file."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self._file = ScriptFile() if path is None else _read(path)

    @classmethod
    def from_config(cls, config: BackendConfig, transport: Transport) -> Self:
        return cls(config.name, Path(config.script) if config.script else None)

    async def models(self) -> list[Model]:
        return [Model(id=model, owner=self.name) for model in self._file.models or ("scripted",)]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises BadRequest for a wrong script, before the first event."""
        cue = cue_in_prompt(request.messages) or self._cue_in_file(request)
        quotes = _Quotes(request)
        turn = _without_script(request) if cue is None else await quotes.fill(lambda: _checked(cue, request, quotes))
        scene = _Scene(request, turn, quotes)
        choices = [await quotes.fill(scene.parts) for _ in range(requested_choices(request))]
        if turn.error is not None and turn.error.after <= 0:
            await asyncio.sleep(turn.delay)
            raise _failure(turn.error)
        return EventReply(events=_play(request, turn, choices))

    def _cue_in_file(self, request: Request) -> Cue | None:
        script = self._file.script_for(request.model)
        if script is not None:
            return Cue(script=script, past=request.messages)
        if self._file.models:
            known = ", ".join(map(quote, list(self._file.models)[:10]))
            raise UpstreamError(
                f"found the model {quote(request.model)}; the script has {known}.", status=404, code="model_not_found"
            )
        return None


class _Unsearched(Exception):
    """A result is quoted by an expression that was not searched yet."""

    def __init__(self, number: int, pattern: str) -> None:
        super().__init__(number, pattern)
        self.number = number
        self.pattern = pattern


class _Quotes:
    """The results of one conversation, and what expressions of its script find in them."""

    def __init__(self, request: Request) -> None:
        self._results = [text_of(result) for result in results_of(request.messages)]
        self._found: dict[tuple[int, str], str] = {}

    def result(self, number: int, pattern: str | None) -> str:
        """Raises _Unsearched, and BadRequest for a result that is not there."""
        if number >= len(self._results):
            raise _bad(
                f"the script refers to result {number}; the conversation has {len(self._results)}, counted from 0."
            )
        if pattern is None:
            return self._results[number]
        if (number, pattern) not in self._found:
            raise _Unsearched(number, pattern)
        return self._found[number, pattern]

    async def fill(self, work: Callable[[], _T]) -> _T:
        """Do the work, with a search for each expression it needs: outside this process, because the client wrote it."""
        while True:
            try:
                return work()
            except _Unsearched as wanted:
                number, pattern = wanted.number, wanted.pattern
            if len(self._found) >= _MOST_PATTERNS:
                raise _bad(f"the script quotes results by more than {_MOST_PATTERNS} regular expressions.")
            self._found[number, pattern] = await self._search(number, pattern)

    async def _search(self, number: int, pattern: str) -> str:
        text = self._results[number]
        try:
            found = await search(pattern, text[:_SEARCHED])
        except BadPattern as fault:
            raise _bad(f"{quote(pattern)} is no regular expression that can be used: {quote(str(fault))}.") from None
        if found is None:
            raise _bad(f"{quote(pattern)} matches nothing in result {number}, which is {quote(text)}.")
        return found


class _Scene:
    """One turn in one conversation, and its parts."""

    def __init__(self, request: Request, turn: ScriptedTurn, quotes: _Quotes) -> None:
        self.request = request
        self.turn = turn
        self.quotes = quotes

    def parts(self) -> list[Part]:
        return self._with_citations([part for one in self._scripted() for part in self._part(one)])

    def calls(self) -> list[ToolCall]:
        return [self._call(call) for call in self._scripted_calls()]

    def not_offered(self) -> list[str]:
        return [call.name for call in self._scripted_calls() if tool_called(call.name, self.request.tools) is None]

    def _scripted_calls(self) -> list[ScriptedCall]:
        return [part.call for part in self._scripted() if part.call is not None]

    def _scripted(self) -> Sequence[ScriptedPart]:
        return tuple(self._in_order()) if self.turn.parts is None else self.turn.parts

    def _in_order(self) -> Iterator[ScriptedPart]:
        turn = self.turn
        if turn.reasoning is not None or turn.signature is not None:
            yield ScriptedPart(reasoning=turn.reasoning or "", signature=turn.signature)
        if turn.text is not None or turn.echo:
            yield ScriptedPart(text=turn.text or "")
        if turn.refusal is not None:
            yield ScriptedPart(refusal=turn.refusal)
        for call in turn.calls:
            yield ScriptedPart(call=call)

    def _part(self, scripted: ScriptedPart) -> Iterator[Part]:
        """An object with several members makes several parts, in this order."""
        if scripted.reasoning is not None:
            yield Reasoning(text=scripted.reasoning, signature=scripted.signature)
        if scripted.text is not None:
            yield self._text(scripted.text)
        if scripted.refusal is not None:
            yield Refusal(text=scripted.refusal)
        if scripted.call is not None:
            yield self._call(scripted.call)

    def _text(self, written: str) -> Text:
        text = echo(self.request) if self.turn.echo else self._filled(written)
        pieces = chunk_splitter(self.turn.chunk)(text)
        return Text(text=text, logprobs=plausible_logprobs(pieces) if self.turn.logprobs else None)

    def _call(self, call: ScriptedCall) -> ToolCall:
        tool = tool_called(call.name, self.request.tools) or Tool(name=call.name)
        written = call.arguments if call.input is None else call.input
        if tool.kind != "custom" and call.input is not None:
            written = {"input": call.input}
        raw = self._filled(written) if isinstance(written, str) else encode(self._filled_inside(written)).decode()
        made = ToolCall(id=call.id or new_id("call_"), name=tool.name, namespace=tool.namespace, raw=raw)
        return replace(made, kind="custom") if tool.kind == "custom" else replace(made, args=object_of(raw))

    def _filled_inside(self, value: Json) -> Json:
        match value:
            case str():
                return self._filled(value)
            case list():
                return [self._filled_inside(item) for item in value]
            case dict():
                return {key: self._filled_inside(item) for key, item in value.items()}
            case _:
                return value

    def _filled(self, text: str) -> str:
        return _RESULT.sub(lambda found: self.quotes.result(int(found[1]), found[2]), text)

    def _with_citations(self, parts: list[Part]) -> list[Part]:
        """They belong to the last text."""
        for place in reversed(range(len(parts))):
            part = parts[place]
            if isinstance(part, Text) and self.turn.citations:
                parts[place] = replace(part, citations=self.turn.citations)
                break
        return parts


def _checked(cue: Cue, request: Request, quotes: _Quotes) -> ScriptedTurn:
    """The turn to play; of a strict script a complaint, where there is one."""
    if not cue.script.strict:
        return cue.turn
    said = unpaired(cue.past) or altered(cue.past, _past_calls(cue, request, quotes))
    if said:
        return ScriptedTurn(text=f"HISTORY-ALTERED: {said}")
    missing = _Scene(request, cue.turn, quotes).not_offered()
    if missing:
        offered = ", ".join(tool.name for tool in request.tools)
        return ScriptedTurn(text=f"TOOL-NOT-OFFERED: {', '.join(missing)}; offered: {offered or 'none'}")
    return cue.turn


def _past_calls(cue: Cue, request: Request, quotes: _Quotes) -> list[list[ToolCall]]:
    """The calls of each past turn, made again; the results that they quote are in the conversation."""
    return [_Scene(request, cue.script.turn(played), quotes).calls() for played in range(answers_in(cue.past))]


def echo(request: Request) -> str:
    """What the model was given, as JSON: for each message its role and its parts."""
    return encode(
        [{"role": message.role, "parts": [_shown(part) for part in message.parts]} for message in request.messages]
    ).decode()


def _shown(part: Part) -> dict[str, Any]:
    match part:
        case ToolCall():
            return {"kind": "tool_call", "id": part.id, "name": part.name, "raw": part.raw}
        case ToolResult():
            parts = [_shown(inner) for inner in part.parts]
            return {"kind": "tool_result", "call_id": part.call_id, "is_error": part.is_error, "parts": parts}
        case Reasoning():
            return {"kind": "reasoning", "text": part.text, "signature": part.signature}
        case _:
            return {"kind": part.__struct_config__.tag, "text": text_of(part)}


async def _play(request: Request, turn: ScriptedTurn, choices: Sequence[Sequence[Part]]) -> AsyncIterator[list[Event]]:
    await asyncio.sleep(turn.delay)
    events = choice_events(choices, chunk_splitter(turn.chunk))
    ends = tuple(Choice(reason=turn.finish or _reason(parts), index=index) for index, parts in enumerate(choices))
    last = Finished(choices=ends, usage=_usage(turn.usage, estimated_usage(request, choices)))
    start = Started(id=new_id("gen_"), model=request.model)
    is_first = True
    for batch in batches(chain([start], _disturbed(chain(events, [last]), turn))):
        if turn.pace and not is_first and isinstance(batch[-1], PartDelta):
            await asyncio.sleep(turn.pace)
        is_first = False
        yield batch


def _disturbed(events: Iterator[Event], turn: ScriptedTurn) -> Iterator[Event]:
    """The events up to the delta after which the script has an error or a cut."""
    deltas = 0
    for event in events:
        if turn.cut is not None and (deltas >= turn.cut or isinstance(event, Finished)):
            return
        if turn.error is not None and (deltas >= turn.error.after or isinstance(event, Finished)):
            yield Failed(error=_failure(turn.error))
            return
        deltas += isinstance(event, PartDelta)
        yield event


def _reason(parts: Sequence[Part]) -> Reason:
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    return "refused" if any(isinstance(part, Refusal) for part in parts) else "stop"


def _usage(scripted: ScriptedUsage, estimate: Usage) -> Usage:
    return Usage(
        input=estimate.input if scripted.input is None else scripted.input,
        output=estimate.output if scripted.output is None else scripted.output,
        cached=scripted.cached or 0,
        cache_written=scripted.cache_written or 0,
        reasoning=estimate.reasoning if scripted.reasoning is None else scripted.reasoning,
    )


def _failure(error: ScriptedError) -> GatewayError:
    is_retryable = error.status in _RETRYABLE
    return UpstreamError(error.message, status=error.status, code=error.code, retryable=is_retryable)


def _without_script(request: Request) -> ScriptedTurn:
    prompts = [
        text_of(part) for m in request.messages if m.role == "user" for part in m.parts if isinstance(part, Text)
    ]
    last = prompts[-1] if prompts else ""
    return ScriptedTurn(text=f"No script was given; the last user message was: {last[:_SHOWN]}")


def _read(path: Path) -> ScriptFile:
    try:
        return parse_file(path.read_bytes())
    except OSError as fault:
        raise ConfigError(f"the script cannot be read: {fault.strerror}.", where=str(path)) from None
    except BadRequest as fault:
        raise ConfigError(fault.message, where=str(path)) from None


def _bad(message: str) -> BadRequest:
    return BadRequest(message, code="bad_script", where="script")
