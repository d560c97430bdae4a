"""Libraries for Python and JavaScript, each with the scripts and cases that complete the task with it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from tests.programs.installed import NODE_MODULES, PYTHON, node_library, node_program, python_library
from tests.programs.library import Cases
from tests.programs.stage import Stage, Task

_FOLDER = Path(__file__).parent
_PYTHON_OPENAI = [
    "chat",
    "chat-raw-stream",
    "chat-stream-helper",
    "chat-asynchronous",
    "responses",
    "responses-stream-helper",
    "responses-stateful",
    "responses-stateful-stream",
    "responses-asynchronous",
    "responses-kept",
    "responses-in-background",
    "conversation",
    "tool-runner",
    "tool-runner-stream",
]
_PYTHON_ANTHROPIC = [
    "messages",
    "messages-stream",
    "messages-asynchronous",
    "counted",
    "tool-runner",
    "tool-runner-stream",
    "tool-runner-without-thread",
    "tool-runner-asynchronous",
    "thread",
]
_PYTHON_LANGCHAIN = [
    dialect + way for dialect in ("chat", "responses", "messages") for way in ("", "-stream", "-agent", "-agent-stream")
]

_PYTHON_OLLAMA = ["ollama", "ollama-stream", "ollama-agent", "ollama-agent-stream"]
_PYTHON_AGENTS = ["chat", "chat-stream", "responses", "responses-stream"]
_PYTHON_PYDANTIC = [*_PYTHON_AGENTS, "messages", "messages-stream"]
_NODE_OPENAI = [
    "chat",
    "chat-stream",
    "chat-tool-runner",
    "chat-tool-runner-stream",
    "responses",
    "responses-stream",
    "responses-stateful",
    "responses-stateful-stream",
]
_NODE_ANTHROPIC = ["messages", "messages-stream", "tool-runner", "tool-runner-stream", "thread"]
_NODE_AI_SDK = [name + way for name in ("compatible", "chat", "responses", "messages") for way in ("", "-stream")]
_NODE_LANGCHAIN = [name + way for name in ("chat", "responses", "messages") for way in ("", "-stream")]


class Library(NamedTuple):
    """package: what must be installed. script: in the folder python or js."""

    package: str
    script: str
    cases: list[str]

    def run(self, stage: Stage, folder: Path, kind: type[Task] = Task) -> None:
        cases = Cases(stage, folder, self.cases, kind)
        if self.script.endswith(".py"):
            python_library(self.package)
            cases.run([PYTHON, "-W", "ignore", _FOLDER / "python" / self.script])
            return
        node_library(self.package)
        # A script finds its libraries beside itself.
        scripts = shutil.copytree(_FOLDER / "js", folder / "js")
        (scripts / "node_modules").symlink_to(NODE_MODULES)
        cases.run([node_program("node"), scripts / self.script])


PYTHON_LIBRARIES = {
    "openai": Library("openai", "openai_sdk.py", _PYTHON_OPENAI),
    "anthropic": Library("anthropic", "anthropic_sdk.py", _PYTHON_ANTHROPIC),
    "langchain": Library("langchain", "langchain_agents.py", _PYTHON_LANGCHAIN),
    "langchain-ollama": Library("langchain_ollama", "langchain_ollama_agents.py", _PYTHON_OLLAMA),
    "openai-agents": Library("agents", "openai_agents.py", _PYTHON_AGENTS),
    "pydantic-ai": Library("pydantic_ai", "pydantic_agents.py", _PYTHON_PYDANTIC),
}
NODE_LIBRARIES = {
    "openai.js": Library("openai", "openai_sdk.mjs", _NODE_OPENAI),
    "anthropic.js": Library("@anthropic-ai/sdk", "anthropic_sdk.mjs", _NODE_ANTHROPIC),
    "ai-sdk.js": Library("ai", "ai_sdk.mjs", _NODE_AI_SDK),
    "langchain.js": Library("langchain", "langchain.mjs", _NODE_LANGCHAIN),
}
LIBRARIES = PYTHON_LIBRARIES | NODE_LIBRARIES
