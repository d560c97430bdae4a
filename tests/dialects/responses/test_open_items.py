"""Output items under construction."""

from __future__ import annotations

from typing import Any

from toolwire.dialects.responses.open_items import OpenItem, OpenItems, matched, same_part
from toolwire.dialects.shared.answer_in import Assembly
from toolwire.types import Reasoning, Text, ToolCall


def item(kind: str, item_id: str = "", call_id: str = "") -> OpenItem:
    return OpenItem({"type": kind, "id": item_id, "call_id": call_id}, item_id)


def test_final_items_are_matched_by_id_then_by_call_id_then_by_kind() -> None:
    one, two, three = item("function_call", "a", "x"), item("function_call", "b", "y"), item("message", "m")
    given: list[dict[str, Any]] = [
        {"type": "message", "id": "other"},
        {"type": "function_call", "id": "new", "call_id": "y"},
        {"type": "function_call", "id": "a"},
        {"type": "function_call", "id": "z"},
    ]
    assert [found for _, found in matched(given, [one, two, three])] == [three, two, one, None]
    assert [found for _, found in matched([{"type": "message", "id": "a"}], [one])] == [None]


def test_matching_many_items_costs_linear_work() -> None:
    items = [item("function_call", f"a{number}") for number in range(20_000)]
    given = [{"type": "function_call", "id": f"b{number}"} for number in range(20_000)]
    assert [found for _, found in matched(given, items)] == items


def test_a_call_without_its_end_is_cut_unless_its_arguments_are_complete() -> None:
    assembly = Assembly()
    for raw, is_cut in (('{"a":', True), ('{"a":1}', False), ("", False), ("oh", True)):
        call = item("function_call")
        call.parts[("call", 0)], _ = assembly.start(ToolCall(id="x", name="f", raw=""))
        call.parts[("call", 0)].grow(raw)
        assert call.is_cut == is_cut
        call.is_done = True
        assert not call.is_cut


def test_parts_without_a_number_follow_each_other() -> None:
    thought = item("reasoning")
    assert thought.place("summary", "open", None) == 0
    thought.counts["summary"] = 2
    assert thought.place("summary", "open", None) == 2
    assert thought.place("summary", "delta", None) == 1
    assert thought.place("summary", "delta", 7) == 7


def test_H006_a_repeated_item_differs_from_another_with_its_id() -> None:
    call = item("function_call", "a", "x")
    assert call.is_repeated_by({"type": "function_call", "id": "a", "call_id": "x"})
    assert not call.is_repeated_by({"type": "function_call", "id": "a", "call_id": "y"})
    message = item("message", "a")
    assert message.is_repeated_by({"type": "message", "id": "a"})
    message.is_done = True
    assert not message.is_repeated_by({"type": "message", "id": "a"})


def test_a_part_ends_as_the_first_of_its_kind() -> None:
    whole = [Reasoning(text="t", is_summary=True), Text(text="a"), Text(text="b")]
    assert same_part(whole, Text(text="")) == Text(text="a")
    assert same_part(whole, Reasoning(text="")) is None
    assert [type(part) for part in whole] == [Reasoning, Text]


def shown(call_id: str = "", **members: Any) -> dict[str, Any]:
    return {"item": {"type": "function_call", "call_id": call_id, **members}}


def added(items: OpenItems, index: int | None = None, item_id: str = "", **members: Any) -> OpenItem:
    item = OpenItem({"type": "function_call", **members}, item_id)
    items.add(item, index, item_id)
    return item


def test_an_event_is_about_the_item_of_its_id_then_its_call_then_its_index_then_the_last() -> None:
    items = OpenItems()
    assert items.find({}, None) is None
    first = added(items, 0, "fc_0", call_id="x")
    second = added(items, 1, call_id="y")
    assert items.find({"item_id": "fc_0", "call_id": "y", "output_index": 1}, 1) is first
    assert items.find(shown("x"), 1) is first
    assert items.find({"call_id": "x"}, None) is first
    assert items.find({}, 0) is first
    assert items.find({}, None) is second
    assert (items.at(1), items.at(7)) == (second, None)
    assert (items.named("fc_0"), items.named("")) == (first, None)


def test_calls_of_one_call_id_end_in_their_order() -> None:
    items = OpenItems()
    both = [added(items, 0, call_id="x"), added(items, 0, call_id="x")]
    for item in both:
        found = items.find(shown("x"), None)
        assert found is item
        items.end(item)
    assert items.find(shown("x"), None) is both[1]


def test_an_end_is_that_of_the_first_open_item_that_can_have_become_it() -> None:
    items = OpenItems()
    first, second, third = added(items), added(items), added(items, name="g")
    first.held.append('{"a"')
    second.held.append('{"b"')
    assert items.find(shown("x", name="f", arguments='{"b":1}'), None) is second
    assert items.find(shown("x", name="f", arguments='{"a":1}'), None) is first
    assert items.find(shown("x", name="g", arguments='{"c":1}'), None) is third
    assert items.find(shown("x", name="f", arguments='{"c":1}'), None) is third, "none fits: the last"
    items.end(first)
    assert items.find(shown("x", name="f"), None) is second


def test_an_end_with_other_ids_than_an_item_that_is_done_is_about_an_item_that_was_not_added() -> None:
    items = OpenItems()
    done = added(items, 0, "fc_0", call_id="x")
    items.end(done)
    assert items.find(shown("y"), None) is None
    assert items.find(shown("y"), 0) is None
    assert items.find(shown("x"), 0) is done
    assert items.find({"item_id": "fc_1"}, 0) is None
