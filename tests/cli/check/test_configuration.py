from __future__ import annotations

import tomllib

from toolwire.check.deviations import Deviation
from toolwire.check.results import DialectReport, ProbeResult
from toolwire.cli.check.configuration import configuration
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret

ENDPOINT = BackendConfig(name="local", kind="openai-chat", base_url="http://127.0.0.1:8080/v1", key=Secret("sk-secret"))


def table(*codes: str) -> dict[str, str]:
    found = [Deviation(code=code, where="x") for code in codes]
    report = DialectReport(dialect="chat", model="m", results=[ProbeResult(name="x", area="wire", deviations=found)])
    text = configuration(ENDPOINT, "env:LOCAL_KEY", report)
    assert "sk-secret" not in text
    value: dict[str, str] = tomllib.loads(text)["backends"]["local"]
    return value


def test_a_good_endpoint_needs_only_its_address() -> None:
    assert table() == {"kind": "openai-chat", "base_url": "http://127.0.0.1:8080/v1", "key": "env:LOCAL_KEY"}


def test_quirks_become_settings() -> None:
    assert table("tools.ignored", "call.as_text")["tools"] == "simulate"
    assert table("call.as_text")["tools"] == "auto"
    assert table("schema.mismatch", "choice.ignored")["guard"] == "retry"
