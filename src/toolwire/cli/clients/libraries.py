"""Clients that are libraries: the lines that point each at the gateway. They are told by code, so nothing is written."""

from __future__ import annotations

from .client import DUMMY, KEY, Client, Way

_PYTHON_KEY = f'os.environ.get("{KEY}", "{DUMMY}")'
_NODE_KEY = f'process.env.{KEY} ?? "{DUMMY}"'


def _python(dialect: str, *lines: str) -> Way:
    return Way(dialect=dialect, code="\n".join(("import os", *lines)).replace("@key@", _PYTHON_KEY))


def _node(dialect: str, *lines: str) -> Way:
    return Way(dialect=dialect, code="\n".join(lines).replace("@key@", _NODE_KEY))


_QUESTION = '[{"role": "user", "content": "hello"}]'
_NODE_QUESTION = '[{ role: "user", content: "hello" }]'

_OPENAI = ("from openai import OpenAI", 'client = OpenAI(base_url="@v1@", api_key=@key@)')
_OPENAI_NODE = ('import OpenAI from "openai";', 'const client = new OpenAI({ baseURL: "@v1@", apiKey: @key@ });')

OPENAI_PYTHON = Client(
    name="openai-python",
    title="OpenAI SDK, Python",
    ways=(
        _python(
            "chat",
            *_OPENAI,
            f'answer = client.chat.completions.create(model="@model@", messages={_QUESTION})',
            "print(answer.choices[0].message.content)",
        ),
        _python(
            "responses",
            *_OPENAI,
            'answer = client.responses.create(model="@model@", input="hello")',
            "print(answer.output_text)",
        ),
    ),
    proof="run",
    notes="or the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`",
)

OPENAI_NODE = Client(
    name="openai-node",
    title="OpenAI SDK, JavaScript",
    ways=(
        _node(
            "chat",
            *_OPENAI_NODE,
            f'const answer = await client.chat.completions.create({{ model: "@model@", messages: {_NODE_QUESTION} }});',
            "console.log(answer.choices[0].message.content);",
        ),
        _node(
            "responses",
            *_OPENAI_NODE,
            'const answer = await client.responses.create({ model: "@model@", input: "hello" });',
            "console.log(answer.output_text);",
        ),
    ),
    proof="run",
    notes="or the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`",
)

ANTHROPIC_PYTHON = Client(
    name="anthropic-python",
    title="Anthropic SDK, Python",
    ways=(
        _python(
            "messages",
            "from anthropic import Anthropic",
            'client = Anthropic(base_url="@address@", api_key=@key@)',
            f'answer = client.messages.create(model="@model@", max_tokens=1000, messages={_QUESTION})',
            "print(answer.content)",
        ),
    ),
    proof="run",
    notes="or the variables `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`",
)

ANTHROPIC_NODE = Client(
    name="anthropic-node",
    title="Anthropic SDK, JavaScript",
    ways=(
        _node(
            "messages",
            'import Anthropic from "@anthropic-ai/sdk";',
            'const client = new Anthropic({ baseURL: "@address@", apiKey: @key@ });',
            f'const answer = await client.messages.create({{ model: "@model@", max_tokens: 1000, messages: {_NODE_QUESTION} }});',
            "console.log(answer.content);",
        ),
    ),
    proof="run",
    notes="or the variables `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`",
)

_LANGCHAIN = 'model = ChatOpenAI(model="@model@", base_url="@v1@", api_key=@key@{})'
_LANGCHAIN_NODE = (
    'const model = new ChatOpenAI({{ model: "@model@", apiKey: @key@, configuration: {{ baseURL: "@v1@" }}{} }});'
)
_LANGCHAIN_NODE_ASK = 'console.log((await model.invoke("hello")).text);'

LANGCHAIN = Client(
    name="langchain",
    title="LangChain, Python",
    ways=(
        _python(
            "chat",
            "from langchain_openai import ChatOpenAI",
            _LANGCHAIN.format(""),
            'print(model.invoke("hello").text)',
        ),
        _python(
            "responses",
            "from langchain_openai import ChatOpenAI",
            _LANGCHAIN.format(", use_responses_api=True"),
            'print(model.invoke("hello").text)',
        ),
        _python(
            "messages",
            "from langchain_anthropic import ChatAnthropic",
            'model = ChatAnthropic(model="@model@", base_url="@address@", api_key=@key@, max_tokens=1000)',
            'print(model.invoke("hello").text)',
        ),
    ),
    proof="run",
    notes="the model goes into `create_agent` and LangGraph as any other",
)

LANGCHAIN_JS = Client(
    name="langchain-js",
    title="LangChain, JavaScript",
    ways=(
        _node(
            "chat",
            'import { ChatOpenAI } from "@langchain/openai";',
            _LANGCHAIN_NODE.format(""),
            _LANGCHAIN_NODE_ASK,
        ),
        _node(
            "responses",
            'import { ChatOpenAI } from "@langchain/openai";',
            _LANGCHAIN_NODE.format(", useResponsesApi: true"),
            _LANGCHAIN_NODE_ASK,
        ),
        _node(
            "messages",
            'import { ChatAnthropic } from "@langchain/anthropic";',
            'const model = new ChatAnthropic({ model: "@model@", apiKey: @key@, anthropicApiUrl: "@address@", maxTokens: 1000 });',
            _LANGCHAIN_NODE_ASK,
        ),
    ),
    proof="run",
    notes="`streaming: true` on Chat downloads a token table; stream with `agent.stream` instead",
)

_AI_ASK = 'console.log((await generateText({ model: provider{}("@model@"), prompt: "hello" })).text);'

AI_SDK = Client(
    name="ai-sdk",
    title="AI SDK",
    ways=(
        _node(
            "chat",
            'import { generateText } from "ai";',
            'import { createOpenAICompatible } from "@ai-sdk/openai-compatible";',
            'const provider = createOpenAICompatible({ name: "toolwire", baseURL: "@v1@", apiKey: @key@ });',
            _AI_ASK.replace("{}", ""),
        ),
        _node(
            "responses",
            'import { generateText } from "ai";',
            'import { createOpenAI } from "@ai-sdk/openai";',
            'const provider = createOpenAI({ baseURL: "@v1@", apiKey: @key@ });',
            _AI_ASK.replace("{}", ".responses"),
        ),
        _node(
            "messages",
            'import { generateText } from "ai";',
            'import { createAnthropic } from "@ai-sdk/anthropic";',
            'const provider = createAnthropic({ baseURL: "@v1@", apiKey: @key@ });',
            _AI_ASK.replace("{}", ""),
        ),
    ),
    proof="run",
    notes="",
)

_AGENT = (
    "from agents import Agent, {model}, Runner, set_tracing_disabled",
    "from openai import AsyncOpenAI",
    "set_tracing_disabled(True)",
    'client = AsyncOpenAI(base_url="@v1@", api_key=@key@)',
    'agent = Agent(name="assistant", model={model}(model="@model@", openai_client=client))',
    'print(Runner.run_sync(agent, "hello").final_output)',
)

OPENAI_AGENTS = Client(
    name="openai-agents",
    title="OpenAI Agents SDK",
    ways=(
        _python("responses", *(line.replace("{model}", "OpenAIResponsesModel") for line in _AGENT)),
        _python("chat", *(line.replace("{model}", "OpenAIChatCompletionsModel") for line in _AGENT)),
    ),
    proof="run",
    notes="traces go to OpenAI unless they are switched off",
)

_PYDANTIC = (
    "from pydantic_ai import Agent",
    "from pydantic_ai.models.openai import {model}",
    "from pydantic_ai.providers.openai import OpenAIProvider",
    'model = {model}("@model@", provider=OpenAIProvider(base_url="@v1@", api_key=@key@))',
    'print(Agent(model).run_sync("hello").output)',
)

PYDANTIC_AI = Client(
    name="pydantic-ai",
    title="Pydantic AI",
    ways=(
        _python("chat", *(line.replace("{model}", "OpenAIChatModel") for line in _PYDANTIC)),
        _python("responses", *(line.replace("{model}", "OpenAIResponsesModel") for line in _PYDANTIC)),
        _python(
            "messages",
            "from pydantic_ai import Agent",
            "from pydantic_ai.models.anthropic import AnthropicModel",
            "from pydantic_ai.providers.anthropic import AnthropicProvider",
            'model = AnthropicModel("@model@", provider=AnthropicProvider(base_url="@address@", api_key=@key@))',
            'print(Agent(model).run_sync("hello").output)',
        ),
    ),
    proof="run",
    notes="text before a call ends `run_stream`; use `run` with an event handler",
)


def _litellm(prefix: str, address: str) -> tuple[str, ...]:
    where = f'model="{prefix}/@model@", api_base="{address}", api_key=@key@'
    ask = f"answer = litellm.completion({where}, messages={_QUESTION})"
    return "import litellm", ask, "print(answer.choices[0].message.content)"


LITELLM = Client(
    name="litellm",
    title="LiteLLM SDK",
    ways=(_python("chat", *_litellm("openai", "@v1@")), _python("messages", *_litellm("anthropic", "@address@"))),
    proof="run",
    notes="the prefix `openai/` or `anthropic/` chooses the dialect and is not sent",
)

LLAMAINDEX = Client(
    name="llamaindex",
    title="LlamaIndex",
    ways=(
        _python(
            "chat",
            "from llama_index.llms.openai_like import OpenAILike",
            'model = OpenAILike(model="@model@", api_base="@v1@", api_key=@key@, is_chat_model=True, is_function_calling_model=True)',
            'print(model.complete("hello"))',
        ),
    ),
    proof="run",
    notes="package `llama-index-llms-openai-like`",
)

AUTOGEN = Client(
    name="autogen",
    title="AutoGen",
    ways=(
        _python(
            "chat",
            "import asyncio",
            "from autogen_core.models import UserMessage",
            "from autogen_ext.models.openai import OpenAIChatCompletionClient",
            'info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}',
            'model = OpenAIChatCompletionClient(model="@model@", base_url="@v1@", api_key=@key@, model_info=info)',
            'print(asyncio.run(model.create([UserMessage(content="hello", source="user")])).content)',
        ),
    ),
    proof="run",
    notes="",
)

CREWAI = Client(
    name="crewai",
    title="CrewAI",
    ways=(
        _python(
            "chat",
            "from crewai import LLM",
            'model = LLM(model="@model@", provider="openai", base_url="@v1@", api_key=@key@)',
            'print(model.call("hello"))',
        ),
    ),
    proof="run",
    notes="",
)

SEMANTIC_KERNEL = Client(
    name="semantic-kernel",
    title="Semantic Kernel",
    ways=(
        _python(
            "chat",
            "import asyncio",
            "from openai import AsyncOpenAI",
            "from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings",
            "from semantic_kernel.contents import ChatHistory",
            'client = AsyncOpenAI(base_url="@v1@", api_key=@key@)',
            'service = OpenAIChatCompletion(ai_model_id="@model@", async_client=client)',
            "history = ChatHistory()",
            'history.add_user_message("hello")',
            "print(asyncio.run(service.get_chat_message_content(history, OpenAIChatPromptExecutionSettings())))",
        ),
    ),
    proof="run",
    notes="",
)

SMOLAGENTS = Client(
    name="smolagents",
    title="smolagents",
    ways=(
        _python(
            "chat",
            "from smolagents import OpenAIModel",
            'model = OpenAIModel(model_id="@model@", api_base="@v1@", api_key=@key@)',
            f"print(model.generate({_QUESTION}).content)",
        ),
    ),
    proof="run",
    notes="results come back as text, by its own design",
)

LIBRARIES = (
    OPENAI_PYTHON, OPENAI_NODE, ANTHROPIC_PYTHON, ANTHROPIC_NODE, LANGCHAIN, LANGCHAIN_JS, AI_SDK, OPENAI_AGENTS,
    PYDANTIC_AI, LITELLM, LLAMAINDEX, AUTOGEN, CREWAI, SEMANTIC_KERNEL, SMOLAGENTS,
)  # fmt: skip
