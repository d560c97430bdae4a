"""One tool call and its result in every dialect, with only the standard library: python examples/every_dialect.py [MODEL]

The gateway must run (toolwire serve). Set TOOLWIRE_URL and TOOLWIRE_KEY for another address and a key.
"""

import json
import os
import sys
import urllib.request
from typing import Any

URL = os.environ.get("TOOLWIRE_URL", "http://127.0.0.1:18741")
KEY = os.environ.get("TOOLWIRE_KEY", "toolwire")
MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools"
QUESTION = "What is the weather in Paris?"
ABOUT = "The weather in a city"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def get_weather(city: str) -> str:
    return f"18 degrees and rain in {city}"


def post(path: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    with urllib.request.urlopen(urllib.request.Request(URL + path, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def chat() -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}}]
    body = {"model": MODEL, "messages": messages, "tools": tools}
    message = post("/v1/chat/completions", body)["choices"][0]["message"]
    messages.append(message)
    for call in message["tool_calls"]:
        result = get_weather(**json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return str(post("/v1/chat/completions", body)["choices"][0]["message"]["content"])


def responses() -> str:
    items: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "name": "get_weather", "description": ABOUT, "parameters": SCHEMA}]
    body = {"model": MODEL, "input": items, "tools": tools, "store": False}
    output = post("/v1/responses", body)["output"]
    items += output
    for call in output:
        if call["type"] == "function_call":
            result = get_weather(**json.loads(call["arguments"]))
            items.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
    texts = [item for item in post("/v1/responses", body)["output"] if item["type"] == "message"]
    return str(texts[0]["content"][0]["text"])


def messages() -> str:
    turns: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    tools = [{"name": "get_weather", "description": ABOUT, "input_schema": SCHEMA}]
    body = {"model": MODEL, "messages": turns, "tools": tools, "max_tokens": 1000}
    content = post("/v1/messages", body)["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": get_weather(**block["input"])}
        for block in content
        if block["type"] == "tool_use"
    ]
    turns += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return str(next(block["text"] for block in post("/v1/messages", body)["content"] if block["type"] == "text"))


def gemini() -> str:
    path = f"/v1beta/models/{MODEL}:generateContent"
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    declared = {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}
    body = {"contents": contents, "tools": [{"functionDeclarations": [declared]}]}
    answer = post(path, body)["candidates"][0]["content"]
    calls = [part["functionCall"] for part in answer["parts"] if "functionCall" in part]
    results = [
        {"functionResponse": {"name": call["name"], "response": {"result": get_weather(**call["args"])}}}
        for call in calls
    ]
    contents += [answer, {"role": "user", "parts": results}]
    return str(post(path, body)["candidates"][0]["content"]["parts"][0]["text"])


for dialect in (chat, responses, messages, gemini):
    print(f"{dialect.__name__}: {dialect()}")
