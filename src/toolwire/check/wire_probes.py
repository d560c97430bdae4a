"""Probes of the wire format: what every client relies on, whatever the model is."""

from __future__ import annotations

import asyncio
import json
import re

from msgspec.structs import replace

from ..types import ToolChoice
from .deviations import DeviationLog
from .endpoint import HttpAttempt
from .questions import NO_ARGUMENTS, RESULT, TIME, WEATHER, ask, with_results
from .results import Outcome
from .session import CheckSession, ProbeAnswer

_HELLO = "Reply with one short sentence about the sea."
_WEATHER = "What is the weather in Paris? Call the tool get_weather."
_BOTH = "What is the weather in Paris, and what time is it in Tokyo? Call get_weather and get_time, both in one answer."
_UNICODE = "What is the weather in Zürich? Call the tool get_weather with the city Zürich (東京 🌧)."
_MANGLED = tuple(letter.encode().decode("latin-1") for letter in ("ü", "東", "京"))
_AT_ONCE = 4
_STALLS = ("http.stalled", "stream.endless")
_FEW_TOKENS = 16
_LARGE = 200_000


async def run(session: CheckSession) -> None:
    if not await _text(session):
        return
    await _forced_call(session)
    await _chosen_call(session)
    await _two_calls(session)
    await _no_arguments(session)
    await _results(session)
    await _errors(session)
    await _connection(session)
    await _disconnect(session)
    await _at_once(session)
    if not session.is_quick:
        await _token_limit(session)
        await _unusual_histories(session)
        await _large_request(session)


async def _text(session: CheckSession) -> bool:
    """Whether the endpoint answers at all."""
    whole = await session.ask(ask(session.model, _HELLO), "text")
    if whole.answer is None:
        code = "http.redirect" if 300 <= whole.attempt.status < 400 else "http.status"
        whole.log.add(whole.attempt.code or code, "answer", whole.refusal or whole.attempt.detail)
    is_answered = whole.answer is not None and "body.html" not in whole.log.found
    if not is_answered:
        whole.log.apply_to_all()  # nothing else is tried
    _expect_content(whole)
    session.add("text", "wire", [whole])
    if whole.answer is None or not is_answered:
        return False
    streamed = await session.ask(ask(session.model, _HELLO, stream=True), "streamed text")
    if streamed.refusal:
        streamed.log.add("http.status", "answer", streamed.refusal)
    elif streamed.answer is not None and streamed.answer.usage is None and whole.answer.usage is not None:
        streamed.log.found.pop("usage.missing", None)
        streamed.log.expect(streamed.has_faults, "usage.lost_in_stream", "end")
    if whole.answer.text and streamed.answer is not None:
        is_lost = not streamed.answer.text and not streamed.answer.has_reasoning and not streamed.has_faults
        streamed.log.expect(not is_lost, "stream.differs", "text", "whole: text, streamed: none")
    elif "body.no_content" in whole.log.found:
        _expect_content(streamed)
    session.add("streamed text", "wire", [streamed])
    return True


def _expect_content(found: ProbeAnswer) -> None:
    """Only where nothing else explains an answer without content."""
    answer = found.answer
    if answer is None or answer.text.strip() or answer.calls or answer.has_reasoning or answer.finish == "length":
        return
    if not found.has_faults:
        found.log.add("body.no_content", "answer", f"finish reason {answer.finish}")


async def _forced_call(session: CheckSession) -> None:
    answers: list[ProbeAnswer] = []
    for is_stream in (False, True):
        name = "streamed forced call" if is_stream else "forced call"
        tools = (WEATHER, TIME) if session.force_mode == "named" else (WEATHER,)
        request = ask(session.model, _UNICODE, tools, session.force(WEATHER), stream=is_stream)
        found = await session.ask(request, name)
        if found.refusal and not await _refused_choice(session, found, name, is_stream):
            return
        if found.refusal:
            found = await session.ask(replace(request, tools=(WEATHER,), tool_choice=session.force(WEATHER)), name)
        answers.append(found)
        _expect_letters(found)
        if found.answer is not None and not found.answer.calls and not found.has_faults:
            found.log.add("schema.no_call", "calls", found.answer.text[:120])
    whole, streamed = (bool(one.answer and one.answer.calls) for one in answers)
    if whole != streamed and not any(one.has_faults for one in answers):
        answers[1].log.add("stream.differs", "calls", f"whole: {whole}, streamed: {streamed}")
    session.add("forced call", "wire", answers)


def _expect_letters(found: ProbeAnswer) -> None:
    """Text that was decoded as Latin-1 and encoded again."""
    if found.answer is not None:
        text = "".join([found.answer.text, *(_unescaped(call.arguments) for call in found.answer.calls)])
        wrong = [letter for letter in _MANGLED if letter in text]
        found.log.expect(not wrong, "body.encoding", "text", f"found {wrong} for letters of the request")


def _unescaped(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except ValueError:
        return arguments


async def _refused_choice(session: CheckSession, found: ProbeAnswer, name: str, is_stream: bool) -> bool:
    """The server refuses the choice, or tools as such. Whether it can force a call in another way."""
    required = ask(session.model, _WEATHER, (WEATHER,), ToolChoice(mode="required"), stream=is_stream)
    is_accepted = session.force_mode == "named" and not (await session.ask(required, name)).refusal
    if is_accepted:
        session.force_mode = "required"
        return True
    plain = await session.ask(ask(session.model, _WEATHER, (WEATHER,), stream=is_stream), name)
    code = "http.status" if is_stream else "tools.refused" if plain.refusal else "choice.refused"
    found.log.add(code, "request", found.refusal)
    session.add("forced call", "wire", [found], outcome="unsupported" if code == "tools.refused" else None)
    return False


async def _chosen_call(session: CheckSession) -> None:
    answers = [
        await session.ask(ask(session.model, _WEATHER, (WEATHER,), stream=is_stream), name)
        for is_stream, name in ((False, "call"), (True, "streamed call"))
    ]
    is_tested = any(one.answer is not None and one.answer.calls for one in answers)
    is_faulty = any(one.has_faults for one in answers)
    outcome: Outcome | None = None if is_tested or is_faulty else "untested"
    session.add("call", "wire", answers, outcome=outcome, note="" if is_tested else "the model made no call")


async def _two_calls(session: CheckSession) -> None:
    answers = []
    for is_stream, name in ((False, "two calls"), (True, "two streamed calls")):
        request = ask(session.model, _BOTH, (WEATHER, TIME), parallel_calls=True, stream=is_stream)
        answers.append(await session.ask(request, name))
    most = max(len(one.answer.calls) if one.answer is not None else 0 for one in answers)
    is_faulty = any(one.has_faults for one in answers)
    is_tested = most > 1 or is_faulty
    session.add(
        "two calls",
        "wire",
        answers,
        outcome=None if is_tested else "untested",
        note="" if is_tested else f"the model made {most} call{'' if most == 1 else 's'}",
    )


async def _no_arguments(session: CheckSession) -> None:
    """Clients parse the arguments of a call without arguments, so they must be an empty object."""
    request = ask(session.model, "List the files.", (NO_ARGUMENTS,), session.force(NO_ARGUMENTS), stream=True)
    found = await session.ask(request, "call without arguments")
    if found.refusal or found.answer is None or not found.answer.calls:
        session.add("call without arguments", "wire", [found], outcome="untested", note="no call was made")
        return
    text = found.answer.calls[0].arguments
    if not text.strip():
        found.log.add("schema.invalid_json", "arguments", "found an empty string, expected {}")
    session.add("call without arguments", "wire", [found])


async def _results(session: CheckSession) -> None:
    answers: list[ProbeAnswer] = []
    for is_stream, name in ((False, "result"), (True, "streamed result")):
        first = ask(session.model, _WEATHER, (WEATHER, TIME), stream=is_stream)
        request = with_results(first, (("get_weather", {"city": "Paris"}, RESULT),))
        found = await session.ask(request, name)
        if found.refusal:
            is_stream_refused = is_stream and not answers[0].refusal
            found.log.add("http.status" if is_stream_refused else "history.refused", "request", found.refusal)
        answers.append(found)
    two = with_results(
        ask(session.model, _BOTH, (WEATHER, TIME)),
        (("get_weather", {"city": "Paris"}, RESULT), ("get_time", {"city": "Tokyo"}, "09:15")),
        "Thank you. Now reply with the word done.",
    )
    found = await session.ask(two, "history of two calls")
    if found.refusal:
        found.log.add("history.refused", "request", found.refusal)
    session.add("results", "wire", [*answers, found])


async def _errors(session: CheckSession) -> None:
    wrong = json.loads(session.endpoint.encode(ask(session.model, _HELLO)))
    turns = next(member for member in ("messages", "input", "contents") if member in wrong)
    bodies = {
        "invalid JSON": b'{"model": ',
        "missing conversation": json.dumps({key: value for key, value in wrong.items() if key != turns}).encode(),
        "wrong type": json.dumps(wrong | {turns: 7}).encode(),
        "unknown model": json.dumps(wrong | {"model": "no-such-model-4417"}).encode(),
    }
    if session.endpoint.dialect == "gemini":
        del bodies["unknown model"]  # it is in the path
    answers = []
    for name, body in bodies.items():
        attempt = await session.endpoint.post(body)
        found = ProbeAnswer(attempt, DeviationLog(f"error for {name}"), None)
        answers.append(found)
        if attempt.code:
            found.log.add(attempt.code, "connection", attempt.detail)
        elif attempt.status < 300:
            is_error = session.is_error_form(attempt)
            found.log.add("body.error" if is_error else "error.accepted", "status", attempt.status)
        else:
            session.check_error(attempt, found.log)
            found.log.expect(attempt.status < 500, "error.status", "status", attempt.status)
    session.add("errors", "wire", answers)


async def _connection(session: CheckSession) -> None:
    code = await session.endpoint.closes_after_answer(ask(session.model, _HELLO, max_tokens=20))
    found = ProbeAnswer(HttpAttempt(), DeviationLog("keep-alive"), None)
    if code:
        found.log.add(code, "connection")
    session.add("keep-alive", "wire", [found])


async def _disconnect(session: CheckSession) -> None:
    """The client reads a little of a stream and disconnects. The next request must not suffer."""
    request = ask(session.model, "Count from 1 to 200, with a comma after each number.", stream=True, max_tokens=800)
    await session.endpoint.post(session.endpoint.encode(request), is_stream=True, reads=1)
    after = await session.ask(ask(session.model, _HELLO), "request after a disconnect")
    if after.answer is None and after.attempt.code not in _STALLS:
        after.log.found.clear()
        after.log.add("http.after_disconnect", "answer", after.refusal or after.attempt.detail)
    session.add("disconnect", "wire", [after])


async def _at_once(session: CheckSession) -> None:
    requests = [ask(session.model, f"Reply with the word number{index}.", max_tokens=30) for index in range(_AT_ONCE)]
    answers = await asyncio.gather(*(session.ask(request, "simultaneous requests") for request in requests))
    for index, found in enumerate(answers):
        text = found.answer.text if found.answer is not None else ""
        others = [f"number{other}" for other in range(_AT_ONCE) if other != index and f"number{other}" in text]
        if others and f"number{index}" not in text:
            found.log.add("http.concurrency", "text", f"found {others[0]}, expected number{index}")
        if found.answer is None and found.attempt.status != 429 and found.attempt.code not in _STALLS:
            found.log.found.clear()
            found.log.add("http.concurrency", "answer", found.refusal or found.attempt.detail)
    session.add("simultaneous requests", "wire", answers)


async def _token_limit(session: CheckSession) -> None:
    request = ask(session.model, "Count from 1 to 100.", stream=True, max_tokens=_FEW_TOKENS)
    found = await session.ask(request, "token limit")
    is_full = found.answer is not None and found.answer.usage is not None and found.answer.usage[1] >= _FEW_TOKENS
    if found.answer is not None and is_full and found.answer.finish not in ("length", ""):
        found.log.add("finish.unused", "finish reason", found.answer.finish)
    count = len(re.findall(r"\d+", found.answer.text)) if found.answer is not None else 0
    found.log.expect(count < 3 * _FEW_TOKENS, "limit.ignored", "text", f"{count} numbers for {_FEW_TOKENS} tokens")
    is_refused = bool(found.refusal)
    session.add("token limit", "wire", [found], outcome="unsupported" if is_refused else None, note=found.refusal)


async def _unusual_histories(session: CheckSession) -> None:
    """Forms of a history that clients send, beside the plain one."""
    first = ask(session.model, _WEATHER, (WEATHER,), ToolChoice(mode="auto"))
    request = with_results(first, (("get_weather", {"city": "Paris"}, ""),))
    found = await session.ask(request, "empty result")
    if found.refusal:
        found.log.add("history.unusual_refused", "request", found.refusal)
    session.add("unusual histories", "wire", [found])


async def _large_request(session: CheckSession) -> None:
    attempt = await session.endpoint.post(
        session.endpoint.encode(ask(session.model, "a " * (_LARGE // 2), max_tokens=5))
    )
    found = ProbeAnswer(attempt, DeviationLog("large request"), None)
    if attempt.code in ("http.cut", "http.invalid", "http.stalled"):
        found.log.add("http.large_request", "connection", attempt.detail)
    elif attempt.is_refused:
        session.check_error(attempt, found.log)
    session.add("large request", "wire", [found], note=f"{_LARGE // 1000} KB: status {attempt.status}")
