from __future__ import annotations

from toolwire.backends.cursor.wire.builtin_tools.table import ABILITIES, DEMANDED


def test_no_tool_stands_for_two_abilities() -> None:
    names = [name for ability in ABILITIES.values() for name in ability.tools]
    assert len(names) == len(set(names))


def test_no_parameter_is_filled_twice() -> None:
    for ability in ABILITIES.values():
        places = [place for argument in ability.parameters.values() for place in dict.fromkeys(argument)]
        assert len(places) == len(set(places))


def test_nothing_demanded_makes_a_tool_less_careful() -> None:
    assert DEMANDED["requires_approval"] is True
    assert not any("danger" in name or "sandbox" in name for name in DEMANDED)
