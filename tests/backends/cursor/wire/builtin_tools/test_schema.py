from __future__ import annotations

from toolwire.backends.cursor.wire.builtin_tools.schema import properties_of, required_of, types_of


def test_odd_schemas_have_no_members() -> None:
    assert properties_of(None) == {}
    assert properties_of({"properties": {"a": True, "b": {}}}) == {"b": {}}
    assert required_of({"required": ["a", 5]}) == ["a"]
    assert required_of({"required": "a"}) == []
    assert types_of({"anyOf": [{"type": "string"}, {"type": "null"}, True]}) == {"string", "null"}
