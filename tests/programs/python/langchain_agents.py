"""LangChain: models with bound tools and agents, on each of the three dialects, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases import ADDRESS, KEY, MODEL, call, case, main, read_file, write_file
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

BOUND = [tool(read_file), tool(write_file)]


def openai_model(**more: Any) -> Any:
    return ChatOpenAI(model=MODEL, base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0, timeout=20, **more)  # type: ignore[arg-type]


MODELS: dict[str, Callable[[], Any]] = {
    "chat": lambda: openai_model(use_responses_api=False),
    "responses": lambda: openai_model(use_responses_api=True),
    "messages": lambda: ChatAnthropic(  # type: ignore[call-arg]
        model=MODEL, base_url=ADDRESS, api_key=KEY, max_tokens=1000, max_retries=0, timeout=20
    ),
}


def by_hand(model: Any, prompt: str, ask: Callable[[Any, list[Any]], AIMessage]) -> str:
    bound = model.bind_tools(BOUND)
    messages: list[Any] = [HumanMessage(prompt)]
    while True:
        answer = ask(bound, messages)
        messages.append(answer)
        if not answer.tool_calls:
            return str(answer.text)
        for one in answer.tool_calls:
            messages.append(ToolMessage(call(one["name"], one["args"]), tool_call_id=one["id"]))


def whole(model: Any, messages: list[Any]) -> AIMessage:
    return model.invoke(messages)  # type: ignore[no-any-return]


def streamed(model: Any, messages: list[Any]) -> AIMessage:
    joined: AIMessageChunk | None = None
    for chunk in model.stream(messages):
        joined = chunk if joined is None else joined + chunk
    assert joined is not None
    return joined


def agent(model: Any, prompt: str) -> str:
    state = create_agent(model, tools=BOUND).invoke({"messages": [HumanMessage(prompt)]})
    return str(state["messages"][-1].text)


def agent_stream(model: Any, prompt: str) -> str:
    last: Any = None
    asked: Any = {"messages": [HumanMessage(prompt)]}
    for mode, piece in create_agent(model, tools=BOUND).stream(asked, stream_mode=["messages", "values"]):
        last = piece["messages"][-1] if mode == "values" else last  # type: ignore[index,call-overload]
    return str(last.text)


def add(dialect: str, build: Callable[[], Any]) -> None:
    case(dialect)(lambda prompt: by_hand(build(), prompt, whole))
    case(f"{dialect}-stream")(lambda prompt: by_hand(build(), prompt, streamed))
    case(f"{dialect}-agent")(lambda prompt: agent(build(), prompt))
    case(f"{dialect}-agent-stream")(lambda prompt: agent_stream(build(), prompt))


for name, builder in MODELS.items():
    add(name, builder)

if __name__ == "__main__":
    main()
