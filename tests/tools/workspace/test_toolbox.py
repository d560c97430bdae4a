from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from tests.tools.workspace.box import Box
from toolwire.errors import ConfigError
from toolwire.tools import Runnable
from toolwire.tools.workspace import Shell, workspace
from toolwire.tools.workspace.toolbox import Command, Edit, Glob, Grep, ListFolder, Read, Write, tool_of


def names(tools: list[Runnable]) -> list[str]:
    return [runnable.tool.name for runnable in tools]


def test_only_what_is_allowed_is_there(tmp_path: Path) -> None:
    assert names(workspace(tmp_path)) == ["read", "list", "glob", "grep"]
    assert names(workspace(tmp_path, allow=["edit", "read"])) == ["read", "edit"]
    assert names(workspace(tmp_path, allow=(), shell=True)) == ["shell"]
    assert names(workspace(tmp_path, allow=(), shell=Shell(network=True))) == ["shell"]


def test_shell_has_its_own_switch(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set shell for it"):
        workspace(tmp_path, allow=("read", "shell"))
    with pytest.raises(ConfigError, match="expected some of read"):
        workspace(tmp_path, allow=("delete",))


def test_a_person_may_be_asked_before_things_change(tmp_path: Path) -> None:
    box = Box(tmp_path, shell=True)
    assert {name for name, runnable in box.tools.items() if runnable.changes_things} == {"write", "edit", "shell"}
    assert all(runnable.timeout is not None and runnable.timeout > 0 for runnable in box.tools.values())


def test_invalid_arguments_are_reported(tmp_path: Path) -> None:
    box = Box(tmp_path)
    assert "path" in box.refusal("read")
    assert "Expected `str`" in box.refusal("read", path=7)
    assert "unknown field `mode`" in box.refusal("read", path="a", mode="x")


def test_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a", "one\ntwo\nthree\n")
    assert "two" in box.text("read", path="a", offset=2.0, limit=Decimal(1))
    assert "Expected `int" in box.refusal("read", path="a", offset=1.5)
    assert "Expected `int" in box.refusal("read", path="a", offset=float("inf"))


def test_absent_and_null_are_the_same(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a", "one\n")
    assert box.text("read", path="a", offset=None, limit=None) == box.text("read", path="a")
    assert box.text("list", path=None, depth=None) == box.text("list")


@pytest.mark.parametrize(
    ("name", "arguments"),
    {
        "read": Read,
        "list": ListFolder,
        "glob": Glob,
        "grep": Grep,
        "write": Write,
        "edit": Edit,
        "shell": Command,
    }.items(),
)
def test_the_schema_describes_the_arguments(name: str, arguments: type[msgspec.Struct]) -> None:
    tool = tool_of(name, arguments)
    assert tool.schema is not None
    jsonschema_rs.validator_for(tool.schema)
    fields = msgspec.structs.fields(arguments)
    assert list(tool.schema["properties"]) == [field.name for field in fields]
    assert tool.schema["required"] == [field.name for field in fields if field.required]
    assert tool.schema["additionalProperties"] is False
    assert "null" not in str(tool.schema)
    assert all(property["description"].endswith((".", "py")) for property in tool.schema["properties"].values())
    assert tool.description
