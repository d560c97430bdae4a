"""Cursor: requests out. A request becomes the first message of a run, the context that the server asks for, and blobs of history that
it fetches; what none of them can say is recorded as a loss."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from .....dialects.shared.instructions import with_listener
from .....dialects.shared.losses import foreign_members
from .....errors import BadRequest
from .....types import Loss, Media, Request, Tool
from .....wire.connect import MAX_FRAME
from .....wire.exact_json import BadJson
from .. import agent
from .context import Setup, context_of, demands_of, inexact, instructions_of
from .history import NAME, Story, blobs_of, flattened, said, story_of
from .models import requested
from .names import Names
from .results import image_bytes, sendable

_NO_MEMBER = "Cursor has no such setting"
_GO_ON = "Go on from where your last message stops."
_LOOK = "See what is attached."
_GO_ON_WITH_RESULTS = "Go on with the results of the tools above."


class Opening(Struct, frozen=True, kw_only=True):
    """All that is sent to have one request answered: message opens the run, context and blobs are given when they are asked for.

    names are what calls are read by; tools are those that the model is offered.
    """

    message: bytes
    context: agent.RequestContext
    blobs: dict[bytes, bytes]
    names: Names
    tools: tuple[Tool, ...]
    losses: tuple[Loss, ...]


def opening(request: Request, setup: Setup) -> Opening:
    """Raises BadRequest for what nobody could be asked."""
    try:
        return _opening(request, setup)
    except BadJson as fault:
        raise BadRequest(
            f"the request holds JSON that cannot be written again: {fault}.", code="invalid_json"
        ) from None


def offered(request: Request) -> list[Tool]:
    """The tools that may be called: a choice that narrows them down is kept by showing no others."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    tools = [tool for tool in request.tools if tool.kind == "function"]
    if choice is None or choice.mode not in ("named", "allowed"):
        return tools
    wanted = set(choice.names)
    return [tool for tool in tools if tool.name in wanted] or tools


def losses_of(request: Request) -> list[Loss]:
    """What Cursor cannot be told. Stop sequences and one call at a time are not among it: the gateway keeps to them itself."""
    sampling = request.sampling
    losses = [
        Loss(f"sampling.{key}", key, _NO_MEMBER)
        for key in ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")
        if getattr(sampling, key) is not None
    ]
    if sampling.choices > 1:
        losses.append(Loss("sampling.n", "n", "Cursor gives one answer"))
    if sampling.logprobs or sampling.top_logprobs is not None:
        losses.append(Loss("sampling.logprobs", "logprobs", _NO_MEMBER))
    if request.max_tokens is not None:
        losses.append(Loss("max_tokens", "max_tokens", _NO_MEMBER))
    if request.output.format != "text":
        losses.append(Loss(f"output.{request.output.format}", "response_format", "asked for in words"))
    if request.output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", _NO_MEMBER))
    if request.user is not None:
        losses.append(Loss("user", "user", _NO_MEMBER))
    foreign_members(request, NAME, losses)
    return losses + _tool_losses(request)


def _opening(request: Request, setup: Setup) -> Opening:
    losses: list[Loss] = []
    names = Names.of(request.tools)  # of all of them: a choice must not change the words of the history
    tools = tuple(offered(request))
    rules, rest = instructions_of(with_listener(request.messages, losses), losses)
    story = story_of(request, rest, names, losses)
    roots, blobs = ([], {}) if setup.history == "flat" else blobs_of(story)
    context = context_of(setup, tools, names, [*rules, *demands_of(request, tools, names)])
    run = agent.AgentRunRequest(
        conversation_state=agent.ConversationStateStructure(root_prompt_messages_json=roots),
        action=_action(story, setup, losses),
        mcp_tools=agent.McpTools(mcp_tools=context.tools),
        conversation_id=setup.conversation_id,
        run_id=setup.run_id,
    )
    if setup.has_context:
        kind = run.action.WhichOneof("action") or "user_message_action"
        getattr(run.action, kind).request_context.CopyFrom(context)
    losses += _choose_model(run, request, setup)
    message = agent.AgentClientMessage(run_request=run).SerializeToString(deterministic=True)
    _check_sizes(message, blobs)
    return Opening(
        message=message,
        context=context,
        blobs=blobs,
        names=names,
        tools=tools,
        losses=(*losses, *losses_of(request)),
    )


def _action(story: Story, setup: Setup, losses: list[Loss]) -> agent.ConversationAction:
    """What the user says last; a run whose conversation ends with results is asked to continue, because the model would answer an empty text."""
    if not story.entries and not story.last:
        raise BadRequest("nobody says anything in this conversation; expected a message of the user.", where="messages")
    is_continued = not story.last and story.ends_with == "assistant"
    if is_continued:
        losses.append(Loss("prefill", "messages", "the model is asked to go on from its last message"))
    if setup.history == "flat":
        return _spoken(*flattened(story), setup)
    if story.last:
        return _spoken(*said(story.last), setup)
    if is_continued:
        return _spoken(_GO_ON, [], setup)
    if setup.results == "message":
        return _spoken(_GO_ON_WITH_RESULTS, [], setup)
    return agent.ConversationAction(resume_action=agent.ResumeAction())


def _spoken(text: str, images: list[Media], setup: Setup) -> agent.ConversationAction:
    message = agent.UserMessage(text=text or _LOOK, message_id=setup.message_id, mode=agent.AGENT_MODE_AGENT)
    if images:
        selected = [_selected(image, number) for number, image in enumerate(images, start=1)]
        message.selected_context.CopyFrom(agent.SelectedContext(selected_images=selected))
    return agent.ConversationAction(user_message_action=agent.UserMessageAction(user_message=message))


def _selected(image: Media, number: int) -> agent.SelectedImage:
    """Its id is made of what it shows: the same image is the same in the next turn."""
    data = image_bytes(image)
    uuid = _uuid(sha256(data).hexdigest())
    ending = image.mime.rpartition("/")[2]
    return agent.SelectedImage(uuid=uuid, path=f"image-{number}.{ending}", mime_type=image.mime, data=data)


def _uuid(digits: str) -> str:
    """In the form of a random one."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _choose_model(run: agent.AgentRunRequest, request: Request, setup: Setup) -> list[Loss]:
    wanted = requested(request.model, request.thinking)
    model_id, is_max = sendable(wanted.id), setup.max_mode or wanted.max_mode
    run.model_details.model_id = model_id
    run.requested_model.model_id = model_id
    if is_max:
        run.model_details.max_mode = run.requested_model.max_mode = True
    for key, value in sorted((wanted.parameters | setup.parameters).items()):
        run.requested_model.parameters.add(id=sendable(key), value=sendable(value))
    return list(wanted.losses)


def _check_sizes(message: bytes, blobs: dict[bytes, bytes]) -> None:
    largest = max([len(message), *map(len, blobs.values())])
    if largest > MAX_FRAME:
        raise BadRequest(
            f"a message of this conversation takes {largest} bytes; Cursor takes {MAX_FRAME} at most.",
            status=413,
            code="request_too_large",
            where="messages",
            hint="Send less text or smaller images in one message.",
        )


def _tool_losses(request: Request) -> list[Loss]:
    tools = offered(request)
    losses = [Loss("tool.strict", tool.name, "checked by the gateway") for tool in tools if tool.strict]
    losses += [
        Loss("tool.integer", tool.name, "arguments are doubles here: integers beyond 2**53 lose digits")
        for tool in tools
        if inexact(tool)
    ]
    choice = request.tool_choice
    if choice is None or choice.mode in ("auto", "none") or not request.tools:
        return losses
    if choice.mode in ("named", "allowed") and not {tool.name for tool in tools} <= set(choice.names):
        return [*losses, Loss("tool_choice", "tool_choice", "it names no tool of this request")]
    if choice.mode == "allowed" and not choice.is_required:
        return losses
    return [*losses, Loss("tool_choice", "tool_choice", "asked for in words: Cursor leaves it to the model")]


__all__ = ["NAME", "Opening", "Setup", "losses_of", "offered", "opening"]
