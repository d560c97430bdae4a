"""VS Code bridge: the frames and their members, as in `vscode/protocol.schema.json`."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ....types import Json, JsonObject

NAME: Final = "vscode"
ORIGIN_HEADER: Final = "x-toolwire-from"  # identifies requests of VS Code's custom endpoints
VERSION: Final = 1


class TextPart(Struct, frozen=True, kw_only=True, tag_field="t", tag="text"):
    text: str


class CallPart(Struct, frozen=True, kw_only=True, tag_field="t", tag="call"):
    """input is an object by VS Code's types; a provider may send any JSON."""

    id: str
    name: str
    input: Json


class DataPart(Struct, frozen=True, kw_only=True, tag_field="t", tag="data"):
    """data is base64."""

    mime: str
    data: str


class ResultPart(Struct, frozen=True, kw_only=True, tag_field="t", tag="result"):
    id: str
    parts: tuple[TextPart | DataPart, ...]


class ThinkingPart(Struct, frozen=True, kw_only=True, tag_field="t", tag="thinking", omit_defaults=True):
    text: str
    id: str = ""
    meta: JsonObject = {}


AnswerPart: TypeAlias = TextPart | CallPart | DataPart | ThinkingPart
Part: TypeAlias = TextPart | CallPart | DataPart | ThinkingPart | ResultPart


class ChatMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]
    name: str = ""


class AskMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: Literal["user", "assistant", "system"]
    parts: tuple[Part, ...]
    name: str = ""


class OfferedTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str
    schema: JsonObject | None = None


class ListedModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model of a window; key is vendor/id. None: unknown."""

    key: str
    id: str
    vendor: str
    family: str
    version: str
    name: str
    max_input_tokens: int
    can_call_tools: bool | None = None
    can_see_images: bool | None = None


class OfferedModel(Struct, frozen=True, kw_only=True):
    """A model of the gateway, for VS Code's list."""

    id: str
    name: str
    family: str
    version: str
    max_input_tokens: int
    max_output_tokens: int
    can_call_tools: bool
    can_see_images: bool


class Hello(Struct, frozen=True, kw_only=True, tag_field="type", tag="hello", omit_defaults=True):
    v: int
    window: str
    vscode: str
    extension: str
    focused: bool
    copilot: str = ""
    folder: str = ""


class Focus(Struct, frozen=True, kw_only=True, tag_field="type", tag="focus"):
    focused: bool


class Models(Struct, frozen=True, kw_only=True, tag_field="type", tag="models"):
    models: tuple[ListedModel, ...]


class Parts(Struct, frozen=True, kw_only=True, tag_field="type", tag="parts"):
    id: str
    seq: int
    parts: tuple[AnswerPart, ...]


class End(Struct, frozen=True, kw_only=True, tag_field="type", tag="end"):
    id: str
    cancelled: bool


class Failure(Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A request failed in the window. refused_by_user: its user did not consent to the use of the model."""

    id: str
    code: str
    name: str
    message: str
    refused_by_user: bool = False


class Counted(Struct, frozen=True, kw_only=True, tag_field="type", tag="count"):
    id: str
    tokens: int


class Pong(Struct, frozen=True, kw_only=True, tag_field="type", tag="pong"):
    n: int


class Ask(Struct, frozen=True, kw_only=True, tag_field="type", tag="ask", omit_defaults=True):
    """A request of VS Code to a model of the gateway."""

    id: str
    model: str
    messages: tuple[AskMessage, ...]
    tools: tuple[OfferedTool, ...] = ()
    required: bool = False
    options: JsonObject = {}


class Stop(Struct, frozen=True, kw_only=True, tag_field="type", tag="stop"):
    id: str


class List(Struct, frozen=True, kw_only=True, tag_field="type", tag="list"):
    """The window requests an offer."""


class Welcome(Struct, frozen=True, kw_only=True, tag_field="type", tag="welcome", omit_defaults=True):
    """pid and started_by: of a gateway that a window has started, which windows may stop."""

    v: int
    gateway: str
    pid: int = 0
    started_by: str = ""


class Chat(Struct, frozen=True, kw_only=True, tag_field="type", tag="chat", omit_defaults=True):
    """A request of the gateway to a model of the window."""

    id: str
    model: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[OfferedTool, ...] = ()
    required: bool = False
    options: JsonObject = {}
    justification: str = ""


class Cancel(Struct, frozen=True, kw_only=True, tag_field="type", tag="cancel"):
    id: str


class Count(Struct, frozen=True, kw_only=True, tag_field="type", tag="count"):
    id: str
    model: str
    text: str


class Refresh(Struct, frozen=True, kw_only=True, tag_field="type", tag="refresh"):
    """The gateway requests the list of models again."""


class Ping(Struct, frozen=True, kw_only=True, tag_field="type", tag="ping"):
    n: int


class Offer(Struct, frozen=True, kw_only=True, tag_field="type", tag="offer"):
    models: tuple[OfferedModel, ...]


class Refused(Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A request of VS Code failed."""

    id: str
    status: int
    code: Literal["NoPermissions", "Blocked", "NotFound", "Unknown"]
    name: str
    message: str


class UnknownFrame(Struct, frozen=True, kw_only=True):
    """A frame of a newer version, to be logged and ignored."""

    type: str


FromWindow: TypeAlias = Hello | Focus | Models | Parts | End | Failure | Counted | Pong | Ask | Stop | List
FromGateway: TypeAlias = Welcome | Chat | Cancel | Count | Refresh | Ping | Offer | Parts | End | Refused
