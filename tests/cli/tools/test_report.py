"""What a list of tools costs, and which names are easy to confuse."""

from __future__ import annotations

from tests.mcp_tools import recorded_tools
from toolwire.cli.tools.report import report_of
from toolwire.types import Tool


def test_the_cost_of_each_tool_and_of_all() -> None:
    report = report_of((Tool(name="a", description="x" * 400), Tool(name="b")))
    assert [line.tokens > 100 for line in report.tools] == [True, False]
    assert report.tokens == sum(line.tokens for line in report.tools)


def test_duplicates_conflicts_and_illegal_names() -> None:
    schema = {"type": "object"}
    report = report_of(
        (
            Tool(name="github__create_issue", description="One", schema=schema),
            Tool(name="jira__createIssue", description="Two", schema=schema),
            Tool(name="copy.of.it", description="One", schema=schema),
        )
    )
    assert report.duplicates == (("github__create_issue", "copy.of.it"),)
    assert report.conflicts == (("github__create_issue", "jira__createIssue"),)
    assert report.illegal == (("copy.of.it", "copy_of_it"),)
    assert report.as_json()["conflicts"] == (("github__create_issue", "jira__createIssue"),)


def test_the_recorded_servers_have_tools_of_the_same_name() -> None:
    report = report_of(recorded_tools())
    assert ("mcp__gitlocal__git_status", "mcp__git__git_status") in report.conflicts
    assert report.tokens > 50_000
