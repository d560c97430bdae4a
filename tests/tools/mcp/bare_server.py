"""A server of the older handshake in plain Python, quick to start, that misbehaves on request: `python bare_server.py [HABIT ...]`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

HABITS = set(sys.argv[1:])
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_lock = threading.Lock()
_tools = ["echo", "stall", "die", "image", "grow", "where", "cancelled", "nonsense", "count", "spawn"]
_cancelled: list[Any] = []
if "floods" in HABITS:
    _tools.insert(0, "flood")


# Tools of which each alone would cost the whole list.
SPOILED: list[dict[str, Any]] = [
    {},
    {"inputSchema": None},
    {"inputSchema": "object"},
    {"inputSchema": []},
    {"inputSchema": {"type": "string"}},
    {"inputSchema": {"type": "object", "properties": 5}},
    {"inputSchema": {"type": "object", "properties": {"a": {"type": "nothing"}}}},
    {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}},
    {"inputSchema": {"type": "object", "properties": {"a": {"minimum": "one"}}}},
    {"inputSchema": {"type": "object"}, "annotations": "yes"},
]


def send(message: dict[str, Any]) -> None:
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(*texts: str, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], "isError": is_error}


def listed(cursor: str | None) -> dict[str, Any]:
    """Three a page; the list of the habit `endless` never ends."""
    start = int(cursor or 0)
    names = [f"tool{start + at}" for at in range(3)] if "endless" in HABITS else _tools[start : start + 3]
    if "crowd" in HABITS:
        return {"tools": [{"name": f"tool{at}", "inputSchema": {"type": "object"}} for at in range(100_000)]}
    tools: list[Any] = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    for tool in tools:
        if tool["name"] == "echo":
            tool["annotations"] = {"readOnlyHint": True}
    if "spoiled" in HABITS and start == 3:
        tools += [{"name": f"bad{at}", **bad} for at, bad in enumerate(SPOILED)] + [{"inputSchema": {}}, "no tool"]
    more = "endless" in HABITS or start + 3 < len(_tools)
    if "circle" in HABITS:
        return {"tools": tools, "nextCursor": "0"}
    return {"tools": tools, **({"nextCursor": str(start + 3)} if more else {})}


def call(identity: Any, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    if name == "die":
        print("something broke with hunter2-the-secret", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "stall":
        return
    while name == "flood":
        progress = {"progressToken": meta.get("progressToken"), "progress": time.time(), "message": "x" * 100}
        send({"method": "notifications/progress", "params": progress})
        send({"method": "notifications/message", "params": {"level": "info", "data": "y" * 1000}})
    if name == "nonsense":
        send({"id": identity, "result": {"content": "not a list"}})
        return
    if name == "grow":
        _tools.append("grown")
        send({"method": "notifications/tools/list_changed"})
    if name == "count":
        for step in range(3):
            progress = {
                "progressToken": meta.get("progressToken"),
                "progress": step,
                "total": 3,
                "message": f"step {step}",
            }
            send({"method": "notifications/progress", "params": progress})
            time.sleep(0.08)
    if name == "image":
        send({"id": identity, "result": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}})
        return
    if name == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        send({"id": identity, "result": text(str(child.pid))})
        return
    answers = {
        "echo": lambda: json.dumps(arguments, sort_keys=True),
        "where": lambda: json.dumps({"pid": os.getpid(), "env": dict(os.environ)}),
        "cancelled": lambda: json.dumps(_cancelled),
    }
    send({"id": identity, "result": text(answers.get(name, lambda: "ok")())})


def answer(message: dict[str, Any]) -> None:
    method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "notifications/cancelled":
        _cancelled.append(params.get("requestId"))
    if identity is None or method is None:
        return
    if method == "initialize":
        send({"id": identity, "result": _greeting(params)})
    elif method == "tools/list" and "listless" not in HABITS:
        send({"id": identity, "result": listed(params.get("cursor"))})
    elif method == "tools/call":
        if params["name"] == "refuse":
            send({"id": identity, "error": {"code": -32602, "message": "no such tool"}})
        else:
            call(identity, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    else:
        send({"id": identity, "error": {"code": -32601, "message": "method not found"}})


def _greeting(params: dict[str, Any]) -> dict[str, Any]:
    capabilities = {"tools": {"listChanged": True}}
    server = {"name": "bare", "version": "1"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": server}


def main() -> None:
    if "mute" in HABITS:
        time.sleep(60)
    if "quits" in HABITS:
        print("cannot find my settings", file=sys.stderr, flush=True)
        sys.exit(7)
    if "chatty" in HABITS:
        print("Welcome to my server!\n{not json}\n[]", flush=True)
    while "babbles" in HABITS:
        sys.stdout.write("bla bla bla " * 100 + "\n")
    while "endless_line" in HABITS:
        sys.stdout.write("x" * 65536)
    if "deaf" in HABITS:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        answer(json.loads(line))
    if "deaf" in HABITS:
        time.sleep(60)


if __name__ == "__main__":
    main()
