"""The bill of materials of a release, in the form of CycloneDX 1.6: the wheel, what it needs, and the versions that it was checked with.

`scripts/release.py` calls it. The packages are read from the environment in which the wheel was checked, by a small program that runs there.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "toolwire"

# Prints the packages that toolwire needs in this environment, and theirs, each with what it needs itself.
_PROGRAM = r"""
import json, re
from importlib.metadata import PackageNotFoundError, distribution

def needed(found):
    for line in found.requires or ():
        text, _, marker = line.partition(";")
        if "extra ==" not in marker:
            yield re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", text)[0]).lower()

packages, waiting = {}, ["toolwire"]
while waiting:
    name = waiting.pop()
    if name in packages:
        continue
    try:
        found = distribution(name)
    except PackageNotFoundError:  # not for this system or this version of Python
        continue
    about = found.metadata
    names = list(dict.fromkeys(needed(found)))
    packages[name] = {
        "version": found.version,
        "license": about["License-Expression"] or (about["License"] or "").partition("\n")[0],
        "summary": about["Summary"] or "",
        "needs": names,
    }
    waiting += names
print(json.dumps(packages))
"""


def components(python: Path) -> dict[str, Any]:
    """The packages of an environment that toolwire needs, by name."""
    found = subprocess.run([python, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    packages: dict[str, Any] = json.loads(found.stdout)
    return packages


def bill(wheel: Path, packages: dict[str, Any], moment: int) -> dict[str, Any]:
    """moment: seconds since 1970. The same wheel and packages give the same bill."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    ours = _component(NAME, packages[NAME], "application")
    ours["hashes"] = [{"alg": "SHA-256", "content": digest}]
    others = {name: about for name, about in sorted(packages.items()) if name != NAME}
    seed = json.dumps([digest, others], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": ours,
        },
        "components": [_component(name, about, "library") for name, about in others.items()],
        "dependencies": [
            {"ref": _address(name, about), "dependsOn": _addresses(about["needs"], packages)}
            for name, about in sorted(packages.items())
        ],
    }


def _component(name: str, about: dict[str, Any], kind: str) -> dict[str, Any]:
    address = _address(name, about)
    found = {"type": kind, "bom-ref": address, "name": name, "version": about["version"], "purl": address}
    if about["summary"]:
        found["description"] = about["summary"]
    if about["license"]:
        is_expression = re.fullmatch(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*", about["license"])
        found["licenses"] = [
            {"expression": about["license"]} if is_expression else {"license": {"name": about["license"]}}
        ]
    return found


def _address(name: str, about: dict[str, Any]) -> str:
    return f"pkg:pypi/{name}@{about['version']}"


def _addresses(names: list[str], packages: dict[str, Any]) -> list[str]:
    return sorted(_address(name, packages[name]) for name in names if name in packages)
