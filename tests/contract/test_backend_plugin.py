"""The example of docs/backend-plugin.md: a back end in a package of its own, installed beside a wheel of toolwire and used by a gateway."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import LONG, ask, events_in, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "backend_plugin"
PAGE = (ROOT / "docs" / "backend-plugin.md").read_text(encoding="utf-8")
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "required": ["city"]}}}
MODEL = """
import sys
prompt = sys.stdin.read()
if "rainy" in prompt:
    print("It rains in Paris: \\N{CLOUD WITH RAIN}")
elif "get_weather" in prompt:
    print('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>')
elif "fail" in prompt:
    sys.exit(3)
else:
    print("Hello.")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with wheels of toolwire and of the example; what both need comes from the one that runs the tests."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed, which builds the example")
    folder = tmp_path_factory.mktemp("environment")
    uv = [sys.executable, "-m", "uv", "--offline", "--no-config"]
    subprocess.run([*uv, "venv", "-q", "-p", sys.executable, str(folder)], check=True)
    python = folder / "bin" / "python"
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    (Path(site) / "tests.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    options = ["--no-deps", "--no-build-isolation", "-q", "-p", str(python)]
    subprocess.run([*uv, "pip", "install", *options, str(ROOT), str(EXAMPLE)], check=True)
    return folder


@pytest.fixture(scope="module")
def port(environment: Path) -> Iterator[int]:
    """Of a gateway that is configured as the page says."""
    (environment / "model.py").write_text(MODEL)
    (sample,) = re.findall(r"```toml\n(\[backends\.local\].*?)```", PAGE, re.DOTALL)
    file = environment / "toolwire.toml"
    file.write_text(
        f"[store]\nkind = 'memory'\n{sample}{sample.replace('local', 'plain').replace('simulate', 'native')}"
    )
    port = free_port()
    running = subprocess.Popen(
        [environment / "bin" / "toolwire", "serve", "--config", str(file), "--port", str(port)],
        cwd=environment,
        env={"PATH": os.environ["PATH"], "HOME": str(environment)},
        stdout=subprocess.DEVNULL,
    )

    def is_healthy() -> bool:
        try:
            return ask(port, "GET", "/healthz").status == 200
        except OSError:
            return False

    try:
        wait_until(lambda: running.poll() is not None or is_healthy())
        assert running.poll() is None
        yield port
    finally:
        running.terminate()
        running.wait(LONG)


def test_the_page_shows_the_example_whole() -> None:
    assert (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8") in PAGE
    assert (EXAMPLE / "toolwire_program.py").read_text(encoding="utf-8") in PAGE


def test_the_gateway_uses_the_wheels(environment: Path) -> None:
    program = "import toolwire, toolwire_program; print(toolwire.__file__, toolwire_program.__file__)"
    found = subprocess.check_output([environment / "bin" / "python", "-c", program], text=True, cwd=environment)
    assert all(path.startswith(str(environment)) for path in found.split())


def test_its_models_are_listed_and_its_tokens_counted(port: int) -> None:
    listed = ask(port, "GET", "/v1/models").json["data"]
    assert "local/text" in [model["id"] for model in listed]
    asked = {"model": "plain/text", "messages": [{"role": "user", "content": "one two three"}]}
    assert ask(port, "POST", "/v1/messages/count_tokens", asked).json == {"input_tokens": 4}


def test_it_answers_calls_a_tool_and_reads_the_result(port: int) -> None:
    messages: list[object] = [{"role": "user", "content": "How is the weather in Paris?"}]
    asked = {"model": "local/text", "messages": messages, "tools": [TOOL]}
    message = ask(port, "POST", "/v1/chat/completions", asked).json["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("get_weather", '{"city": "Paris"}')
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "rainy"}]
    answer = ask(port, "POST", "/v1/chat/completions", asked).json["choices"][0]
    assert (answer["message"]["content"].strip(), answer["finish_reason"]) == ("It rains in Paris: \U0001f327", "stop")


def test_it_streams(port: int) -> None:
    asked = {"model": "local/text", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    answer = ask(port, "POST", "/v1/messages", asked)
    assert [name for name, _ in events_in(answer.body)][-1] == "message_stop"
    assert b"Hello." in answer.body


def test_its_failure_is_an_error_of_the_dialect(port: int) -> None:
    asked = {"model": "local/text", "messages": [{"role": "user", "content": "fail"}]}
    answer = ask(port, "POST", "/v1/chat/completions", asked)
    assert answer.status == 502
    assert answer.json["error"]["message"].startswith("python3 exited with code 3.")
