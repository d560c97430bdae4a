"""The walls around a command: bubblewrap, where it works.

Inside, the root is as it is; the system's programs and libraries can be read; the home folder, other people's files, other processes
and (unless asked for) the network are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from ...errors import ConfigError, quote
from .limits import Budget
from .programs import environment, is_secret, program, run

_HOME = "/tmp/home"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/run/current-system")
# Of /etc only what programs need to run: it also holds keys and password files.
# fmt: off
_SETTINGS = (
    "alternatives", "ca-certificates", "debian_version", "fonts", "gitconfig", "group", "hosts", "inputrc",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "login.defs",
    "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/tls/certs", "pki/ca-trust/extracted", "profile",
    "protocols", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf", "static", "terminfo", "timezone",
)
# fmt: on
_TRIAL = 10.0


class Shell(Struct, frozen=True, kw_only=True):
    """How commands run. sandbox: "auto" where bubblewrap works, "required" or not at all, "never".

    environment names more variables that commands may see, readable more folders that they may read in the sandbox.
    """

    sandbox: Literal["auto", "required", "never"] = "auto"
    network: bool = False
    environment: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in filter(is_secret, self.environment):
            raise ConfigError(
                f"the variable {quote(name)} is named like a secret, and commands never see those; leave it out."
            )


class Walls(Struct, frozen=True, kw_only=True):
    """What comes before a command; why there is nothing, where there is nothing."""

    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    why_not: str = ""


def walls(shell: Shell, root: str, bash: str, budget: Budget) -> Walls:
    """Found by trying, with a command that does nothing."""
    if shell.sandbox == "never":
        return Walls(why_not="it is switched off")
    bubblewrap = program("bwrap", root)
    if bubblewrap is None:
        return Walls(why_not="bubblewrap (bwrap) is not installed")
    arguments = (bubblewrap, *_arguments(shell, root))
    output = bytearray()

    def take(piece: bytes) -> bool:
        output.extend(piece)
        return len(output) < 1000

    variables = environment()
    ended = run([*arguments, bash, "-c", ":"], budget.shortened(_TRIAL), take, folder=root, variables=variables)
    budget.check()
    if ended.code != 0:
        said = " ".join(output.decode("utf-8", "replace").split())[:200]
        return Walls(why_not=f"bubblewrap does not work here ({said or 'without a word'})")
    return Walls(arguments=arguments, variables={"HOME": _HOME, "TMPDIR": "/tmp"})


def _arguments(shell: Shell, root: str) -> Iterator[str]:
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
    if shell.network:
        yield "--share-net"
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", _HOME)
    yield from _readable(_SYSTEM)
    yield from _readable(f"/etc/{name}" for name in _SETTINGS)
    yield from _readable(shell.readable)
    yield from ("--bind", root, root, "--chdir", root)


def _readable(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from ("--ro-bind-try", path, path)
