"""A request as the first message of a run, the context of the run, and the blobs of its history; the rest is recorded as losses.

Instructions become rules of the user, the only channel that the model treats as instructions: within a user message they would look
like a prompt injection.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ....dialects.shared.media.text import placeholder, text_of
from ....dialects.shared.requests import foreign_members, form_instruction, split_head, whole_schema, with_listener
from ....errors import BadRequest
from ....types import Json, JsonObject, Loss, Media, Message, Request, Text, Tool
from ....wire.connect import MAX_FRAME
from ....wire.exact_json import BadJson, encode
from . import agent
from .history import NAME, CursorHistory, blobs_of, flat_text, history_of, image_bytes, user_input
from .models import requested_model
from .names import PROVIDER, WireNames
from .values import is_exact, to_value, valid_utf8

SchemaForm: TypeAlias = Literal["value", "json", "both"]

_NO_MEMBER = "Cursor has no such setting"
_CONTINUE = "Go on from where your last message stops."
_SEE_IMAGES = "See what is attached."
_CONTINUE_WITH_RESULTS = "Go on with the results of the tools above."
_ALWAYS: JsonObject = {"global": agent.CursorRuleTypeGlobal()}  # "global" is a keyword of Python
_COMPLETE: dict[str, Any] = {
    name: True for name in agent.RequestContext.DESCRIPTOR.fields_by_name if name.endswith("_info_complete")
}
_MAX_EXACT_INTEGER = 2**53  # of a double


class RunSetup(Struct, frozen=True, kw_only=True):
    """Settings of a run beside the request.

    branches: the branch of each repository in the workspace, by its path. has_context: the context is sent with the first message, not
    only on request. schemas: how a tool's schema is encoded. results: which action starts a run whose conversation ends with results.
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
    schemas: SchemaForm = "value"
    results: Literal["message", "resume"] = "message"
    history: Literal["native", "flat"] = "native"


class RunOpening(Struct, frozen=True, kw_only=True):
    """Everything that is sent for one request: message starts the run, context and blobs are sent when the server requests them.

    names decode the names in calls; tools are those offered to the model.
    """

    message: bytes
    context: agent.RequestContext
    blobs: dict[bytes, bytes]
    names: WireNames
    tools: tuple[Tool, ...]
    losses: tuple[Loss, ...]


def opening(request: Request, setup: RunSetup) -> RunOpening:
    """Raises BadRequest for a request that Cursor cannot take."""
    try:
        return _opening(request, setup)
    except BadJson as fault:
        raise BadRequest(f"the request holds JSON that cannot be encoded: {fault}.", code="invalid_json") from None


def offered(request: Request) -> list[Tool]:
    """The tools that the model sees. A choice that allows only some hides the others."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    tools = [tool for tool in request.tools if tool.kind == "function"]
    if choice is None or choice.mode not in ("named", "allowed"):
        return tools
    wanted = set(choice.names)
    return [tool for tool in tools if tool.name in wanted] or tools


def losses_of(request: Request) -> list[Loss]:
    """What Cursor cannot express. Stop sequences and one call at a time are not lost: the gateway applies them."""
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
        losses.append(Loss(f"output.{request.output.format}", "response_format", "requested in the prompt"))
    if request.output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", _NO_MEMBER))
    if request.user is not None:
        losses.append(Loss("user", "user", _NO_MEMBER))
    foreign_members(request, NAME, losses)
    return losses + _tool_losses(request)


def context_of(setup: RunSetup, tools: Sequence[Tool], names: WireNames, rules: Sequence[str]) -> agent.RequestContext:
    """The server does not request again what is marked as complete; an environment with a missing value is not complete."""
    environment = agent.RequestContextEnv(
        os_version=valid_utf8(setup.os),
        workspace_paths=[valid_utf8(setup.workspace)] if setup.workspace else [],
        shell=valid_utf8(setup.shell),
        time_zone=valid_utf8(setup.timezone),
        project_folder=valid_utf8(setup.workspace),
    )
    repositories = sorted(setup.branches.items())
    context = agent.RequestContext(
        rules=[_rule(text, number) for number, text in enumerate(rules)],
        env=environment,
        tools=[definition(tool, names, setup.schemas) for tool in tools],
        git_repos=[
            agent.GitRepoInfo(path=valid_utf8(path), branch_name=valid_utf8(branch)) for path, branch in repositories
        ],
        web_search_enabled=False,
        web_fetch_enabled=False,
        **_COMPLETE,
    )
    context.env_info_complete = bool(setup.os and setup.shell and setup.timezone and setup.workspace)
    return context


def definition(tool: Tool, names: WireNames, schemas: SchemaForm = "value") -> agent.McpToolDefinition:
    """A schema that a Value cannot hold exactly is also sent as text: a Value turns integers into doubles, and has a maximum depth."""
    name = names.wire(tool.name)
    alias = "" if name == tool.name else f"Elsewhere this tool is called {encode(tool.name).decode()}."
    schema = whole_schema(tool.schema)
    made = agent.McpToolDefinition(
        name=name,
        description=valid_utf8("\n".join(filter(None, [tool.description, alias]))),
        provider_identifier=PROVIDER,
        tool_name=name,
    )
    if schemas != "json":
        made.input_schema.CopyFrom(to_value(schema))
    if schemas != "value" or not is_exact(schema):
        made.input_schema_json = encode(schema).decode()
    return made


def instructions_of(messages: tuple[Message, ...], losses: list[Loss]) -> tuple[list[str], list[tuple[int, Message]]]:
    """Rules, and the other messages with their indexes. All leading instructions are one rule, later ones follow it."""
    head, _ = split_head(messages)
    first = [_rule_text(message, f"messages[{index}]", losses) for index, message in enumerate(head)]
    rules, rest = ["\n\n".join(filter(str.strip, first))], list[tuple[int, Message]]()
    for index, message in enumerate(messages[len(head) :], start=len(head)):
        if message.role not in ("system", "developer"):
            rest.append((index, message))
            continue
        where = f"messages[{index}]"
        rules.append(_rule_text(message, where, losses))
        losses.append(Loss("role.system", where, "moved before the conversation, as a rule"))
    return [rule for rule in rules if rule.strip()], rest


def demands_of(request: Request, tools: Sequence[Tool], names: WireNames) -> list[str]:
    """Settings that have no member become rules, after all others, because they may change from turn to turn."""
    demands = [_call_demand(request, tools, names), form_instruction(request.output, has_tools=bool(tools))]
    return [demand for demand in demands if demand]


def has_large_integers(tool: Tool) -> bool:
    """Its schema contains integers that a double cannot hold (H072)."""
    waiting: list[Json] = [tool.schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, int) and abs(value) > _MAX_EXACT_INTEGER:
            return True
    return False


def _opening(request: Request, setup: RunSetup) -> RunOpening:
    losses: list[Loss] = []
    names = WireNames.of(request.tools)  # of all tools: a tool choice must not change the bytes of the history
    tools = tuple(offered(request))
    rules, rest = instructions_of(with_listener(request.messages, losses), losses)
    history = history_of(request, rest, names, losses)
    roots, blobs = ([], {}) if setup.history == "flat" else blobs_of(history)
    context = context_of(setup, tools, names, [*rules, *demands_of(request, tools, names)])
    run = agent.AgentRunRequest(
        conversation_state=agent.ConversationStateStructure(root_prompt_messages_json=roots),
        action=_action(history, setup, losses),
        mcp_tools=agent.McpTools(mcp_tools=context.tools),
        conversation_id=setup.conversation_id,
        run_id=setup.run_id,
    )
    if setup.has_context:
        kind = run.action.WhichOneof("action") or "user_message_action"
        getattr(run.action, kind).request_context.CopyFrom(context)
    losses += _choose_model(run, request)
    message = agent.AgentClientMessage(run_request=run).SerializeToString(deterministic=True)
    _check_sizes(message, blobs)
    losses += losses_of(request)
    return RunOpening(message=message, context=context, blobs=blobs, names=names, tools=tools, losses=tuple(losses))


def _action(history: CursorHistory, setup: RunSetup, losses: list[Loss]) -> agent.ConversationAction:
    """The last message of the user. A conversation that ends with results gets a message too, because the model would answer an
    empty one."""
    if not history.entries and not history.last:
        raise BadRequest("the conversation is empty; expected a message of the user.", where="messages")
    is_prefill = not history.last and history.last_role == "assistant"
    if is_prefill:
        losses.append(Loss("prefill", "messages", "the prompt asks the model to continue its last message"))
    if setup.history == "flat":
        return _user_action(*flat_text(history), setup)
    if history.last:
        return _user_action(*user_input(history.last), setup)
    if is_prefill:
        return _user_action(_CONTINUE, [], setup)
    if setup.results == "message":
        return _user_action(_CONTINUE_WITH_RESULTS, [], setup)
    return agent.ConversationAction(resume_action=agent.ResumeAction())


def _user_action(text: str, images: list[Media], setup: RunSetup) -> agent.ConversationAction:
    message = agent.UserMessage(text=text or _SEE_IMAGES, message_id=setup.message_id, mode=agent.AGENT_MODE_AGENT)
    if images:
        selected = [_selected_image(image, number) for number, image in enumerate(images, start=1)]
        message.selected_context.CopyFrom(agent.SelectedContext(selected_images=selected))
    return agent.ConversationAction(user_message_action=agent.UserMessageAction(user_message=message))


def _selected_image(image: Media, number: int) -> agent.SelectedImage:
    """The id depends on the content, so that the same image keeps it in the next turn."""
    data = image_bytes(image)
    digits = sha256(data).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]  # in the form of a random UUID
    uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"
    ending = image.mime.rpartition("/")[2]
    return agent.SelectedImage(uuid=uuid, path=f"image-{number}.{ending}", mime_type=image.mime, data=data)


def _choose_model(run: agent.AgentRunRequest, request: Request) -> tuple[Loss, ...]:
    model = requested_model(request.model, request.thinking)
    run.model_details.model_id = run.requested_model.model_id = valid_utf8(model.id)
    if model.max_mode:
        run.model_details.max_mode = run.requested_model.max_mode = True
    for key, value in sorted(model.parameters.items()):
        run.requested_model.parameters.add(id=valid_utf8(key), value=valid_utf8(value))
    return model.losses


def _check_sizes(message: bytes, blobs: dict[bytes, bytes]) -> None:
    largest = max([len(message), *map(len, blobs.values())])
    if largest > MAX_FRAME:
        raise BadRequest(
            f"a message of this conversation takes {largest} bytes; Cursor accepts {MAX_FRAME} at most.",
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
        if has_large_integers(tool)
    ]
    choice = request.tool_choice
    if choice is None or choice.mode in ("auto", "none") or not request.tools:
        return losses
    if choice.mode in ("named", "allowed") and not {tool.name for tool in tools} <= set(choice.names):
        return [*losses, Loss("tool_choice", "tool_choice", "it names no tool of this request")]
    if choice.mode == "allowed" and not choice.is_required:
        return losses
    return [*losses, Loss("tool_choice", "tool_choice", "requested in the prompt: Cursor leaves it to the model")]


def _call_demand(request: Request, tools: Sequence[Tool], names: WireNames) -> str:
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
        content=valid_utf8(text),
        type=agent.CursorRuleType(**_ALWAYS),
        source=agent.CURSOR_RULE_SOURCE_USER,
    )


def _rule_text(message: Message, where: str, losses: list[Loss]) -> str:
    """Media are replaced by a description."""
    parts = tuple(
        Text(text=placeholder(part, where, losses, "a rule holds text only")) if isinstance(part, Media) else part
        for part in message.parts
    )
    return text_of(parts, where, losses)
