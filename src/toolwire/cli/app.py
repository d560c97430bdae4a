"""The commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from .. import __version__
from ..errors import GatewayError
from .chat import chat
from .connect import connect
from .doctor import doctor
from .models import models
from .serve import serve
from .simulate import simulate
from .stats import stats
from .vscode import vscode

WRONG_USE = 2
INTERRUPTED = 130

app = App(
    name="toolwire",
    help="A gateway that makes tool calling work between any agent client and any model back end.",
    version=f"toolwire {__version__}",
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command(serve)
app.command(models)
app.command(doctor)
app.command(connect)
app.command(stats)
app.command(chat)
app.command(simulate)
app.command(vscode)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """0 when all is well, 1 when a command found something wrong, 2 when the command or the configuration is."""
    try:
        code = app(list(arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return _refuse(f"{' '.join(str(error).split())} Run `toolwire --help` to see what there is.")
    except GatewayError as error:
        return _refuse(error.sentence())
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _refuse(sentence: str) -> int:
    print(f"toolwire: {sentence}", file=sys.stderr)
    return WRONG_USE
