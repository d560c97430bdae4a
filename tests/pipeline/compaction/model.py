"""A model that knows the code words in its messages: it repeats them in summaries and answers. Its window may be small."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from tests.pipeline.jobs import job_of
from toolwire.backends.base import Backend, EventReply
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.errors import UpstreamError
from toolwire.events import Event, Finished, FoldedAnswer, PartEnded, Started, fold, unfold
from toolwire.ids import new_id
from toolwire.pipeline.answer import ReplyReader
from toolwire.pipeline.compaction.stage import Compactor
from toolwire.pipeline.job import Job
from toolwire.pipeline.prepare import Preparation
from toolwire.profiles import PLAIN, Profile
from toolwire.types import Choice, Message, Request, Text, ToolResult, Usage

CODE = re.compile(r"CODE-\w+")
SECRETS = (b"the secret of this gateway",)


class Knower(Backend):
    """window: the most characters of a request; summary: what it answers in place of a summary."""

    name = "b"

    def __init__(
        self, dialect: str = "", profile: Profile = PLAIN, window: int = 1 << 30, summary: str | None = None
    ) -> None:
        self.dialect = dialect
        self.profile = profile
        self.window = window
        self.summary = summary
        self.requests: list[Request] = []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        self.requests.append(request)
        text = "\n".join(texts_of(request.messages))
        if len(text) > self.window:
            raise UpstreamError("too long", status=400, code="context_length_exceeded")
        codes = " ".join(dict.fromkeys(CODE.findall(text)))
        is_summary = "Summarize the conversation" in text
        answer = f"Summary: {codes}" if is_summary else f"I know {codes or 'nothing'}"
        if is_summary and self.summary is not None:
            answer = self.summary
        return EventReply(events=_events(answer, request))


async def _events(text: str, request: Request) -> AsyncIterator[list[Event]]:
    yield unfold(plain_answer(text, request.model))


def plain_answer(text: str, model: str) -> FoldedAnswer:
    return FoldedAnswer(
        started=Started(id="gen_1", model=model),
        parts=(PartEnded(index=0, part=Text(text=text)),) if text else (),
        finished=Finished(choices=(Choice(reason="stop"),), usage=Usage(input=100, output=10)),
    )


def texts_of(messages: tuple[Message, ...]) -> list[str]:
    found = []
    for message in messages:
        for part in message.parts:
            parts = part.parts if isinstance(part, ToolResult) else (part,)
            found += [one.text for one in parts if isinstance(one, Text)]
    return found


def decoded(dialect: str, **members: Any) -> Request:
    body = {"model": "m", **({"max_tokens": 100} if dialect == "messages" else {}), **members}
    return DIALECTS[dialect].decode_request(json.dumps(body).encode(), {})


def prepare(request: Request, backend: Backend, owner: str = "me", secrets: tuple[bytes, ...] = SECRETS) -> Job:
    job = job_of(request, backend, owner=owner)
    asyncio.run(Preparation(compactor=Compactor(lambda: secrets)).run(job))
    return job


def answer_of(request: Request, backend: Backend, owner: str = "me", secrets: tuple[bytes, ...] = SECRETS) -> Any:
    """The body that the client gets."""
    job = prepare(request, backend, owner, secrets)

    async def read() -> list[Event]:
        reply = await job.backend.open(job.request, is_verbatim=False)
        return [
            event async for events in ReplyReader(reply, job.backend.dialect, job.request).events() for event in events
        ]

    context = AnswerContext(request=job.received, mint=new_id, now=1)
    encoder = DIALECTS[request.origin].body_encoder(context)
    for event in unfold(fold(asyncio.run(read()))):
        encoder.send(event)
    return json.loads(encoder.close())
