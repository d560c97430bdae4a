"""Build a release into dist/: wheel and source archive, checked in an empty environment, with checksums and a bill of materials.

Run from anywhere: `python scripts/release.py [--offline] [FOLDER]`; `make release` does. Everything is built twice and must have the same bytes. The time in the
archives is that of the last commit, or SOURCE_DATE_EPOCH. The check installs the wheel in a new environment with its dependencies from the package index; with --offline
it takes them from the Python that runs this. It runs `toolwire --version`, starts the gateway and makes a tool call.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
CHECKSUMS = "SHA256SUMS"
BILL = "toolwire.cdx.json"
_START_SECONDS = 120.0
_TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_CALL = {
    "model": "demo/echo-tools",
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [{"type": "function", "function": _TOOL}],
}


class ReleaseFault(Exception):
    """Why there is no release."""


def build(folder: Path, moment: int, root: Path = ROOT) -> list[Path]:
    """The wheel and the source archive, built twice with equal bytes, from the files that git knows."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        copy_tracked(root, Path(place) / "source")
        runs = [_built(Path(place) / "source", Path(place) / name, moment) for name in ("first", "second")]
    if runs[0] != runs[1]:
        changed = [name for name in runs[0] if runs[0][name] != runs[1].get(name)]
        raise ReleaseFault(f"two builds of the same files differ: {', '.join(changed)}.")
    for name, data in runs[0].items():
        (folder / name).write_bytes(data)
    return [folder / name for name in runs[0]]


def copy_tracked(root: Path, folder: Path) -> None:
    """As they are in the work tree. What git does not know is not part of a release."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise ReleaseFault("this is no git checkout.")
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)


def _built(source: Path, target: Path, moment: int) -> dict[str, bytes]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(moment)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseFault(f"hatchling failed: {done.stderr[-2000:]}")
    return {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def commit_time(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> int:
    """SOURCE_DATE_EPOCH, else the time of the last commit."""
    if given := environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if found.returncode:
        raise ReleaseFault("this is no git checkout; set SOURCE_DATE_EPOCH to the time of the release.")
    return int(found.stdout)


def environment_with(wheel: Path, folder: Path, *, offline: bool) -> Path:
    """A new environment with the wheel; returns its Python."""
    venv.create(folder, with_pip=not offline, clear=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if offline:
        site = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        # Only the folder itself: .pth files in it, as those of editable installations, have no effect there.
        Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--python",
            str(python),
        ]
    else:
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseFault(f"the wheel cannot be installed: {done.stderr[-2000:]}")
    return python


def check(python: Path, version: str) -> None:
    """The installed program reports its version, serves, and answers with a tool call."""
    program = python.with_name("toolwire.exe" if os.name == "nt" else "toolwire")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ}
        environment |= {"PATH": os.defpath, "HOME": home, "USERPROFILE": home, "PYTHONSAFEPATH": "1"}
        shown = subprocess.run(
            [program, "--version"], env=environment, cwd=home, capture_output=True, text=True, check=False
        )
        if shown.stdout.strip() != f"toolwire {version}":
            raise ReleaseFault(f"toolwire --version printed {shown.stdout!r} {shown.stderr!r}.")
        port = _free_port()
        log = Path(home) / "log"
        with log.open("wb") as output:
            command = [str(program), "serve", "--port", str(port)]
            process = subprocess.Popen(command, env=environment, cwd=home, stdout=output, stderr=output)
        try:
            _call_tool(port, process)
        except OSError as error:
            raise ReleaseFault(f"the gateway does not answer: {error}; {log.read_text()[-2000:]}") from None
        finally:
            process.terminate()
            process.wait()


def _call_tool(port: int, process: subprocess.Popen[bytes]) -> None:
    """Raises OSError if the gateway cannot be reached."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.05)
    body, headers = json.dumps(_CALL).encode(), {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    with urlopen(Request(url, body, headers), timeout=_START_SECONDS) as answer:
        choice = json.load(answer)["choices"][0]
    arguments = [json.loads(call["function"]["arguments"]) for call in choice["message"].get("tool_calls", ())]
    if choice["finish_reason"] != "tool_calls" or arguments != [{"city": "Paris"}]:
        raise ReleaseFault(f"expected a call of get_weather, found {choice}.")


def checksums(paths: list[Path]) -> str:
    """In the form of sha256sum."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build and check a release.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--offline", action="store_true", help="use the installed dependencies instead of an index")
    options = parser.parse_args(arguments)
    if sys.path[0] != str(ROOT):
        sys.path.insert(0, str(ROOT))
    from scripts.bill_of_materials import bill, components

    try:
        moment = commit_time()
        shutil.rmtree(options.folder, ignore_errors=True)
        built = build(options.folder, moment)
        (wheel,) = (path for path in built if path.suffix == ".whl")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            python = environment_with(wheel, Path(folder) / "venv", offline=options.offline)
            check(python, version_of(wheel))
            found = components(python)
    except ReleaseFault as fault:
        print(f"release: {fault}", file=sys.stderr)
        return 1
    materials = options.folder / BILL
    materials.write_text(json.dumps(bill(wheel, found, moment), indent=1) + "\n", encoding="utf-8")
    (options.folder / CHECKSUMS).write_text(checksums([*built, materials]), encoding="utf-8")
    print("\n".join(str(path) for path in sorted(options.folder.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
