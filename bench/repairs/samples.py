"""Calls with the schemas of their tools: our own in tools.jsonl, some of BFCL's in bfcl.jsonl, all of BFCL's where it is."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

Json = Any
HERE = Path(__file__).resolve().parent

# BFCL's own words for types, as its runners translate them for every vendor.
TYPES = {"dict": "object", "float": "number", "double": "number", "tuple": "array", "bool": "boolean", "int": "integer"}

# What strings hold in practice and in tests seldom.
TEXTS = (
    'She said "no", and left.',
    'print("héllo, wörld")\nreturn {"ok": True}\n',
    "it's 5 o'clock somewhere, isn't it?",
    "第一行：你好，世界。\n第二行\t结束",
    "😀 family: 👨‍👩‍👧 flag: 🇩🇪",
    'line one\nline two\n\tindented "quoted" line\n',
    "# a comment? // no: /* text */ http://example.org/a?b=1&c=2",
    "C:\\Program Files\\tool\\bin",
    "^\\d{3}-\\d+\\s*$",
    "{not json} [either], 'quoted': true, null",
    "مرحبا بالعالم",
    "```python\nx = {'a': [1, 2]}\n```",
    "true",
    "null",
    "2512292042121000001",
    "",
    'a <b> & "c" </tool_call> d',
    "say “hello” to ‘them’",
)


@dataclass(frozen=True)
class Sample:
    """One call that is right."""

    tool: str
    schema: Json
    arguments: dict[str, Json]


def bundled() -> list[Sample]:
    """The samples that come with this program."""
    return [*_read(HERE / "tools.jsonl"), *_read(HERE / "bfcl.jsonl")]


def _read(path: Path) -> Iterator[Sample]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            tool = json.loads(line)
            for arguments in tool["calls"]:
                yield Sample(tool["name"], tool["schema"], arguments)


def from_bfcl(data: Path) -> list[Sample]:
    """Every call of BFCL's ground truth, once; data is the folder `bfcl_eval/data` of the package bfcl-eval."""
    seen: set[str] = set()
    samples = []
    for name, schema, arguments in [*_single(data), *_executed(data), *_multi_turn(data)]:
        try:
            key = json.dumps([name, schema, arguments], sort_keys=True)
        except TypeError:
            continue
        if key not in seen:
            seen.add(key)
            samples.append(Sample(name, with_json_types(schema), json.loads(json.dumps(arguments))))
    return samples


def with_json_types(schema: Json) -> Json:
    """BFCL writes Python's names of types, and `any`; JSON Schema has others."""
    if isinstance(schema, list):
        return [with_json_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            if value.lower() != "any":
                changed[key] = TYPES.get(value.lower(), value.lower())
        elif key == "properties" and isinstance(value, dict):
            changed[key] = {name: with_json_types(below) for name, below in value.items()}
        elif key in ("items", "additionalProperties"):
            changed[key] = with_json_types(value)
        else:
            changed[key] = value
    return changed


def livened(sample: Sample, random: Random) -> Sample:
    """The same call with one of its free strings replaced by one that is hard to write."""
    free = list(_free_strings(sample.schema, sample.arguments, ()))
    if not free:
        return sample
    arguments = copy.deepcopy(sample.arguments)
    put(arguments, random.choice(free), random.choice(TEXTS))
    return Sample(sample.tool, sample.schema, arguments)


def put(value: Json, path: tuple[Json, ...], new: Json) -> None:
    """Replace what is at a path, which is not empty."""
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new


def _free_strings(schema: Json, value: Json, path: tuple[Json, ...]) -> Iterator[tuple[Json, ...]]:
    if not isinstance(schema, dict):
        return
    if isinstance(value, str) and schema.get("type") == "string" and path:
        if not schema.keys() & {"enum", "const", "pattern", "format", "minLength", "maxLength"}:
            yield path
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _free_strings(schema.get("properties", {}).get(name), below, (*path, name))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _free_strings(schema.get("items"), below, (*path, index))


def _lines(path: Path) -> Iterator[Json]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _single(data: Path) -> Iterator[tuple[str, Json, Json]]:
    for answers in sorted((data / "possible_answer").glob("*.json")):
        if any(word in answers.name for word in ("multi_turn", "memory", "web_search")):
            continue
        questions = {question["id"]: question for question in _lines(data / answers.name)}
        for answer in _lines(answers):
            tools = {tool["name"]: tool for tool in questions[answer["id"]]["function"]}
            for call in answer["ground_truth"]:
                for name, options in call.items():
                    if name in tools:
                        yield name, tools[name]["parameters"], _chosen(options)


def _chosen(options: dict[str, list[Json]]) -> dict[str, Json]:
    """BFCL lists the answers taken as right for each parameter; "" among them means that it may be left out."""
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


def _executed(data: Path) -> Iterator[tuple[str, Json, Json]]:
    for path in sorted((data / "unused_datasets" / "question").glob("*exec*.json")):
        answers = {answer["id"]: answer for answer in _lines(path.parent.parent / "possible_answer" / path.name)}
        for question in _lines(path):
            tools = {tool["name"]: tool["parameters"] for tool in question["function"]}
            for text in answers.get(question["id"], {}).get("ground_truth", []):
                yield from _called(text, tools)


def _multi_turn(data: Path) -> Iterator[tuple[str, Json, Json]]:
    tools: dict[str, Json] = {}
    for path in sorted((data / "multi_turn_func_doc").glob("*.json")):
        for tool in _lines(path):
            tools.setdefault(tool["name"], tool["parameters"])
    for path in sorted((data / "possible_answer").glob("*multi_turn*.json")):
        for answer in _lines(path):
            for text in (text for turn in answer["ground_truth"] for text in turn):
                yield from _called(text, tools)


def _called(text: str, tools: dict[str, Json]) -> Iterator[tuple[str, Json, Json]]:
    """The call that a line of Python makes, where all its arguments are literals."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or (name := ast.unparse(call.func)) not in tools:
            return
        placed = [ast.literal_eval(argument) for argument in call.args]
        named = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        return
    yield name, tools[name], {**dict(zip(tools[name].get("properties", {}), placed, strict=False)), **named}
