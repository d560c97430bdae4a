"""VS Code bridge: encodes a request as one chat frame. What VS Code has no member for is a loss; where a model can follow
instructions, it is added to the prompt."""

from __future__ import annotations

from msgspec import Struct

from ....dialects.shared.media.text import placeholder, text_of
from ....dialects.shared.requests import (
    as_note,
    foreign_members,
    form_instruction,
    label_instruction,
    split_head,
    whole_schema,
    with_listener,
)
from ....errors import BadRequest
from ....types import JsonObject, Loss, Media, Message, Request, Text, Tool
from ....wire.exact_json import BadJson
from .frames import DIGITS, loses_digits
from .history import ChatHistory
from .shapes import NAME, Chat, ChatMessage, ListedModel, OfferedTool

MAX_TOOLS = 128
JUSTIFICATION = "toolwire passes on a request of a program on this computer."
_NO_MEMBER = "VS Code has no such setting"
_CALLS_NOTHING = 'VS Code says that this model calls no tools; a back end with tools = "simulate" is for such models'
_GO_ON = "Go on from where your last message stops."
# The modelOptions that Copilot's provider accepts. It accepts one stop text; the gateway implements all of them.
_OPTIONS = ("temperature", "frequency_penalty", "presence_penalty")


class ChatRequest(Struct, frozen=True, kw_only=True):
    chat: Chat
    losses: tuple[Loss, ...]


def chat_request(request: Request, model: ListedModel, *, id: str, justification: str = JUSTIFICATION) -> ChatRequest:
    """Raises BadRequest when no model can accept the request."""
    given = offered(request)
    tools = tuple(given[:MAX_TOOLS])
    too_many = f"{len(given)} tools were offered, and VS Code takes {MAX_TOOLS}"
    losses = [Loss("tool.number", tool.name, too_many) for tool in given[MAX_TOOLS:]]
    if tools and model.can_call_tools is False:
        losses.append(Loss("tools", "tools", _CALLS_NOTHING))
    try:
        chat = Chat(
            id=id,
            model=model.key,
            messages=_messages(request, model, tools, losses),
            tools=tuple(
                OfferedTool(name=tool.name, description=tool.description or "", schema=whole_schema(tool.schema))
                for tool in tools
            ),
            required=_must_call(request) and len(tools) == 1,
            options=options_of(request),
            justification=justification,
        )
    except BadJson as fault:
        raise BadRequest(f"the request cannot be written as JSON: {fault}.", code="invalid_json") from None
    losses += _choice_losses(request, tools) + losses_of(request)
    return ChatRequest(chat=chat, losses=tuple(dict.fromkeys(losses)))


def offered(request: Request) -> list[Tool]:
    """The tools that may be called; a restricting tool_choice is implemented by offering no others."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    tools = [tool for tool in request.tools if tool.kind == "function"]
    if choice is None or choice.mode not in ("named", "allowed"):
        return tools
    wanted = set(choice.names)
    return [tool for tool in tools if tool.name in wanted] or tools


def options_of(request: Request) -> JsonObject:
    sampling = request.sampling
    options: JsonObject = {key: value for key in _OPTIONS if (value := getattr(sampling, key)) is not None}
    if request.max_tokens is not None:
        options["max_tokens"] = request.max_tokens
    if stop := [text for text in sampling.stop if text]:
        options["stop"] = stop[0]
    return options


def losses_of(request: Request) -> list[Loss]:
    """What VS Code has no member for. Stop sequences are implemented by the gateway."""
    sampling, output, thinking = request.sampling, request.output, request.thinking
    members = ("top_p", "top_k", "seed")
    losses = [Loss(f"sampling.{key}", key, _NO_MEMBER) for key in members if getattr(sampling, key) is not None]
    found = {
        "sampling.n": (sampling.choices > 1, "n", "VS Code gives one answer"),
        "sampling.logprobs": (sampling.logprobs or sampling.top_logprobs is not None, "logprobs", _NO_MEMBER),
        "thinking": (thinking is not None, "thinking", "VS Code uses the model's own settings"),
        f"output.{output.format}": (output.format != "text", "response_format", "requested in the prompt"),
        "output.verbosity": (output.verbosity is not None, "verbosity", _NO_MEMBER),
        "parallel_calls": (
            request.parallel_calls is False and bool(request.tools),
            "parallel_tool_calls",
            "requested in the prompt",
        ),
        "user": (request.user is not None, "user", _NO_MEMBER),
    }
    losses += [Loss(feature, where, why) for feature, (is_lost, where, why) in found.items() if is_lost]
    tools = offered(request)
    losses += [Loss("tool.strict", tool.name, "checked by the gateway") for tool in tools if tool.strict]
    losses += [Loss("tool.integer", tool.name, DIGITS) for tool in tools if loses_digits(tool.schema)]
    foreign_members(request, NAME, losses)
    return losses


def _messages(
    request: Request, model: ListedModel, tools: tuple[Tool, ...], losses: list[Loss]
) -> tuple[ChatMessage, ...]:
    given = with_listener(request.messages, losses)
    head, _ = split_head(given)
    history = ChatHistory(request, losses, can_see=model.can_see_images is not False)
    instructions = [_instruction(message, f"messages[{index}]", losses) for index, message in enumerate(head)]
    if text := "\n\n".join(filter(str.strip, instructions)):
        history.note(label_instruction(text))
        losses.append(Loss("role.system", "messages[0]", "sent in the first user message: VS Code has no such role"))
    for index, message in enumerate(given[len(head) :], start=len(head)):
        where = f"messages[{index}]"
        if message.role in ("system", "developer"):
            history.note(as_note(_instruction(message, where, losses), where, losses))
        else:
            history.add(message, where)
    if history.ends_with == "assistant":
        losses.append(Loss("prefill", "messages", "the model is asked to continue its last message"))
        history.note(_GO_ON)
    history.note(_demand(request, tools))
    return history.messages()


def _must_call(request: Request) -> bool:
    choice = request.tool_choice
    if choice is None or not request.tools:
        return False
    if choice.mode == "required":
        return True
    is_wanted = choice.mode == "named" or (choice.mode == "allowed" and choice.is_required)
    return is_wanted and any(tool.name in choice.names for tool in request.tools)


def _demand(request: Request, tools: tuple[Tool, ...]) -> str:
    """Instructions for what has no member. They come last, because they may change from one request to the next."""
    demands = [_call_demand(request, tools), form_instruction(request.output, has_tools=bool(tools))]
    text = " ".join(filter(None, demands))
    return f"[Note on this answer: {text}]" if text else ""


def _call_demand(request: Request, tools: tuple[Tool, ...]) -> str:
    is_single = request.parallel_calls is False
    if not tools:
        return ""
    if not _must_call(request):
        return "Call at most one tool now." if is_single else ""
    if len(tools) == 1:
        return "Call it once only." if is_single else ""
    return (
        f"You must call {'exactly one' if is_single else 'at least one'} of your tools now, before you answer anything."
    )


def _choice_losses(request: Request, tools: tuple[Tool, ...]) -> list[Loss]:
    choice = request.tool_choice
    if choice is None or choice.mode in ("auto", "none") or not request.tools:
        return []
    if choice.mode in ("named", "allowed") and not {tool.name for tool in tools} <= set(choice.names):
        return [Loss("tool_choice", "tool_choice", "it names no tool of this request")]
    if _must_call(request) and len(tools) > 1:
        return [
            Loss("tool_choice", "tool_choice", "requested in the prompt: VS Code can require a call of one tool only")
        ]
    return [Loss("tool_choice", "tool_choice", _NO_MEMBER)] if choice.mode == "hosted" else []


def _instruction(message: Message, where: str, losses: list[Loss]) -> str:
    """Media are replaced by a description."""
    parts = tuple(
        Text(text=placeholder(part, where, losses, "instructions are text")) if isinstance(part, Media) else part
        for part in message.parts
    )
    return text_of(parts, where, losses)
