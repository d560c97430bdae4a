"""Cursor: what the server is told beside the conversation. Instructions stand there as rules of the user, the one channel that
reaches the model as such; within a user message they would be taken for an attempt to inject some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from .....dialects.shared.instructions import split_head
from .....dialects.shared.losses import whole_schema
from .....dialects.shared.media.text import placeholder, text_of
from .....dialects.shared.output_format import form_instruction
from .....types import Json, JsonObject, Loss, Media, Message, Request, Text, Tool
from .....wire.exact_json import encode
from .. import agent
from ..values import exact, to_value
from .names import PROVIDER, Names
from .results import sendable

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
