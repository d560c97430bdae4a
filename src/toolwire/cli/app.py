"""The commands, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress

from cyclopts import App, CycloptsError

from .. import __version__
from ..errors import GatewayError, UpstreamError
from .entry import INTERRUPTED

PROBLEM_FOUND = 1
WRONG_USAGE = 2
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = App(
    name="toolwire",
    help="A gateway that makes tool calling work between any agent client and any model back end.",
    version=f"toolwire {__version__}",
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
# A command is imported when it runs. The list of commands shows these texts, which are also their docstrings.
COMMANDS = {
    "serve:serve": "Start the gateway.",
    "reload:reload": "Make a running gateway read its configuration again, without interrupting requests.",
    "models:models": "List the models of every back end, as backend/model, and the aliases. Exits with 1 if a back end cannot be asked.",
    "start.init:init": "Write a commented toolwire.toml with the keys and servers of this machine, and check it.",
    "doctor:doctor": "Check configuration, address, store, every back end and every MCP server; exit with 1 if there is a problem.",
    "check.command:check": "Check which clients an endpoint works with, and report its faults.",
    "connect:connect": "Show the settings that make a client use this gateway; without a client, list the clients.",
    "start.run:run": "Start a client that uses the gateway for one session and changes no file of yours; without a client, list them.",
    "stats:stats": "Compare back ends and models by error rate and accuracy, from the counts of the gateway.",
    "chat.command:chat": "Chat with a model that may use tools. With a prompt, as an argument or in a pipe, answer it and exit.",
    "tools.command:tools": "List tools with their token cost, duplicates and conflicting names; or try one call.",
    "mcp:mcp": "Serve the models of the gateway to an MCP client, over standard input and output.",
    "key:key": "Make, list, rotate and revoke the keys of clients.",
    "cassettes:record": "Start the gateway and record every request and its answer to a file.",
    "cassettes:replay": "Start a gateway that answers from a recorded file, without a model.",
    "simulate:simulate": "Run a simulator of a vendor's server on this machine.",
    "vscode:vscode": "Connect VS Code to the gateway with an extension.",
    "completion:completion": 'Print a script that completes commands and options in your shell: eval "$(toolwire completion bash)".',
}
# What an error message shows besides the help: a command line that works. The longest matching name applies.
EXAMPLES = {
    "": "toolwire serve",
    "serve": "toolwire serve --port 18800",
    "reload": "toolwire reload --config toolwire.toml",
    "models": "toolwire models --config toolwire.toml",
    "init": "toolwire init --yes",
    "doctor": "toolwire doctor --config toolwire.toml",
    "check": "toolwire check http://127.0.0.1:11434/v1",
    "connect": "toolwire connect claude-code",
    "run": 'toolwire run claude -- -p "What is in this folder?"',
    "stats": "toolwire stats --days 30",
    "chat": 'toolwire chat --model demo/echo-tools "What can you do?"',
    "tools": "toolwire tools --mcp 'npx -y @modelcontextprotocol/server-filesystem .'",
    "mcp": "toolwire mcp --config toolwire.toml",
    "key": "toolwire key list",
    "key new": "toolwire key new laptop --expires 30d",
    "key rotate": "toolwire key rotate laptop",
    "key revoke": "toolwire key revoke laptop",
    "record": "toolwire record session.cassette",
    "replay": "toolwire replay session.cassette",
    "simulate": "toolwire simulate cursor",
    "vscode": "toolwire vscode status",
    "completion": "toolwire completion bash",
}
for place, text in COMMANDS.items():
    app.command(f"toolwire.cli.{place}", name=place.partition(":")[2], help=text)


def run(arguments: Sequence[str]) -> int:
    """Returns 0 for success, 1 if a command found a problem, 2 for wrong usage or configuration, 130 after Ctrl-C.

    `serve` exits with 3 if it cannot start, for example on a port that is in use.
    """
    try:
        code = app(list(arguments), exit_on_error=False, print_error=False)
        sys.stdout.flush()  # errors here are still reported
    except CycloptsError as error:
        return _fail(f"{' '.join(str(error).split())} {_help_for(error, arguments)}")
    except UpstreamError as error:
        return _fail(error.sentence(), PROBLEM_FOUND)
    except GatewayError as error:
        return _fail(error.sentence(), getattr(error, "exit_code", WRONG_USAGE))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of our output has closed it
    except SystemExit as end:
        # rich 15.0.0, which prints the help, turns a broken pipe into this.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return 0
    except OSError as error:
        # Errors of files have a file name; an error without one is about the output.
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        return _fail(f"the output cannot be written: {error.strerror}. Redirect it.", PROBLEM_FOUND)
    return code if isinstance(code, int) else 0


def _help_for(error: CycloptsError, arguments: Sequence[str]) -> str:
    """Where the help of this command is, and a command line that works."""
    chain = error.command_chain or ()
    if not chain and arguments and arguments[0] in EXAMPLES:
        chain = (arguments[0],)
    name = " ".join(chain)
    example = EXAMPLES.get(name) or EXAMPLES.get(name.partition(" ")[0], EXAMPLES[""])
    return f"Run `{' '.join(('toolwire', *chain))} --help` for help. Example: {example}"


def _fail(message: str, code: int = WRONG_USAGE) -> int:
    with suppress(OSError):  # stderr cannot be written either
        print(f"toolwire: {message}", file=sys.stderr)
    return code
