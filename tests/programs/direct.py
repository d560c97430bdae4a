"""Clients without a gateway: each works straight at a server of one dialect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.programs import claude_code, codex, opencode
from tests.programs.libraries import LIBRARIES
from tests.programs.stage import Stage, TwoReadsTask

Run: TypeAlias = Callable[[Stage, Path], None]


def _program(play: Callable[[TwoReadsTask], None]) -> Run:
    return lambda stage, folder: play(TwoReadsTask(stage, folder / "task"))


def _library(name: str, *cases: str) -> Run:
    """cases: for whole answers and for streams."""
    return lambda stage, folder: LIBRARIES[name]._replace(cases=list(cases)).run(stage, folder, TwoReadsTask)


# By dialect and by the client's name in `toolwire connect`.
CLIENTS: dict[str, dict[str, Run]] = {
    "chat": {
        "opencode": _program(partial(opencode.read_two_files, provider="@ai-sdk/openai-compatible")),
        "openai-python": _library("openai", "chat", "chat-raw-stream", "chat-stream-helper"),
        "openai-node": _library("openai.js", "chat", "chat-stream"),
        "ai-sdk": _library("ai-sdk.js", "compatible", "compatible-stream", "chat", "chat-stream"),
    },
    "responses": {
        "codex": _program(codex.read_two_files),
        "opencode": _program(partial(opencode.read_two_files, provider="@ai-sdk/openai")),
        "openai-python": _library("openai", "responses", "responses-stream-helper"),
        "openai-node": _library("openai.js", "responses", "responses-stream"),
        "ai-sdk": _library("ai-sdk.js", "responses", "responses-stream"),
    },
    "messages": {
        "claude-code": _program(claude_code.read_two_files),
        "opencode": _program(partial(opencode.read_two_files, provider="@ai-sdk/anthropic")),
        "anthropic-python": _library("anthropic", "messages", "messages-stream"),
        "anthropic-node": _library("anthropic.js", "messages", "messages-stream"),
        "ai-sdk": _library("ai-sdk.js", "messages", "messages-stream"),
    },
}
