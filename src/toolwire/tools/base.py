"""The interface of a tool that runs in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from ..types import JsonObject, Media, Opaque, Text, Tool


class Output(Struct, frozen=True, kw_only=True):
    """The result of a tool; is_error: the tool could not do its work."""

    parts: tuple[Text | Media | Opaque, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of all parts."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @classmethod
    def of_text(cls, text: str, *, is_error: bool = False) -> Output:
        return cls(parts=(Text(text=text),), is_error=is_error)


@runtime_checkable
class Runnable(Protocol):
    """One tool. Its arguments have been validated against the schema of `tool` when run() gets them."""

    @property
    def tool(self) -> Tool:
        """Name, description and schema, as the model sees them."""

    @property
    def changes_things(self) -> bool:
        """Whether the program should ask a person before it runs."""

    @property
    def timeout(self) -> float | None:
        """Seconds that it may take, None for the default."""

    async def run(self, arguments: JsonObject) -> Output:
        """An exception becomes an error for the model. On cancellation the tool must stop what it has started."""


@runtime_checkable
class ToolSource(Protocol):
    """A group of tools that is opened and closed as a whole, such as those of a server."""

    async def open(self) -> None: ...

    async def tools(self) -> Sequence[Runnable]:
        """The current tools."""

    async def close(self) -> None: ...
