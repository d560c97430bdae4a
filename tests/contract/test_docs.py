"""The documentation is correct: its examples work, and its lists are complete."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import Gateway, ask, gateway, server_config
from toolwire.calls.arguments import Invalid, judge, tool_error
from toolwire.calls.schemas import Schemas
from toolwire.config.file import BackendConfig, Config, FlowsConfig, McpServerConfig, ServerConfig, load, with_backends
from toolwire.dialects import FRONTS
from toolwire.telemetry.prometheus import Prometheus
from toolwire.types import Tool, ToolCall

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
_REQUEST = re.compile(r"curl [^\n]*127\.0\.0\.1:18741(/\S+) [^\n]*-d '(\{.*?\n\})'", re.DOTALL)
REQUESTS = _REQUEST.findall(START)


@pytest.fixture(scope="module")
def demo() -> Iterator[Gateway]:
    with gateway(with_backends(Config(server=server_config()), ())) as running:
        yield running


def test_the_start_page_has_its_requests_and_the_readme_the_first() -> None:
    assert _REQUEST.findall(README) == REQUESTS[:1]
    assert [path for path, _ in REQUESTS] == [
        "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages",
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), REQUESTS[:3], ids=["chat", "responses", "messages"])
def test_the_first_requests_call_the_tool(demo: Gateway, path: str, body: str) -> None:
    answer = ask(demo.port, "POST", path, json.loads(body))
    assert answer.status == 200
    text = answer.body.decode().replace("\\", "")
    assert "get_weather" in text
    assert "Paris" in text
    assert any(
        word in text for word in ('"finish_reason":"tool_calls"', '"stop_reason":"tool_use"', "response.completed")
    )


def test_the_result_is_in_the_answer(demo: Gateway) -> None:
    answer = ask(demo.port, "POST", REQUESTS[3][0], json.loads(REQUESTS[3][1]))
    assert "18 C, rain" in answer.json["content"][0]["text"]


def test_the_configuration_of_the_readme_loads(tmp_path: Path) -> None:
    (sample,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "toolwire.toml"
    path.write_text(sample, encoding="utf-8")
    config = load(path, {"TOOLWIRE_KEY": "k", "OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b"})
    assert [backend.name for backend in config.backends] == [*tomllib.loads(sample)["backends"], "demo"]
    assert config.aliases == {"fast": "openai/gpt-5.5"}


def test_the_figures_of_the_readme_are_those_of_the_benchmark() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    rows = README.split("<!-- bench -->\n")[1].split("\n<!-- /bench -->")[0].splitlines()
    assert len(rows) >= 5
    assert all(row in page for row in rows)


TITLES = ("Chat Completions", "Responses", "Messages", "Gemini", "Ollama", "Interactions")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/features.md", "docs/images/way-of-a-request.svg"])
def test_every_dialect_of_clients_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [dialect for dialect in TITLES if dialect not in text] == []


def test_the_dialects_of_the_program_are_those_of_the_pages() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "dialects").glob("*.md")}
    assert pages == set(FRONTS)
    assert len(pages) == len(TITLES)


@pytest.mark.parametrize(
    ("kind", "title", "hidden"),
    [
        (ServerConfig, "## `[server]`", set()),
        (FlowsConfig, "## `[flows]`", set()),
        (BackendConfig, "## `[backends.NAME]`", {"name", "missing"}),
        (McpServerConfig, "## `[mcp.servers.NAME]`", {"name"}),
    ],
)
def test_every_key_is_documented(kind: Any, title: str, hidden: set[str]) -> None:
    section = CONFIGURATION.split(title)[1].split("\n## ")[0]
    listed = {
        name for row in re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(kind.__struct_fields__) - hidden


def test_every_metric_is_documented() -> None:
    families = {line.split()[2] for line in Prometheus().render().decode().splitlines() if line.startswith("# TYPE")}
    ours = {name for name in families if not name.endswith("_created")}
    assert ours == {name for name in re.findall(r"`(toolwire_\w+)`", CONFIGURATION) if name != "toolwire_created"}


PATHS = re.findall(r"`(GET|POST|DELETE) (/\S+)`", (ROOT / "docs" / "http.md").read_text(encoding="utf-8"))


def test_the_page_of_paths_has_them_all() -> None:
    assert len(PATHS) == len(set(PATHS)) > 35


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_every_path_of_the_page_is_served(demo: Gateway, method: str, path: str) -> None:
    body = {} if method == "POST" else None
    answer = ask(demo.port, method, path.replace("MODEL", "demo/echo-tools").replace("ID", "none"), body)
    assert answer.status in (200, 400, 404)
    assert b"there is nothing at" not in answer.body
    assert answer.status != 404 or b"there is no " in answer.body


def test_a_path_that_is_not_served_would_be_found(demo: Gateway) -> None:
    assert b"there is nothing at" in ask(demo.port, "POST", "/v1/nothing", {}).body


def test_no_cell_of_a_table_is_a_paragraph() -> None:
    """Lists of member names may be long. docs/hazards.md is a list on the site."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
        cells = [re.sub(r"`[^`]*`", "", cell) for row in rows for cell in row.split("|")]
        assert page.name == "hazards.md" or max(map(len, cells), default=0) < 400, page.name


def test_links_between_the_pages_exist() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


NUMBERS = ["Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]


def test_every_dependency_has_its_paragraph() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [re.split(r"[^\w-]", line)[0] for line in project["dependencies"]]
    assert page.split("\n## Extras")[0].count("\n## ") == len(needed)
    assert all(f"\n## {name}\n" in page for name in needed)
    assert f"{NUMBERS[len(needed)]} packages are needed at run time." in page


def test_every_extra_is_on_the_page_about_installing() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").split("## Extras")[1].split("\n## ")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed == set(project["optional-dependencies"]) - {"docs", "dev"}


def test_the_error_for_the_model_is_as_documented() -> None:
    page = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool, call = Tool(name="get_weather", schema=schema), ToolCall(id="c", name="get_weather", raw="{}", args={})
    finding = judge(call, tool, Schemas(), is_cut=False, may_repair=True)
    assert isinstance(finding, Invalid)
    assert tool_error(tool, finding) == json.loads(sample)


def test_modules_that_the_pages_name_exist() -> None:
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts}
    for page in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
            if name != "utils.py":
                assert any(f"/{module}".endswith(f"/{name}") for module in modules), f"{page.name}: {name}"


BLOCKS = [
    (page.relative_to(ROOT).as_posix(), language, text)
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for language, text in re.findall(
        r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
]


def test_every_configuration_in_the_pages_loads(tmp_path: Path) -> None:
    """docs/backend-plugin.md is about another package and has a test of its own."""
    samples = [
        (page, text) for page, language, text in BLOCKS if language == "toml" and page != "docs/backend-plugin.md"
    ]
    assert len(samples) > 25
    for page, text in samples:
        path = tmp_path / "toolwire.toml"
        path.write_text(text, encoding="utf-8")
        secrets = dict.fromkeys(re.findall(r"env:(\w+)", text), "a-secret-that-is-long-enough-for-all-of-them")
        assert load(path, secrets).path, page


def test_json_and_python_in_the_pages_can_be_parsed() -> None:
    for page, language, text in BLOCKS:
        if language == "json":
            assert is_json(text), (page, text)
        if language == "python":
            compile(text, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert not is_json("{'a': 1}")


def is_json(text: str) -> bool:
    """A value, members of an object, or one value a line."""
    for values in ([text], [f"{{{text}}}"], text.splitlines()):
        with suppress(ValueError):
            return bool([json.loads(value) for value in values])
    return False


def test_targets_of_make_and_programs_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"(?:^|`)make (?:[A-Z]+=\S+ )*([a-z]+)", text, re.MULTILINE)
        assert set(named) <= targets, page.name
        for module in re.findall(r"python -m ((?:bench|scripts|tests)[\w.]*)", text):
            path = ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), module
        for program in re.findall(r"python ((?:bench|scripts|examples|tests)/[\w./]+)", text):
            assert (ROOT / program).exists(), program


@pytest.mark.slow
def test_the_agent_of_the_readme_works(tmp_path: Path) -> None:
    (program,) = (text for page, language, text in BLOCKS if page == "README.md" and language == "python")
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Paris: rain" in done.stdout
