"""Cursor: requests out. A request becomes the first message of a run, the context that the server asks for, and blobs of history that
it fetches; what none of them can say is recorded as a loss."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from ....dialects.shared.media.text import placeholder, text_of
from ....dialects.shared.requests import foreign_members, form_instruction, split_head, whole_schema, with_listener
from ....errors import BadRequest
from ....types import Json, JsonObject, Loss, Media, Message, Request, Text, Tool
from ....wire.connect import MAX_FRAME
from ....wire.exact_json import BadJson, encode
from . import agent
from .history import NAME, Story, blobs_of, flattened, image_bytes, said, sendable, story_of
from .models import requested
from .names import PROVIDER, Names
from .values import exact, to_value

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


_ALWAYS: JsonObject = {"global": agent.CursorRuleTypeGlobal()}  # a word that Python keeps for itself
_WHOLE = 2**53  # integers up to here survive as doubles


class Setup(Struct, frozen=True, kw_only=True):
    """What the owner and the back end settle for a run, beside the request. parameters are the owner's, and win.

    branches: the branch of each repository in the workspace that the gateway works on, by its path. has_context: the context goes with
    the first message, and not only where it is asked for. schemas: how a tool's is written. results: by which action a run begins whose
    conversation ends with results.
    """

    conversation_id: str
    run_id: str
    message_id: str
    workspace: str = ""
    os: str = ""
    shell: str = ""
    timezone: str = ""
    branches: dict[str, str] = {}
    has_context: bool = True
    schemas: Literal["value", "json", "both"] = "value"
    results: Literal["message", "resume"] = "message"
    history: Literal["native", "flat"] = "native"
    max_mode: bool = False
    parameters: dict[str, str] = {}


def context_of(setup: Setup, tools: Sequence[Tool], names: Names, rules: Sequence[str]) -> agent.RequestContext:
    """All there is to know: what is complete is not asked for again, and an environment of which something is missing is not complete."""
    environment = agent.RequestContextEnv(
        os_version=sendable(setup.os),
        workspace_paths=[sendable(setup.workspace)] if setup.workspace else [],
        shell=sendable(setup.shell),
        time_zone=sendable(setup.timezone),
        project_folder=sendable(setup.workspace),
    )
    repositories = sorted(setup.branches.items())
    return agent.RequestContext(
        rules=[_rule(text, number) for number, text in enumerate(rules)],
        env=environment,
        tools=[definition(tool, names, setup.schemas) for tool in tools],
        git_repos=[
            agent.GitRepoInfo(path=sendable(path), branch_name=sendable(branch)) for path, branch in repositories
        ],
        web_search_enabled=False,
        web_fetch_enabled=False,
        git_repo_info_complete=True,
        mcp_info_complete=True,
        rules_info_complete=True,
        env_info_complete=bool(setup.os and setup.shell and setup.timezone and setup.workspace),
        repository_info_complete=True,
        custom_subagents_info_complete=True,
        agent_skills_info_complete=True,
        mcp_file_system_info_complete=True,
        git_status_info_complete=True,
    )


def definition(
    tool: Tool, names: Names, schemas: Literal["value", "json", "both"] = "value"
) -> agent.McpToolDefinition:
    """A schema that a Value cannot hold exactly goes as text, too: a Value makes doubles of integers, and nests less deep."""
    written = names.wire(tool.name)
    other = "" if written == tool.name else f"Elsewhere this tool is called {encode(tool.name).decode()}."
    description = "\n".join(filter(None, [tool.description, other]))
    schema = whole_schema(tool.schema)
    made = agent.McpToolDefinition(
        name=written,
        description=sendable(description),
        provider_identifier=PROVIDER,
        tool_name=written,
    )
    if schemas != "json":
        made.input_schema.CopyFrom(to_value(schema))
    if schemas != "value" or not exact(schema):
        made.input_schema_json = encode(schema).decode()
    return made


def instructions_of(messages: tuple[Message, ...], losses: list[Loss]) -> tuple[list[str], list[tuple[int, Message]]]:
    """Rules, and the rest of the messages with their places. What stands before all else is one rule, later ones follow it."""
    head, _ = split_head(messages)
    first = [_words(message, f"messages[{index}]", losses) for index, message in enumerate(head)]
    rules, rest = ["\n\n".join(filter(str.strip, first))], list[tuple[int, Message]]()
    for index, message in enumerate(messages[len(head) :], start=len(head)):
        if message.role not in ("system", "developer"):
            rest.append((index, message))
            continue
        where = f"messages[{index}]"
        rules.append(_words(message, where, losses))
        losses.append(Loss("role.system", where, "told before the conversation, as a rule"))
    return [rule for rule in rules if rule.strip()], rest


def demands_of(request: Request, tools: Sequence[Tool], names: Names) -> list[str]:
    """What there is no member for, asked for in words: the last rules, because they may change from turn to turn."""
    demands = [_call_demand(request, tools, names), form_instruction(request.output, has_tools=bool(tools))]
    return [demand for demand in demands if demand]


def inexact(tool: Tool) -> bool:
    """It speaks of integers that arguments cannot carry here (H072)."""
    waiting: list[Json] = [tool.schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, int) and abs(value) > _WHOLE:
            return True
    return False


def _call_demand(request: Request, tools: Sequence[Tool], names: Names) -> str:
    choice = request.tool_choice
    if choice is None or not tools:
        return ""
    if choice.mode not in ("required", "named") and not (choice.mode == "allowed" and choice.is_required):
        return ""
    count = "exactly one" if request.parallel_calls is False else "at least one"
    if choice.mode == "required":
        return f"You must call {count} tool of the {PROVIDER} server now, before you answer anything."
    listed = ", ".join(names.wire(tool.name) for tool in tools)
    return f"You must call {count} of these tools of the {PROVIDER} server now, and no other tool: {listed}."


def _rule(text: str, number: int) -> agent.CursorRule:
    return agent.CursorRule(
        full_path=f"/toolwire/instructions/{number}.mdc",
        content=sendable(text),
        type=agent.CursorRuleType(**_ALWAYS),
        source=agent.CURSOR_RULE_SOURCE_USER,
    )


def _words(message: Message, where: str, losses: list[Loss]) -> str:
    """Media are named in words."""
    parts = tuple(
        Text(text=placeholder(part, where, losses, "a rule holds words only")) if isinstance(part, Media) else part
        for part in message.parts
    )
    return text_of(parts, where, losses)
