from __future__ import annotations

import io
import json
import shutil
import zipfile
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.build_vsix import ROOT, SOURCE, TARGET, built, main, packed, unpacked
from toolwire import __version__

has_npm = shutil.which("npm") is not None and (SOURCE / "node_modules").is_dir()
needs_npm = pytest.mark.skipif(not has_npm, reason="needs npm, and `npm ci` in vscode/")
_MOST = 20 * 1024  # bytes: nothing but our own code is in it


def shipped() -> dict[str, str]:
    return {name: data.decode() for name, _, _, data in unpacked(TARGET.read_bytes())}


@pytest.mark.slow
@needs_npm
def test_the_committed_file_is_what_the_source_builds(capsys: pytest.CaptureFixture[str]) -> None:
    fresh, committed = built(), TARGET.read_bytes()
    assert unpacked(fresh) == unpacked(committed), "run scripts/build_vsix.py"
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:  # zlib-ng packs the same data into other bytes
        assert fresh == committed
    assert main(["--check"]) == 0
    assert "is what the source builds" in capsys.readouterr().out


def test_it_is_small_and_holds_what_it_must() -> None:
    assert TARGET.stat().st_size < _MOST
    assert list(shipped()) == [
        "[Content_Types].xml",
        "extension.vsixmanifest",
        "extension/LICENSE.txt",
        "extension/extension.js",
        "extension/package.json",
        "extension/readme.md",
    ]
    assert shipped()["extension/LICENSE.txt"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert shipped()["extension/readme.md"] == (SOURCE / "README.md").read_text(encoding="utf-8")


def test_its_package_is_that_of_the_source_without_what_only_developers_need() -> None:
    package = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    ours = json.loads(shipped()["extension/package.json"])
    assert ours.items() <= package.items()
    assert {"scripts", "devDependencies", "dependencies"}.isdisjoint(ours)
    assert "dependencies" not in package
    assert ours["version"] == __version__
    assert package["devDependencies"]["@types/vscode"] == package["engines"]["vscode"].removeprefix("^")
    assert all(version[0].isdigit() for version in package["devDependencies"].values())
    assert f"extension/{ours['main'].removeprefix('./')}" in shipped()


def test_the_manifest_says_who_it_is() -> None:
    manifest = ElementTree.fromstring(shipped()["extension.vsixmanifest"])
    space = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
    identity = manifest.find(f".//{space}Identity")
    assert identity is not None
    assert (identity.get("Publisher"), identity.get("Id"), identity.get("Version")) == (
        "toolwire",
        "toolwire",
        __version__,
    )
    assert {asset.get("Path") for asset in manifest.iter(f"{space}Asset")} <= set(shipped())
    types = ElementTree.fromstring(shipped()["[Content_Types].xml"])
    endings = {str(kind.get("Extension")) for kind in types}
    assert {Path(name).suffix for name in shipped()} - {".xml"} <= endings


def test_the_same_files_make_the_same_bytes_in_any_order() -> None:
    files = {"b": "2\r\n", "a/x": "1" * 1000}
    archive = packed(files)
    assert archive == packed(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        assert [(one.filename, one.date_time[0], one.create_system) for one in file.infolist()] == [
            ("a/x", 1980, 3),
            ("b", 1980, 3),
        ]
        assert file.read("b") == b"2\n"


def test_without_npm_or_its_packages_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "vscode"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "LICENSE", tmp_path)
    if has_npm:
        with pytest.raises(SystemExit, match=r"run `npm ci` in vscode/ first"):
            built(source)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"npm is not there"):
        built(source)


@pytest.mark.slow
@needs_npm
def test_a_source_that_does_not_build_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "vscode"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (source / "node_modules").symlink_to(SOURCE / "node_modules")
    (source / "src/extension.ts").write_text("import './nothing';", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"does not build:\n(?s:.*)nothing"):
        built(source)
