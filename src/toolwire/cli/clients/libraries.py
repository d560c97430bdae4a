"""Clients that are libraries: for each a short program that uses the gateway and calls a tool."""

from __future__ import annotations

from .client import DUMMY, KEY, Client, DialectSetup

_PYTHON_KEY = f'os.environ.get("{KEY}", "{DUMMY}")'
_NODE_KEY = f'process.env.{KEY} ?? "{DUMMY}"'
_QUESTION = "What is the weather in Paris?"
_PYTHON_TOOL = """
def get_weather(city: str) -> str:
    \"\"\"The weather in a city.

    Args:
        city: Name of the city.
    \"\"\"
    return f"18 degrees and rain in {city}"

"""
_PYTHON_SCHEMA = 'schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}'
_PYTHON_DECLARED = '"name": "get_weather", "description": "The weather in a city", "parameters": schema'
_NODE_TOOL = """
const getWeather = ({ city }) => `18 degrees and rain in ${city}`;
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const described = { name: "get_weather", description: "The weather in a city" };
"""


def _python(dialect: str, imports: str, code: str, decorator: str = "") -> DialectSetup:
    """Inserts the tool between the imports and the code."""
    tool = _PYTHON_TOOL.replace("def ", f"{decorator}\ndef ", 1) if decorator else _PYTHON_TOOL
    return _way(dialect, f"import os\n{imports.strip()}\n\n{tool}\n{code.strip()}", _PYTHON_KEY)


def _node(dialect: str, imports: str, code: str) -> DialectSetup:
    return _way(dialect, f"{imports.strip()}\n{_NODE_TOOL}\n{code.strip()}", _NODE_KEY)


def _way(dialect: str, code: str, key: str) -> DialectSetup:
    return DialectSetup(dialect=dialect, code=code.replace("@key@", key).replace("@question@", _QUESTION))


OPENAI_PYTHON = Client(
    name="openai-python",
    title="OpenAI SDK, Python",
    ways=(
        _python(
            "chat",
            "import json\nfrom openai import OpenAI",
            f"""
{_PYTHON_SCHEMA}
tools = [{{"type": "function", "function": {{{_PYTHON_DECLARED}}}}}]
client = OpenAI(base_url="@v1@", api_key=@key@)
messages = [{{"role": "user", "content": "@question@"}}]
while True:
    answer = client.chat.completions.create(model="@model@", messages=messages, tools=tools).choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer)
    for call in answer.tool_calls:
        result = get_weather(**json.loads(call.function.arguments))
        messages.append({{"role": "tool", "tool_call_id": call.id, "content": result}})
print(answer.content)
""",
        ),
        _python(
            "responses",
            "import json\nfrom openai import OpenAI",
            f"""
{_PYTHON_SCHEMA}
tools = [{{"type": "function", {_PYTHON_DECLARED}}}]
client = OpenAI(base_url="@v1@", api_key=@key@)
items = [{{"role": "user", "content": "@question@"}}]
while True:
    answer = client.responses.create(model="@model@", input=items, tools=tools, store=False)
    calls = [item for item in answer.output if item.type == "function_call"]
    if not calls:
        break
    items += answer.output
    for call in calls:
        result = get_weather(**json.loads(call.arguments))
        items.append({{"type": "function_call_output", "call_id": call.call_id, "output": result}})
print(answer.output_text)
""",
        ),
    ),
    proof="run",
    notes="or the variables `OPENAI_BASE_URL` and `OPENAI_API_KEY`",
)

_OPENAI_NODE = 'const client = new OpenAI({ baseURL: "@v1@", apiKey: @key@ });'

OPENAI_NODE = Client(
    name="openai-node",
    title="OpenAI SDK, JavaScript",
    ways=(
        _node(
            "chat",
            'import OpenAI from "openai";',
            f"""
{_OPENAI_NODE}
const runner = client.chat.completions.runTools({{
  model: "@model@",
  messages: [{{ role: "user", content: "@question@" }}],
  tools: [{{ type: "function", function: {{ ...described, parameters: schema, parse: JSON.parse, function: getWeather }} }}],
}});
console.log(await runner.finalContent());
""",
        ),
        _node(
            "responses",
            'import OpenAI from "openai";',
            f"""
{_OPENAI_NODE}
const tools = [{{ type: "function", strict: true, ...described, parameters: schema }}];
const input = [{{ role: "user", content: "@question@" }}];
for (;;) {{
  const answer = await client.responses.create({{ model: "@model@", input, tools, store: false }});
  const calls = answer.output.filter((item) => item.type === "function_call");
  if (!calls.length) {{
    console.log(answer.output_text);
    break;
  }}
  input.push(...answer.output);
  for (const call of calls)
    input.push({{ type: "function_call_output", call_id: call.call_id, output: getWeather(JSON.parse(call.arguments)) }});
}}
""",
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
            "from anthropic import Anthropic, beta_tool",
            """
client = Anthropic(base_url="@address@", api_key=@key@)
messages = [{"role": "user", "content": "@question@"}]
runner = client.beta.messages.tool_runner(model="@model@", max_tokens=1000, tools=[get_weather], messages=messages)
print(runner.until_done().content[0].text)
""",
            "@beta_tool",
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
            'import Anthropic from "@anthropic-ai/sdk";\nimport { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";',
            """
const client = new Anthropic({ baseURL: "@address@", apiKey: @key@ });
const runner = client.beta.messages.toolRunner({
  model: "@model@",
  max_tokens: 1000,
  messages: [{ role: "user", content: "@question@" }],
  tools: [betaTool({ ...described, inputSchema: schema, run: getWeather })],
});
console.log((await runner).content[0].text);
""",
        ),
    ),
    proof="run",
    notes="or the variables `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`",
)

_LANGCHAIN = """
model = {}
agent = create_agent(model, tools=[get_weather])
print(agent.invoke({{"messages": [{{"role": "user", "content": "@question@"}}]}})["messages"][-1].text)
"""
_LANGCHAIN_OPENAI = 'ChatOpenAI(model="@model@", base_url="@v1@", api_key=@key@{})'
_LANGCHAIN_IMPORTS = "from langchain.agents import create_agent\nfrom {} import {}"
_LANGCHAIN_NODE = """
const model = {};
const agent = createAgent({{ model, tools: [tool(getWeather, {{ ...described, schema }})] }});
const {{ messages }} = await agent.invoke({{ messages: [{{ role: "user", content: "@question@" }}] }});
console.log(messages.at(-1).text);
"""
_LANGCHAIN_NODE_OPENAI = 'new ChatOpenAI({{ model: "@model@", apiKey: @key@, configuration: {{ baseURL: "@v1@" }}{} }})'
_LANGCHAIN_NODE_IMPORTS = 'import {{ {} }} from "{}";\nimport {{ createAgent, tool }} from "langchain";'

LANGCHAIN = Client(
    name="langchain",
    title="LangChain, Python",
    ways=(
        _python(
            "chat",
            _LANGCHAIN_IMPORTS.format("langchain_openai", "ChatOpenAI"),
            _LANGCHAIN.format(_LANGCHAIN_OPENAI.format("")),
        ),
        _python(
            "responses",
            _LANGCHAIN_IMPORTS.format("langchain_openai", "ChatOpenAI"),
            _LANGCHAIN.format(_LANGCHAIN_OPENAI.format(", use_responses_api=True")),
        ),
        _python(
            "messages",
            _LANGCHAIN_IMPORTS.format("langchain_anthropic", "ChatAnthropic"),
            _LANGCHAIN.format('ChatAnthropic(model="@model@", base_url="@address@", api_key=@key@, max_tokens=1000)'),
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
            _LANGCHAIN_NODE_IMPORTS.format("ChatOpenAI", "@langchain/openai"),
            _LANGCHAIN_NODE.format(_LANGCHAIN_NODE_OPENAI.format("")),
        ),
        _node(
            "responses",
            _LANGCHAIN_NODE_IMPORTS.format("ChatOpenAI", "@langchain/openai"),
            _LANGCHAIN_NODE.format(_LANGCHAIN_NODE_OPENAI.format(", useResponsesApi: true")),
        ),
        _node(
            "messages",
            _LANGCHAIN_NODE_IMPORTS.format("ChatAnthropic", "@langchain/anthropic"),
            _LANGCHAIN_NODE.format(
                'new ChatAnthropic({ model: "@model@", apiKey: @key@, anthropicApiUrl: "@address@", maxTokens: 1000 })'
            ),
        ),
    ),
    proof="run",
    notes="`streaming: true` on Chat downloads a token table; stream with `agent.stream` instead",
)

_AI = """
const provider = {};
const getWeatherTool = tool({{ description: described.description, inputSchema: jsonSchema(schema), execute: getWeather }});
const tools = {{ [described.name]: getWeatherTool }};
const answer = await generateText({{ model: provider{}("@model@"), prompt: "@question@", tools, stopWhen: isStepCount(5) }});
console.log(answer.text);
"""
_AI_IMPORTS = 'import {{ generateText, isStepCount, jsonSchema, tool }} from "ai";\nimport {{ {} }} from "{}";'

AI_SDK = Client(
    name="ai-sdk",
    title="AI SDK",
    ways=(
        _node(
            "chat",
            _AI_IMPORTS.format("createOpenAICompatible", "@ai-sdk/openai-compatible"),
            _AI.format('createOpenAICompatible({ name: "toolwire", baseURL: "@v1@", apiKey: @key@ })', ""),
        ),
        _node(
            "responses",
            _AI_IMPORTS.format("createOpenAI", "@ai-sdk/openai"),
            _AI.format('createOpenAI({ baseURL: "@v1@", apiKey: @key@ })', ".responses"),
        ),
        _node(
            "messages",
            _AI_IMPORTS.format("createAnthropic", "@ai-sdk/anthropic"),
            _AI.format('createAnthropic({ baseURL: "@v1@", apiKey: @key@ })', ""),
        ),
    ),
    proof="run",
    notes="",
)

_AGENT_IMPORTS = """
from agents import Agent, {}, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
"""
_AGENT = """
set_tracing_disabled(True)
client = AsyncOpenAI(base_url="@v1@", api_key=@key@)
agent = Agent(name="assistant", model={}(model="@model@", openai_client=client), tools=[get_weather])
print(Runner.run_sync(agent, "@question@").final_output)
"""

OPENAI_AGENTS = Client(
    name="openai-agents",
    title="OpenAI Agents SDK",
    ways=tuple(
        _python(dialect, _AGENT_IMPORTS.format(model), _AGENT.format(model), "@function_tool")
        for dialect, model in (("responses", "OpenAIResponsesModel"), ("chat", "OpenAIChatCompletionsModel"))
    ),
    proof="run",
    notes="traces go to OpenAI unless they are switched off",
)

_PYDANTIC_IMPORTS = """
from pydantic_ai import Agent
from pydantic_ai.models.{0} import {1}
from pydantic_ai.providers.{0} import {2}
"""
_PYDANTIC = """
model = {}("@model@", provider={}(base_url="{}", api_key=@key@))
print(Agent(model, tools=[get_weather]).run_sync("@question@").output)
"""

PYDANTIC_AI = Client(
    name="pydantic-ai",
    title="Pydantic AI",
    ways=tuple(
        _python(dialect, _PYDANTIC_IMPORTS.format(vendor, model, provider), _PYDANTIC.format(model, provider, url))
        for dialect, vendor, model, provider, url in (
            ("chat", "openai", "OpenAIChatModel", "OpenAIProvider", "@v1@"),
            ("responses", "openai", "OpenAIResponsesModel", "OpenAIProvider", "@v1@"),
            ("messages", "anthropic", "AnthropicModel", "AnthropicProvider", "@address@"),
        )
    ),
    proof="run",
    notes="text before a call ends `run_stream`; use `run` with an event handler",
)


def _litellm(prefix: str, address: str) -> str:
    return f"""
{_PYTHON_SCHEMA}
tools = [{{"type": "function", "function": {{{_PYTHON_DECLARED}}}}}]
messages = [{{"role": "user", "content": "@question@"}}]
answer = litellm.completion(model="{prefix}/@model@", api_base="{address}", api_key=@key@, messages=messages, tools=tools)
for call in answer.choices[0].message.tool_calls or []:
    print(call.function.name, get_weather(**json.loads(call.function.arguments)))
"""


LITELLM = Client(
    name="litellm",
    title="LiteLLM SDK",
    ways=(
        _python("chat", "import json\nimport litellm", _litellm("openai", "@v1@")),
        _python("messages", "import json\nimport litellm", _litellm("anthropic", "@address@")),
    ),
    proof="run",
    notes="the prefix `openai/` or `anthropic/` selects the dialect and is not sent; LiteLLM 1.106 needs the package `mcp` for tools",
)

LLAMAINDEX = Client(
    name="llamaindex",
    title="LlamaIndex",
    ways=(
        _python(
            "chat",
            "from llama_index.core.tools import FunctionTool\nfrom llama_index.llms.openai_like import OpenAILike",
            """
model = OpenAILike(model="@model@", api_base="@v1@", api_key=@key@, is_chat_model=True, is_function_calling_model=True)
print(model.predict_and_call([FunctionTool.from_defaults(get_weather)], user_msg="@question@"))
""",
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
            """
import asyncio
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
""",
            """
info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}
model = OpenAIChatCompletionClient(model="@model@", base_url="@v1@", api_key=@key@, model_info=info)
agent = AssistantAgent("helper", model, tools=[get_weather], max_tool_iterations=5)
print(asyncio.run(agent.run(task="@question@")).messages[-1].content)
""",
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
            "from crewai import LLM, Agent, Crew, Task\nfrom crewai.tools import tool",
            """
model = LLM(model="@model@", provider="openai", base_url="@v1@", api_key=@key@)
helper = Agent(role="Guide", goal="Help travellers", backstory="You know cities.", llm=model, tools=[get_weather])
task = Task(description="@question@", expected_output="The weather.", agent=helper)
print(Crew(agents=[helper], tasks=[task], tracing=False).kickoff())
""",
            '@tool("get_weather")',
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
            """
import asyncio
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import KernelFunctionFromMethod, kernel_function
""",
            """
async def main():
    client = AsyncOpenAI(base_url="@v1@", api_key=@key@)
    service = OpenAIChatCompletion(ai_model_id="@model@", async_client=client)
    agent = ChatCompletionAgent(service=service, name="helper", plugins=[KernelFunctionFromMethod(get_weather)])
    print((await agent.get_response(messages="@question@")).content)


asyncio.run(main())
""",
            "@kernel_function",
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
            "from smolagents import OpenAIModel, ToolCallingAgent, tool",
            """
model = OpenAIModel(model_id="@model@", api_base="@v1@", api_key=@key@)
print(ToolCallingAgent(tools=[get_weather], model=model).run("@question@"))
""",
            "@tool",
        ),
    ),
    proof="run",
    notes="results come back as text, by its own design",
)

LIBRARIES = (
    OPENAI_PYTHON, OPENAI_NODE, ANTHROPIC_PYTHON, ANTHROPIC_NODE, LANGCHAIN, LANGCHAIN_JS, AI_SDK, OPENAI_AGENTS,
    PYDANTIC_AI, LITELLM, LLAMAINDEX, AUTOGEN, CREWAI, SEMANTIC_KERNEL, SMOLAGENTS,
)  # fmt: skip
