"""A small agent with one tool, made with the OpenAI SDK."""

from __future__ import annotations

import json

from openai import OpenAI

PROMPT = "You are a travel assistant. Answer in one sentence."
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def get_weather(city: str) -> str:
    return f"{city}: 18 degrees and rain"


def answer(base_url: str, question: str, model: str = "demo/echo-tools") -> str:
    client = OpenAI(base_url=base_url, api_key="unused", max_retries=0)
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    while True:
        message = client.chat.completions.create(model=model, messages=messages, tools=[TOOL]).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
