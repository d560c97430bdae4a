"""A self-signed certificate for tests over TLS."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


class Tls:
    """A self-signed certificate for model.test and 127.0.0.1, and the two contexts that go with it."""

    def __init__(self, folder: Path) -> None:
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        names = "subjectAltName=DNS:model.test,DNS:proxy.test,IP:127.0.0.1"
        command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=model.test"
        files = ["-addext", names, "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(["openssl", *command.split(), *files], check=True, capture_output=True)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(certificate, key)
        self.client = ssl.create_default_context(cafile=str(certificate))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command here to make a certificate with")
    return Tls(tmp_path_factory.mktemp("tls"))
