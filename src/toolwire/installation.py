"""The command that adds an extra to this installation: by the same installer, and from where the package came."""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

_OURS = "toolwire"
# A file in the environment tells which tool made it. Other packages are added to the environment of ours.
_TOOLS = {
    "uv-receipt.toml": ("uv tool install --force", "uv tool install --force {ours} --with"),
    "pipx_metadata.json": ("pipx install --force", "pipx inject --force toolwire"),
}


def install_command(extra: str = "", package: str = _OURS, prefix: Path | None = None) -> str:
    """A command for a shell. Without an extra it installs the package again. prefix: of the environment, by default this one."""
    installer = _installer(prefix or Path(sys.prefix), is_ours=package == _OURS, is_again=not extra)
    return f"{installer} {_quoted(_source(package) + (f'[{extra}]' if extra else ''))}"


def _installer(prefix: Path, *, is_ours: bool, is_again: bool) -> str:
    for name, (own, other) in _TOOLS.items():
        if (prefix / name).is_file():
            return own if is_ours else other.format(ours=_quoted(_source(_OURS)))
    pip = "pip install" if find_spec("pip") is not None else "uv pip install"
    return f"{pip} --force-reinstall" if is_again else pip


def _quoted(text: str) -> str:
    """Shells read brackets and blanks."""
    return f"'{text}'" if "[" in text or " " in text else text


def _source(package: str) -> str:
    """The folder or file that the package was installed from if it is still there, else its name. (PEP 610)"""
    try:
        found: Distribution = distribution(package)
        address = json.loads(found.read_text("direct_url.json") or "{}").get("url", "")
    except (PackageNotFoundError, ValueError, AttributeError):
        return package
    parts = urlsplit(address)
    path = url2pathname(parts.path)
    return path if parts.scheme == "file" and Path(path).exists() else package
