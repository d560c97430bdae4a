from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.harness import ask
from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.errors import ConfigError
from toolwire.flows.cassette import CassetteWriter
from toolwire.testing import CassetteGateway


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        CassetteWriter(tmp_path / "file" / "c.jsonl", print)


def test_each_flow_is_a_line_without_secrets_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    key = "sk-test-0123456789abcdef"
    config = Config(server=ServerConfig(keys=(Secret(key),)))
    file = tmp_path / "new" / "c.jsonl"
    with CassetteGateway.record(file, with_backends(config, (BackendConfig(name="demo", kind="demo"),))) as gateway:
        body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": f"Hello, my key is {key}."}]}
        port = int(gateway.address.rpartition(":")[2])
        for stream in (False, True):
            answer = ask(
                port, "POST", "/v1/chat/completions", body | {"stream": stream}, {"authorization": f"Bearer {key}"}
            )
            assert answer.status == 200
    text = file.read_text()
    flows = [json.loads(line) for line in text.splitlines()]
    assert [flow["summary"]["stream"] for flow in flows] == [False, True]
    assert key not in text
    assert file.stat().st_mode & 0o077 == 0
