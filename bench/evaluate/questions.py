"""Questions of the Berkeley Function Calling Leaderboard with their tools and the right calls.

python -m bench.evaluate.questions PATH/bfcl_eval/data     writes questions.jsonl anew
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:  # mypy knows what is in bench/ by its own name, because bench/run imports it so
    from repairs.samples import with_json_types
else:
    from bench.repairs.samples import with_json_types

Json = Any
FILE = Path(__file__).resolve().parent / "questions.jsonl"
SEED = 17
# So many of each category. irrelevance: no tool fits, and no call is right.
SAMPLE = {"simple_python": 15, "multiple": 11, "parallel": 5, "irrelevance": 5}
_LICENSE = """\
# From the Berkeley Function Calling Leaderboard (package bfcl-eval), Copyright the Gorilla authors, Apache License 2.0
# (http://www.apache.org/licenses/LICENSE-2.0). Changed: a selection, names of types as JSON Schema has them, _ for dots in names.
"""


class Question(Struct, frozen=True):
    """truth: the right calls, by tool and parameter with all values that are right; "" among them: it may be absent."""

    id: str
    messages: list[Json]
    tools: list[Json]
    truth: list[dict[str, dict[str, list[Json]]]]

    @property
    def is_parallel(self) -> bool:
        return len(self.truth) > 1


def bundled(count: int = 0) -> list[Question]:
    """The fixed sample; the first of it, evenly over the categories, if count is less than all."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    questions = [Question(**json.loads(line)) for line in lines if not line.startswith("#")]
    if not 0 < count < len(questions):
        return questions
    return [questions[index * len(questions) // count] for index in range(count)]


def select(data: Path) -> Iterator[Question]:
    for category, count in SAMPLE.items():
        asked = _lines(data / f"BFCL_v4_{category}.json")
        answers = data / "possible_answer" / f"BFCL_v4_{category}.json"
        truths = {answer["id"]: answer["ground_truth"] for answer in _lines(answers)} if answers.exists() else {}
        chosen = Random(SEED).sample(range(len(asked)), count)
        for one in (asked[index] for index in sorted(chosen)):
            truth = [{_name(name): options for name, options in call.items()} for call in truths.get(one["id"], [])]
            yield Question(one["id"], one["question"][0], [_tool(tool) for tool in one["function"]], truth)


def _tool(tool: Json) -> Json:
    function = {
        "name": _name(tool["name"]),
        "description": tool["description"],
        "parameters": with_json_types(tool["parameters"]),
    }
    return {"type": "function", "function": function}


def _name(name: str) -> str:
    return name.replace(".", "_")


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    selected = [json.dumps(asdict(question)) for question in select(Path(sys.argv[1]))]
    FILE.write_text(_LICENSE + "".join(f"{line}\n" for line in selected), encoding="utf-8")
