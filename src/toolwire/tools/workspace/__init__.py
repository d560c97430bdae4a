"""Work on the files of one folder, and nowhere else: read, write, edit, list, glob, grep, shell."""

from .limits import Limits
from .sandbox import Shell
from .toolbox import workspace

__all__ = ["workspace", "Limits", "Shell"]
