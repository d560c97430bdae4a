"""Sets of tools with the calls that are right for a question: BFCL's where it is, else sets made of the calls of bench/repairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from toolwire.calls.arguments import Valid, judge
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall

from .borrowed import Sample, bundled, livened, with_json_types

Json = Any
LIVENED = 0.34  # of the calls get a string that is hard to write


@dataclass(frozen=True)
class Call:
    """One call that is right."""

    name: str
    arguments: dict[str, Json]


@dataclass(frozen=True)
class Case:
    """What a client offers and asks, and the calls a good model makes."""

    name: str
    question: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]

    @property
    def kind(self) -> str:
        return "single" if len(self.calls) == 1 else "parallel"


def from_bfcl(data: Path) -> list[Case]:
    """Every question of BFCL with one turn and known calls that keep to their schemas; data is the folder `bfcl_eval/data`."""
    schemas = Schemas(64 << 20)
    return [case for case in _questions(data) if is_right(case, schemas)]


def from_samples(seed: int) -> list[Case]:
    """The calls that come with bench/repairs, in sets of up to five tools: one call, or up to three, for each."""
    random = Random(seed)
    groups = [list(found) for _, found in groupby(bundled(), key=lambda sample: sample.tool)]
    return [_grouped(index, groups, random) for index in range(3 * len(groups))]


def _grouped(index: int, groups: list[list[Sample]], random: Random) -> Case:
    chosen = [groups[index % len(groups)], *random.sample(groups, random.randrange(5))]
    by_name = {group[0].tool: group for group in chosen}
    called = random.choices(list(by_name.values()), k=random.choice([0, 0, 1, 2]))
    samples = [random.choice(group) for group in [chosen[0], *called]]
    return Case(
        name=f"bundled_{index}",
        question="Please do what has to be done.",
        tools=tuple(Tool(name=name, schema=group[0].schema) for name, group in by_name.items()),
        calls=tuple(Call(sample.tool, sample.arguments) for sample in samples),
    )


def is_right(case: Case, schemas: Schemas) -> bool:
    """Whether all calls are legal: some of BFCL's do not keep to their own schema."""
    tools = {tool.name: tool for tool in case.tools}
    return bool(case.calls) and all(
        call.name in tools
        and isinstance(judged(call.name, json.dumps(call.arguments), tools[call.name], schemas), Valid)
        for call in case.calls
    )


def judged(name: str, raw: str, tool: Tool, schemas: Schemas) -> object:
    return judge(ToolCall(id="", name=name, raw=raw), tool, schemas, may_repair=False)


def with_hard_strings(case: Case, random: Random) -> Case:
    """The same case, perhaps with a string in one of its calls that is hard to write."""
    if random.random() >= LIVENED:
        return case
    schemas = {tool.name: tool.schema for tool in case.tools}
    place = random.randrange(len(case.calls))
    call = case.calls[place]
    harder = livened(Sample(call.name, schemas[call.name], call.arguments), random)
    calls = list(case.calls)
    calls[place] = Call(call.name, harder.arguments)
    return replace(case, calls=tuple(calls))


def _questions(data: Path) -> Iterator[Case]:
    for answers in sorted((data / "possible_answer").glob("*.json")):
        if any(word in answers.name for word in ("multi_turn", "memory", "web_search")):
            continue
        questions = {question["id"]: question for question in _lines(data / answers.name)}
        for answer in _lines(answers):
            yield _case(questions[answer["id"]], answer["ground_truth"])


def _case(question: Json, truth: list[dict[str, Json]]) -> Case:
    return Case(
        name=question["id"],
        question=question["question"][0][-1]["content"],
        tools=tuple(
            Tool(
                name=tool["name"],
                description=tool.get("description", ""),
                schema=with_json_types(tool["parameters"]),
            )
            for tool in question["function"]
        ),
        calls=tuple(Call(name, _chosen(options)) for call in truth for name, options in call.items()),
    )


def _chosen(options: dict[str, list[Json]]) -> dict[str, Json]:
    """The first of the values that BFCL takes as right for each parameter; "" among them means that it may be left out."""
    first = {name: next((choice for choice in choices if choice != ""), None) for name, choices in options.items()}
    return {name: _plain(choice) for name, choice in first.items() if choice is not None}


def _plain(value: Json) -> Json:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        **{name: _plain(below) for name, below in value.items() if not isinstance(below, list)},
        **_chosen({name: below for name, below in value.items() if isinstance(below, list)}),
    }


def _lines(path: Path) -> Iterator[Json]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)
