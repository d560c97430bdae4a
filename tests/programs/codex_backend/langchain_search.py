"""LangChain as a separate program: two search tools bound to a model, streaming answers, until the model answers with text.

The task is a JSON file named on the command line; the last output line has the calls, the text and the requests.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

TURNS = 6


def search(task: dict[str, Any], is_responses: bool, prompt: str, results: list[str]) -> dict[str, Any]:
    sent: list[Any] = []
    client = httpx.Client(event_hooks={"request": [lambda request: sent.append(json.loads(request.content))]})
    model = ChatOpenAI(
        model=task["model"],
        api_key=task["key"],
        base_url=f"{task['address']}/v1",
        max_retries=0,
        use_responses_api=is_responses,
        http_client=client,
    ).bind_tools(task["tools"])
    messages: list[BaseMessage] = [SystemMessage("You help with notes."), HumanMessage(prompt)]
    called: list[dict[str, Any]] = []
    for _ in range(TURNS):
        text, calls = streamed(model, messages)
        if not calls:
            return {"text": text, "called": called, "sent": sent}
        called += calls
        told = [{"id": call["id"], "name": call["name"], "args": call["args"]} for call in calls]
        messages.append(AIMessage(text, tool_calls=told))
        messages += [ToolMessage(results[len(called) - 1], tool_call_id=call["id"]) for call in calls]
    raise RuntimeError(f"no end after {TURNS} turns: {called}")


def streamed(model: Any, messages: list[BaseMessage]) -> tuple[str, list[dict[str, Any]]]:
    """The text and the calls, with their arguments both as streamed and as parsed by LangChain."""
    whole: Any = None
    raws: dict[Any, str] = {}
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
        for piece in chunk.tool_call_chunks:
            raws[piece["index"]] = raws.get(piece["index"], "") + (piece["args"] or "")
    if whole.invalid_tool_calls or len(raws) != len(whole.tool_calls):
        raise RuntimeError(f"invalid {whole.invalid_tool_calls}, valid {whole.tool_calls}, chunks {raws}")
    calls = [
        {"id": call["id"], "name": call["name"], "args": call["args"], "raw": raw}
        for call, raw in zip(whole.tool_calls, raws.values(), strict=True)
    ]
    return str(whole.text), calls


def main(task: dict[str, Any]) -> None:
    told: dict[str, Any] = {}
    for name, case in task["cases"].items():
        try:
            told[name] = search(task, name == "responses", case["prompt"], case["results"])
        except Exception:
            told[name] = {"error": traceback.format_exc()[-2000:]}
    print(json.dumps(told))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
