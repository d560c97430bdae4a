"""The fixed line of a failed call: written, read back, and never mistaken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.shared.failed_results import (
    FAILED,
    split_failure,
    split_result,
    with_failure,
    with_failure_first,
)
from toolwire.types import Media, Text


@given(st.text(max_size=20) | st.sampled_from(["\n", "\nx", FAILED, f"{FAILED}\nx"]))
def test_H093_what_was_written_is_read_back(text: str) -> None:
    assert split_failure(with_failure(text)) == text


def test_other_texts_are_no_failures() -> None:
    for text in ("", "fine", f"{FAILED} Really.", f" {FAILED}", f"It said: {FAILED}"):
        assert split_failure(text) is None


def test_the_line_is_taken_from_the_first_part() -> None:
    image = Media(kind="image", url="u")
    assert split_result((Text(text=FAILED), image)) == (True, (image,))
    assert split_result((Text(text=f"{FAILED}\na"), image)) == (True, (Text(text="a"), image))
    assert split_result((Text(text=FAILED),)) == (True, (Text(text=""),))
    assert split_result((image, Text(text=FAILED))) == (False, (image, Text(text=FAILED)))
    assert split_result(()) == (False, ())


def test_the_line_stands_before_parts_of_any_kind() -> None:
    image = Media(kind="image", url="u")
    assert with_failure_first([Text(text="a"), image]) == [Text(text=f"{FAILED}\na"), image]
    assert with_failure_first([image]) == [Text(text=FAILED), image]
    assert with_failure_first([]) == [Text(text=FAILED)]
