"""Build the VS Code extension from vscode/ into the file that the wheel ships: scripts/build_vsix.py [--check].

The file is committed, so that nobody who installs toolwire needs npm; this script needs `npm ci` in vscode/ once. The same source gives the
same bytes: entries in order, one date, nothing of the machine. --check says whether the committed file is what the source builds.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "vscode"
TARGET = ROOT / "src/toolwire/extension/toolwire.vsix"
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say
_FILE = 0o100644 << 16
_FOR_DEVELOPERS = ("private", "scripts", "devDependencies")
_TYPES = {
    "js": "application/javascript",
    "json": "application/json",
    "md": "text/markdown",
    "txt": "text/plain",
    "vsixmanifest": "text/xml",
}


def built(source: Path = SOURCE) -> bytes:
    """The extension, as VS Code installs it. Raises SystemExit with a sentence."""
    package = json.loads((source / "package.json").read_text(encoding="utf-8"))
    shipped = {name: value for name, value in package.items() if name not in _FOR_DEVELOPERS}
    return packed(
        {
            "[Content_Types].xml": _content_types(),
            "extension.vsixmanifest": _manifest(package),
            "extension/LICENSE.txt": (source.parent / "LICENSE").read_text(encoding="utf-8"),
            "extension/extension.js": _bundle(source),
            "extension/package.json": json.dumps(shipped, separators=(",", ":")),
            "extension/readme.md": (source / "README.md").read_text(encoding="utf-8"),
        }
    )


def packed(files: dict[str, str]) -> bytes:
    """A zip file that depends on nothing but what is in it."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            about = zipfile.ZipInfo(name, _DATE)
            about.create_system = 3  # also when it is built on Windows
            about.external_attr = _FILE
            archive.writestr(about, files[name].replace("\r\n", "\n"), zipfile.ZIP_DEFLATED, 9)
    return target.getvalue()


def unpacked(archive: bytes) -> list[tuple[str, tuple[int, ...], int, bytes]]:
    """What is in it, in order; two builds of one source agree in it, also where their zlib packs in another way."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return [(one.filename, one.date_time, one.external_attr, file.read(one)) for one in file.infolist()]


def main(arguments: list[str]) -> int:
    fresh = built()
    if "--check" in arguments:
        is_same = TARGET.is_file() and unpacked(TARGET.read_bytes()) == unpacked(fresh)
        print(f"{TARGET.name} is {'what the source builds' if is_same else 'out of date; run scripts/build_vsix.py'}.")
        return 0 if is_same else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(fresh)
    print(f"{TARGET.relative_to(ROOT)}: {len(fresh)} bytes.")
    return 0


def _bundle(source: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not there; install Node.js 20 or newer.")
    if not (source / "node_modules").is_dir():
        raise SystemExit(f"esbuild is not there; run `npm ci` in {source.name}/ first.")
    command = [npm, "run", "--silent", "bundle"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"the extension does not build:\n{done.stderr.strip()}")
    return done.stdout


def _content_types() -> str:
    lines = (f'<Default Extension=".{ending}" ContentType="{kind}"/>' for ending, kind in _TYPES.items())
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{"".join(lines)}</Types>\n'


def _manifest(package: dict[str, Any]) -> str:
    identity = {
        "Language": "en-US",
        "Id": package["name"],
        "Version": package["version"],
        "Publisher": package["publisher"],
    }
    properties = {
        "Microsoft.VisualStudio.Code.Engine": package["engines"]["vscode"],
        "Microsoft.VisualStudio.Code.ExtensionKind": ",".join(package["extensionKind"]),
    }
    assets = {
        "Microsoft.VisualStudio.Code.Manifest": "package.json",
        "Microsoft.VisualStudio.Services.Content.Details": "readme.md",
        "Microsoft.VisualStudio.Services.Content.License": "LICENSE.txt",
    }
    return "".join(
        (
            '<?xml version="1.0" encoding="utf-8"?>\n',
            '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011"><Metadata><Identity',
            *(f" {name}={quoteattr(value)}" for name, value in identity.items()),
            f"/><DisplayName>{escape(package['displayName'])}</DisplayName>",
            f'<Description xml:space="preserve">{escape(package["description"])}</Description>',
            f"<Categories>{escape(','.join(package['categories']))}</Categories><License>extension/LICENSE.txt</License><Properties>",
            *(f"<Property Id={quoteattr(name)} Value={quoteattr(value)}/>" for name, value in properties.items()),
            '</Properties></Metadata><Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>',
            "<Dependencies/><Assets>",
            *(f'<Asset Type="{kind}" Path="extension/{path}" Addressable="true"/>' for kind, path in assets.items()),
            "</Assets></PackageManifest>\n",
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
