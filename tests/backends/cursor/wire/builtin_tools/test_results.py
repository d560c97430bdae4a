from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.backends.cursor.wire.client_tools import BASH, TEXT, client, map_to_client, result, results, tool
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.builtin_tools.results import KnownFiles

_OPENCODE = "<path>/w/a</path>\n<type>file</type>\n<content>\n1: x\n2:   y\n\n(End of file - total 2 lines)\n</content>"
_READ = agent.ReadArgs(path="/w/a")


def test_a_command_that_worked_and_one_that_did_not() -> None:
    call = map_to_client("shell", agent.ShellArgs(command="ls", working_directory="/w"), client("codex"))
    header = "Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code {}\nOriginal token count: 5\nOutput:\nx\n"
    success = result(call, header.format(0)).success
    assert (success.stdout, success.exit_code, success.command, success.working_directory) == ("x\n", 0, "ls", "/w")
    failure = result(call, header.format(2)).failure
    assert (failure.stdout, failure.exit_code) == ("x\n", 2)
    assert result(call, "denied", is_error=True).failure.exit_code == 1
    timeout = result(
        map_to_client("shell", agent.ShellArgs(command="a"), [BASH]), "Command timed out after 2s", is_error=True
    )
    assert timeout.failure.aborted


def test_a_stream_begins_speaks_and_ends() -> None:
    call = map_to_client("shell_stream", agent.ShellArgs(command="ls", working_directory="/w"), client("claude-code"))
    events = results(call, "Exit code 3\nx\n", is_error=True)
    assert [event.WhichOneof("event") for event in events] == ["start", "stdout", "exit"]
    assert (events[1].stdout.data, events[2].exit.code, events[2].exit.cwd) == ("x\n", 3, "/w")
    assert [event.WhichOneof("event") for event in results(call, "")] == ["start", "exit"]
    assert results(call, "Exit code -1\nx", is_error=True)[-1].exit.code == 0xFFFFFFFF


def test_the_pi_and_mini_forms_of_a_command() -> None:
    mini = map_to_client("mini_swe_agent_bash", agent.ShellArgs(command="ls"), [BASH])
    assert result(mini, "x").success.stdout == "x"
    pi = map_to_client("pi_bash", agent.PiBashExecArgs(command="ls"), [BASH])
    assert result(pi, "x").success.output == "x"
    assert "no" in result(pi, "no\n\nCommand exited with code 1").error.error


def test_a_file_without_what_the_client_wrote_around_it() -> None:
    success = result(map_to_client("read", _READ, client("opencode")), _OPENCODE).success
    assert (success.path, success.content, success.total_lines, success.file_size) == ("/w/a", "x\n  y\n", 2, 6)
    assert (success.truncated, success.range_applied) == (False, False)
    claude = result(
        map_to_client("redacted_read", _READ, client("claude-code")), "     1\u2192x\n     2\u2192  y"
    ).success
    assert claude.content == "x\n  y\n"
    assert (
        result(
            map_to_client("pi_read", agent.PiReadExecArgs(path="/w/a"), client("opencode")), _OPENCODE
        ).success.output
        == "x\n  y\n"
    )


def test_a_read_that_was_cut_is_an_error_unless_a_part_was_asked_for() -> None:
    """The server's edit tool writes back all that it has read: a part passed as the whole would lose the rest of the file."""
    cut = _OPENCODE.replace("(End of file - total 2 lines)", "(Showing lines 1-2 of 900. Use offset=3 to continue.)")
    whole = result(map_to_client("read", _READ, client("opencode")), cut)
    assert "offset and limit" in whole.error.error
    part = result(map_to_client("read", agent.ReadArgs(path="/w/a", limit=2), client("opencode")), cut).success
    assert (part.content, part.truncated, part.range_applied) == ("x\n  y\n", True, True)


@pytest.mark.parametrize(
    ("who", "text", "expected"),
    [
        ("opencode", "Error: File not found: /w/a", "file_not_found"),
        ("opencode", "Error: Cannot read binary file", "error"),
        ("claude-code", "File does not exist. Note: your current working directory is /w.", "file_not_found"),
        ("claude-code", "File content (30000 tokens) exceeds maximum allowed tokens (25000).", "error"),
        ("codex", "sandbox denied", "error"),
    ],
)
def test_what_is_no_file_is_never_passed_as_one(who: str, text: str, expected: str) -> None:
    assert result(map_to_client("read", _READ, client(who)), text).WhichOneof("result") == expected
    assert result(map_to_client("read", _READ, client(who)), text, is_error=True).WhichOneof("result") == expected


_PLAIN_READ = [tool("read_file", "path", path=TEXT)]


@pytest.mark.parametrize("text", ["Error: the build broke\nError: twice\n", "Error: no more paper", "Failed: 3\n"])
def test_a_file_that_begins_like_an_error_is_a_file(text: str) -> None:
    assert result(map_to_client("read", _READ, _PLAIN_READ), text).success.content == text
    assert result(map_to_client("read", _READ, _PLAIN_READ), text, is_error=True).WhichOneof("result") == "error"
    assert result(
        map_to_client("fetch", agent.FetchArgs(url="https://a"), [tool("fetch", "url", url=TEXT)]), f"{text}x"
    ).WhichOneof("result") == ("success" if "\n" in text else "error")


def test_a_name_that_begins_like_an_error_is_a_name() -> None:
    listing = [tool("list_dir", "path", path=TEXT)]
    tree = result(
        map_to_client("ls", agent.LsArgs(path="/w"), listing), "error.log\nfailed.txt"
    ).success.directory_tree_root
    assert [file.name for file in tree.children_files] == ["error.log", "failed.txt"]
    assert (
        result(map_to_client("ls", agent.LsArgs(path="/w"), listing), "Error: no such folder").WhichOneof("result")
        == "error"
    )


def test_a_file_that_is_not_shown_twice_is_remembered() -> None:
    stub = "File unchanged since last read. The content from the earlier Read is still current."
    known = KnownFiles()
    call = map_to_client("read", _READ, client("claude-code"), known)
    assert "in parts" in result(call, stub).error.error
    result(call, "     1\u2192x")
    assert result(call, stub).success.content == "x\n"
    result(map_to_client("write", agent.WriteArgs(path="/w/a", file_text="new"), client("claude-code"), known), "done")
    assert result(call, stub).success.content == "new"
    for number in range(40):
        known.add(f"/w/{number}", "x")
    assert known.get("/w/a") is None
    known.add("/w/big", "x" * (1 << 21))
    assert known.get("/w/big") is None


def test_an_image_is_its_bytes() -> None:
    call = map_to_client("read", _READ, client("claude-code"))
    assert result(call, "", image=b64encode(b"\x89PNG").decode()).success.data == b"\x89PNG"
    assert result(call, "", image="no base64!").WhichOneof("result") == "error"


def test_what_was_written_is_counted() -> None:
    args = agent.WriteArgs(path="/w/a", file_text="ü\nb", return_file_content_after_write=True)
    success = result(map_to_client("write", args, client("opencode")), "Wrote file successfully.").success
    assert (success.path, success.lines_created, success.file_size) == ("/w/a", 2, 4)
    assert success.file_content_after_write == "ü\nb"
    refused = "Error: You must read the file before overwriting it."
    assert result(map_to_client("write", args, client("opencode")), refused).error.error == refused
    assert result(map_to_client("write", args, client("claude-code")), "", is_error=True).error.error
    assert (
        result(map_to_client("write", args, client("codex")), "Output:\nno such luck").WhichOneof("result") == "error"
    )
    pi = map_to_client("pi_write", agent.PiWriteExecArgs(path="/w/a", content="x"), client("opencode"))
    assert "1 bytes" in result(pi, "Wrote file successfully.").success.output


def test_an_edit_is_reported_in_the_terms_of_the_client() -> None:
    edits = [agent.PiEditReplacement(old_text="a", new_text="b")]
    call = map_to_client("pi_edit", agent.PiEditExecArgs(path="/w/a", edits=edits), client("claude-code"))
    assert result(call, "The file was updated.").success.output == "The file was updated."
    assert result(call, "String to replace not found", is_error=True).error.error == "String to replace not found"


_SEARCHES: list[tuple[str, Any]] = [
    ("ls", agent.LsArgs(path="/w")),
    ("grep", agent.GrepArgs(pattern="x")),
    ("grep", agent.GrepArgs(glob="*")),
    ("delete", agent.DeleteArgs(path="/w/a")),
    ("pi_ls", agent.PiLsExecArgs()),
    ("pi_grep", agent.PiGrepExecArgs(pattern="x")),
    ("pi_find", agent.PiFindExecArgs(pattern="x")),
]


@pytest.mark.parametrize(("kind", "args"), _SEARCHES)
@pytest.mark.parametrize("who", ["opencode", "claude-code", "codex"])
def test_what_a_client_refuses_is_the_error_of_the_kind(who: str, kind: str, args: Any) -> None:
    assert (
        result(map_to_client(kind, args, client(who)), "the client said no", is_error=True).WhichOneof("result")
        == "error"
    )


def test_a_search_shows_lines_unless_names_are_asked_for_and_a_reminder_is_none_of_them() -> None:
    reminder = "\n\n<system-reminder>\n<total_tokens>900 tokens left</total_tokens>\n</system-reminder>"
    tools = [tool("Grep", "pattern", pattern=TEXT, path=TEXT, output_mode=TEXT)]
    call = map_to_client("grep", agent.GrepArgs(pattern="x", path="/w"), tools)
    assert call.args["output_mode"] == "content"
    (match,) = result(call, f"a.md:3:x{reminder}").success.workspace_results["/w"].content.matches
    assert (match.file, [line.content for line in match.matches]) == ("a.md", ["x"])
    names = map_to_client("grep", agent.GrepArgs(pattern="x", path="/w", output_mode="files_with_matches"), tools)
    assert names.args["output_mode"] == "files_with_matches"
    files = result(names, f"Found 1 file\na.md{reminder}").success.workspace_results["/w"].files
    assert list(files.files) == ["a.md"]


def test_output_of_a_command_that_was_cut_is_not_believed() -> None:
    call = map_to_client("ls", agent.LsArgs(path="/w"), client("codex"))
    assert result(call, "toolwire-begin\na\n").WhichOneof("result") == "error"
    assert result(call, "toolwire-begin\n\ntoolwire-end 2\n").WhichOneof("result") == "error"


def test_a_page_is_its_text() -> None:
    call = map_to_client("fetch", agent.FetchArgs(url="http://x"), client("opencode"))
    success = result(call, "# Page").success
    assert (success.url, success.content, success.status_code) == ("http://x", "# Page", 200)
    assert result(call, "timeout", is_error=True).error.error == "timeout"


def test_a_file_that_was_deleted() -> None:
    delete = tool("delete_file", "path", path=TEXT)
    call = map_to_client("delete", agent.DeleteArgs(path="a"), [delete])
    assert result(call, "Deleted.").success.deleted_file == "a"
    assert result(call, "Error: file not found").WhichOneof("result") == "file_not_found"
