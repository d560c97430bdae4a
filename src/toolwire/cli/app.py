"""The commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress

from cyclopts import App, CycloptsError

from .. import __version__
from ..errors import GatewayError
from .chat.command import chat
from .connect import connect
from .doctor import doctor
from .entry import INTERRUPTED
from .models import models
from .serve import serve
from .simulate import simulate
from .stats import stats
from .vscode import vscode

FOUND_WRONG = 1
WRONG_USE = 2
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

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


def run(arguments: Sequence[str]) -> int:
    """0 when all is well, 1 when a command found something wrong, 2 when the command or the configuration is.

    `serve` leaves with 3 when it could not start, such as on a port that is taken; 130 is for what was interrupted.
    """
    try:
        code = app(list(arguments), exit_on_error=False, print_error=False)
        sys.stdout.flush()  # here a fault still gets its words
    except CycloptsError as error:
        return _refuse(f"{' '.join(str(error).split())} Run `toolwire --help` to see what there is.")
    except GatewayError as error:
        return _refuse(error.sentence())
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # whoever read our output has seen enough
    except SystemExit as leaving:
        # What prints the help (rich 15.0.0) makes this of a broken pipe.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return 0
    except OSError as error:
        # Faults of files have names; what has none here is the output.
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        return _refuse(f"the output cannot be written: {error.strerror}. Send it elsewhere.", FOUND_WRONG)
    return code if isinstance(code, int) else 0


def _refuse(sentence: str, code: int = WRONG_USE) -> int:
    with suppress(OSError):  # there is nowhere else to say it
        print(f"toolwire: {sentence}", file=sys.stderr)
    return code
