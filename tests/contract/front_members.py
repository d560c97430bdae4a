"""Every documented member of a request in the dialects that only clients use, each with a value that is not the default."""

from __future__ import annotations

from typing import Any

from tests.contract.request_members import PNG, SCHEMA, Body, chat_tool

CALLED_OLLAMA: list[Body] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "mark_city"}}}]},
    {"role": "tool", "content": "mark_result"},
]  # fmt: skip
USER: Body = {"type": "user_input", "content": [{"type": "text", "text": "hi"}]}
CALL: Body = {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "mark_city"}}
RESULT: Body = {"type": "function_result", "call_id": "c1", "name": "weather", "result": "mark_result"}


def function(**members: Any) -> Body:
    return {"type": "function", "name": "weather", "parameters": SCHEMA, **members}


def options(**members: Any) -> Body:
    return {"options": members}


def config(**members: Any) -> Body:
    return {"generation_config": members}


def content(**members: Any) -> Body:
    return {"input": [{"type": "user_input", "content": [{"type": "text", "text": "hi"}, members]}]}


FRONT_BASES: dict[str, Body] = {
    "ollama": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [chat_tool()]},
    "interactions": {"model": "m", "input": [USER], "tools": [function()], "store": False},
}

OLLAMA: dict[str, Body] = {
    "messages": {"messages": [{"role": "user", "content": "mark_user"}]},
    "messages.system": {"messages": [{"role": "system", "content": "mark_system"}, {"role": "user", "content": "hi"}]},
    "messages.tool_calls": {"messages": CALLED_OLLAMA},
    "messages.thinking": {
        "messages": [*CALLED_OLLAMA[:1], {**CALLED_OLLAMA[1], "thinking": "mark_value"}, CALLED_OLLAMA[2]]
    },
    "messages.images": {"messages": [{"role": "user", "content": "hi", "images": [PNG]}]},
    "messages.x_unknown": {"messages": [{"role": "user", "content": "hi", "x_unknown": "mark_value"}]},
    "tools": {"tools": [chat_tool("mark_tool", description="mark_told")]},
    "tools.x_unknown": {"tools": [chat_tool(x_unknown="mark_value")]},
    "stream": {"stream": False},
    "format": {"format": "json"},
    "format.schema": {"format": {"type": "object", "properties": {"mark_degrees": {"type": "integer"}}}},
    "options": options(temperature=0.123),
    "options.top_p": options(top_p=0.123),
    "options.top_k": options(top_k=77),
    "options.seed": options(seed=77),
    "options.num_predict": options(num_predict=4321),
    "options.stop": options(stop=["mark_end"]),
    "options.presence_penalty": options(presence_penalty=0.123),
    "options.frequency_penalty": options(frequency_penalty=0.123),
    "options.num_ctx": options(num_ctx=4321),
    "options.repeat_penalty": options(repeat_penalty=0.123),
    "keep_alive": {"keep_alive": "5m"},
    "think": {"think": True},
    "think off": {"think": False},
    "think effort": {"think": "high"},
    "logprobs": {"logprobs": True},
    "top_logprobs": {"logprobs": True, "top_logprobs": 13},
    "truncate": {"truncate": False},
    "shift": {"shift": False},
    "x_unknown": {"x_unknown": "mark_value"},
}

INTERACTIONS: dict[str, Body] = {
    "input": {"input": "mark_user"},
    "input.function_call": {"input": [USER, CALL, RESULT]},
    "input.is_error": {"input": [USER, CALL, {**RESULT, "is_error": True}]},
    "input.result": {"input": [USER, CALL, {**RESULT, "result": {"degrees": "mark_result"}}]},
    "input.model_output": {"input": [USER, {"type": "model_output", "content": [{"type": "text", "text": "mark_said"}]}, USER]},
    "input.thought": {"input": [USER, {"type": "thought", "summary": [{"type": "text", "text": "mark_value"}]}, CALL, RESULT]},
    "input signature": {"input": [USER, {"type": "thought", "signature": "mark_value"}, CALL, RESULT]},
    "input.google_search_call": {"input": [USER, {"type": "google_search_call", "id": "g", "arguments": {"queries": ["mark_value"]}}, USER]},
    "input.image": content(type="image", data=PNG, mime_type="image/png"),
    "input.image.resolution": content(type="image", data=PNG, mime_type="image/png", resolution="high"),
    "input.document": content(type="document", uri="https://host/mark_name.pdf", mime_type="application/pdf"),
    "input.audio": content(type="audio", data=PNG, mime_type="audio/wav"),
    "input.video": content(type="video", data=PNG, mime_type="video/mp4"),
    "input.x_unknown": {"input": [{**USER, "x_unknown": "mark_value"}]},
    "system_instruction": {"system_instruction": "mark_system"},
    "tools": {"tools": [{**function(description="mark_told"), "name": "mark_tool"}]},
    "tools.google_search": {"tools": [function(), {"type": "google_search"}]},
    "tools.mcp_server": {"tools": [function(), {"type": "mcp_server", "name": "x", "url": "https://host"}]},
    "tools.x_unknown": {"tools": [function(x_unknown="mark_value")]},
    "generation_config": config(temperature=0.123),
    "generation_config.top_p": config(top_p=0.123),
    "generation_config.seed": config(seed=77),
    "generation_config.stop_sequences": config(stop_sequences=["mark_end"]),
    "generation_config.max_output_tokens": config(max_output_tokens=4321),
    "generation_config.thinking_level": config(thinking_level="low"),
    "generation_config.thinking_summaries": config(thinking_level="low", thinking_summaries="auto"),
    "generation_config.tool_choice": config(tool_choice="any"),
    "generation_config.tool_choice.allowed": config(tool_choice={"allowed_tools": {"mode": "any", "tools": ["weather"]}}),
    "generation_config.image_config": config(image_config={"aspect_ratio": "1:1"}),
    "generation_config.speech_config": config(speech_config={"voice": "x"}),
    "generation_config.video_config": config(video_config={"x": 1}),
    "generation_config.transcription_config": config(transcription_config={"x": 1}),
    "response_format": {"response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object", "properties": {"mark_degrees": {"type": "integer"}}}}},
    "response_mime_type": {"response_mime_type": "application/json"},
    "response_modalities": {"response_modalities": ["text", "image"]},
    "labels": {"labels": {"a": "mark_value"}},
    "cached_content": {"cached_content": "mark_value"},
    "safety_settings": {"safety_settings": [{"x": "mark_value"}]},
    "service_tier": {"service_tier": "flex"},
    "webhook_config": {"webhook_config": {"uris": ["https://host"]}},
    "stream": {"stream": True},
    "x_unknown": {"x_unknown": "mark_value"},
}  # fmt: skip

FRONT_MEMBERS: dict[str, dict[str, Body]] = {"ollama": OLLAMA, "interactions": INTERACTIONS}
