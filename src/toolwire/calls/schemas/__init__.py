"""JSON Schemas of tools: read, compiled, cached, and simplified for back ends that support less."""

from .cache import Compiled, Schemas, ToolSets, check_schema
from .checker import Checker, Fault, TooCostly
from .clean import CleanSchema, SchemaChange, clean_schema
from .strict import without_added_nulls
from .subset import Texts

__all__ = [
    "Checker",
    "Compiled",
    "Fault",
    "Schemas",
    "Texts",
    "ToolSets",
    "TooCostly",
    "check_schema",
    "SchemaChange",
    "CleanSchema",
    "clean_schema",
    "without_added_nulls",
]
