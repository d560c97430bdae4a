"""An app-server without a model, for turns that wait for results. It calls tools in the same way as the real versions.

Up to 0.130 it reports token counts before it requests results, from 0.145 on it marks the end of a response. Up to 0.144 it calls one tool
after the other, the last one first. The prompt sets the number of rounds of two calls, as in "ROUNDS=2"; the last answer repeats the
results. With --stubborn the model never stops: it keeps calling the client's tools, and without tools the app-server answers with an error
and the model calls again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Interrupted(Exception):
    pass


class Thread:
    def __init__(self, server: AppServer, id: str, params: Json) -> None:
        self.id = id
        self._server = server
        self._history = json.dumps(params.get("history") or [])
        self._has_tools = bool(params.get("dynamicTools"))
        self._is_stopped = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self.turn = -1
        self._responses = 0

    def begin(self) -> str:
        """A turn has its own id, and begins when the previous one has ended."""
        self._is_idle.wait(5)
        self._is_idle.clear()
        self._is_stopped.clear()
        self.turn += 1
        return str(self.turn)

    def inject(self, items: Any) -> None:
        self._history += json.dumps(items)

    def stop(self) -> None:
        self._is_stopped.set()

    def run(self, given: Any) -> None:
        """Run a turn. If the input already has results, the conversation was restarted."""
        prompt = self._history + json.dumps(given)
        try:
            if self._server.options.stubborn:
                self._say("Let me see. ")
                for number in itertools.count(prompt.count("function_call_output")):
                    self._round(number) if self._has_tools else self._refused(number)
            elif "function_call_output" in prompt or "result_of" in prompt:
                self._say("begun anew")
            else:
                rounds = int(re.findall(r"ROUNDS=(\d+)", prompt)[-1])
                self._say(json.dumps([self._round(number) for number in range(rounds)]))
                self._respond()
                self._count()
            self._tell("turn/completed", turn={"id": str(self.turn), "status": "completed", "error": None})
        except Interrupted:
            self._tell("turn/completed", turn={"id": str(self.turn), "status": "interrupted", "error": None})
        finally:
            self._is_idle.set()

    def _round(self, number: int) -> Json:
        """Two calls and their results."""
        calls = [(f"call_{number}_{city}", {"city": city}) for city in ("Rome", "Paris")]
        options, asked = self._server.options, []
        for call, arguments in calls:
            item = {"type": "function_call", "name": "look", "arguments": json.dumps(arguments)}
            self._tell("rawResponseItem/completed", item={**item, "call_id": call})
            if options.minor >= 145:
                asked.append((call, self._request(call, arguments)))
            time.sleep(options.gap)
        self._respond()
        if options.minor <= 130:
            self._count()
        if options.minor >= 145:
            found = {call: self._awaited(waiting) for call, waiting in asked}
        else:
            found = {call: self._awaited(self._request(call, arguments)) for call, arguments in reversed(calls)}
        self._count()
        return found

    def _refused(self, number: int) -> None:
        """A call that the app-server itself answers with an error."""
        call = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": f"call_{number}"}
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "unsupported call: look"}
        for item in (call, output):
            self._tell("rawResponseItem/completed", item=item)
        if self._is_stopped.wait(0.005):
            raise Interrupted

    def _request(self, call: str, arguments: Json) -> queue.Queue[Any]:
        params = {"threadId": self.id, "turnId": str(self.turn), "callId": call, "tool": "look", "arguments": arguments}
        return self._server.ask("item/tool/call", params)

    def _awaited(self, waiting: queue.Queue[Any]) -> Any:
        while not self._is_stopped.is_set():
            try:
                return waiting.get(timeout=0.01)
            except queue.Empty:
                continue
        raise Interrupted

    def _respond(self) -> None:
        self._responses += 1
        if self._server.options.minor >= 145:
            self._tell("rawResponse/completed", responseId="r", usage=_used(1))

    def _count(self) -> None:
        """Versions up to 0.130 report it twice: when a response is complete, and when the next one begins."""
        self._tell("thread/tokenUsage/updated", tokenUsage={"total": _used(self._responses), "last": _used(1)})

    def _say(self, text: str) -> None:
        self._tell("item/started", item={"type": "agentMessage", "id": "m", "text": ""})
        self._tell("item/agentMessage/delta", itemId="m", delta=text)
        self._tell("item/completed", item={"type": "agentMessage", "id": "m", "text": text})

    def _tell(self, method: str, **params: Any) -> None:
        self._server.write(method=method, params={"threadId": self.id, "turnId": str(self.turn), **params})


class AppServer:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._threads: dict[str, Thread] = {}
        self._waiting: dict[int, queue.Queue[Any]] = {}

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            with Path(self.options.journal).open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(message) + "\n")
            if "method" not in message:
                self._waiting.pop(message["id"]).put(message.get("result"))
            elif "id" in message:
                self.write(id=message["id"], result=self._answer(message["method"], message.get("params") or {}))

    def write(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def ask(self, method: str, params: Json) -> queue.Queue[Any]:
        with self._lock:
            id = len(self._waiting)
            while id in self._waiting:
                id += 1
            waiting = self._waiting[id] = queue.Queue()
        self.write(id=id, method=method, params=params)
        return waiting

    def _answer(self, method: str, params: Json) -> Json:
        if method == "initialize":
            return {"userAgent": f"toolwire/0.{self.options.minor}.0 (test)"}
        if method in ("thread/start", "thread/resume"):
            thread = Thread(self, f"thread-{len(self._threads)}", params)
            self._threads[thread.id] = thread
            return {"thread": {"id": thread.id, "path": None}}
        thread = self._threads[params["threadId"]]
        if method == "thread/inject_items":
            thread.inject(params["items"])
        elif method == "turn/start":
            turn = thread.begin()
            threading.Timer(0.005, thread.run, [params["input"]]).start()
            return {"turn": {"id": turn, "items": [], "status": "inProgress"}}
        elif method == "turn/interrupt":
            thread.stop()
        return {}


def _used(responses: int) -> Json:
    return {"inputTokens": 100 * responses, "outputTokens": 20 * responses}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minor", type=int, required=True, help="the version is 0.MINOR.0")
    parser.add_argument("--journal", required=True)
    parser.add_argument("--gap", type=float, default=0.0, help="seconds after each call in which the model goes on")
    parser.add_argument("--stubborn", action="store_true", help="the model never stops calling")
    AppServer(parser.parse_args()).serve()


if __name__ == "__main__":
    main()
