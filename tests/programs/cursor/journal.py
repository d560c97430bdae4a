"""The simulator's journal of a task: its runs, their requests to the client, and the conversation that they got."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from tests.programs.cursor.stage import CursorStage

# For a run that was abandoned at a call: the server may see the cancellation, see the closed stream first, or still wait.
LEFT = ("refused", "gone", "open")
_SECONDS = 5.0  # for the last lines: the client gets its answer a moment before the run ends


class Run(Struct, kw_only=True):
    """messages: the history that the server fetched; given: how often each exec was answered, by id if it has one."""

    number: int
    transport: str = ""
    action: str = ""
    model: str = ""
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: dict[str, str] = {}  # by the id of the exec: which member of the result was set
    result_texts: list[str] = []  # the beginning of each result
    given: Counter[str] = field(default_factory=Counter)
    offences: list[str] = []
    state: str = "open"
    error: str = ""

    @property
    def call_ids(self) -> list[str]:
        return [call["call_id"] for call in self.calls]

    @property
    def brief(self) -> str:
        calls = ", ".join(f"{call['name']} {self.given[call['call_id']]}" for call in self.calls)
        return (
            f"run {self.number} {self.transport} {self.action} {self.state} {self.error}: {len(self.messages)}; {calls}"
        )

    def parts(self, kind: str) -> list[dict[str, Any]]:
        lists = [message["content"] for message in self.messages if isinstance(message["content"], list)]
        return [part for parts in lists for part in parts if part["type"] == kind]

    def is_about(self, mark: str) -> bool:
        """Programs send more requests than those of the task, such as for a title: only those about its files count."""
        args = [*(call["args"] for call in self.calls), *(part["args"] for part in self.parts("tool-call"))]
        results = [part["result"] for part in self.parts("tool-result")]
        return any(mark in text for value in (*args, results, self.result_texts) for text in _texts(value))


def runs_of(stage: CursorStage, mark: str) -> list[Run]:
    """The runs whose calls or results contain this, in order, after the last one has ended."""
    deadline = time.monotonic() + _SECONDS
    while True:
        runs = [run for run in read(stage.journal) if run.is_about(mark)]
        if all(run.state != "open" for run in runs[-1:]) or time.monotonic() > deadline:
            return runs
        time.sleep(0.05)


def read(path: Path) -> list[Run]:
    """Raises if the simulator reported an error outside of any run."""
    runs: dict[int, Run] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        noted = json.loads(line)
        if noted["run"] is None:
            assert noted["what"] != "offence", noted
        else:
            _note(runs.setdefault(noted["run"], Run(number=noted["run"])), noted)
    return list(runs.values())


def _note(run: Run, noted: dict[str, Any]) -> None:
    match noted["what"]:
        case "opened":
            run.transport, run.action, run.model = noted["transport"], noted["action"], noted["model"]
        case "root":
            run.messages.append(noted["message"])
        case "call":
            run.calls.append(noted)
        case "result":
            run.given[noted["call_id"]] += 1
            run.results[noted["call_id"]] = noted["result"]
            run.result_texts.append(noted["text"])
        case "offence":
            run.offences.append(noted["why"])
        case "end":
            run.state, run.error = noted["state"], noted["error"]


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list() | dict():
            for inner in value.values() if isinstance(value, dict) else value:
                yield from _texts(inner)


def check(stage: CursorStage, project: Path, steps: int, breaks: Sequence[int] = ()) -> None:
    """The task took that many answers, with a call in each but the last, in the way of this stage's setting.

    breaks: calls, counted from 1, whose result comes with more than a parked run can accept.
    """
    runs = runs_of(stage, str(project))
    assert not [run.offences for run in runs if run.offences]
    assert {run.transport for run in runs} == {stage.transport}
    check_runs(runs, steps, breaks if stage.parks else range(1, steps))


def check_runs(runs: list[Run], steps: int, breaks: Sequence[int]) -> None:
    """One run until each break and one to the end. Each got the results of its own calls once, and began with the conversation before them in
    native form: a part for each call and each result, none of it in the user's text."""
    bounds = [0, *breaks, steps - 1]
    brief = "\n".join(run.brief for run in runs)
    assert [len(run.calls) for run in runs] == [end - start for start, end in pairwise(bounds)], brief
    assert [run.state for run in runs[-1:]] == ["ended"], brief
    assert all(run.state in LEFT for run in runs[:-1]), brief
    calls = [call for run in runs for call in run.calls]
    for run, start in zip(runs, bounds, strict=False):
        answered = run.call_ids if run is runs[-1] else run.call_ids[:-1]
        assert {name: count for name, count in run.given.items() if name} == dict.fromkeys(answered, 1), brief
        check_history(run, calls[:start])
        assert run.action == "user_message_action", brief
    for run, later in pairwise(runs[1:]):
        assert later.messages[: len(run.messages)] == run.messages, "the beginning of the history has changed"


def check_history(run: Run, calls: list[dict[str, Any]]) -> None:
    result_texts = [(part["toolCallId"], part["toolName"], part["args"]) for part in run.parts("tool-call")]
    assert result_texts == [(call["call_id"], call["name"], call["args"]) for call in calls]
    assert [part["toolCallId"] for part in run.parts("tool-result")] == [call["call_id"] for call in calls]
