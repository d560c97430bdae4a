"""Twenty calls on one open run; and a gateway that is killed in between and resumes the task."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.free_port import free_port
from tests.programs.cursor.journal import check, check_runs, runs_of
from tests.programs.cursor.stage import (
    RUN_PARKED,
    SETTINGS,
    SSE_PARKED,
    CursorStage,
    Setting,
    serving_gateway,
    simulating,
)
from tests.programs.stage import KEY, calling, prompt
from tests.thorough import some

pytestmark = pytest.mark.slow

CALLS = 20
KILLED = 10  # at this call, which is then open
_KEEP = {
    "name": "keep",
    "description": "Keeps a number in a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["path", "number"],
    },
}
TOOLS: list[Any] = [{"type": "function", "function": _KEEP}]


class Work:
    """A client that runs the calls; each file is named by the previous result, so that no step can be done early."""

    def __init__(self, address: str, folder: Path) -> None:
        self.done: list[int] = []
        self.answer = ""
        self._folder = folder
        self._client = OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0, timeout=20)
        paths = [f"{folder}/0", *(f"{folder}/{{{{result:{number}:[0-9]+}}}}" for number in range(CALLS - 1))]
        turns = [calling("keep", arguments={"path": path, "number": number}) for number, path in enumerate(paths)]
        last = {"text": f"ALLDONE {{{{result:{CALLS - 1}}}}}"}
        self._messages: list[Any] = [{"role": "user", "content": prompt(*turns, last)}]

    def steps(self) -> Iterator[int]:
        """Yields after each answer with a call, before it runs: the number of completed calls."""
        while calls := self._answer():
            yield len(self.done)
            for call in calls:
                result = self._keep(**json.loads(call.function.arguments))
                self._messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def check(self) -> None:
        """Every call ran once and in order."""
        assert self.answer == f"ALLDONE next is {CALLS}"
        assert self.done == list(range(CALLS))
        assert sorted(int(file.name) for file in self._folder.iterdir()) == self.done

    def _answer(self) -> list[Any]:
        answer = self._client.chat.completions.create(model="a-model", messages=self._messages, tools=TOOLS)
        message = answer.choices[0].message
        self._messages.append(message.to_dict(exclude_none=True))
        self.answer = message.content or ""
        return list(message.tool_calls or [])

    def _keep(self, path: str, number: int) -> str:
        self.done.append(number)
        Path(path).write_text(str(number), encoding="utf-8")
        return f"next is {number + 1}"


@pytest.mark.parametrize("stage", some(SETTINGS, [RUN_PARKED]), indirect=True)
def test_twenty_calls_go_through_one_run_that_stays_open(stage: CursorStage, tmp_path: Path) -> None:
    work = Work(stage.address, tmp_path)
    assert list(work.steps()) == list(range(CALLS))
    work.check()
    check(stage, tmp_path, steps=CALLS + 1)


@pytest.mark.parametrize("setting", [RUN_PARKED, SSE_PARKED])
def test_a_gateway_that_is_killed_resumes_where_it_was(setting: Setting, tmp_path: Path) -> None:
    """The new gateway only has what the client sends: the conversation in native form, then one open run again."""
    here, files = tmp_path / "here", tmp_path / "files"
    here.mkdir()
    files.mkdir()
    port = free_port()
    work = Work(f"http://127.0.0.1:{port}", files)
    steps = work.steps()
    with simulating(setting, here) as upstream:
        with serving_gateway(setting, here, upstream, port) as process:
            assert [next(steps) for _ in range(KILLED)] == list(range(KILLED))
            process.kill()
            assert process.wait(timeout=5) == -signal.SIGKILL
        with serving_gateway(setting, here, upstream, port):
            assert list(steps) == list(range(KILLED, CALLS))
            runs = runs_of(CursorStage(setting.words, "", here), str(files))
    work.check()
    assert [run.state for run in runs] == ["gone", "ended"]
    assert not [run.offences for run in runs if run.offences]
    check_runs(runs, CALLS + 1, breaks=[KILLED])
