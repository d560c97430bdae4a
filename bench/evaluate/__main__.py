"""Ask a real model the questions of BFCL through toolwire, and count the right calls at each guard level, with and without a grammar.

python -m bench.evaluate                                           SmolLM2-135M of `make model`, within ten minutes
python -m bench.evaluate --url http://127.0.0.1:8080/v1 --model qwen3-8b --profile llamacpp
python -m bench.evaluate --url https://api.example.com/v1 --model big --key-env EXAMPLE_KEY --parallel 8
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .model import NAME, LocalModel
from .questions import SEED, Question, bundled
from .recorder import Recorder
from .report import Row, to_json, to_table
from .settings import Gateway, Setting, all_settings
from .truth import Verdict, judge

Json = Any


def main() -> None:
    options = _read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers that were started here end
    questions = bundled(options.count)
    local = None if options.url else LocalModel(options.parallel or 2)
    urls = local.urls if local is not None else [options.url.rstrip("/")] * (options.parallel or 1)
    key = os.environ.get(options.key_env, "") if options.key_env else ""
    # Without its prompt cache, llama.cpp computes the same numbers whatever it was asked before.
    recorder = Recorder(urls, key, {"cache_prompt": False} if local is not None else {}, options.store)
    profile = options.profile or ("llamacpp" if local is not None else "")
    settings = all_settings(options.tools, options.choices)
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(Path(folder), settings, recorder.url, options.model, profile)
            try:
                rows = [_run(gateway, recorder, setting, questions, options, len(urls)) for setting in settings]
            finally:
                gateway.close()
        seconds = time.monotonic() - started
        cpu = f", {local.cpu_seconds:.0f} s of CPU time of the model" if local is not None else ""
    finally:
        recorder.close()
        if local is not None:
            local.close()
    name = options.name or (NAME if local is not None else options.model)
    print(
        f"{name}: {len(questions)} questions, {sum(bool(question.truth) for question in questions)} of them need a call"
    )
    print(f"{recorder.sent} different requests, {seconds:.0f} s{cpu}\n")
    print(to_table(rows))
    if options.json:
        options.json.write_text(json.dumps({"model": name, "rows": to_json(rows)}, indent=1) + "\n")


def _run(
    gateway: Gateway, recorder: Recorder, setting: Setting, questions: Sequence[Question], options: Any, parallel: int
) -> Row:
    if setting.choice == "required":
        questions = [question for question in questions if question.truth]

    def answer(question: Question) -> Json:
        return gateway.ask(setting, _members(question, setting, options.max_tokens))

    with ThreadPoolExecutor(parallel) as pool:
        messages = list(pool.map(answer, questions))
    calls: list[Verdict] = []
    others: list[Verdict] = []
    for question, message in zip(questions, messages, strict=True):
        made = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
        (calls if question.truth else others).append(judge(question, made))
        if options.answers:
            line = {"setting": setting.name, "id": question.id, "message": message, "truth": question.truth}
            print(json.dumps(line, ensure_ascii=False), file=sys.stderr)
    failed = sum("error" in message for message in messages)
    print(f"{setting.name}: {sum(verdict.is_equal for verdict in calls)} of {len(calls)}", file=sys.stderr, flush=True)
    return Row(setting, calls, others, recorder.costs[setting.name], failed)


def _members(question: Question, setting: Setting, max_tokens: int) -> Json:
    return {
        "messages": question.messages,
        "tools": question.tools,
        "temperature": 0,
        "seed": SEED,
        "max_tokens": max_tokens,
        **({} if question.is_parallel else {"parallel_tool_calls": False}),
        **({} if setting.choice == "auto" else {"tool_choice": setting.choice}),
    }


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--url", default="", help="an OpenAI-compatible server, up to /v1; without it the model of `make model`"
    )
    parser.add_argument("--model", default="smollm2-135m", help="the name of the model on that server")
    parser.add_argument("--key-env", default="", help="the environment variable that holds the key")
    parser.add_argument("--profile", default="", help="the toolwire profile of the server, such as llamacpp or vllm")
    parser.add_argument("--name", default="", help="how the report calls the model")
    parser.add_argument("--count", type=int, default=0, help="so many questions of the sample; all by default")
    parser.add_argument("--tools", nargs="+", default=["native", "simulate"], choices=["native", "simulate"])
    parser.add_argument("--choices", nargs="+", default=["auto"], choices=["auto", "required"], help="tool_choice")
    parser.add_argument("--max-tokens", type=int, default=128, help="of one answer")
    parser.add_argument("--parallel", type=int, default=0, help="requests at the same time")
    parser.add_argument(
        "--store", type=Path, help="a file of the model's answers: a run that was stopped goes on from there"
    )
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    parser.add_argument("--answers", action="store_true", help="write every answer to stderr, as lines of JSON")
    return parser.parse_args()


main()
