"""What whoever runs tools asks of one: to say what it takes, and to do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from ..types import JsonObject, Media, Opaque, Text, Tool


class Output(Struct, frozen=True, kw_only=True):
    """What a tool gave back; is_error: it could not do what it was asked."""

    parts: tuple[Text | Media | Opaque, ...] = ()
    is_error: bool = False

    @classmethod
    def of_text(cls, text: str, *, is_error: bool = False) -> Output:
        return cls(parts=(Text(text=text),), is_error=is_error)


@runtime_checkable
class Runnable(Protocol):
    """One tool. Its arguments have been validated against the schema of `tool` when run() gets them."""

    @property
    def tool(self) -> Tool:
        """As the model is told it."""

    @property
    def changes_things(self) -> bool:
        """Whether a person may want to be asked before it runs."""

    @property
    def timeout(self) -> float | None:
        """Seconds it may take, None for what is usual."""

    async def run(self, arguments: JsonObject) -> Output:
        """Whatever it raises is told to the model as an error; when it is cancelled it stops what it has begun."""


@runtime_checkable
class ToolSource(Protocol):
    """Several tools that come and go together, such as those of a server."""

    async def open(self) -> None: ...

    async def tools(self) -> Sequence[Runnable]:
        """As they are now."""

    async def close(self) -> None: ...
