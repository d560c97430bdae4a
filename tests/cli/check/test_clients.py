from __future__ import annotations

import pytest

from toolwire.check.deviations import CODES, AnswerWay, Deviation
from toolwire.check.results import DialectReport, ProbeResult
from toolwire.cli.check.clients import _table, breaking, verdicts
from toolwire.cli.clients.table import clients


def report(dialect: str, *codes: str, way: AnswerWay = "") -> DialectReport:
    found = [Deviation(code=code, where="x", way=way) for code in codes]
    return DialectReport(dialect=dialect, model="m", results=[ProbeResult(name="x", area="wire", deviations=found)])


def outcome(client: str, direct: list[DialectReport], through: dict[str, DialectReport]) -> tuple[str, tuple[str, ...]]:
    found = next(one for one in verdicts(direct, through) if one.client == client)
    return found.outcome, found.because


def test_the_table_names_known_clients_and_codes() -> None:
    named = {name: client.dialects for name, client in clients().items()} | {"every": ("chat", "responses", "messages")}
    known = {*named, *(f"{name}.{way}" for name, dialects in named.items() for way in dialects)}
    for name, entry in _table().items():
        assert name in known
        codes = [code.removesuffix("/stream").removesuffix("/whole") for code in (*entry.breaks, *entry.tolerates)]
        assert set(codes) <= set(CODES)
        assert not set(entry.breaks) & set(entry.tolerates)


def test_a_client_works_where_no_fault_breaks_it() -> None:
    assert outcome("opencode", [report("chat", "error.form")], {}) == ("works", ())


def test_for_a_client_that_the_gateway_helps_the_repaired_faults_are_listed() -> None:
    direct, through = [report("chat", "call.id_missing")], {"chat": report("chat")}
    assert outcome("opencode", direct, through) == ("repaired", ("call.id_missing",))


def test_a_client_fails_where_the_gateway_does_not_help_either() -> None:
    direct, through = [report("chat", "http.cut")], {"chat": report("chat", "http.cut")}
    assert outcome("opencode", direct, through) == ("fails", ("http.cut",))


def test_a_dialect_that_was_not_checked_is_no_fault_of_the_endpoint() -> None:
    result, because = outcome("claude-code", [report("chat")], {"messages": report("messages")})
    assert result == "repaired"
    assert because == ("it needs messages, and only chat was checked",)


@pytest.mark.parametrize("code", ["tools.ignored", "call.as_text", "tools.refused"])
def test_no_client_works_without_tools(code: str) -> None:
    assert all(one.outcome == "fails" for one in verdicts([report("chat", code)], {}))


def test_a_client_of_ollama_works_where_chat_clients_work_with_the_gateway() -> None:
    assert outcome("home-assistant", [report("chat")], {"chat": report("chat")})[0] == "repaired"
    assert outcome("home-assistant", [report("chat")], {"chat": report("chat", "http.cut")})[0] == "fails"


def test_reasons_are_in_the_order_of_the_codes() -> None:
    found = report("chat", "schema.mismatch", "http.cut").all_deviations
    assert breaking("opencode", "chat", found) == ("http.cut", "schema.mismatch")


def test_a_fault_of_whole_answers_does_not_break_a_client_that_only_streams() -> None:
    assert outcome("codex", [report("responses", "call.name_missing", way="whole")], {})[0] == "works"
    assert outcome("codex", [report("responses", "call.name_missing", way="stream")], {})[0] == "fails"
    assert outcome("openai-python", [report("responses", "call.name_missing", way="whole")], {})[0] == "fails"
