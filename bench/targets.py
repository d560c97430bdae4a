"""Who is measured: how each gateway is started in front of the mock model, and how one speaks to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from scenarios import PATHS, Scenario, Size, request_body

HERE = Path(__file__).resolve().parent
MODELS = ("plain", "text", "burst", "tools", "paced", "flood")
KEY = "sk-bench"


@dataclass
class Target:
    name: str
    url: str
    only_proxies: bool = False
    version: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    model_template: str = "{model}"

    @property
    def host(self) -> str:
        return socket.gethostbyname(urlsplit(self.url).hostname or "127.0.0.1")

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 80

    def can_serve(self, scenario: Scenario) -> bool:
        return not (self.only_proxies and scenario.is_translated)

    def request(self, dialect: str, model: str, *, is_stream: bool, size: Size = "small") -> bytes:
        """A whole HTTP request, as the load generator sends it."""
        name = self.model_template.replace("{model}", model)
        body = request_body(dialect, name, is_stream=is_stream, size=size)
        headers = {
            "Host": f"{self.host}:{self.port}",
            "Content-Type": "application/json",
            "Accept": "*/*",
            "User-Agent": "bench",
            "Authorization": f"Bearer {KEY}",
            "Content-Length": str(len(body)),
        }
        if dialect == "messages":
            headers |= {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        path = urlsplit(self.url).path.rstrip("/") + PATHS[dialect]
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (headers | self.headers).items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def ask(self, request: bytes, timeout: float = 20) -> tuple[int, str, bytes]:
        """Send one request and read the whole answer: status, content type, body."""
        with socket.create_connection((self.host, self.port), timeout) as connection:
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, response.getheader("content-type", ""), response.read()


class Children:
    """The processes we started; all of them, and theirs, end with the with-block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave some of them behind
        for how, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
            for _name, process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            deadline = time.monotonic() + patience
            for _name, process in self._running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))

    def start(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> None:
        with self.log_of(name).open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=os.environ | (environment or {}),
                start_new_session=True,  # its own group: Ctrl-C reaches us alone, and we end the whole group
            )
        self._running.append((name, process))

    def has_ended(self, name: str) -> bool:
        return any(known == name and process.poll() is not None for known, process in self._running)

    def log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_until_answers(target: Target, children: Children, seconds: float) -> str:
    """ "" once a request is answered with 200; otherwise why not."""
    request = target.request("chat", "oa-plain", is_stream=False)
    deadline, last = time.monotonic() + seconds, "it does not listen"
    while time.monotonic() < deadline and not children.has_ended(target.name):
        try:
            status, _type, body = target.ask(request, timeout=5)
            if status == 200:
                return ""
            last = f"it answers {status}: {body[:200].decode(errors='replace')}"
        except (OSError, http.client.HTTPException) as error:
            last = f"it does not answer: {error}"
        time.sleep(0.2)
    return "it has ended" if children.has_ended(target.name) else last


def start_toolwire(children: Children, mock_port: int, name: str = "toolwire", *, is_recorded: bool = False) -> Target:
    """is_recorded: each request is recorded for the inspector."""
    port, path = free_port(), children.folder / f"{name}.toml"
    path.write_text(toolwire_config(port, mock_port, is_recorded=is_recorded))
    command = [sys.executable, "-m", "toolwire", "serve", "--port", str(port), "--config", str(path)]
    children.start(name, command, {"TOOLWIRE_BENCH_KEY": KEY})
    return Target(name, f"http://127.0.0.1:{port}", version=f"Python {sys.version.split()[0]}")


def start_nginx(children: Children, program: str, mock_port: int) -> Target:
    port, path = free_port(), children.folder / "nginx.conf"
    path.write_text(_nginx_config(children.folder, port, mock_port))
    children.start("nginx", [program, "-p", str(children.folder), "-c", str(path)])
    version = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    return Target("nginx", f"http://127.0.0.1:{port}", only_proxies=True, version=version.strip().rpartition("/")[2])


def start_litellm(children: Children, program: str, mock_port: int) -> Target:
    port, path = free_port(), children.folder / "litellm.yaml"
    path.write_text(_litellm_config(mock_port))
    # Without this it refuses to start unless a master key is set, and with one every request looks it up.
    environment = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOG": "ERROR"}
    # Its price list otherwise comes from the network at every start.
    environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "NO_PROXY": "127.0.0.1"}
    command = [program, "--host", "127.0.0.1", "--port", str(port), "--config", str(path), "--num_workers", "1"]
    children.start("litellm", command, environment)
    return Target("litellm", f"http://127.0.0.1:{port}", version=_version_of("litellm", program))


def start_tensorzero(children: Children, python: str, mock_port: int) -> Target | None:
    """python: of an environment with tensorzero and openai. None if the gateway does not start."""
    path = children.folder / "tensorzero.toml"
    path.write_text(_tensorzero_config(mock_port))
    children.start("tensorzero", [python, str(HERE / "tensorzero_gateway.py"), str(path)])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not children.has_ended("tensorzero"):
        log = children.log_of("tensorzero").read_text(errors="replace")
        if found := re.search(r"address: (\S+?)/v1/", log):
            return Target(
                "tensorzero",
                found[1],
                only_proxies=True,  # it translates nothing that we measure
                version=_version_of("tensorzero", python),
                model_template="tensorzero::model_name::{model}",
            )
        time.sleep(0.1)
    return None


def find_nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def toolwire_config(port: int, mock_port: int, *, is_recorded: bool = False) -> str:
    def models(prefix: str) -> str:
        return json.dumps([f"{prefix}-{model}" for model in MODELS])

    return f"""\
[server]
host = "127.0.0.1"
port = {port}

[flows]
enabled = {str(is_recorded).lower()}

[backends.oa]
kind = "openai-chat"
base_url = "http://127.0.0.1:{mock_port}/v1"
key = "env:TOOLWIRE_BENCH_KEY"
models = {models("oa")}

[backends.an]
kind = "anthropic"
base_url = "http://127.0.0.1:{mock_port}"
key = "env:TOOLWIRE_BENCH_KEY"
models = {models("an")}
"""


def _nginx_config(folder: Path, port: int, mock_port: int) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"    {kind}_temp_path {folder}/nginx-{kind};" for kind in kinds)
    return f"""\
{"user root;" if os.geteuid() == 0 else ""}
daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
{temporary}
    client_max_body_size 64m;
    client_body_buffer_size 1m;
    keepalive_requests 100000000;
    upstream mock {{
        server 127.0.0.1:{mock_port};
        keepalive 256;
        keepalive_requests 100000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{
            proxy_pass http://mock;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""


def _litellm_config(mock_port: int) -> str:
    """JSON, which is YAML too. One entry for each model: a wildcard makes every request dearer."""
    providers = {
        "oa": ("openai", f"http://127.0.0.1:{mock_port}/v1"),
        "an": ("anthropic", f"http://127.0.0.1:{mock_port}"),
    }
    entries = [
        {
            "model_name": f"{prefix}-{model}",
            "litellm_params": {"model": f"{provider}/{prefix}-{model}", "api_base": base, "api_key": KEY},
            # Without it, a Responses stream of a model it does not know is made up from a whole answer.
            "model_info": {"supports_native_streaming": True},
        }
        for prefix, (provider, base) in providers.items()
        for model in MODELS
    ]
    # Otherwise a Messages request to an OpenAI model goes to the back end as a Responses request.
    settings = {"use_chat_completions_url_for_anthropic_messages": True, "telemetry": False}
    return json.dumps({"model_list": entries, "litellm_settings": settings}, indent=1)


def _tensorzero_config(mock_port: int) -> str:
    models = [
        f"""
[models.oa-{model}]
routing = ["mock"]
[models.oa-{model}.providers.mock]
type = "openai"
model_name = "oa-{model}"
api_base = "http://127.0.0.1:{mock_port}/v1/"
api_key_location = "none"
"""
        for model in MODELS
    ]
    return "[gateway]\nobservability.enabled = false\n" + "".join(models)


def _version_of(package: str, program: str) -> str:
    """Of the installation that this program belongs to, by its metadata: `litellm --version` takes as long as a start."""
    folder = Path(program).absolute().parent.parent
    for path in sorted(folder.glob(f"lib/python*/site-packages/{package}-*.dist-info")):
        return path.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return ""
