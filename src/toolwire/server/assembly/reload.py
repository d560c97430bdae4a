"""Reading the configuration again while the gateway runs: on a signal, and at `POST /reload`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ...config.file import Config
from ...errors import BadRequest, ConfigError
from ...memory.keys import NamedKey
from ..reply import Reply, WrongMethod

PATH = "/reload"


class Reload:
    """read: the configuration, in any thread. parent: of a worker, 0 in a gateway with one process.

    Belongs to one application, which sets use and say. use: replaces the configuration of this process, and describes what has changed;
    raises ConfigError, and nothing has changed. say: writes to the log.
    """

    use: Callable[[Config], str]
    say: Callable[..., None]

    def __init__(self, read: Callable[[], Config] | None = None, parent: int = 0) -> None:
        self._read = read
        self._parent = parent
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """For this process alone."""
        self._task = asyncio.get_running_loop().create_task(self._run_logged(), name="reload")

    async def answer(self, method: str, key: NamedKey | None, reply: Reply) -> None:
        """For all workers. Raises BadRequest. key: of the client, which must be one of the gateway itself."""
        if method != "POST":
            raise WrongMethod(method, "POST")
        if key is not None:
            raise BadRequest(f"the key {key.name} may not use {PATH}.", status=403, code="permission_denied")
        changes = await self._run()
        if self._parent:
            os.kill(self._parent, signal.SIGUSR1)
        await reply.json(msgspec.json.encode({"changes": changes}))

    async def _run_logged(self) -> None:
        with suppress(BadRequest):
            await self._run()

    async def _run(self) -> str:
        """What has changed. Raises BadRequest."""
        if self._read is None:
            raise BadRequest("this gateway was started without a configuration that can be read again.", status=409)
        async with self._lock:
            try:
                changes = self.use(await asyncio.to_thread(self._read))
            except ConfigError as error:
                message = f"the configuration is not used: {error.sentence()}"
                self.say("error", message)
                raise BadRequest(message, code=error.code) from None
        self.say("info", f"the configuration was read again; {changes}")
        return changes
