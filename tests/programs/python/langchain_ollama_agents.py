"""LangChain's ChatOllama: the same cases as its other models, through the API of Ollama."""

from __future__ import annotations

from cases import ADDRESS, KEY, MODEL, main
from langchain_agents import add
from langchain_ollama import ChatOllama

HEADERS = {"headers": {"authorization": f"Bearer {KEY}"}, "timeout": 20}

add("ollama", lambda: ChatOllama(model=MODEL, base_url=ADDRESS, client_kwargs=HEADERS, num_ctx=8192))

if __name__ == "__main__":
    main()
