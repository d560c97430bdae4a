"""Refusals of a back end: those that can be predicted, those that another body avoids, and those that may be temporary."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ...calls.search.selection import tool_count
from ...dialects.chat.templates import with_plain_roles, with_texts
from ...dialects.gemini.request_out import without_signatures
from ...dialects.messages.bound_thinking import with_dropped_blocks, with_free_choice
from ...dialects.messages.request_out import without_thinking
from ...dialects.responses.request_out import without_proof, without_reasoning
from ...errors import BadRequest, UpstreamError, quote
from ...profiles import Profile, Remedy
from ...types import Loss, Request

_CHANGES = {  # (dialect, change) -> the changed body, or None if there is nothing to change
    ("responses", "reasoning"): without_reasoning,
    ("responses", "proof"): without_proof,
    ("messages", "reasoning"): without_thinking,
    ("messages", "binding"): with_dropped_blocks,
    ("messages", "choice"): with_free_choice,
    ("gemini", "reasoning"): without_signatures,
    ("chat", "roles"): with_plain_roles,
    ("chat", "texts"): with_texts,
}
_READ = 2000  # characters of an error that are searched
_SHOWN_GROUPS = 8


class ChangedBody(NamedTuple):
    """Another body to send, and what it lacks. feature: a header, and what to add to it."""

    body: bytes
    loss: Loss
    feature: tuple[str, str] = ("", "")


def check_tools(request: Request, profile: Profile) -> None:
    """Some providers limit the number of tools (H147); the error counts them by namespace."""
    count = tool_count(request)
    if 0 < profile.max_tools < count:
        raise BadRequest(
            f"the request has {count} tools, and the back end ({profile.name}) takes {profile.max_tools}: "
            f"{_groups(request)}.",
            where="tools",
            code="too_many_tools",
            hint="Offer fewer, or let the gateway search them: tool_search must not be off, and tools_budget set where guard is off.",
        )


def changed_body(dialect: str, body: bytes, error: UpstreamError, profile: Profile) -> ChangedBody | None:
    """None if the refusal is final. No change applies twice, so a caller that tries again comes to an end."""
    remedy = _remedy(error, profile)
    change = _CHANGES.get((dialect, remedy.change)) if remedy is not None else None
    if remedy is None or change is None or (changed := change(body)) is None:
        return None
    loss = Loss(f"refused.{remedy.change}", "request", f"{remedy.why}; it was asked once more")
    return ChangedBody(changed, loss, remedy.feature)


def is_passing(error: UpstreamError, profile: Profile) -> bool:
    """The server could not parse the output of its own model; another attempt may succeed (H113)."""
    return error.status >= 500 and re.search(profile.transient_errors, error.message[:_READ], re.IGNORECASE) is not None


def _remedy(error: UpstreamError, profile: Profile) -> Remedy | None:
    text = f"{error.details.get('code')} {error.message}"[:_READ]
    for remedy in profile.remedies:
        if error.status in remedy.statuses and re.search(remedy.pattern, text, re.IGNORECASE):
            return remedy
    return None


def _groups(request: Request) -> str:
    """The number of tools in each namespace, or with each prefix that clients add for an MCP server."""
    counts = Counter(tool.namespace or tool.name.rpartition("__")[0] for tool in request.tools)
    alone = counts.pop("", 0)
    shown = [f"{count} of {quote(name)}" for name, count in counts.most_common(_SHOWN_GROUPS)]
    others = sum(counts.values()) - sum(count for _, count in counts.most_common(_SHOWN_GROUPS))
    shown += [f"{others} of others"] if others else []
    return ", ".join([*shown, *([f"{alone} without a namespace"] if alone else [])])
