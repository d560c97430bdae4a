"""Codex app-server: encodes a request as a thread, an injected history and a turn. What these cannot express is a loss."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ....dialects.shared.media.data import data_url
from ....dialects.shared.media.text import placeholder, text_of
from ....dialects.shared.requests import foreign_members, whole_schema, with_failure
from ....types import JsonObject, Loss, Media, Part, Request, Text, Tool, ToolResult
from .history import CodexHistory, HistoryForm, as_text_input, form_of, history_of, losses_of_form, split_input
from .names import BUILT_IN, RESERVED, CodexToolNames
from .settings import ThreadSetup, flat
from .versions import Abilities, Tier

NAME = "codex"
CLIENT = "toolwire"
# thread/resume with a history ignores the id that it requires.
_NO_THREAD = "00000000-0000-4000-8000-000000000000"
# Notifications that are not used; versions before 0.99 send them anyway.
UNREAD = (
    "account/updated",
    "app/list/updated",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/readState/changed",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "turn/plan/updated",
)
# Only such a thread can be reverted; Codex stores it in its folder until it is deleted.
_STORED: JsonObject = {"ephemeral": False, "historyMode": "paginated"}
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh"})
_SUMMARIES = frozenset({"auto", "concise", "detailed", "none"})
_VERBOSITIES = frozenset({"low", "medium", "high"})
_CACHE_KEY = "prompt_cache_key"
CACHE_KEY_LOSS = f"request.{_CACHE_KEY}"
_NO_MEMBER = "Codex has no such setting"
_SAMPLING = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")


class ThreadOpening(Struct, frozen=True, kw_only=True):
    """The messages for one request: method with params, then the items to inject, if any, then the turn. names: for the calls of the
    answer."""

    method: Literal["thread/start", "thread/resume"]
    params: JsonObject
    inject: list[JsonObject]
    turn: JsonObject
    names: CodexToolNames
    losses: tuple[Loss, ...]

    @property
    def is_reusable(self) -> bool:
        """The thread can be reverted to the state before its turn, and used again."""
        return "historyMode" in self.params and bool(self.inject)

    def ephemeral_params(self) -> JsonObject:
        """params for a version without such threads."""
        return {name: value for name, value in self.params.items() if name not in _STORED} | {"ephemeral": True}

    def injection(self, thread_id: str, start: int = 0) -> JsonObject:
        """Params of thread/inject_items, which refuses an empty list."""
        return {"threadId": thread_id, "items": self.inject[start:]}

    def turn_of(self, thread_id: str) -> JsonObject:
        """Params of turn/start."""
        return {"threadId": thread_id, **self.turn}


def initialize_params(version: str = "0") -> JsonObject:
    """The same for every version: it is sent before the version is known, and old versions ignore unknown members."""
    return {
        "clientInfo": {"name": CLIENT, "title": CLIENT, "version": version},
        "capabilities": {"experimentalApi": True, "optOutNotificationMethods": list(UNREAD)},
    }


def opening(request: Request, tier: Tier, abilities: Abilities, setup: ThreadSetup) -> ThreadOpening:
    names = names_of(request, tier, abilities, setup)
    history = history_of(request, names)
    has_tools = bool(offered(request)) and tier.is_native
    form = form_of(abilities, has_tools=has_tools) if setup.may_resume else "text"
    params, losses = _thread(request, tier, abilities, setup, history, names)
    inject, given = split_history(history.items, form)
    method: Literal["thread/start", "thread/resume"] = "thread/start"
    if form == "resume" and inject:
        method, params = "thread/resume", {"threadId": _NO_THREAD, "history": inject, **params}
        inject = []
    return ThreadOpening(
        method=method,
        params=params,
        inject=inject,
        turn=turn_members(request, given),
        names=names,
        losses=(*history.losses, *losses_of_form(history.items, form), *losses, *losses_of(request)),
    )


def split_history(items: list[JsonObject], form: HistoryForm) -> tuple[list[JsonObject], list[JsonObject]]:
    """The items to inject before the turn, and the input of the turn."""
    if form == "inject":
        return items, []
    return ([], as_text_input(items)) if form == "text" else split_input(items)


def turn_members(request: Request, given: list[JsonObject]) -> JsonObject:
    members: JsonObject = {"input": given}
    if request.model:
        members["model"] = request.model
    if request.output.format == "schema" and request.output.schema is not None:
        members["outputSchema"] = request.output.schema
    if (effort := _effort(request)) is not None:
        members["effort"] = effort
    if (summary := _summary(request)) is not None:
        members["summary"] = summary
    return members


def tool_answer(result: ToolResult, abilities: Abilities) -> JsonObject:
    """The response to item/tool/call, in the form that the version accepts; media that it cannot express are described."""
    text = _text(result, has_images=abilities.contents)
    text = with_failure(text) if result.is_error else text
    if not abilities.contents:
        return {"output": text, "success": not result.is_error}
    images = [{"type": "inputImage", "imageUrl": url} for part in result.parts if (url := _image(part)) is not None]
    texts: list[JsonObject] = [{"type": "inputText", "text": text}] if text or not images else []
    return {"contentItems": texts + images, "success": not result.is_error}


def names_of(request: Request, tier: Tier, abilities: Abilities, setup: ThreadSetup) -> CodexToolNames:
    """The names of the offered tools; without any, no call is the client's."""
    tools = offered(request) if tier.is_native else []
    reserved = RESERVED if abilities.bare and not setup.has_built_ins else BUILT_IN
    return CodexToolNames((tool.name for tool in tools), reserved | setup.skipped)


def offered(request: Request) -> list[Tool]:
    """The tools that may be called; a restricting tool_choice is implemented by offering no others."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    tools = [tool for tool in request.tools if tool.kind == "function"]
    if choice is None or choice.mode not in ("named", "allowed"):
        return tools
    return [tool for tool in tools if tool.name in choice.names]


def cache_key(request: Request) -> str:
    """The client's own prompt cache key; "" if it has none."""
    for members in request.extra.values():
        if isinstance(key := members.get(_CACHE_KEY), str):
            return key
    return ""


def losses_of(request: Request) -> list[Loss]:
    """What Codex has no member for. Stop sequences are implemented by the gateway."""
    sampling, output, thinking, choice = request.sampling, request.output, request.thinking, request.tool_choice
    is_restricted = choice is not None and choice.mode not in ("auto", "none") and bool(request.tools)
    is_optional = choice is not None and choice.mode == "allowed" and not choice.is_required
    found = {
        **{f"sampling.{key}": (getattr(sampling, key) is not None, key, _NO_MEMBER) for key in _SAMPLING},
        "sampling.n": (sampling.choices > 1, "n", "Codex gives one answer"),
        "sampling.logprobs": (sampling.logprobs, "logprobs", _NO_MEMBER),
        "max_tokens": (request.max_tokens is not None, "max_tokens", _NO_MEMBER),
        "parallel_calls": (request.parallel_calls is False and request.tools, "parallel_tool_calls", _NO_MEMBER),
        "tool_choice": (
            is_restricted and not is_optional,
            "tool_choice",
            "Codex lets the model decide whether it calls a tool",
        ),
        "output.json": (output.format == "json", "response_format", "Codex requests JSON only with a schema"),
        "output.strict": (
            output.format == "schema" and not output.strict,
            "response_format",
            "Codex enforces every schema strictly",
        ),
        "output.verbosity": (output.verbosity not in (None, *_VERBOSITIES), "verbosity", _NO_MEMBER),
        "user": (request.user is not None, "user", _NO_MEMBER),
    }
    if thinking is not None:
        found["thinking.budget"] = (
            thinking.budget is not None,
            "thinking",
            "Codex limits reasoning by effort only",
        )
        found["thinking.effort"] = (thinking.effort not in (None, *_EFFORTS), "effort", "Codex has no such effort")
    losses = [Loss(feature, where, why) for feature, (is_lost, where, why) in found.items() if is_lost]
    foreign_members(request, NAME, losses)
    return losses


def _thread(
    request: Request, tier: Tier, abilities: Abilities, setup: ThreadSetup, history: CodexHistory, names: CodexToolNames
) -> tuple[JsonObject, list[Loss]]:
    params: JsonObject = {
        "cwd": setup.cwd,
        "approvalPolicy": "never",
        "sandbox": "read-only",
        # For arguments as the model wrote them, proofs of reasoning, and calls that Codex answers itself.
        "experimentalRawEvents": True,
    }
    losses: list[Loss] = []
    if request.model:
        params["model"] = request.model
    if setup.base_instructions is not None:
        params["baseInstructions"] = setup.base_instructions
    if history.instructions:
        params["developerInstructions"] = history.instructions
    if settings := _settings(request, abilities, setup):
        params["config"] = settings
    if setup.is_stored and abilities.revert:
        params |= _STORED
    elif abilities.ephemeral:
        params["ephemeral"] = True
    tools = offered(request) if tier.is_native else []
    if tools:
        kind = {"type": "function"} if abilities.typed_tools else {}
        params["dynamicTools"] = [
            {
                **kind,
                "name": names.wire(tool.name),
                "description": tool.description or "",
                "inputSchema": whole_schema(tool.schema),
            }
            for tool in tools
        ]
        losses += [Loss("tool.strict", tool.name, "checked by the gateway") for tool in tools if tool.strict]
    return params, losses


def _settings(request: Request, abilities: Abilities, setup: ThreadSetup) -> JsonObject:
    settings = flat(setup.settings)
    if request.output.verbosity in _VERBOSITIES:
        settings.setdefault("model_verbosity", request.output.verbosity)
    if not abilities.bare and request.thinking is not None and request.thinking.mode != "off":
        # Without it 0.89 sends no effort and no summary to a model that it does not know.
        settings.setdefault("model_supports_reasoning_summaries", True)
    return settings


def _image(part: Part) -> str | None:
    return data_url(part) if isinstance(part, Media) and part.kind == "image" else None


def _text(result: ToolResult, *, has_images: bool) -> str:
    parts: list[Part] = []
    for part in result.parts:
        if not isinstance(part, Media):
            parts.append(part)
        elif not has_images or _image(part) is None:
            parts.append(Text(text=placeholder(part, "", [], "")))
    return text_of(tuple(parts), "", [])


def _effort(request: Request) -> str | None:
    thinking = request.thinking
    if thinking is None:
        return None
    if thinking.effort is None:
        return "none" if thinking.mode == "off" else None
    return thinking.effort if thinking.effort in _EFFORTS else None


def _summary(request: Request) -> str | None:
    """Clients that enable thinking want to see it, in the form that they request."""
    thinking = request.thinking
    if thinking is None:
        return None
    if thinking.summary is not None:
        return thinking.summary if thinking.summary in _SUMMARIES else None
    return "auto" if thinking.mode in ("on", "adaptive") else None
