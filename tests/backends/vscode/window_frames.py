"""Frames of a window, made for tests without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.backends.vscode.stage import model
from toolwire.backends.vscode.window import Window
from toolwire.backends.vscode.wire.frames import decode_gateway
from toolwire.backends.vscode.wire.shapes import (
    Chat,
    ChatMessage,
    FromGateway,
    Hello,
    ListedModel,
    Parts,
    TextPart,
    UnknownFrame,
)


def hello(name: str = "w", *, focused: bool = True, **more: Any) -> Hello:
    return Hello(v=1, window=name, vscode="1.139.1", extension="0.1.0", focused=focused, **more)


def listed(key: str = "copilot/gpt-4.1", **more: Any) -> ListedModel:
    return msgspec.convert(model(key, **more), ListedModel)


def chat(request_id: str = "r", text: str = "hi") -> Chat:
    message = ChatMessage(role="user", parts=(TextPart(text=text),))
    return Chat(id=request_id, model="copilot/gpt-4.1", messages=(message,))


def parts(request_id: str, seq: int = 0, text: str = "a") -> Parts:
    return Parts(id=request_id, seq=seq, parts=(TextPart(text=text),))


async def heard(window: Window) -> FromGateway | UnknownFrame:
    text = await asyncio.wait_for(window.outbox.next(), 1)
    assert text is not None
    return decode_gateway(text)
