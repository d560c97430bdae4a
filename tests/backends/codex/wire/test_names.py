"""Names of tools that Codex takes, and the client's own back from them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.backends.codex.wire.recorded import records
from toolwire.backends.codex.wire.names import BUILT_IN, CodexToolNames, skipped_tool
from toolwire.profiles import CODEX

NAMES = st.lists(
    st.sampled_from(
        ["a", "a_b", "mcp", "mcp__x", "mcp__x__y", "client_mcp__x", "client_mcp__x_", "client_shell", "shell"]
    )
    | st.text("abc_-", min_size=1, max_size=6),
    max_size=8,
    unique=True,
)


@given(NAMES, st.sampled_from([frozenset(), BUILT_IN]))
def test_every_name_is_legal_unique_and_reversible(given_names: list[str], taken: frozenset[str]) -> None:
    names = CodexToolNames(given_names, taken)
    written = [names.wire(name) for name in given_names]
    assert len(set(written)) == len(given_names) == len(names)
    assert all(re.fullmatch(r"(?!mcp__|mcp\Z)[a-zA-Z0-9_-]+", name) and name not in taken for name in written)
    assert [names.client(name) for name in written] == given_names
    assert all(name in names for name in written)


def test_names_that_codex_takes_stay() -> None:
    assert CodexToolNames(["get_weather", "a-b"]).wire("get_weather") == "get_weather"


def test_names_that_the_recorded_server_refused_are_not_sent() -> None:
    refused = {"mcp__x"}
    assert CodexToolNames(["mcp"]).wire("mcp") == "client_mcp"  # 0.166.0: "dynamic tool name is reserved: mcp"
    messages = [record["msg"] for record in records("0.166.0", "48_dynamic_tool_bad_names")]
    asked = {m["id"]: m["params"]["dynamicTools"][0]["name"] for m in messages if m.get("method") == "thread/start"}
    assert refused <= {
        asked[m["id"]] for m in messages if "error" in m and m["error"]["message"].startswith("dynamic tool name")
    }
    names = CodexToolNames(refused)
    assert refused.isdisjoint(map(names.wire, refused))


def test_a_name_that_no_tool_has_any_more_is_written_like_the_others() -> None:
    names = CodexToolNames(["f"])
    assert names.wire("mcp__gone") == "client_mcp__gone"
    assert names.wire("gone") == "gone"
    assert names.client("never") == "never"
    assert "gone" not in names


def test_names_stay_as_short_as_providers_want_them() -> None:
    names = CodexToolNames(["mcp__" + "x" * (CODEX.name_length - 5)])
    assert len(names.wire("mcp__" + "x" * (CODEX.name_length - 5))) <= 64


def test_a_tool_that_codex_left_out_is_read_from_its_log() -> None:
    at = "2026-11-17T19:17:52.675845Z  WARN codex_core::tools::registry: skipping"
    assert skipped_tool(f"{at} external tool with reserved name tool_name=exec_command") == "exec_command"
    assert skipped_tool(f"{at} duplicate external tool that is already registered tool_name=view_image") == "view_image"
    assert skipped_tool(f'{at} external tool with reserved name tool_name="functions.a-b"') == "a-b"
    assert skipped_tool("WARN codex_core::exec: skipping a step") == ""
    assert skipped_tool("tool_name=shell") == ""
