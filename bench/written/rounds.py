"""Whole requests, through the runtime: a model that errs, is told, and errs again; which calls reach the client at each guard."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from toolwire.backends.base import Backend, EventReply, Model
from toolwire.calls.arguments import Invalid
from toolwire.calls.schemas import Schemas
from toolwire.catalog.router import Router
from toolwire.config.file import Guard
from toolwire.config.policy import Corrections, Policy
from toolwire.dialects import DIALECTS
from toolwire.errors import GatewayError
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.profiles import PLAIN
from toolwire.runtime import Runtime
from toolwire.telemetry import Record
from toolwire.types import Choice, Request, Text, Tool

from .borrowed import same
from .cases import Call, Case, judged
from .damage import Damage, Speech, right
from .forms import surrounded

Json = Any
PIECE = 12


@dataclass(frozen=True)
class Setting:
    """One column of the table: how the gateway is set. must_call: the client asks with tool_choice = "required"."""

    name: str
    guard: Guard
    must_call: bool = False


SETTINGS = (
    Setting("check", "check"),
    Setting("repair", "repair"),
    Setting("retry", "retry"),
    Setting("retry, tool_choice required", "retry", must_call=True),
)


@dataclass
class Fallible(Backend):
    """A back end whose model writes its calls badly so often; when it is told, it makes the same mistake again as often."""

    case: Case
    damages: Sequence[Damage]
    chance: float
    random: Random
    name: str = "words"
    dialect: str = ""
    tool_kinds: frozenset[str] = frozenset()
    asked: int = 0
    _mistake: Damage | None = field(default=None, init=False)

    profile = PLAIN

    async def models(self) -> list[Model]:
        return [Model(id="model")]

    async def close(self) -> None:
        pass

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        self.asked += 1
        return EventReply(events=self._events(self._answer()))

    def _answer(self) -> str:
        speech = Speech(self.case.calls, self.case.tools, self.random)
        errs = self.random.random() < self.chance
        text = self._wrong(speech) if errs else "\n".join(map(right, self.case.calls))
        may_follow = not errs or (self._mistake is not None and self._mistake.may_follow)
        return surrounded(text, self.case.calls, self.random, 0.5, 0.1 * may_follow, 0).text

    def _wrong(self, speech: Speech) -> str:
        while True:
            damage = self._mistake or self.random.choice(self.damages)
            if (text := damage.apply(speech)) is not None:
                self._mistake = damage
                return text

    async def _events(self, text: str) -> AsyncIterator[list[Event]]:
        yield [Started(id=f"answer_{self.asked}", model="model"), PartStarted(index=0, part=Text(text=""))]
        for start in range(0, len(text), PIECE):
            yield [PartDelta(0, text[start : start + PIECE])]
        yield [PartEnded(index=0, part=Text(text=text)), Finished(choices=(Choice(index=0, reason="stop"),))]


def run(cases: Sequence[Case], damages: Sequence[Damage], chance: float, setting: Setting, seed: int) -> Counter[str]:
    """How many requests ended right, in a wrong call, or in none that is legal; and how often the model was asked."""
    return asyncio.run(_all(cases, damages, chance, setting, seed))


async def _all(
    cases: Sequence[Case], damages: Sequence[Damage], chance: float, setting: Setting, seed: int
) -> Counter[str]:
    schemas, counts = Schemas(64 << 20), Counter[str]()
    for case in cases:
        model = Fallible(case, damages, chance, Random(f"{seed}/{chance}/{case.name}"))
        counts[await _one(case, model, setting, schemas)] += 1
        counts["asked"] += model.asked
    return counts


async def _one(case: Case, model: Fallible, setting: Setting, schemas: Schemas) -> str:
    policy = Policy(tools="simulate", guard=setting.guard, terms=Corrections(corrections=2, policy="text"))
    runtime = Runtime({"words": model}, Router(["words"], {}, "words", {"words": ["model"]}), {"words": policy})
    request = DIALECTS["chat"].decode_request(json.dumps(_question(case, setting)).encode(), {})
    try:
        step = await runtime.step(request, Record())
    except GatewayError:
        return "failed"
    pieces: list[bytes] = []

    async def write(wire: bytes) -> None:
        pieces.append(wire)

    await step.run(write)
    await step.release()
    return _judged(json.loads(b"".join(pieces)), case, schemas)


def _question(case: Case, setting: Setting) -> Json:
    tools = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in case.tools
    ]
    more = {"tool_choice": "required"} if setting.must_call else {}
    return {"model": "model", "messages": [{"role": "user", "content": case.question}], "tools": tools, **more}


def _judged(answer: Json, case: Case, schemas: Schemas) -> str:
    """wrong: a call that the client would run and nobody meant. failed: no call, some of them, or one that no schema allows."""
    message = answer["choices"][0]["message"] if "choices" in answer else {}
    found = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    left = list(case.calls)
    tools = {tool.name: tool for tool in case.tools}
    is_legal = True
    for name, raw in found:
        meant = next((call for call in left if call.name == name and _is(raw, call)), None)
        if meant is not None:
            left.remove(meant)
        elif _is_legal(name, raw, tools, schemas):
            return "wrong"
        else:
            is_legal = False
    return "right" if not left and is_legal else "failed"


def _is(raw: str, call: Call) -> bool:
    try:
        arguments = json.loads(raw)
    except ValueError:
        return False
    return bool(same(arguments, call.arguments))


def _is_legal(name: str, raw: str, tools: dict[str, Tool], schemas: Schemas) -> bool:
    return name in tools and not isinstance(judged(name, raw, tools[name], schemas), Invalid)
