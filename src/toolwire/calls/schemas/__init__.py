"""JSON Schemas of tools: read, compiled, cached, and simplified for back ends that support less."""

from .checker import Checker, Compiled, Fault, Schemas, TooCostly, check_schema
from .clean import CleanSchema, SchemaChange, clean_schema
from .strict import without_added_nulls
from .subset import Texts

__all__ = [
    "Checker",
    "Compiled",
    "Fault",
    "Schemas",
    "Texts",
    "TooCostly",
    "check_schema",
    "SchemaChange",
    "CleanSchema",
    "clean_schema",
    "without_added_nulls",
]
