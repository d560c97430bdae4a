"""Clients without tools of their own, on a gateway that mounts MCP servers: the SDKs of OpenAI and Anthropic, and LangChain."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic
from cases import ADDRESS, KEY, MODEL, case, main, read_file
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import OpenAI

openai = OpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0, timeout=30)
anthropic = Anthropic(base_url=ADDRESS, api_key=KEY, max_retries=0, timeout=30)


@case("openai-chat")
def chat(prompt: str) -> str:
    answer = openai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
    assert answer.choices[0].finish_reason == "stop"
    assert not answer.choices[0].message.tool_calls
    return str(answer.choices[0].message.content)


@case("openai-chat-stream")
def chat_stream(prompt: str) -> str:
    with openai.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": prompt}]) as stream:
        return str(stream.get_final_completion().choices[0].message.content)


@case("openai-responses")
def responses(prompt: str) -> str:
    return openai.responses.create(model=MODEL, input=prompt).output_text


@case("anthropic")
def messages(prompt: str) -> str:
    answer = anthropic.messages.create(model=MODEL, max_tokens=1000, messages=[{"role": "user", "content": prompt}])
    assert answer.stop_reason == "end_turn"
    return "".join(block.text for block in answer.content if block.type == "text")


@case("anthropic-stream")
def messages_stream(prompt: str) -> str:
    asked: list[Any] = [{"role": "user", "content": prompt}]
    with anthropic.messages.stream(model=MODEL, max_tokens=1000, messages=asked) as stream:
        return str(stream.get_final_text())


def openai_model(*, is_responses: bool) -> Any:
    return ChatOpenAI(
        model=MODEL,
        base_url=f"{ADDRESS}/v1",
        api_key=KEY,  # type: ignore[arg-type]
        max_retries=0,
        timeout=30,
        use_responses_api=is_responses,
    )


@case("langchain-chat")
def langchain_chat(prompt: str) -> str:
    return str(openai_model(is_responses=False).invoke([HumanMessage(prompt)]).text)


@case("langchain-responses")
def langchain_responses(prompt: str) -> str:
    return str(openai_model(is_responses=True).invoke([HumanMessage(prompt)]).text)


@case("langchain-agent")
def langchain_agent(prompt: str) -> str:
    """With a tool of its own beside the mounted ones."""
    model = ChatAnthropic(  # type: ignore[call-arg]
        model=MODEL, base_url=ADDRESS, api_key=KEY, max_tokens=1000, max_retries=0, timeout=30
    )
    state = create_agent(model, tools=[tool(read_file)]).invoke({"messages": [HumanMessage(prompt)]})
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    main()
