"""Execs: each kind that the schema has is answered once, in the right place and in its own words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.cursor.wire.server_messages import read
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.execs import (
    CANCEL,
    CLIENT_HEARTBEAT,
    NO_PERSON,
    Exec,
    GrepHit,
    allowed_tools,
    answer_query,
    answered,
    command_results,
    count_lines,
    counts_found,
    exec_of,
    failure,
    file_read,
    file_written,
    heartbeat,
    lines_found,
    output,
    rejected,
    thrown,
)

ASKED = {field.name: field for field in agent.ExecServerMessage.DESCRIPTOR.oneofs_by_name["message"].fields}
GIVEN = {field.name: field for field in agent.ExecClientMessage.DESCRIPTOR.oneofs_by_name["message"].fields}
# Where the number of the result is another than that of the request.
MOVED = {"pi_read": 46, "pi_bash": 47, "pi_edit": 48, "pi_write": 49, "pi_grep": 50, "pi_find": 51, "pi_ls": 52}
MOVED |= {"mini_swe_agent_bash": 55}
OPAQUE = {"git_diff_request", "agent_store_conflict", "adopt"}

NO_FORM = ("", "")
REJECTED, ERROR = ("rejected", "reason"), ("error", "error")
# How each kind is declined: the member of its result, and the text in it.
EXEC_REFUSALS = {
    **dict.fromkeys(("shell", "write", "delete", "read", "ls", "diagnostics", "request_context", "mcp"), REJECTED),
    **dict.fromkeys(("shell_stream", "background_shell_spawn", "list_mcp_resources_exec"), REJECTED),
    **dict.fromkeys(("read_mcp_resource_exec", "redacted_read", "mcp_state_exec"), REJECTED),
    **dict.fromkeys(("pi_edit", "pi_write", "mini_swe_agent_bash"), REJECTED),
    **dict.fromkeys(("grep", "fetch", "computer_use", "write_shell_stdin", "subagent", "subagent_await"), ERROR),
    **dict.fromkeys(("smart_mode_classifier", "canvas_diagnostics", "conversation_search"), ERROR),
    **dict.fromkeys(("pi_read", "pi_bash", "pi_grep", "pi_find", "pi_ls"), ERROR),
    "record_screen": ("failure", "error"),
    **dict.fromkeys(("execute_hook", "shell_allowlist_precheck", "mcp_allowlist_precheck"), NO_FORM),
    "web_fetch_allowlist_precheck": NO_FORM,
    **dict.fromkeys(("force_background_shell", "force_background_subagent"), ("status", "")),
}
# How each question is declined: the path to the text in its response.
QUERY_REFUSALS = {
    "web_search_request_query": ("web_search_request_response", "rejected", "reason"),
    "ask_question_interaction_query": ("ask_question_interaction_response", "result", "rejected", "reason"),
    "switch_mode_request_query": ("switch_mode_request_response", "rejected", "reason"),
    "create_plan_request_query": ("create_plan_request_response", "result", "error", "error"),
    "web_fetch_request_query": ("web_fetch_request_response", "rejected", "reason"),
    "pr_management_request_query": ("pr_management_result", "rejected", "reason"),
    "mcp_auth_request_query": ("mcp_auth_request_response", "rejected", "reason"),
    "generate_image_request_query": ("generate_image_request_response", "rejected", "reason"),
    "replace_env_args": ("replace_env_result", "failure", "error_message"),
    "connect_scm_request_query": ("connect_scm_request_response", "rejected", "reason"),
}


def exec_for(member: str) -> Exec:
    message = agent.ExecServerMessage(id=7, exec_id="e7")
    field = ASKED[member]
    if field.message_type is None:
        setattr(message, member, b"x")
    else:
        getattr(message, member).SetInParent()
    return exec_of(message)


@pytest.mark.parametrize("member", ASKED)
def test_every_kind_of_the_schema_can_be_declined(member: str) -> None:
    exec = exec_for(member)
    first, last = (read(data) for data in rejected(exec, "because"))
    assert last.exec_client_control_message.stream_close.id == 7
    if exec.kind in OPAQUE:
        assert first.exec_client_control_message.throw.error == "because"
        return
    result = first.exec_client_message
    assert (result.id, result.exec_id) == (7, "e7")
    name = result.WhichOneof("message")
    assert GIVEN[name].number == MOVED.get(exec.kind, ASKED[member].number)
    member, text = EXEC_REFUSALS[exec.kind]
    if text:
        assert getattr(result, name).HasField(member)
        assert getattr(getattr(getattr(result, name), member), text) == "because"
    elif member:
        assert getattr(result, name).status == agent.FORCE_BACKGROUND_STATUS_NOT_FOUND


def test_no_refusal_is_for_a_kind_that_does_not_exist() -> None:
    assert set(EXEC_REFUSALS) | OPAQUE >= {name.removesuffix("_args") for name in ASKED}
    assert {f"{kind}_args" for kind in EXEC_REFUSALS} <= set(ASKED)


def test_a_refusal_says_again_what_was_asked_for() -> None:
    args = agent.ShellArgs(command="rm -r x", working_directory="/w")
    exec = exec_of(agent.ExecServerMessage(id=1, exec_id="e", shell_args=args))
    refusal = read(rejected(exec, "no")[0]).exec_client_message.shell_result.rejected
    assert (refusal.command, refusal.working_directory, refusal.reason) == ("rm -r x", "/w", "no")


def test_an_unknown_kind_is_thrown() -> None:
    exec = exec_of(agent.ExecServerMessage.FromString(b"\x08\x05\x7a\x01e\xca\x3e\x00"))  # member 1001
    assert exec == Exec(5, "e", "", None)
    control, close = (read(data).exec_client_control_message for data in rejected(exec, "what?"))
    assert (control.throw.id, control.throw.error, close.stream_close.id) == (5, "what?", 5)


def test_a_prechecked_thing_is_not_allowed_by_an_empty_result() -> None:
    message = read(rejected(exec_for("shell_allowlist_precheck_args"), "no")[0]).exec_client_message
    assert message.HasField("shell_allowlist_precheck_result")
    assert not message.shell_allowlist_precheck_result.allowlisted


def test_a_shell_stream_has_several_results_and_one_close() -> None:
    exec = exec_of(agent.ExecServerMessage(id=2, shell_stream_args=agent.ShellArgs(command="ls")))
    end = agent.ShellStream(exit=agent.ShellStreamExit(code=3))
    start = agent.ShellStream(start=agent.ShellStreamStart())
    whole = agent.ShellResult(success=agent.ShellSuccess(stdout="x"))
    sent = [read(data) for data in answered(exec, start, end, whole)]
    kinds = [message.exec_client_message.WhichOneof("message") for message in sent[:3]]
    assert kinds == ["shell_stream", "shell_stream", "shell_result"]
    assert sent[3].exec_client_control_message.stream_close.id == 2


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(TypeError, match="no exec"):
        answered(exec_for("read_args"), agent.McpTools())


def test_heartbeats() -> None:
    assert CLIENT_HEARTBEAT == b"\x3a\x00"
    assert read(heartbeat(9)).exec_client_control_message.heartbeat.id == 9


def test_half_a_surrogate_pair_can_be_said() -> None:
    exec = exec_for("read_args")
    assert read(rejected(exec, "a\ud800b")[0]).exec_client_message.read_result.rejected.reason == "a\ufffdb"
    assert read(thrown(exec, "\udfff")[0]).exec_client_control_message.throw.error == "\ufffd"


QUERIES = {field.name: field for field in agent.InteractionQuery.DESCRIPTOR.oneofs_by_name["query"].fields}
RESPONSES = {field.name: field for field in agent.InteractionResponse.DESCRIPTOR.oneofs_by_name["result"].fields}


@pytest.mark.parametrize("member", QUERIES)
def test_every_kind_of_the_schema_is_declined(member: str) -> None:
    query = agent.InteractionQuery(id=4)
    if QUERIES[member].message_type is None:
        setattr(query, member, b"x")
    else:
        getattr(query, member).SetInParent()
    response = read(answer_query(query)).interaction_response
    name = response.WhichOneof("result")
    assert response.id == 4
    assert name is not None
    assert RESPONSES[name].number == QUERIES[member].number
    if member in QUERY_REFUSALS:
        place: Any = response
        *path, text = QUERY_REFUSALS[member]
        for step in path:
            assert place.HasField(step)
            place = getattr(place, step)
        assert getattr(place, text) == NO_PERSON


def test_an_unknown_query_is_answered_all_the_same() -> None:
    response = read(answer_query(agent.InteractionQuery(id=6))).interaction_response
    assert response.id == 6
    assert response.WhichOneof("result") is None


def test_a_run_is_cancelled_by_an_action() -> None:
    message = agent.AgentClientMessage.FromString(CANCEL)
    assert message.conversation_action.WhichOneof("action") == "cancel_action"
    assert CANCEL.hex(" ") == "22 02 1a 00"


def test_the_model_sees_the_clients_tools_and_those_that_run_here() -> None:
    assert allowed_tools() == ("mcp_tool_call",)
    assert allowed_tools(("read", "shell")) == ("mcp_tool_call", "read_tool_call", "shell_tool_call")


def test_every_name_is_one_of_the_schema() -> None:
    known = {field.name for field in agent.ToolCall.DESCRIPTOR.fields}
    assert set(allowed_tools(("read", "list", "glob", "grep", "write", "shell"))) <= known


def built_in(kind: str, args: Any) -> Exec:
    return Exec(1, "one", kind, args)


def test_a_failure_repeats_the_path_or_url_of_its_exec() -> None:
    read = built_in("read", agent.ReadArgs(path="a"))
    assert failure(read, "no") == agent.ReadResult(error=agent.ReadError(path="a", error="no"))
    assert failure(built_in("fetch", agent.FetchArgs(url="u")), "no").error.url == "u"
    assert failure(built_in("pi_ls", agent.PiLsExecArgs(path="a")), "").error.error == "the client gave no reason."


def test_a_missing_file_has_a_member_of_its_own_where_the_kind_has_one() -> None:
    assert failure(built_in("read", agent.ReadArgs(path="a")), "no", is_missing=True).file_not_found.path == "a"
    assert failure(built_in("ls", agent.LsArgs(path="a")), "no", is_missing=True).error.error == "no"


def test_the_pi_kinds_have_text_results() -> None:
    assert output(built_in("pi_find", agent.PiFindExecArgs()), "a").success.output == "a"
    read = built_in("pi_read", agent.PiReadExecArgs(path="a"))
    assert file_read(read, agent.ReadSuccess(content="x")).success.output == "x"
    assert file_written(built_in("pi_write", agent.PiWriteExecArgs(path="a")), "x", 1, "done").success.output == "done"


def test_a_stopped_command_reports_why() -> None:
    args = agent.ShellArgs(command="c", working_directory="/w")
    reason = agent.SHELL_ABORT_REASON_TIMEOUT
    (result,) = command_results(built_in("shell", args), "x", 1, why_stopped="late", is_aborted=True, reason=reason)
    assert (result.failure.stdout, result.failure.stderr, result.failure.abort_reason) == ("x", "late", reason)
    stream = command_results(built_in("shell_stream", args), "x", -1, why_stopped="late", is_aborted=True)
    assert [event.WhichOneof("event") for event in stream] == ["start", "stdout", "exit"]
    assert (stream[1].stdout.data, stream[2].exit.code, stream[2].exit.cwd) == ("x[late]", 0xFFFFFFFF, "/w")
    assert not stream[2].exit.HasField("abort_reason")


def test_a_written_file_is_returned_only_on_request() -> None:
    silent = file_written(built_in("write", agent.WriteArgs(path="a")), "x\ny", 3, "").success
    assert (silent.path, silent.lines_created, silent.file_size) == ("a", 2, 3)
    assert not silent.HasField("file_content_after_write")
    args = agent.WriteArgs(path="a", return_file_content_after_write=True)
    assert file_written(built_in("write", args), "x", 1, "").success.file_content_after_write == "x"


def test_matching_lines_are_grouped_by_file_and_shortened() -> None:
    hits = [GrepHit("a", 1, "long"), GrepHit("b", 1, "x"), GrepHit("a", 2, "y", is_context=True)]
    content = lines_found(hits, is_cut=True, longest=3).content
    lines = [(file.file, [line.content for line in file.matches]) for file in content.matches]
    assert lines == [("a", ["lon", "y"]), ("b", ["x"])]
    assert [line.content_truncated for line in content.matches[0].matches] == [True, False]
    assert (content.total_lines, content.total_matched_lines, content.client_truncated) == (3, 2, True)


def test_counts_leave_out_files_without_a_match() -> None:
    count = counts_found({"a": 2, "b": 0}).count
    assert ([file.file for file in count.counts], count.total_files, count.total_matches) == (["a"], 1, 2)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2)])
def test_the_last_line_counts_with_or_without_its_break(text: str, count: int) -> None:
    assert count_lines(text) == count
