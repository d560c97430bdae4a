"""Hooks: what a program sees and changes of a task while it runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TypeVar

from ..tools import Output, Runnable
from ..types import Message, Request, Usage
from .events import CompleteEvent, ToolCallEvent
from .toolbox import Approval, Approve

T = TypeVar("T")


class AgentHooks:
    """A base class: override what you need, as ordinary or asynchronous methods. None means: no change.

    An exception in a hook ends the task and is raised by run() and stream(). The conversation stays valid.
    """

    def before_request(self, request: Request) -> Request | Awaitable[Request | None] | None:
        """Before each request to the model. A returned request replaces it, for this one time."""
        return None

    def after_answer(self, message: Message, usage: Usage) -> Awaitable[None] | None:
        """After each answer of the model; usage is that of the task so far."""
        return None

    def before_call(self, call: ToolCallEvent, tool: Runnable) -> Approval | Awaitable[Approval]:
        """Before each valid call, and before `approve`. A decision other than None is final."""
        return None

    def after_call(self, call: ToolCallEvent, output: Output) -> Output | Awaitable[Output | None] | None:
        """After each call that ran. A returned output replaces the tool's, for the model and in the events."""
        return None

    def after_task(self, complete: CompleteEvent) -> Awaitable[None] | None:
        """After the last answer of a task that was not interrupted."""
        return None


async def resolve(value: T | Awaitable[T]) -> T:
    """The value, awaited if it is awaitable."""
    if inspect.isawaitable(value):
        awaited: T = await value
        return awaited
    return value


def approval_of(hooks: AgentHooks, approve: Approve | None, free: frozenset[str]) -> Approve:
    """The hook, then approve. Calls of the tools in free need neither."""

    async def decide(call: ToolCallEvent, tool: Runnable) -> Approval:
        if call.name in free:
            return None
        decision = await resolve(hooks.before_call(call, tool))
        return await resolve(approve(call, tool)) if decision is None and approve is not None else decision

    return decide
