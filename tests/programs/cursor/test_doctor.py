"""`toolwire doctor` and `toolwire models` with a working account and with broken ones: each failure has a clear message."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from openai import APIStatusError, OpenAI

from tests.free_port import free_port
from tests.programs.cursor.stage import RUN_PARKED, SSE_PARKED, Setting, gateway_config, simulating, with_account
from tests.programs.installed import ROOT
from tests.programs.stage import KEY, serving
from toolwire.backends.cursor.simulator.settings import API_KEY, TOKEN

pytestmark = pytest.mark.slow

WITH_KEY, WITH_TOKEN = RUN_PARKED, SSE_PARKED


class Case(NamedTuple):
    """The fault, and text that its message must contain; no text if nothing is wrong."""

    setting: Setting = WITH_KEY
    secret: str = API_KEY
    version: str = "cli-2026.08.11-e8db854"
    is_elsewhere: bool = False  # nothing listens there
    says: tuple[str, ...] = ()


CASES = {
    "key": Case(),
    "token": Case(WITH_TOKEN, TOKEN),
    "wrong-key": Case(secret="key_of_nobody", says=("API key", "refused", "401")),
    "wrong-token": Case(WITH_TOKEN, "token_of_nobody", says=("does not accept the token",)),
    "no-key": Case(secret="", says=("not set",)),
    "wrong-port": Case(is_elsewhere=True, says=("127.0.0.1:", "refused the connection")),
}


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with simulating(WITH_KEY, tmp_path_factory.mktemp("doctor")) as port:
        yield port


@pytest.mark.parametrize("name", CASES)
def test_doctor_and_models(name: str, upstream: int, tmp_path: Path) -> None:
    case = CASES[name]
    doctor, models = (_run(command, case, upstream, tmp_path) for command in ("doctor", "models"))
    assert doctor.returncode == (1 if case.says else 0), doctor.stdout
    found = [line for line in doctor.stdout.splitlines() if "back end cursor" in line]
    errors = [line for line in models.stderr.splitlines() if line.startswith("cursor: ")]
    if not case.says:
        carrier = "HTTP/2" if case.setting is WITH_KEY else "HTTP/1.1"
        assert found == [f"ok    back end cursor: answers, and lists 8 models. It is reached by {carrier}."]
        assert "cursor/composer-2" in models.stdout.splitlines()
        assert not errors
        return
    for line in (*found, *errors):
        assert all(words in line for words in case.says), line
        assert not case.secret or case.secret not in line
    assert [found[0].startswith("WRONG"), len(found), len(errors)] == [True, 1, 1]
    assert "cursor/" not in models.stdout


def test_a_missing_version_is_named_by_doctor_and_by_the_first_answer(upstream: int, tmp_path: Path) -> None:
    """Without a version the service lists its models, and then rejects the client as outdated."""
    case = Case(version="")
    assert "client_version" in _run("doctor", case, upstream, tmp_path).stdout
    port = free_port()
    file = tmp_path / "gateway.toml"
    file.write_text(gateway_config(case.setting, upstream, port, case.version), encoding="utf-8")
    serve = with_account("key", ["-m", "toolwire", "serve", "--config", str(file)])
    with serving(serve, port, tmp_path / "gateway.log"):
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0)
        with pytest.raises(APIStatusError, match="client_version") as refused:
            client.chat.completions.create(model="composer-2", messages=[{"role": "user", "content": "Hello"}])
    print(refused.value.status_code, refused.value)
    assert refused.value.status_code < 500


def _run(command: str, case: Case, upstream: int, folder: Path) -> Any:
    port = free_port() if case.is_elsewhere else upstream
    file = folder / "toolwire.toml"
    file.write_text(gateway_config(case.setting, port, free_port(), case.version), encoding="utf-8")
    words = ["-m", "toolwire", command, "--config", str(file)]
    named = with_account(case.setting.account, words, case.secret) if case.secret else [sys.executable, *words]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(named, env=environment, cwd=folder, capture_output=True, text=True, timeout=30)
