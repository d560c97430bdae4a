"""scripts/trace_request.py: the tracer runs, and lists modules by stage."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scripts.trace_request import CASES, main, report, stage_of

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "trace_request.py"


@pytest.mark.parametrize(
    ("module", "stage"),
    [
        ("toolwire.server.app", "server"),
        ("toolwire.dialects.chat.request_in", "decode request"),
        ("toolwire.pipeline.prepare", "prepare"),
        ("toolwire.backends.http.transport", "back end"),
        ("toolwire.dialects.chat.answer_in", "answer"),
        ("toolwire.dialects.messages.answer_out", "encode answer"),
        ("toolwire.telemetry.prometheus", "telemetry"),
        ("toolwire.dialects.base", "dialects, shared"),
    ],
)
def test_each_module_has_a_stage(module: str, stage: str) -> None:
    assert stage_of(module) == stage


def test_the_report_adds_up_modules_functions_and_calls() -> None:
    calls = Counter(
        {("toolwire.server.app", "App.a"): 2, ("toolwire.server.app", "b"): 1, ("toolwire.runtime", "c"): 4}
    )
    assert list(report("case", calls, has_functions=True)) == [
        "case: 2 modules, 3 functions, 7 calls",
        "  server: 1 modules, 3 calls",
        "    server.app: 2 functions, 3 calls",
        "      App.a 2",
        "      b 1",
        "  prepare: 1 modules, 4 calls",
        "    runtime: 1 functions, 4 calls",
        "      c 4",
    ]


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat-plain", "other"]) == 2
    assert "found other; expected some of messages-to-chat" in capsys.readouterr().out


@pytest.mark.slow
def test_every_case_is_traced_through_all_stages() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120, check=True)
    heads = re.findall(r"^(\S+): (\d+) modules, \d+ functions, (\d+) calls$", done.stdout, re.MULTILINE)
    assert [name for name, _, _ in heads] == list(CASES)
    assert all(int(modules) > 20 and int(calls) > 100 for _, modules, calls in heads), heads
    for stage in ("server", "decode request", "prepare", "back end", "answer", "encode answer", "telemetry"):
        assert f"\n  {stage}: " in done.stdout
