"""The libraries' code: it can be read by its language, names the address and the model, and never a key."""

from __future__ import annotations

import ast

import pytest

from toolwire.cli.clients.client import Client, ConnectTarget, fill
from toolwire.cli.clients.libraries import LIBRARIES

TARGET = ConnectTarget(address="http://127.0.0.1:18741", model="demo/echo-tools", has_key=True)
CASES = [(client, dialect) for client in LIBRARIES for dialect in client.dialects]


@pytest.mark.parametrize(("client", "dialect"), CASES, ids=[f"{client.name}-{dialect}" for client, dialect in CASES])
def test_the_code_is_whole(client: Client, dialect: str) -> None:
    code = fill(client.way(dialect).code, TARGET.placeholders(dialect))
    assert '"http://127.0.0.1:18741' in code
    assert 'demo/echo-tools"' in code
    assert "TOOLWIRE_KEY" in code
    assert not any(word in code for word in ("@key@", "@v1@", "@model@", "@address@", "@url@", "{}"))
    if code.startswith("import os"):
        ast.parse(code)


def test_the_python_key_falls_back_where_there_is_none() -> None:
    assert 'os.environ.get("TOOLWIRE_KEY", "toolwire")' in LIBRARIES[0].ways[0].code
