from __future__ import annotations

from typing import Any

import pytest

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.exec_results import (
    GrepHit,
    command_results,
    count_lines,
    counts_found,
    failure,
    file_read,
    file_written,
    lines_found,
    output,
)
from toolwire.backends.cursor.wire.execs import Exec


def exec_of(kind: str, args: Any) -> Exec:
    return Exec(1, "one", kind, args)


def test_a_failure_repeats_the_path_or_url_of_its_exec() -> None:
    read = exec_of("read", agent.ReadArgs(path="a"))
    assert failure(read, "no") == agent.ReadResult(error=agent.ReadError(path="a", error="no"))
    assert failure(exec_of("fetch", agent.FetchArgs(url="u")), "no").error.url == "u"
    assert failure(exec_of("pi_ls", agent.PiLsExecArgs(path="a")), "").error.error == "the client gave no reason."


def test_a_missing_file_has_a_member_of_its_own_where_the_kind_has_one() -> None:
    assert failure(exec_of("read", agent.ReadArgs(path="a")), "no", is_missing=True).file_not_found.path == "a"
    assert failure(exec_of("ls", agent.LsArgs(path="a")), "no", is_missing=True).error.error == "no"


def test_the_pi_kinds_have_text_results() -> None:
    assert output(exec_of("pi_find", agent.PiFindExecArgs()), "a").success.output == "a"
    read = exec_of("pi_read", agent.PiReadExecArgs(path="a"))
    assert file_read(read, agent.ReadSuccess(content="x")).success.output == "x"
    assert file_written(exec_of("pi_write", agent.PiWriteExecArgs(path="a")), "x", 1, "done").success.output == "done"


def test_a_stopped_command_reports_why() -> None:
    args = agent.ShellArgs(command="c", working_directory="/w")
    reason = agent.SHELL_ABORT_REASON_TIMEOUT
    (result,) = command_results(exec_of("shell", args), "x", 1, why_stopped="late", is_aborted=True, reason=reason)
    assert (result.failure.stdout, result.failure.stderr, result.failure.abort_reason) == ("x", "late", reason)
    stream = command_results(exec_of("shell_stream", args), "x", -1, why_stopped="late", is_aborted=True)
    assert [event.WhichOneof("event") for event in stream] == ["start", "stdout", "exit"]
    assert (stream[1].stdout.data, stream[2].exit.code, stream[2].exit.cwd) == ("x[late]", 0xFFFFFFFF, "/w")
    assert not stream[2].exit.HasField("abort_reason")


def test_a_written_file_is_returned_only_on_request() -> None:
    silent = file_written(exec_of("write", agent.WriteArgs(path="a")), "x\ny", 3, "").success
    assert (silent.path, silent.lines_created, silent.file_size) == ("a", 2, 3)
    assert not silent.HasField("file_content_after_write")
    args = agent.WriteArgs(path="a", return_file_content_after_write=True)
    assert file_written(exec_of("write", args), "x", 1, "").success.file_content_after_write == "x"


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
