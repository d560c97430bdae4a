"""`toolwire completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from .app import app

# The generated script for zsh only defines its function. A file in fpath must also call it, and a sourced script must register it.
_ZSH = """
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
  _cyclopts_toolwire "$@"
else
  (( ${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
  compdef _cyclopts_toolwire toolwire
fi
"""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell that you use.")], /) -> None:
    """Print a script that completes commands and options in your shell: eval "$(toolwire completion bash)"."""
    script = app.generate_completion(prog_name="toolwire", shell=shell)
    print(script.rstrip("\n") + (_ZSH if shell == "zsh" else ""))
