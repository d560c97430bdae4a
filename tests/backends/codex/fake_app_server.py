"""An app-server without a model: it answers as the real one does, by a word in the prompt, as in "DO=plain".

Messages have the form that Codex 0.166 was seen to send. Run as a program; --journal gets one line for each message that comes in.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_USAGE = {"totalTokens": 9, "inputTokens": 5, "cachedInputTokens": 1, "outputTokens": 4, "reasoningOutputTokens": 0}
_HAS_LOGIN = Path(os.environ.get("CODEX_HOME", "."), "auth.json").exists()  # the real one reads it when it starts, too
_ASKING = {
    "ask": ("toolwire/never/heard/of", {"a": 1}),
    "input": ("item/tool/requestUserInput", {"itemId": "i1", "questions": []}),
    "approve": ("item/commandExecution/requestApproval", {"itemId": "i1", "command": "rm -rf /"}),
}


class AppServer:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._threads: dict[str, str] = {}
        self._sessions: dict[str, str] = {}  # of threads that were loaded from their files
        self._stopping: dict[str, threading.Event] = {}
        self._deaf: set[str] = set()
        self._floors: dict[str, tuple[str, str]] = {}  # of the last turn of a thread: its id, and what stood before it
        self._local = threading.local()  # turn: the id of the turn that is played
        self._next_request = 0
        self._replies: dict[int, threading.Event] = {}

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            self._note(message)
            if message.get("method") == self._options.deaf:
                time.sleep(3600)
            if "method" not in message:
                self._replies.pop(message["id"], threading.Event()).set()
            elif "id" in message:
                self._answer(message["id"], message["method"], message.get("params") or {})

    def _note(self, message: dict[str, Any]) -> None:
        if self._options.journal:
            with Path(self._options.journal).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps({"pid": os.getpid(), **message}) + "\n")

    def _write(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def _answer(self, id: int, method: str, params: dict[str, Any]) -> None:
        thread = params.get("threadId", "")
        if method == "initialize":
            if not self._options.mute:
                self._write(id=id, result={"userAgent": f"toolwire/{self._options.version} (test)"})
        elif params.get("model") == "refused":
            self._write(id=id, error={"code": -32600, "message": "no such model here"})
        elif self._options.rigid and "historyMode" in params:
            self._write(id=id, error={"code": -32600, "message": "unknown field `historyMode`"})
        elif method in ("thread/start", "thread/resume"):
            thread = f"thread-{os.getpid()}-{len(self._threads)}".ljust(36 if self._options.sessions else 0, "-")
            self._skip([tool["name"] for tool in params.get("dynamicTools") or ()])
            self._threads[thread] = json.dumps(params.get("history") or [])
            self._write(
                id=id, result={"thread": {"id": thread, "path": self._rollout(thread)}, "model": params.get("model")}
            )
            self._write(method="thread/started", params={"thread": {"id": thread}})
        elif method == "thread/inject_items":
            self._threads[thread] += json.dumps(params["items"])
            if self._options.sessions and thread not in self._floors:
                self._session_file(thread).parent.mkdir(parents=True, exist_ok=True)
                self._session_file(thread).write_text(json.dumps({"session_id": thread}, separators=(",", ":")) + "\n")
            self._write(id=id, result={})
        elif method == "turn/start":
            self._start_turn(id, thread, params["input"])
        elif method == "turn/interrupt":
            self._stopping[thread].set()
            if thread not in self._deaf:
                self._write(id=id, result={})
        elif method == "model/list":
            data = [{"id": "fake-1", "model": "fake-1", "displayName": "Fake One", "hidden": False}]
            self._write(id=id, result={"data": data, "nextCursor": "more" if self._options.endless else None})
        elif method == "thread/revert":
            self._revert(id, thread, params["beforeTurnId"])
        elif method == "thread/read" and self._options.sessions != "lost":
            self._write(id=id, result={"thread": {"id": thread, "sessionId": self._sessions.get(thread, thread)}})
        elif method == "thread/unsubscribe":
            self._write(id=id, result={"status": "unsubscribed"})
        elif method in ("thread/archive", "thread/delete"):
            self._write(id=id, result={})
        else:
            self._write(id=id, error={"code": -32600, "message": f"Invalid request: unknown variant `{method}`"})

    def _start_turn(self, id: int, thread: str, given: Any) -> None:
        self._stopping[thread] = threading.Event()
        turn = f"turn-{id}-of-{thread}"
        self._floors[thread] = (turn, self._threads[thread])
        self._write(id=id, result={"turn": {"id": turn, "items": [], "status": "inProgress"}})
        prompt = self._threads[thread] + json.dumps(given)
        self._threads[thread] += " and what the turn has added"
        word = (re.findall(r"DO=(\w+)", prompt) or ["plain"])[-1]
        threading.Thread(target=self._play_turn, args=(turn, thread, word), daemon=True).start()

    def _revert(self, id: int, thread: str, turn: str) -> None:
        known, before = self._floors.get(thread, ("", ""))
        if self._options.sessions == "reload":
            self._sessions[thread] = json.loads(self._session_file(thread).read_text())["session_id"]
        if turn != known or self._options.stiff:
            self._write(id=id, error={"code": -32600, "message": f"turn not found: {turn}"})
            return
        self._threads[thread] = before
        self._write(id=id, result={"thread": {"id": thread}})
        self._write(method="thread/reverted", params={"threadId": thread})

    def _skip(self, names: list[str]) -> None:
        """As 0.166 says it, colours and all."""
        if self._options.skips in names:
            said = "\x1b[33m WARN\x1b[0m codex_core::tools::registry: skipping external tool with reserved name"
            print(f"{said} \x1b[3mtool_name\x1b[0m=\x1b[0m{self._options.skips}", file=sys.stderr, flush=True)

    def _session_file(self, thread: str) -> Path:
        return Path(os.environ["CODEX_HOME"], "sessions", "2026", "11", "18", f"rollout-{thread}.jsonl")

    def _rollout(self, thread: str) -> str | None:
        """Old versions write every conversation down."""
        if self._options.sessions:
            return str(self._session_file(thread))
        if not self._options.version.startswith("0.8") or "CODEX_HOME" not in os.environ:
            return None
        path = Path(os.environ["CODEX_HOME"]) / f"{thread}.jsonl"
        path.write_text("what was said")
        return str(path)

    def _play_turn(self, turn: str, thread: str, word: str) -> None:
        self._local.turn = turn
        self._tell("turn/started", thread, turn={"id": turn, "status": "inProgress"})
        self._play(thread, word)

    def _play(self, thread: str, word: str) -> None:
        if word.startswith("e"):
            status = int(word[1:])
            info = {"httpConnectionFailed": {"httpStatusCode": status}}
            error = {"message": f"unexpected status {status}", "codexErrorInfo": info, "additionalDetails": None}
            self._tell("error", thread, error=error, willRetry=False)
            self._complete(thread, "failed", error)
        elif word == "login":
            self._play(thread, "plain" if _HAS_LOGIN else "e401")
        elif word == "offline":
            error = {"message": "Reconnecting... waiting for network", "additionalDetails": "Connection failed"}
            self._tell("error", thread, error=error, willRetry=True)
            self._stopping[thread].wait()
            self._complete(thread, "interrupted")
        elif word == "calls":
            self._call(thread)
        elif word == "chatter":
            while not self._stopping[thread].wait(0.01):
                self._tell("thread/status/changed", thread, status="busy")
        elif word == "silent":
            self._stopping[thread].wait()
            self._complete(thread, "interrupted")
        else:
            if word == "deaf":
                self._deaf.add(thread)
            if word in _ASKING:
                method, params = _ASKING[word]
                self._ask(method, {"threadId": thread, "turnId": self._local.turn, **params})
            if word == "stray":
                self._ask(
                    "item/tool/call", {"threadId": thread, "turnId": "another", "callId": "c", "tool": "get_weather"}
                )
            self._say(thread, word)

    def _say(self, thread: str, word: str) -> None:
        self._tell("item/started", thread, item={"type": "agentMessage", "id": f"m-{thread}", "text": ""})
        pieces = [f"w{index} " for index in range(2000)] if word == "slow" else ["Hel", "lo ", thread]
        said = ""
        for piece in pieces:
            if self._stopping[thread].is_set():
                self._complete(thread, "interrupted")
                return
            said += piece
            self._tell("item/agentMessage/delta", thread, itemId=f"m-{thread}", delta=piece)
            if word in ("stall", "deaf"):
                self._stopping[thread].wait()
            if word == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01 if word == "slow" else 0.002)
        self._tell("item/completed", thread, item={"type": "agentMessage", "id": f"m-{thread}", "text": said})
        self._tell("rawResponse/completed", thread, responseId="r1", usage=_USAGE)
        self._tell("thread/tokenUsage/updated", thread, tokenUsage={"last": _USAGE, "total": _USAGE})
        self._complete(thread, "completed")

    def _call(self, thread: str) -> None:
        waiting = []
        for number, city in enumerate(("Paris", "Rome")):
            call = f"call_{number}"
            raw = {"type": "function_call", "call_id": call, "name": "get_weather"}
            self._tell("rawResponseItem/completed", thread, item={**raw, "arguments": json.dumps({"city": city})})
            item = {"type": "dynamicToolCall", "id": call, "tool": "get_weather", "arguments": {"city": city}}
            self._tell("item/started", thread, item=item)
            answered = self._ask(
                "item/tool/call",
                {
                    "threadId": thread,
                    "turnId": self._local.turn,
                    "callId": call,
                    "namespace": None,
                    "tool": "get_weather",
                    "arguments": {"city": city},
                },
                waits=False,
            )
            waiting.append(answered)
        self._tell("rawResponse/completed", thread, responseId="r1", usage=_USAGE)
        while not self._stopping[thread].is_set():
            if all(answered.wait(0.01) for answered in waiting):
                self._say(thread, "plain")
                return
        self._complete(thread, "interrupted")

    def _ask(self, method: str, params: dict[str, Any], *, waits: bool = True) -> threading.Event:
        with self._lock:
            id, self._next_request = self._next_request, self._next_request + 1
            answered = self._replies[id] = threading.Event()
        self._write(id=id, method=method, params=params)
        if waits and not answered.wait(5):
            os._exit(7)
        return answered

    def _tell(self, method: str, thread: str, **params: Any) -> None:
        if method.startswith("rawResponse") and int(self._options.version.split(".")[1]) < 145:
            return
        self._write(method=method, params={"threadId": thread, "turnId": self._local.turn, **params})

    def _complete(self, thread: str, status: str, error: Any = None) -> None:
        self._tell("turn/completed", thread, turn={"id": self._local.turn, "status": status, "error": error})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", default="0.166.0")
    parser.add_argument("--journal", default="")
    parser.add_argument("--starts", default="", help="a file with how many of the next starts fail")
    parser.add_argument("--mute", action="store_true", help="never introduce yourself")
    parser.add_argument("--deaf", default="", help="the method after which nothing more is read")
    parser.add_argument("--endless", action="store_true", help="there is always another page of models")
    parser.add_argument("--rigid", action="store_true", help="there are no threads that can be taken back")
    parser.add_argument("--stiff", action="store_true", help="a thread is never taken back")
    parser.add_argument(
        "--sessions", default="", help="threads have files, and a revert does this to one: reload or lost"
    )
    parser.add_argument("--skips", default="", help="the name of a tool that is left out")
    parser.add_argument("--stubborn", action="store_true", help="leave neither at the end of input nor when asked to")
    options = parser.parse_args()
    if options.starts:
        left = int(Path(options.starts).read_text())
        Path(options.starts).write_text(str(left - 1))
        if left > 0:
            print(f"no start today, OPENAI_API_KEY={os.environ.get('OPENAI_API_KEY')}", file=sys.stderr)
            sys.exit(3)
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    AppServer(options).serve()
    while options.stubborn:
        time.sleep(1)


if __name__ == "__main__":
    main()
