"""The sandbox of a command: bubblewrap, where it works.

The command sees the root, to read and write, and the programs and libraries of the system, to read. It does not see the home folder, other
files, other processes and, unless the owner allows it, the network.

A command may commit, so `.git` of the root stays writable, but the entries from which git takes programs to run (hooks, configuration,
submodules) are mounted read-only. `.git` itself is a mount point as well, because a folder that only contains mount points could be renamed and
replaced. A file `.git/commondir` would make git read hooks and configuration from elsewhere. A mount cannot cover it without leaving a file behind
that breaks git, so one that appears during a command is removed after it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct

from ...errors import ConfigError, quote
from .limits import Budget
from .messages import ToolRefused
from .programs import find_program, is_secret, program_environment, run

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
_TRIAL_SECONDS = 10.0

_GIT = ".git"
_ALWAYS = ("hooks", "config")  # created where they are missing, so that a command cannot create them
_IF_PRESENT = ("config.worktree", "modules")
_REDIRECT = "commondir"


class Shell(Struct, frozen=True, kw_only=True):
    """How commands run. sandbox: "auto" (where bubblewrap works), "required" (refuse commands otherwise) or "never".

    environment: more variables that commands see. readable: more folders that they can read in the sandbox.
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


class Sandbox(Struct, frozen=True, kw_only=True):
    """arguments come before the command. why_not: the reason why there is no sandbox."""

    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    why_not: str = ""

    @property
    def description(self) -> str:
        return f"not sandboxed: {self.why_not}" if self.why_not else "sandboxed"


def find_sandbox(shell: Shell, root: str, bash: str, budget: Budget) -> Sandbox:
    """Tries the sandbox with a command that does nothing."""
    if shell.sandbox == "never":
        return Sandbox(why_not="it is switched off")
    bubblewrap = find_program("bwrap", root)
    if bubblewrap is None:
        return Sandbox(why_not="bubblewrap (bwrap) is not installed")
    arguments = (bubblewrap, *_arguments(shell, root))
    output = bytearray()

    def feed(data: bytes) -> bool:
        output.extend(data)
        return len(output) < 1000

    trial = [*arguments, bash, "-c", ":"]
    ended = run(trial, budget.shortened(_TRIAL_SECONDS), feed, folder=root, variables=program_environment())
    budget.check()
    if ended.code != 0:
        message = " ".join(output.decode("utf-8", "replace").split())[:200]
        return Sandbox(why_not=f"bubblewrap does not work here ({message or 'no error message'})")
    return Sandbox(arguments=arguments, variables={"HOME": _HOME, "TMPDIR": "/tmp"})


@contextmanager
def git_mounts(root: str) -> Iterator[list[str]]:
    """Arguments of bubblewrap that protect `.git` for one command. Raises ToolRefused if one of the protected entries is a link."""
    git = os.path.join(root, _GIT)
    kind = _kind_of(git)
    if kind != stat.S_IFDIR:
        yield [] if kind is None else ["--ro-bind", git, git]
        return
    arguments = ["--bind", git, git, *_read_only(git)]
    redirect = os.path.join(git, _REDIRECT)
    was_redirected = os.path.lexists(redirect)
    try:
        yield arguments
    finally:
        if not was_redirected:
            with suppress(OSError):  # a folder, which makes git fail and is harmless
                os.unlink(redirect)


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


def _read_only(git: str) -> Iterator[str]:
    for name in (*_ALWAYS, *_IF_PRESENT):
        path = os.path.join(git, name)
        if _kind_of(path) is None and name in _ALWAYS:
            _create_empty(path)
        if _kind_of(path) is not None:
            yield from ("--ro-bind", path, path)


def _kind_of(path: str) -> int | None:
    """None if there is nothing at path."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise ToolRefused(
            f"{os.path.join(*path.split(os.sep)[-2:])} is a symbolic link, which the sandbox cannot make read-only, "
            "so no command is run; ask the person to replace it (hooks: by core.hooksPath)."
        )
    return stat.S_IFMT(mode)


def _create_empty(path: str) -> None:
    """To git, an empty hooks folder or configuration is the same as none."""
    with suppress(OSError):
        if path.endswith("hooks"):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
