"""A request for stored state: its owner, its query parameters, and pages of long lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, urlencode

from msgspec import Struct

from ...errors import BadRequest, quote
from ...memory.store import Item
from ...wire.exact_json import encode

_MAX_PAGE = 100
_DEFAULT_PAGE = 20
_RELAYED = ("include", "include[]", "stream", "starting_after", "limit", "order", "after")


class StateQuery(Struct, frozen=True, kw_only=True):
    method: str
    path: tuple[str, ...]
    owner: str
    query: dict[str, list[str]] = {}
    headers: Mapping[str, str] = {}

    def word(self, name: str) -> str:
        """The last value of this name, "" where there is none."""
        return self.query.get(name, [""])[-1]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        given = self.word(name)
        if not given:
            return default
        if given.isascii() and given.isdigit() and len(given) < 12 and least <= int(given) <= most:
            return int(given)
        raise BadRequest(f"found {quote(given)}; expected a whole number from {least} to {most}.", where=name)

    def relayed_query(self) -> str:
        """The query parameters that the store of a back end knows, as a query string."""
        kept = [(name, value) for name in _RELAYED for value in self.query.get(name, ())]
        return f"?{urlencode(kept)}" if kept else ""


def query_in(raw: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise BadRequest("found more than 50 words; expected fewer.", where="query") from None


def page(asked: StateQuery, items: Sequence[Item]) -> bytes:
    """One page of a list, by limit, order and after. items are oldest first; pages are newest first by default."""
    order = asked.word("order") or "desc"
    if order not in ("asc", "desc"):
        raise BadRequest(f'found {quote(order)}; expected "asc" or "desc".', where="order")
    limit = asked.number("limit", _DEFAULT_PAGE, 1, _MAX_PAGE)
    rows = list(items) if order == "asc" else list(reversed(items))
    if after := asked.word("after"):
        places = [place for place, item in enumerate(rows) if item.id == after]
        if not places:
            raise BadRequest(f"found {quote(after)}; expected the id of an item of this list.", where="after")
        rows = rows[places[0] + 1 :]
    return list_of(rows[:limit], has_more=len(rows) > limit)


def list_of(rows: Sequence[Item], *, has_more: bool = False) -> bytes:
    first, last = (rows[0].id, rows[-1].id) if rows else ("", "")
    tail = encode({"first_id": first, "last_id": last, "has_more": has_more})
    return b'{"object":"list","data":[' + b",".join(item.value for item in rows) + b"]," + tail[1:]
