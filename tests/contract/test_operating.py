"""The files of examples/operating fit the gateway: its keys, its paths and its metrics."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from toolwire.config.file import load
from toolwire.telemetry.prometheus import Prometheus

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "operating"
SECRETS = {
    "TOOLWIRE_KEY": "k" * 32,
    "TOOLWIRE_STORE_URL": "postgresql://toolwire:x@database/toolwire",
    "TOOLWIRE_CLUSTER_SECRET": "s" * 32,
    "TOOLWIRE_ADDRESS": "10.0.0.7",
    "OPENAI_API_KEY": "sk-x",
}


def test_the_configuration_is_accepted() -> None:
    config = load(FOLDER / "toolwire.toml", SECRETS)
    assert config.store.kind == "postgres"
    assert config.cluster is not None
    assert config.cluster.host == "10.0.0.7"
    longest = config.server.drain_seconds + config.server.shutdown_seconds
    assert "TimeoutStopSec=90" in (FOLDER / "toolwire.service").read_text()
    assert "terminationGracePeriodSeconds: 90" in (FOLDER / "kubernetes.yaml").read_text()
    assert longest < 90


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_every_secret_of_the_configuration_is_passed(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert {secret for secret in SECRETS if secret not in text} == set()


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yaml"])
def test_every_metric_exists(name: str) -> None:
    text = (FOLDER / name).read_text()
    known = set(re.findall(r"^# TYPE (\S+)", Prometheus().render().decode(), re.MULTILINE))
    found = {metric.removesuffix("_bucket") for metric in re.findall(r"\btoolwire_[a-z0-9_]+", text)}
    assert found - known == set()
    assert found


def test_the_dashboard_has_panels_that_do_not_overlap() -> None:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels) == 10


def test_every_linked_file_exists() -> None:
    text = (ROOT / "docs" / "operating.md").read_text()
    files = re.findall(r"\]\(\.\./examples/operating/([\w.-]+)\)", text)
    assert set(files) == {path.name for path in FOLDER.iterdir()}


@pytest.mark.slow
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed; `make packages` installs it where apt-get and root are available")
    text = re.sub(r"gateway-\d", "127.0.0.1", (FOLDER / "nginx.conf").read_text())
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\n{text}")
    command = [nginx, "-t", "-p", str(tmp_path), "-e", str(tmp_path / "log"), "-c", str(tmp_path / "nginx.conf")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
