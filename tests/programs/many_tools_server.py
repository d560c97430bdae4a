"""An MCP server with 150 tools, in plain Python. `reveal_vault_code` is the one that the task needs; the others return nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

VERBS, NOUNS = ("list", "create", "delete", "rename", "archive"), [f"ledger{number}" for number in range(30)]
NAMES = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS][:149]
WANTED = "reveal_vault_code"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            server = {"name": "many", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            schema = {"type": "object", "properties": {"reason": {"type": "string", "description": "Why. " * 40}}}
            listed = [{"name": name, "description": f"{name}. " * 8, "inputSchema": schema} for name in NAMES]
            return {
                "tools": [
                    *listed,
                    {"name": WANTED, "description": "Reveals the code of the vault.", "inputSchema": schema},
                ]
            }
        case "tools/call":
            text = f"The vault code is {sys.argv[1]}." if params["name"] == WANTED else "nothing"
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
