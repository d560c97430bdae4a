from __future__ import annotations

from toolwire.tools import Output
from toolwire.types import Text


def test_an_output_of_text() -> None:
    assert Output.of_text("done") == Output(parts=(Text(text="done"),))
    assert Output.of_text("done").text == "done"
    assert Output.of_text("no", is_error=True).is_error
