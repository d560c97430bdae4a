"""`toolwire chat` as a person and as a program meet it: on a pseudo-terminal, and in pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.chat.typist import CTRL_C, CTRL_D, SEQUENCE, UP, environment, piped, scripted, typing
from tests.free_port import free_port
from tests.programs.installed import node_program
from tests.server.harness import ask, gateway, server_config
from toolwire.agent import Conversation
from toolwire.cli.app import app, run
from toolwire.cli.chat.command import DEFAULTS, ChatOptions
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.types import Text, ToolResult

pytestmark = pytest.mark.slow

WRITE = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}}]}
HERE = Path(__file__).parent


def words_of(path: Path) -> list[tuple[str, str]]:
    """Who said what in a saved conversation."""
    said = []
    for message in Conversation.load(path).messages:
        for part in message.parts:
            parts = part.parts if isinstance(part, ToolResult) else (part,)
            said += [(message.role, inner.text) for inner in parts if isinstance(inner, Text)]
    return said


# In a pipe


def test_a_prompt_is_answered_once(tmp_path: Path) -> None:
    scripted(tmp_path, {"reasoning": "Hm.", "text": "Hello."})
    done = piped(tmp_path, "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "model play/scripted (the first that was found" in done.stderr
    assert "thinking: Hm.\n" in done.stderr
    assert "tokens in" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_back_ends_that_cannot_be_reached_fail_the_command(tmp_path: Path) -> None:
    (tmp_path / "toolwire.toml").write_text(
        f'[backends.local]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:{free_port()}/v1"\n'
    )
    done = piped(tmp_path, "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "local: 127.0.0.1:" in done.stderr
    assert "--model selects a model" in done.stderr


@pytest.mark.slow
def test_a_prompt_and_what_is_in_the_pipe_are_one_question(tmp_path: Path) -> None:
    done = piped(tmp_path, "Say this:", "--model", "demo/echo-tools", typed="the words\n")
    assert done.returncode == 0
    assert 'You said: "Say this:\n\nthe words"' in done.stdout
    assert "model" not in done.stderr


@pytest.mark.slow
def test_without_any_model_the_demo_answers_and_says_so(tmp_path: Path) -> None:
    done = piped(tmp_path, typed="hi")
    assert 'You said: "hi"' in done.stdout
    assert "model demo/echo-tools (no other was found" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([""], "found an empty prompt"),
        (["hi", "--max-iterations", "0"], "--max-iterations: found 0"),
        (["hi", "--model", "nobody/knows"], "nobody/knows"),
        (["hi", "--resume", "not-there.json"], "not-there.json: this conversation cannot be read"),
        (["hi", "--resume", "toolwire.toml"], "is no JSON"),
        (["hi", "--workspace", "not-there"], "not-there"),
        pytest.param(["hi", "--mcp", "not-a-program-at-all"], "did not start", marks=pytest.mark.slow),
        (["hi", "--url", "nonsense"], "nonsense"),
        (["hi", "--save", "no/such/folder.json"], "cannot be saved"),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(tmp_path, {"text": "Hello."})
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert run(["chat", *arguments]) == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_an_error_of_the_back_end_is_exit_code_one(tmp_path: Path) -> None:
    scripted(tmp_path, {"error": {"status": 401, "message": "No such \x1b[31mkey."}})
    done = piped(tmp_path, "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: No such \\x1b[31mkey." in done.stderr


@pytest.mark.slow
def test_json_is_one_event_per_line(tmp_path: Path) -> None:
    scripted(tmp_path, WRITE, {"text": "Ça\u2028\x1b[31m"})
    done = piped(tmp_path, "hi", "--json", "--allow-write", "--yes", "--workspace", ".")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events if event["type"] not in ("status", "text")]
    assert kinds == ["tool_call", "tool_result", "complete"]
    assert events[-1]["text"] == "Ça\u2028\x1b[31m"
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.slow
def test_without_a_terminal_changes_are_denied(tmp_path: Path) -> None:
    scripted(tmp_path, WRITE, {"text": "Then not."})
    done = piped(tmp_path, "hi", "--json", "--allow-write")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (approval,) = [event for event in events if event["type"] == "approval"]
    (error,) = [event for event in events if event["type"] == "tool_error"]
    assert not approval["is_allowed"]
    assert error["kind"] == "denied"
    assert "--yes" in error["message"]
    assert done.returncode == 0
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.slow
def test_an_interrupt_in_a_pipe_is_exit_code_130_and_saves(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "word " * 200, "pace": 0.05, "chunk": 5})
    command = [sys.executable, "-m", "toolwire", "chat", "hi", "--json", "--save", "kept.json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while '"text":"word' not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().splitlines()
        assert process.wait(10) == 130
    assert json.loads(rest[-1])["reason"] == "interrupted"
    assert words_of(tmp_path / "kept.json")[-1] == ("user", "[The user interrupted the answer here.]")


@pytest.mark.slow
def test_a_closed_pipe_ends_it_silently(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "word " * 100, "pace": 0.02, "chunk": 5})
    command = [sys.executable, "-m", "toolwire", "chat", "hi"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(4)
        process.stdout.close()
        assert process.wait(10) == 0
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_a_conversation_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "First."}, {"text": "Second."}, strict=True)
    assert piped(tmp_path, "one", "--save", "kept.json").stdout == "First.\n"
    done = piped(tmp_path, "two", "--resume", "kept.json", "--save", "kept.json")
    assert done.stdout == "Second.\n"
    assert "the last one of this conversation" in done.stderr
    said = [("user", "one"), ("assistant", "First."), ("user", "two"), ("assistant", "Second.")]
    assert words_of(tmp_path / "kept.json") == said
    other = piped(tmp_path, "three", "--resume", "kept.json", "--model", "demo/echo-tools")
    assert 'You said: "three"' in other.stdout


def test_help_lists_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chat", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in shown for name in ChatOptions.__dataclass_fields__)


def test_the_page_lists_every_option_and_command() -> None:
    page = (HERE.parents[2] / "docs" / "chat.md").read_text(encoding="utf-8")
    options = set(re.findall(r"^\| `--([a-z-]+)", page, re.MULTILINE))
    assert options == {name.replace("_", "-") for name in ChatOptions.__dataclass_fields__}
    assert set(re.findall(r"^\| `/([a-z]+)", page, re.MULTILINE)) == {
        "help",
        "model",
        "tools",
        "image",
        "edit",
        "save",
        "sessions",
        "resume",
        "new",
        "usage",
        "quit",
    }


# On a terminal


def test_a_user_chats_approves_and_exits(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "Hello."}, WRITE, {"text": "Written."})
    with typing(tmp_path, "--allow-write") as person:
        person.expect("model play/scripted")
        person.expect("> ")
        person.enter("hi")
        person.expect("Hello.")
        person.expect("0 calls")
        person.expect("> ")
        person.enter("write it")
        person.expect("allow write? ")
        assert not (tmp_path / "a.txt").exists()
        person.enter("y")
        person.expect("Written.")
        person.expect("1 call")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert '* write {"path":"a.txt","content":"one\\ntwo\\n"}\n' in person.screen
    assert "    a.txt (new file)\n    @@ -0,0 +1,2 @@\n    +one\n    +two\n" in person.screen
    assert "\x1b[36m" in person.raw


@pytest.mark.slow
def test_a_person_denies_with_a_reason_then_edits_then_always(tmp_path: Path) -> None:
    scripted(tmp_path, WRITE, WRITE, WRITE, WRITE, {"text": "{{result:0}}|{{result:3}}"})
    with typing(tmp_path, "write it", "--allow-write", "--save", "kept.json") as person:
        person.expect("allow write? ")
        person.enter("what?")
        person.expect("a: run it, and do not ask for this tool again")
        person.expect("allow write? ")
        person.enter("n use b.txt")
        person.expect("did not allow this call")
        person.expect("allow write? ")
        person.enter("e")
        person.expect('two\\n"}')
        person.enter("\x15" + '{"path": 7}')  # Ctrl-U takes the line away
        person.expect("not changed: ")
        person.expect("allow write? ")
        person.enter("e")
        person.expect('two\\n"}')
        person.enter("\x15" + '{"path": "b.txt", "content": "mine"}')
        person.expect("allow write? ")
        person.enter("a")
        person.expect("4 calls")
        assert person.leave() == 0
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / "b.txt").read_text() == "mine"
    results = [text for role, text in words_of(tmp_path / "kept.json") if role == "tool"]
    assert "use b.txt" in results[0]
    assert "b.txt" in results[1]
    assert len(results) == 4


def test_an_answer_is_stopped_and_the_conversation_goes_on(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "word " * 400, "pace": 0.02, "chunk": 5}, {"text": "Going on."}, strict=True)
    with typing(tmp_path, "--save", "kept.json") as person:
        person.expect("> ")
        person.enter("tell me")
        person.expect("word word word")
        person.press(CTRL_C)
        person.expect("interrupted")
        person.expect("> ")
        assert words_of(tmp_path / "kept.json")[-1] == ("user", "[The user interrupted the answer here.]")
        person.enter("and now?")
        person.expect("Going on.")
        person.expect("> ")
        person.press(CTRL_C)
        person.expect("Ctrl-C again")
        person.expect("> ")
        person.press(CTRL_C)
        assert person.leave() == 130
    said = words_of(tmp_path / "kept.json")
    assert said[1][0] == "assistant"
    assert said[1][1].startswith("word word word")
    assert said[-1] == ("assistant", "Going on.")


@pytest.mark.slow
def test_a_tool_is_stopped_and_reported_as_interrupted(tmp_path: Path) -> None:
    sleep = {"calls": [{"name": "shell", "arguments": {"command": "touch begun; sleep 30; touch ended"}}]}
    scripted(tmp_path, sleep, {"text": "It said: {{result:0}}"}, strict=True)
    with typing(tmp_path, "--allow-shell", "--yes", "--save", "kept.json") as person:
        person.expect("> ")
        person.enter("sleep")
        person.expect("running shell")
        wait_for(tmp_path / "begun")
        person.press(CTRL_C)
        person.expect("interrupted")
        person.expect("> ")
        assert words_of(tmp_path / "kept.json")[-1][1].startswith("Interrupted: the tool was stopped")
        person.enter("what was that?")
        person.expect("It said: Interrupted")
        person.expect("> ")
        person.enter("/quit")
        assert person.leave() == 0
    assert not (tmp_path / "ended").exists()
    assert "running shell" not in person.screen


@pytest.mark.slow
def test_what_was_typed_before_a_question_is_no_answer_to_it(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "Let me think.", "delay": 0.1, **WRITE, "pace": 0.1}, {"text": "Then not."})
    with typing(tmp_path, "write it", "--allow-write") as person:
        person.expect("Let me")
        person.enter("y")
        person.expect("allow write? ")
        person.press("n\r")
        person.expect("Then not.")
        assert person.leave() == 0
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.slow
def test_an_interrupt_at_a_question_stops_it_all(tmp_path: Path) -> None:
    scripted(tmp_path, WRITE, {"text": "Going on."}, strict=True)
    with typing(tmp_path, "--allow-write", "--save", "kept.json") as person:
        person.expect("> ")
        person.enter("write")
        person.expect("allow write? ")
        person.press(CTRL_C)
        person.expect("interrupted")
        person.expect("> ")
        person.enter("and?")
        person.expect("Going on.")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.slow
def test_commands_history_and_lines_that_go_on(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "Noted."}, models={"other": {"turns": [{"text": "I am other."}]}})
    with typing(tmp_path, "--workspace", ".", "--allow-write") as person:
        person.expect("> ")
        for line, answer in [
            ("/help", "/usage "),
            ("/tools", "! write: "),
            ("/model nobody/knows", "error: "),
            ("/model play/other", "model: play/other"),
            ("hi", "I am other."),
            ("/usage", "1 answer, "),
            ("/save saved.json", "saved in saved.json"),
            ("/save", "expected a file"),
            ("/new", "a new conversation"),
            ("/nonsense", "there is no command /nonsense"),
            ("/etc/hosts is what?", "I am other."),
        ]:
            person.enter(line)
            person.expect(answer)
            person.expect("> ")
        person.enter("two \\")
        person.expect("... ")
        person.enter("lines")
        person.expect("I am other.")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    assert words_of(tmp_path / "saved.json") == [("user", "hi"), ("assistant", "I am other.")]
    history = tmp_path / "state" / "toolwire" / "chat_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "/etc/hosts is what?\n" in history.read_text()
    with typing(tmp_path) as again:
        again.expect("> ")
        again.press(UP)
        again.expect("lines")
        again.press("\x15" + CTRL_D)
        assert again.leave() == 0


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5A\u202eback\r\x08over\x00"


@pytest.mark.parametrize("columns", [80, pytest.param(20, marks=pytest.mark.slow)])
def test_foreign_text_cannot_control_the_terminal(tmp_path: Path, columns: int) -> None:
    call = {
        "calls": [
            {"name": "write", "arguments": {"path": "a.txt", "content": HOSTILE}},
            {"name": "read", "arguments": {"path": "b.txt"}},
        ]
    }
    (tmp_path / "b.txt").write_text(HOSTILE + "\n" + "\U0001f600漢字" * 100)
    turns = [
        {"reasoning": HOSTILE, "text": HOSTILE, **call},
        {"text": HOSTILE + " end"},
        {"error": {"message": HOSTILE}},
    ]
    scripted(tmp_path, *turns)
    with typing(tmp_path, "--allow-write", columns=columns) as person:
        person.expect("> ")
        person.enter("go")
        person.expect("allow write? ")
        person.enter("v")
        person.expect("allow write? ")
        person.enter("y")
        person.expect(" end")
        person.expect("> ")
        person.enter("again")
        person.expect("error: ")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    allowed = {
        "\x1b[K",
        "\x1b[0m",
        "\x1b[1m",
        "\x1b[2m",
        "\x1b[31m",
        "\x1b[32m",
        "\x1b[36m",
        "\x1b[?2004h",
        "\x1b[?2004l",
        "\x1b[A",
        "\x1b[C",
    }
    assert set(SEQUENCE.findall(person.raw)) <= allowed
    assert "\x1b[31mred" not in person.raw
    assert "\x1b[32m    +\\x1b]0;owned" in person.raw  # the diff, escaped
    for char in "\x9b\u202e\x00\x07":
        assert char not in person.raw
    assert "\\x1b[31mred\\x9b5A\\u202eback" in person.raw
    assert (tmp_path / "a.txt").read_bytes().decode() == HOSTILE


@pytest.mark.slow
@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_there_are_terminals_without_colour(tmp_path: Path, environ: dict[str, str]) -> None:
    scripted(tmp_path, {"reasoning": "Hm.", **WRITE}, {"text": "Written."})
    with typing(tmp_path, "write it", "--allow-write", "--yes", **environ) as person:
        person.expect("thinking: Hm.")
        person.expect("Written.")
        assert person.leave() == 0
    assert set(SEQUENCE.findall(person.raw)) <= ({"\x1b[K"} if "NO_COLOR" in environ else set())


@pytest.mark.slow
def test_a_call_grows_on_one_line(tmp_path: Path) -> None:
    long = {
        "calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "漢字 " * 400}}],
        "pace": 0.02,
        "chunk": 60,
    }
    scripted(tmp_path, long, {"text": "Written."})
    with typing(tmp_path, "write it", "--allow-write", "--yes", columns=60) as person:
        person.expect("characters]")
        person.expect("Written.")
        assert person.leave() == 0
    assert person.raw.count("* write") > 4
    assert person.screen.count("* write") == 1
    drawn = [piece for piece in person.raw.split("\r\x1b[K") if "* write" in piece]
    assert all(wide(SEQUENCE.sub("", piece).splitlines()[0]) < 60 for piece in drawn)


# With servers of tools


@pytest.mark.slow
def test_a_server_of_the_official_package_is_used_by_a_person(tmp_path: Path) -> None:
    server = f"{sys.executable} {HERE / 'mcp_server.py'}"
    calls = [
        {"name": "server__add", "arguments": {"a": 2, "b": 40}},
        {"name": "server__shout", "arguments": {"text": "hey"}},
    ]
    stop = {"calls": [{"name": "server__die", "arguments": {}}]}
    scripted(tmp_path, {"calls": calls}, {"text": "Sum: {{result:0}}."}, stop, {"text": "It is gone."}, strict=True)
    with typing(tmp_path, "--mcp", server) as person:
        person.expect("> ")
        person.enter("/tools")
        person.expect("  server__add: Adds two numbers.")
        person.expect("! server__shout: ")
        person.expect("> ")
        person.enter("add")
        person.expect("allow server__shout? ")
        person.enter("y")
        person.expect("Sum: 42.")
        person.expect("2 calls")
        person.expect("> ")
        person.enter("die")
        person.expect("allow server__die? ")
        person.enter("y")
        person.expect("failed: ")
        person.expect("It is gone.")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    assert "server__shout: HEY\\x1b[2J" in person.screen


@pytest.mark.slow
def test_tools_of_a_server_that_cannot_be_used_are_list_names(tmp_path: Path) -> None:
    server = f"{sys.executable} {HERE.parents[1] / 'tools' / 'mcp' / 'bare_server.py'} spoiled"
    scripted(tmp_path, {"text": "hello"})
    with typing(tmp_path, "--mcp", server) as person:
        person.expect('its tool "bad0" is left out: ')
        person.expect("tools: bare__echo")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0
    assert person.screen.count('its tool "bad0" is left out: ') == 1


@pytest.mark.slow
def test_the_everything_server_from_npm_is_used_by_a_person(tmp_path: Path) -> None:
    server = f"{node_program('node')} {node_program('mcp-server-everything')}"
    echo = {"calls": [{"name": "everything__echo", "arguments": {"message": "hello, server"}}]}
    scripted(tmp_path, echo, {"text": "It said: {{result:0}}"}, strict=True)
    with typing(tmp_path, "--mcp", server, "--mcp", server) as person:
        person.expect("tools: everything__")
        person.expect("> ")
        person.enter("/tools")
        person.expect("everything__echo: ")
        person.expect("everything_2__echo: ")
        person.expect("> ")
        person.enter("say hello")
        if "allow everything__echo? " in person.expect_one_of("allow everything__echo? ", "It said: "):
            person.enter("y")
            person.expect("It said: ")
        person.expect("hello, server")
        person.expect("1 call")
        person.expect("> ")
        person.press(CTRL_D)
        assert person.leave() == 0


@pytest.mark.slow
def test_a_running_gateway_answers(tmp_path: Path) -> None:
    config = with_backends(Config(server=server_config()), ())
    (tmp_path / "a.txt").write_text("hello from the file")
    with gateway(config) as running:
        arguments = ("--url", f"http://127.0.0.1:{running.port}", "--workspace", ".")
        done = piped(tmp_path, "read path=a.txt", *arguments)
    assert "model demo/echo-tools" in done.stderr
    assert '* read {"path":"a.txt"}' in done.stderr
    assert "hello from the file" in done.stdout
    assert done.returncode == 0


LISTING = [
    {"calls": [{"name": "list", "arguments": {"path": "."}}]},
    {"calls": [{"name": "glob", "arguments": {"pattern": "*"}}]},
]
BOUNDED = ("look", "--workspace", ".", "--max-iterations", "2", "--json")


@pytest.mark.slow
def test_a_chat_is_counted_like_any_client(tmp_path: Path) -> None:
    path = scripted(tmp_path, *LISTING, {"text": "That is all."})
    store = tmp_path / "store.db"
    path.write_text(f'{path.read_text()}\n[store]\npath = "{store}"\n')
    for _ in range(2):
        done = piped(tmp_path, *BOUNDED)
        ending = json.loads(done.stdout.splitlines()[-1])
        assert (ending["reason"], ending["text"], done.returncode) == ("max_iterations", "That is all.", 0)
    assert piped(tmp_path, "look").returncode == 0
    command = [sys.executable, "-m", "toolwire", "stats", "--json"]
    told = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True)
    [row] = json.loads(told.stdout)["models"]
    assert (row["backend"], row["requests"], row["calls"], row["max_iterations"]) == ("play", 9, 6, 2)


@pytest.mark.slow
def test_a_chat_by_address_is_counted_by_the_gateway(tmp_path: Path) -> None:
    scripted(tmp_path, *LISTING, {"text": "That is all."})
    play = BackendConfig(name="play", kind="scripted", script=str(tmp_path / "script.json"))
    with gateway(with_backends(Config(server=server_config(default="play")), (play,))) as running:
        address = f"http://127.0.0.1:{running.port}"
        done = piped(tmp_path, *BOUNDED, "--url", address, "--model", "play/scripted")
        assert json.loads(done.stdout.splitlines()[-1])["reason"] == "max_iterations"
        page = ask(running.port, "GET", "/metrics").body.decode()
    assert 'toolwire_tool_loop_max_iterations_total{backend="play",model="scripted"} 1.0' in page


@pytest.mark.slow
def test_a_store_that_cannot_be_used_costs_a_chat_nothing_but_its_counts(tmp_path: Path) -> None:
    path = scripted(tmp_path, {"text": "hello"})
    (tmp_path / "store.db").write_text("no database " * 100)
    path.write_text(f'{path.read_text()}\n[store]\npath = "{tmp_path / "store.db"}"\n')
    done = piped(tmp_path, "hi")
    assert (done.stdout.strip(), done.returncode) == ("hello", 0)
    assert "this chat is not counted: " in done.stderr
    assert "is not a database" in done.stderr


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wide(line: str) -> int:
    from rich.cells import cell_len

    return cell_len(line)


def read(*arguments: str) -> tuple[str | None, ChatOptions]:
    _, bound, _ = app.parse_args(["chat", *arguments], exit_on_error=False, print_error=False)
    return (bound.args[0] if bound.args else None), bound.kwargs.get("options", DEFAULTS)


def test_nothing_is_allowed_by_itself() -> None:
    assert read() == (None, DEFAULTS)
    assert not any((DEFAULTS.yes, DEFAULTS.allow_shell, DEFAULTS.allow_write, DEFAULTS.workspace, DEFAULTS.mcp))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--mcp", "one --flag", "--mcp", "two"], ChatOptions(mcp=("one --flag", "two"))),
        (
            ["--workspace", "a", "--allow-shell", "--allow-write"],
            ChatOptions(workspace=Path("a"), allow_shell=True, allow_write=True),
        ),
        (
            ["--model", "m", "--yes", "--json", "--max-iterations", "3"],
            ChatOptions(model="m", yes=True, json=True, max_iterations=3),
        ),
        (
            ["--resume", "a", "--save", "b", "--effort", "low"],
            ChatOptions(resume=Path("a"), save=Path("b"), effort="low"),
        ),
    ],
)
def test_options_and_a_prompt(arguments: list[str], options: ChatOptions) -> None:
    assert read("what is this?", *arguments) == ("what is this?", options)
