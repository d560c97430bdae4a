"""Typed output: a tool that the model must call with the final answer.

A tool, and not a response format: every back end has tools, or the gateway simulates them, and the guard validates and repairs the arguments of
a call for all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..calls.arguments import Repaired, Valid, judge
from ..calls.schemas import Schemas
from ..errors import ConfigError, quote
from ..tools import Output
from ..tools.hints import Hints, Unsupported
from ..tools.shapes import Mismatch, Shape
from ..types import JsonObject, Tool, ToolCall
from ..wire.exact_json import encode

NAME = "final_answer"
REMINDER = f"Call the tool {NAME} with the final answer. Text is not read by the program."
_DESCRIPTION = "Gives the final answer of the task to the program. Call it once, at the end."
_VALUE = "value"  # the member that has the answer if its schema is not that of an object


class OutputType:
    """How the model gives a value of this type. Raises ConfigError if JSON cannot express the type."""

    def __init__(self, hint: Any, names: Mapping[str, Any]) -> None:
        module = sys.modules.get(getattr(hint, "__module__", ""), None)
        hints = Hints({**(vars(module) if module is not None else {}), **names})
        try:
            self.shape: Shape = hints.shape(hint)
        except Unsupported as error:
            raise ConfigError(f"the output type cannot be used: {error}.", where="output_type") from None
        schema = self.shape.schema
        definitions = hints.definitions
        root = definitions.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"), schema)
        self.is_wrapped = root.get("type") != "object"
        if self.is_wrapped:
            root = {"type": "object", "properties": {_VALUE: schema}, "required": [_VALUE]}
        self.tool = Tool(
            name=NAME, description=_DESCRIPTION, schema={**root, **({"$defs": definitions} if definitions else {})}
        )

    def convert(self, arguments: JsonObject) -> Any:
        """Raises Mismatch."""
        return self.shape.convert(arguments[_VALUE] if self.is_wrapped else arguments)


class OutputTool:
    """The tool of one task. has_value: the model has given a valid answer; text is its JSON."""

    timeout = None
    changes_things = False

    def __init__(self, output_type: OutputType) -> None:
        self._type = output_type
        self.tool = output_type.tool
        self.has_value = False
        self.value: Any = None
        self.text = ""

    async def run(self, arguments: JsonObject) -> Output:
        try:
            value = self._type.convert(arguments)
        except Mismatch as mismatch:
            return Output.of_text(f"The answer is not valid; call {NAME} again. {mismatch}", is_error=True)
        except Exception as error:  # a constructor or validator of the user's type
            text = f"{type(error).__name__}: {quote(str(error))}"
            return Output.of_text(f"The answer is not valid; call {NAME} again. {text}", is_error=True)
        if self.has_value:
            return Output.of_text("Not used: an answer was given before.", is_error=True)
        given = arguments[_VALUE] if self._type.is_wrapped else arguments
        self.has_value, self.value, self.text = True, value, encode(given).decode()
        return Output.of_text("The answer was accepted.")

    async def accept_text(self, text: str) -> bool:
        """Whether the text of an answer is itself a valid final answer: some models write the JSON instead of the call."""
        body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        if not body.startswith("{"):
            return False
        call = ToolCall(id="text", name=NAME, raw=body)
        found = judge(call, self.tool, Schemas(), is_cut=False, may_repair=True)
        if not isinstance(found, Valid | Repaired) or found.args is None:
            return False
        await self.run(found.args)
        return self.has_value
