"""Every documented member of a request, dialect by dialect, each with a value that is not the default.

A value that can be recognised on the other side begins with "mark_value" or is one of NUMBERS; other values (modes, switches) are
recognised only by the change that they make to the request.
"""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

NUMBERS = (0.123, 4321, 77, 13)
PNG = "iVBORw0KGgo="
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HINT: Body = {"type": "ephemeral", "ttl": "mark_hour"}
BREAKPOINT: Body = {"mode": "mark_here"}


def chat_tool(name: str = "weather", **members: Any) -> Body:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **members}}


def flat_tool(name: str = "weather", **members: Any) -> Body:
    return {"type": "function", "name": name, "parameters": SCHEMA, "strict": False, **members}


def messages_tool(name: str = "weather", **members: Any) -> Body:
    return {"name": name, "input_schema": SCHEMA, **members}


def declared(name: str = "weather", **members: Any) -> Body:
    return {"functionDeclarations": [{"name": name, "parametersJsonSchema": SCHEMA, **members}]}


CALLED_CHAT: list[Body] = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
]
CALLED_RESPONSES: list[Body] = [
    {"role": "user", "content": "hi"},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
]
CALLED_MESSAGES: list[Body] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}]},
]
CALLED_GEMINI: list[Body] = [
    {"role": "user", "parts": [{"text": "hi"}]},
    {"role": "model", "parts": [{"functionCall": {"id": "call_1", "name": "weather", "args": {}}}]},
    {
        "role": "user",
        "parts": [{"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "sunny"}}}],
    },
]

BASES: dict[str, Body] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [chat_tool()]},
    "responses": {
        "model": "m",
        "input": [{"role": "user", "content": "hi"}],
        "tools": [flat_tool()],
        "store": False,
    },
    "messages": {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [messages_tool()],
    },
    "gemini": {"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [declared()]},
}


def in_call(history: list[Body], place: int, **members: Any) -> list[Body]:
    """The history with additional members in one of its messages."""
    return [{**item, **members} if number == place else item for number, item in enumerate(history)]


def chat_part(**part: Any) -> Body:
    return {"messages": [{"role": "user", "content": [part]}]}


def responses_part(**part: Any) -> Body:
    return {"input": [{"role": "user", "content": [part]}]}


def messages_part(**part: Any) -> Body:
    return {"messages": [{"role": "user", "content": [part]}]}


def gemini_part(**part: Any) -> Body:
    return {"contents": [{"role": "user", "parts": [part]}]}


def config(**members: Any) -> Body:
    return {"generationConfig": members}


_CHAT_CALL: Body = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
_SAID: Body = {"role": "assistant", "content": "mark_said"}

CHAT: dict[str, Body] = {
    "messages": {"messages": [{"role": "system", "content": "mark_system"}, {"role": "user", "content": "mark_user"}]},
    "messages.developer": {
        "messages": [{"role": "developer", "content": "mark_developer"}, {"role": "user", "content": "hi"}]
    },
    "messages.name": {"messages": [{"role": "user", "content": "hi", "name": "mark_name"}]},
    "messages.assistant": {"messages": [{"role": "user", "content": "hi"}, _SAID, {"role": "user", "content": "go"}]},
    "messages.assistant.refusal": {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "refusal": "mark_no"},
            {"role": "user", "content": "go"},
        ]
    },
    "messages.assistant.audio": {
        "messages": [
            {"role": "user", "content": "hi"},
            {**_SAID, "audio": {"id": "mark_audio"}},
            {"role": "user", "content": "go"},
        ]
    },
    "messages.assistant.annotations": {
        "messages": [
            {"role": "user", "content": "hi"},
            {**_SAID, "annotations": [{"type": "url_citation", "url_citation": {"url": "https://mark_host"}}]},
            {"role": "user", "content": "go"},
        ]
    },
    "messages.assistant.reasoning_content": {
        "messages": [
            {"role": "user", "content": "hi"},
            {**_SAID, "reasoning_content": "mark_thought"},
            {"role": "user", "content": "go"},
        ]
    },
    "messages.assistant.tool_calls": {"messages": CALLED_CHAT},
    "messages.assistant.tool_calls.extra_content": {
        "messages": in_call(CALLED_CHAT, 1, tool_calls=[{**_CHAT_CALL, "extra_content": {"google": "mark_value"}}])
    },
    "messages.tool.cache_control": {"messages": in_call(CALLED_CHAT, 2, cache_control=HINT)},
    "messages.tools": {
        "messages": [{"role": "system", "tools": [chat_tool("mark_found")]}, {"role": "user", "content": "hi"}]
    },
    "part.text.cache_control": chat_part(type="text", text="hi", cache_control=HINT),
    "part.text.prompt_cache_breakpoint": chat_part(type="text", text="hi", prompt_cache_breakpoint=BREAKPOINT),
    "part.image_url": chat_part(type="image_url", image_url={"url": f"data:image/png;base64,{PNG}"}),
    "part.image_url.detail": chat_part(
        type="image_url", image_url={"url": f"data:image/png;base64,{PNG}", "detail": "low"}
    ),
    "part.image_url.cache_control": chat_part(
        type="image_url", image_url={"url": f"data:image/png;base64,{PNG}"}, cache_control=HINT
    ),
    "part.input_audio": chat_part(type="input_audio", input_audio={"format": "wav", "data": "UklGRgAAAABXQVZF"}),
    "part.file": chat_part(
        type="file", file={"filename": "mark_name.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
    ),
    "part.file.file_id": chat_part(type="file", file={"file_id": "mark_file"}),
    "tools.description": {"tools": [chat_tool(description="mark_description")]},
    "tools.strict": {"tools": [chat_tool(strict=True)]},
    "tools.cache_control": {"tools": [{**chat_tool(), "cache_control": HINT}]},
    "tools.custom": {
        "tools": [{"type": "custom", "custom": {"name": "mark_custom", "description": "mark_description"}}]
    },
    "tools.hosted": {"tools": [chat_tool(), {"type": "web_search_preview"}]},
    "functions": {"functions": [{"name": "mark_function", "parameters": SCHEMA}]},
    "function_call": {"functions": [{"name": "weather", "parameters": SCHEMA}], "function_call": {"name": "weather"}},
    "tool_choice": {"tool_choice": "required"},
    "tool_choice.none": {"tool_choice": "none"},
    "tool_choice.function": {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
    "tool_choice (allowed_tools)": {
        "tools": [chat_tool(), chat_tool("other")],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]},
        },
    },
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "max_tokens": {"max_tokens": 4321},
    "max_completion_tokens": {"max_completion_tokens": 4321},
    "temperature": {"temperature": 0.123},
    "top_p": {"top_p": 0.123},
    "seed": {"seed": 77},
    "seed (zero)": {"seed": 0},
    "frequency_penalty": {"frequency_penalty": 0.123},
    "presence_penalty": {"presence_penalty": 0.123},
    "stop": {"stop": ["mark_stop"]},
    "n": {"n": 13},
    "logprobs": {"logprobs": True},
    "top_logprobs": {"logprobs": True, "top_logprobs": 13},
    "logit_bias": {"logit_bias": {"77": 1}},
    "reasoning_effort": {"reasoning_effort": "high"},
    "reasoning_effort.none": {"reasoning_effort": "none"},
    "response_format": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object", "properties": {"mark_member": {}}}},
        }
    },
    "response_format.description": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "description": "mark_description"},
        }
    },
    "response_format.json_object": {"response_format": {"type": "json_object"}},
    "verbosity": {"verbosity": "low"},
    "user": {"user": "mark_user"},
    "user (long)": {"user": "mark_value" + "u" * 99},
    "safety_identifier": {"safety_identifier": "mark_user"},
    "metadata": {"metadata": {"team": "mark_value"}},
    "store": {"store": True},
    "service_tier": {"service_tier": "flex"},
    "prompt_cache_key": {"prompt_cache_key": "mark_key"},
    "prompt_cache_retention": {"prompt_cache_retention": "24h"},
    "prompt_cache_options": {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}},
    "stream_options": {"stream": True, "stream_options": {"include_obfuscation": True}},
    "audio": {"audio": {"voice": "mark_value", "format": "wav"}},
    "modalities": {"modalities": ["text", "audio"]},
    "moderation": {"moderation": {"model": "mark_value"}},
    "prediction": {"prediction": {"type": "content", "content": "mark_value"}},
    "web_search_options": {"web_search_options": {"search_context_size": "low"}},
    "x_unknown": {"x_unknown": "mark_value"},
}

RESPONSES: dict[str, Body] = {
    "instructions": {"instructions": "mark_system"},
    "input": {"input": "mark_user"},
    "input.developer": {"input": [{"role": "user", "content": "hi"}, {"role": "developer", "content": "mark_value"}]},
    "input.phase": {
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "mark_said", "phase": "mark_phase"},
            {"role": "user", "content": "go"},
        ]
    },
    "input.annotations": {
        "input": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "mark_said",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": "https://mark_host",
                                "title": "t",
                                "start_index": 0,
                                "end_index": 1,
                            }
                        ],
                    }
                ],
            },
            {"role": "user", "content": "go"},
        ]
    },
    "input.refusal": {
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "type": "message", "content": [{"type": "refusal", "refusal": "mark_no"}]},
            {"role": "user", "content": "go"},
        ]
    },
    "input.function_call": {"input": CALLED_RESPONSES},
    "input.function_call.caller": {
        "input": in_call(CALLED_RESPONSES, 1, caller={"type": "program", "caller_id": "mark_value"})
    },
    "input.function_call.async": {"input": in_call(CALLED_RESPONSES, 1, **{"async": True})},
    "input.function_call_output.caller": {
        "input": in_call(CALLED_RESPONSES, 2, caller={"type": "program", "caller_id": "mark_value"})
    },
    "input.function_call_output.parts": {
        "input": in_call(
            CALLED_RESPONSES,
            2,
            output=[{"type": "input_text", "text": "mark_value", "prompt_cache_breakpoint": BREAKPOINT}],
        )
    },
    "input.custom_tool_call": {
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "mark_value"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "mark_done"},
        ]
    },
    "input.reasoning": {
        "input": [
            {"role": "user", "content": "hi"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "mark_value"}],
                "encrypted_content": "YQ==",
            },
            {"role": "assistant", "content": "mark_said"},
            {"role": "user", "content": "go"},
        ]
    },
    "input.web_search_call": {
        "input": [
            {"role": "user", "content": "hi"},
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "mark_value"},
            },
            {"role": "user", "content": "go"},
        ]
    },
    "input.additional_tools": {
        "input": [
            {"type": "additional_tools", "role": "developer", "tools": [flat_tool("mark_found")]},
            {"role": "user", "content": "hi"},
        ]
    },
    "part.input_text.prompt_cache_breakpoint": responses_part(
        type="input_text", text="hi", prompt_cache_breakpoint=BREAKPOINT
    ),
    "part.input_image": responses_part(type="input_image", detail="auto", image_url=f"data:image/png;base64,{PNG}"),
    "part.input_image.detail": responses_part(
        type="input_image", detail="low", image_url=f"data:image/png;base64,{PNG}"
    ),
    "part.input_image.prompt_cache_breakpoint": responses_part(
        type="input_image",
        detail="auto",
        image_url=f"data:image/png;base64,{PNG}",
        prompt_cache_breakpoint=BREAKPOINT,
    ),
    "part.input_file": responses_part(
        type="input_file", filename="mark_name.pdf", file_data="data:application/pdf;base64,JVBERi0="
    ),
    "part.input_file.detail": responses_part(
        type="input_file", filename="f.pdf", file_data="data:application/pdf;base64,JVBERi0=", detail="high"
    ),
    "tools.description": {"tools": [flat_tool(description="mark_description")]},
    "tools.strict": {"tools": [flat_tool(strict=True)]},
    "tools.async": {"tools": [flat_tool(**{"async": True})]},
    "tools.allowed_callers": {"tools": [flat_tool(allowed_callers=["programmatic"])]},
    "tools.output_schema": {"tools": [flat_tool(output_schema={"type": "object", "title": "mark_value"})]},
    "tools.namespace": {
        "tools": [{"type": "namespace", "name": "mark_space", "description": "mark_about", "tools": [flat_tool()]}]
    },
    "tools.custom": {"tools": [{"type": "custom", "name": "mark_custom", "description": "mark_description"}]},
    "tools.custom.format": {
        "tools": [
            {
                "type": "custom",
                "name": "c",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: mark_rule"},
            }
        ]
    },
    "tools.custom.allowed_callers": {"tools": [{"type": "custom", "name": "c", "allowed_callers": ["programmatic"]}]},
    "tools.hosted": {"tools": [flat_tool(), {"type": "web_search"}]},
    "tools.local_shell": {"tools": [flat_tool(), {"type": "local_shell"}]},
    "tool_choice": {"tool_choice": "required"},
    "tool_choice.function": {"tool_choice": {"type": "function", "name": "weather"}},
    "tool_choice.hosted": {
        "tools": [flat_tool(), {"type": "web_search"}],
        "tool_choice": {"type": "web_search_preview"},
    },
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "max_output_tokens": {"max_output_tokens": 4321},
    "max_tool_calls": {"max_tool_calls": 13},
    "temperature": {"temperature": 0.123},
    "top_p": {"top_p": 0.123},
    "top_logprobs": {"top_logprobs": 13},
    "include": {"include": ["file_search_call.results"]},
    "include.logprobs": {"include": ["message.output_text.logprobs"], "top_logprobs": 13},
    "reasoning": {"reasoning": {"effort": "high"}},
    "reasoning.summary": {"reasoning": {"summary": "detailed"}},
    "reasoning.context": {"reasoning": {"context": "all_turns"}},
    "reasoning.mode": {"reasoning": {"mode": "pro"}},
    "reasoning.generate_summary": {"reasoning": {"generate_summary": "auto"}},
    "text": {
        "text": {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "schema": {"type": "object", "properties": {"mark_member": {}}},
            }
        }
    },
    "text.json_object": {"text": {"format": {"type": "json_object"}}},
    "text.verbosity": {"text": {"verbosity": "low"}},
    "text.x_unknown": {"text": {"x_unknown": "mark_value"}},
    "user": {"user": "mark_user"},
    "safety_identifier": {"safety_identifier": "mark_user"},
    "metadata": {"metadata": {"team": "mark_value"}},
    "service_tier": {"service_tier": "flex"},
    "prompt_cache_key": {"prompt_cache_key": "mark_key"},
    "prompt_cache_retention": {"prompt_cache_retention": "24h"},
    "prompt_cache_options": {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}},
    "stream_options": {"stream": True, "stream_options": {"include_obfuscation": True}},
    "truncation": {"truncation": "auto"},
    "client_metadata": {"client_metadata": {"x": "mark_value"}},
    "context_management": {"context_management": [{"type": "compaction", "compact_threshold": 4321}]},
    "moderation": {"moderation": {"model": "mark_value"}},
    "access_programs": {"access_programs": ["mark_value"]},
    "image": {"image": {"x": "mark_value"}},
    "x_unknown": {"x_unknown": "mark_value"},
}

MESSAGES: dict[str, Body] = {
    "system": {"system": "mark_system"},
    "system.cache_control": {"system": [{"type": "text", "text": "mark_said", "cache_control": HINT}]},
    "messages": {"messages": [{"role": "user", "content": "mark_user"}]},
    "messages.system": {
        "messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "mark_value"}],
    },
    "messages.output_config": {
        "messages": [{"role": "user", "content": "hi", "output_config": {"effort": "low"}}],
    },
    "messages.thinking": {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "mark_value", "signature": "c2ln"},
                    {"type": "text", "text": "mark_said"},
                ],
            },
            {"role": "user", "content": "go"},
        ]
    },
    "messages.tool_use": {"messages": CALLED_MESSAGES},
    "messages.tool_use.cache_control": {
        "messages": in_call(
            CALLED_MESSAGES,
            1,
            content=[{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}, "cache_control": HINT}],
        )
    },
    "messages.tool_use.caller": {
        "messages": in_call(
            CALLED_MESSAGES,
            1,
            content=[
                {
                    "type": "tool_use",
                    "id": "call_1",
                    "name": "weather",
                    "input": {},
                    "caller": {"type": "code_execution_20260120", "tool_id": "mark_value"},
                }
            ],
        )
    },
    "messages.tool_result.cache_control": {
        "messages": in_call(
            CALLED_MESSAGES,
            2,
            content=[{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny", "cache_control": HINT}],
        )
    },
    "messages.tool_result.is_error": {
        "messages": in_call(
            CALLED_MESSAGES,
            2,
            content=[{"type": "tool_result", "tool_use_id": "call_1", "content": "mark_value", "is_error": True}],
        )
    },
    "messages.tool_result.search_result": {
        "messages": in_call(
            CALLED_MESSAGES,
            2,
            content=[
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [
                        {
                            "type": "search_result",
                            "source": "https://mark_host",
                            "title": "mark_title",
                            "content": [{"type": "text", "text": "mark_text"}],
                        }
                    ],
                }
            ],
        )
    },
    "messages.tool_addition": {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "system",
                "content": [
                    {
                        "type": "tool_addition",
                        "tool": {"type": "tool_definition", "definition": messages_tool("mark_found")},
                    }
                ],
            },
        ]
    },
    "part.text.cache_control": messages_part(type="text", text="hi", cache_control=HINT),
    "part.text.citations": messages_part(
        type="text", text="hi", citations=[{"type": "char_location", "cited_text": "mark_value"}]
    ),
    "part.image": messages_part(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG}),
    "part.image.cache_control": messages_part(
        type="image", source={"type": "base64", "media_type": "image/png", "data": PNG}, cache_control=HINT
    ),
    "part.image.transformations": messages_part(
        type="image", source={"type": "base64", "media_type": "image/png", "data": PNG}, transformations=["mark_value"]
    ),
    "part.document": messages_part(
        type="document",
        title="mark_title",
        source={"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    ),
    "part.document.context": messages_part(
        type="document",
        context="mark_context",
        source={"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    ),
    "part.document.citations": messages_part(
        type="document",
        citations={"enabled": True},
        source={"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    ),
    "tools.description": {"tools": [messages_tool(description="mark_description")]},
    "tools.strict": {"tools": [messages_tool(strict=True)]},
    "tools.cache_control": {"tools": [messages_tool(cache_control=HINT)]},
    "tools.input_examples": {"tools": [messages_tool(input_examples=[{"city": "mark_value"}])]},
    "tools.eager_input_streaming": {"tools": [messages_tool(eager_input_streaming=True)]},
    "tools.allowed_callers": {"tools": [messages_tool(allowed_callers=["code_execution_20260120"])]},
    "tools.hosted": {"tools": [messages_tool(), {"type": "web_search_20250305", "name": "web_search"}]},
    "tools.typed": {"tools": [messages_tool(), {"type": "bash_20250124", "name": "mark_bash"}]},
    "tools.typed.cache_control": {
        "tools": [messages_tool(), {"type": "bash_20250124", "name": "bash", "cache_control": HINT}]
    },
    "tool_choice": {"tool_choice": {"type": "any"}},
    "tool_choice.tool": {"tool_choice": {"type": "tool", "name": "weather"}},
    "tool_choice.disable_parallel_tool_use": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    "max_tokens": {"max_tokens": 4321},
    "temperature": {"temperature": 0.123},
    "top_p": {"top_p": 0.123},
    "top_k": {"top_k": 77},
    "stop_sequences": {"stop_sequences": ["mark_stop"]},
    "thinking": {"thinking": {"type": "enabled", "budget_tokens": 4321}},
    "thinking.disabled": {"thinking": {"type": "disabled"}},
    "thinking.adaptive": {"thinking": {"type": "adaptive"}},
    "thinking.display": {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    "thinking.block_binding": {
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        "output_config": {"effort": "low"},
    },
    "output_config": {"output_config": {"effort": "low"}},
    "output_config.format": {
        "output_config": {
            "format": {"type": "json_schema", "schema": {"type": "object", "properties": {"mark_member": {}}}}
        }
    },
    "output_config.task_budget": {"output_config": {"task_budget": {"type": "tokens", "total": 4321}}},
    "metadata": {"metadata": {"user_id": "mark_user"}},
    "metadata (long user_id)": {"metadata": {"user_id": "mark_value" + "u" * 99}},
    "metadata.x_unknown": {"metadata": {"x_unknown": "mark_value"}},
    "cache_control": {"cache_control": HINT},
    "service_tier": {"service_tier": "standard_only"},
    "speed": {"speed": "fast"},
    "inference_geo": {"inference_geo": "eu"},
    "container": {"container": "mark_container"},
    "context_management": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    "compaction": {"compaction": {"type": "mark_value"}},
    "diagnostics": {"diagnostics": {"previous_message_id": "mark_value"}},
    "fallbacks": {"fallbacks": [{"model": "mark_value"}]},
    "fallback_credit_token": {"fallback_credit_token": "mark_value"},
    "mcp_servers": {"mcp_servers": [{"type": "url", "url": "https://mark_host", "name": "mark_value"}]},
    "user_profile_id": {"user_profile_id": "mark_value"},
    "workspace_id": {"workspace_id": "mark_value"},
    "x_unknown": {"x_unknown": "mark_value"},
}

GEMINI: dict[str, Body] = {
    "systemInstruction": {"systemInstruction": {"parts": [{"text": "mark_system"}]}},
    "contents": {"contents": [{"role": "user", "parts": [{"text": "mark_user"}]}]},
    "contents.x_unknown": {"contents": [{"role": "user", "parts": [{"text": "hi"}], "x_unknown": "mark_value"}]},
    "part.functionCall": {"contents": CALLED_GEMINI},
    "part.functionCall.thoughtSignature": {
        "contents": in_call(
            CALLED_GEMINI,
            1,
            parts=[{"functionCall": {"id": "call_1", "name": "weather", "args": {}}, "thoughtSignature": "c2ln"}],
        )
    },
    "part.functionResponse.error": {
        "contents": in_call(
            CALLED_GEMINI,
            2,
            parts=[{"functionResponse": {"id": "call_1", "name": "weather", "response": {"error": "mark_value"}}}],
        )
    },
    "part.functionResponse.scheduling": {
        "contents": in_call(
            CALLED_GEMINI,
            2,
            parts=[
                {
                    "functionResponse": {
                        "id": "call_1",
                        "name": "weather",
                        "response": {"output": "sunny"},
                        "scheduling": "mark_idle",
                    }
                }
            ],
        )
    },
    "part.functionResponse.parts": {
        "contents": in_call(
            CALLED_GEMINI,
            2,
            parts=[
                {
                    "functionResponse": {
                        "id": "call_1",
                        "name": "weather",
                        "response": {"output": "sunny"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                    }
                }
            ],
        )
    },
    "part.thought": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "mark_value", "thought": True}, {"text": "mark_said"}]},
            {"role": "user", "parts": [{"text": "go"}]},
        ]
    },
    "part.executableCode": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "mark_code()"}}]},
            {"role": "user", "parts": [{"text": "go"}]},
        ]
    },
    "part.inlineData": gemini_part(inlineData={"mimeType": "image/png", "data": PNG}),
    "part.inlineData.displayName": gemini_part(
        inlineData={"mimeType": "application/pdf", "data": "JVBERi0=", "displayName": "mark_name.pdf"}
    ),
    "part.fileData": gemini_part(fileData={"mimeType": "image/png", "fileUri": "https://host/mark_name.png"}),
    "part.videoMetadata": gemini_part(inlineData={"mimeType": "video/mp4", "data": PNG}, videoMetadata={"fps": 77}),
    "part.mediaResolution": gemini_part(
        inlineData={"mimeType": "image/png", "data": PNG}, mediaResolution={"level": "MEDIA_RESOLUTION_LOW"}
    ),
    "part.partMetadata": gemini_part(text="hi", partMetadata={"x": "mark_value"}),
    "tools.description": {"tools": [declared(description="mark_description")]},
    "tools.parameters": {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "parameters": {"type": "OBJECT", "properties": {"mark_member": {"type": "STRING"}}}}
                ]
            }
        ]
    },
    "tools.behavior": {"tools": [declared(behavior="mark_async")]},
    "tools.response": {"tools": [declared(response={"type": "OBJECT", "title": "mark_value"})]},
    "tools.responseJsonSchema": {"tools": [declared(responseJsonSchema={"type": "object", "title": "mark_value"})]},
    "tools.googleSearch": {"tools": [declared(), {"googleSearch": {}}]},
    "toolConfig.mode": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    "toolConfig.allowedFunctionNames": {
        "tools": [declared(), declared("other")],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
    },
    "toolConfig.streamFunctionCallArguments": {
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True}}
    },
    "toolConfig.retrievalConfig": {"toolConfig": {"retrievalConfig": {"languageCode": "mark_value"}}},
    "toolConfig.includeServerSideToolInvocations": {"toolConfig": {"includeServerSideToolInvocations": True}},
    "generationConfig.temperature": config(temperature=0.123),
    "generationConfig.topP": config(topP=0.123),
    "generationConfig.topK": config(topK=77),
    "generationConfig.seed": config(seed=77),
    "generationConfig.frequencyPenalty": config(frequencyPenalty=0.123),
    "generationConfig.presencePenalty": config(presencePenalty=0.123),
    "generationConfig.stopSequences": config(stopSequences=["mark_stop"]),
    "generationConfig.candidateCount": config(candidateCount=13),
    "generationConfig.maxOutputTokens": config(maxOutputTokens=4321),
    "generationConfig.responseMimeType": config(responseMimeType="application/json"),
    "generationConfig.responseSchema": config(
        responseMimeType="application/json",
        responseSchema={"type": "OBJECT", "properties": {"mark_member": {"type": "STRING"}}},
    ),
    "generationConfig.responseJsonSchema": config(
        responseMimeType="application/json",
        responseJsonSchema={"type": "object", "properties": {"mark_member": {"type": "string"}}},
    ),
    "generationConfig.responseMimeType.enum": config(
        responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["mark_a", "mark_b"]}
    ),
    "generationConfig.responseLogprobs": config(responseLogprobs=True),
    "generationConfig.logprobs": config(responseLogprobs=True, logprobs=13),
    "generationConfig.thinkingConfig.thinkingLevel": config(thinkingConfig={"thinkingLevel": "HIGH"}),
    "generationConfig.thinkingConfig.thinkingBudget": config(thinkingConfig={"thinkingBudget": 4321}),
    "generationConfig.thinkingConfig.thinkingBudget.off": config(thinkingConfig={"thinkingBudget": 0}),
    "generationConfig.thinkingConfig.thinkingBudget.dynamic": config(thinkingConfig={"thinkingBudget": -1}),
    "generationConfig.thinkingConfig.includeThoughts": config(thinkingConfig={"includeThoughts": True}),
    "generationConfig.thinkingConfig.x_unknown": config(thinkingConfig={"x_unknown": "mark_value"}),
    "generationConfig.responseModalities": config(responseModalities=["IMAGE"]),
    "generationConfig.speechConfig": config(speechConfig={"languageCode": "mark_value"}),
    "generationConfig.mediaResolution": config(mediaResolution="MEDIA_RESOLUTION_LOW"),
    "generationConfig.audioTranscriptionConfig": config(audioTranscriptionConfig={"x": "mark_value"}),
    "generationConfig.enableAffectiveDialog": config(enableAffectiveDialog=True),
    "generationConfig.enableEnhancedCivicAnswers": config(enableEnhancedCivicAnswers=True),
    "generationConfig.modelSelectionConfig": config(modelSelectionConfig={"x": "mark_value"}),
    "generationConfig.responseFormat": config(responseFormat={"x": "mark_value"}),
    "generationConfig.translationConfig": config(translationConfig={"x": "mark_value"}),
    "generationConfig.audioTimestamp": config(audioTimestamp=True),
    "generationConfig.routingConfig": config(routingConfig={"manualMode": {"modelName": "mark_value"}}),
    "safetySettings": {
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_LOW_AND_ABOVE"}]
    },
    "cachedContent": {"cachedContent": "cachedContents/mark_cache"},
    "labels": {"labels": {"team": "mark_value"}},
    "serviceTier": {"serviceTier": "flex"},
    "store": {"store": True},
    "modelArmorConfig": {"modelArmorConfig": {"promptTemplateName": "mark_value"}},
    "x_unknown": {"x_unknown": "mark_value"},
}

MEMBERS: dict[str, dict[str, Body]] = {
    "chat": CHAT,
    "responses": RESPONSES,
    "messages": MESSAGES,
    "gemini": GEMINI,
}
