"""A toolwire back end that runs a program for each request: it reads the prompt from its input, and its output is the answer."""

import asyncio
import codecs
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator

from toolwire.backends import Backend, BackendConfig, EventReply, Model, TokenCount
from toolwire.errors import ConfigError, UpstreamError
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.ids import new_id
from toolwire.types import Choice, Request, Text


class ProgramBackend(Backend):
    def __init__(self, config: BackendConfig) -> None:
        self.name = config.name
        self._command: list[str] = config.config.get("command", [])
        if not self._command:
            raise ConfigError("command is missing.", where=f"[backends.{self.name}.config]")

    async def models(self) -> list[Model]:
        return [Model(id="text", owner=self.name)]

    async def count(self, request: Request) -> TokenCount:
        return TokenCount(len(prompt_of(request).split()))

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        return EventReply(events=self._events(request))

    async def _events(self, request: Request) -> AsyncIterator[list[Event]]:
        try:
            program = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            raise UpstreamError(f"{self._command[0]} cannot be started: {error.strerror}.") from None
        try:
            assert program.stdin
            assert program.stdout
            program.stdin.write(prompt_of(request).encode())
            program.stdin.close()
            yield [Started(id=new_id("gen_"), model=request.model), PartStarted(index=0, part=Text(text=""))]
            decode, answer = codecs.getincrementaldecoder("utf-8")("replace").decode, ""
            while data := await program.stdout.read(65536):
                if text := decode(data):
                    answer += text
                    yield [PartDelta(0, text)]
            if code := await program.wait():
                raise UpstreamError(f"{self._command[0]} exited with code {code}.")
            yield [PartEnded(index=0, part=Text(text=answer)), Finished(choices=(Choice(reason="stop"),))]
        finally:  # also when the client disconnects
            if program.returncode is None:
                program.kill()
                await program.wait()


def prompt_of(request: Request) -> str:
    texts = (
        (message.role, part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    return "\n".join(f"{role}: {text}" for role, text in texts)
