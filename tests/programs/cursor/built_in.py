"""A model that uses the service's own tools, whatever the client offers. Run as a program: PORT JOURNAL.

The prompt contains its actions, [[built-in:BASE64]]: {"uses": [{"kind": ..., "args": {...}}, ...], "text": ...}. Results are quoted as in
other scripts; for a result without text, its message is quoted. A new run continues after as many actions as the history has results.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from toolwire.backends.cursor.simulator.script import ClientResult, Native, Say, Seen, Step, filled, parts_of
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import Settings

_MARK = re.compile(r"\[\[built-in:([A-Za-z0-9+/=]+)\]\]")


def prompt(*uses: tuple[str, dict[str, Any]], text: str) -> str:
    script = {"uses": [{"kind": kind, "args": args} for kind, args in uses], "text": text}
    return f"Do it. [[built-in:{base64.b64encode(json.dumps(script).encode()).decode()}]]"


def call_id(number: int) -> str:
    return f"own_{number}"


class BuiltIn:
    """A request without tools is for a title or similar."""

    def start(self, seen: Seen) -> Generator[Step, list[ClientResult], None]:
        script = _script(seen)
        if script is None or not seen.tools:
            yield Say("A task")
            return
        texts = seen.results
        for number, use in list(enumerate(script["uses"]))[len(texts) :]:
            (result,) = yield filled(Native(use["kind"], use["args"], call_id(number)), texts)
            texts.append(result.text or str(result.messages[-1]))
        yield filled(Say(script["text"]), texts)


def _script(seen: Seen) -> Any:
    texts = [str(part.get("text", "")) for message in seen.messages for part in parts_of(message)]
    found = [match[1] for text in texts for match in _MARK.finditer(text)]
    return json.loads(base64.b64decode(found[0])) if found else None


async def main(port: int, journal: Path) -> None:
    settings = Settings(heartbeat=1, knows_every_model=True)
    async with Simulator(model=BuiltIn(), settings=settings, port=port, journal=journal):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
