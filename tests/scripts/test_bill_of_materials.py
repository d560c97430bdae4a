"""scripts/bill_of_materials.py: the form of CycloneDX, and the same bill for the same input."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.bill_of_materials import bill, components

PACKAGES = {
    "toolwire": {"version": "1.0", "license": "Apache-2.0", "summary": "A gateway.", "needs": ["rich", "not-here"]},
    "rich": {"version": "15.0", "license": "MIT License (c) somebody", "summary": "", "needs": []},
}


def test_components_and_dependencies_refer_to_each_other(tmp_path: Path) -> None:
    wheel = tmp_path / "toolwire-1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    made = bill(wheel, PACKAGES, 0)
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert made["metadata"]["component"]["hashes"][0]["alg"] == "SHA-256"
    assert [component["purl"] for component in made["components"]] == ["pkg:pypi/rich@15.0"]
    assert made["components"][0]["licenses"] == [{"license": {"name": "MIT License (c) somebody"}}]
    assert made["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert made["dependencies"] == [
        {"ref": "pkg:pypi/rich@15.0", "dependsOn": []},
        {"ref": "pkg:pypi/toolwire@1.0", "dependsOn": ["pkg:pypi/rich@15.0"]},
    ]
    assert bill(wheel, PACKAGES, 0) == made
    wheel.write_bytes(b"another")
    assert bill(wheel, PACKAGES, 0)["serialNumber"] != made["serialNumber"]


@pytest.mark.slow
def test_the_packages_of_this_environment_are_found() -> None:
    found = components(Path(sys.executable))
    assert "uvicorn" in found["toolwire"]["needs"]
    assert found["uvicorn"]["version"]
    assert "pytest" not in found  # only for development
