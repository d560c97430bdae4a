"""Conversations: lists of items that answers are added to, made and read by clients of the Responses dialect."""

from __future__ import annotations

import time
from typing import Any

from msgspec.structs import replace

from ...dialects.responses.items_in import history_reader, is_reference, message_in
from ...dialects.responses.state import shown_item
from ...errors import BadRequest, quote
from ...ids import new_id
from ...memory.answers import AnswerMemory
from ...memory.store import Entry, Item
from ...types import JsonObject
from ...wire.exact_json import decode, encode
from ...wire.fields import body_object, list_or_none, need_list, need_name, need_object, object_or_none, text_or_none
from ..reply import WrongMethod
from .query import StateQuery, list_of, page

_KIND = "conversation"
_MAX_ITEMS = 20
_MAX_METADATA = 16


class Conversations:
    def __init__(self, memory: AnswerMemory) -> None:
        self._memory = memory
        self._store = memory.store

    async def answer(self, asked: StateQuery, body: bytes) -> bytes:
        match asked.method, asked.path:
            case "POST", (_,):
                return await self._create(asked, body)
            case "GET" | "HEAD", (_, name):
                return (await self._entry(asked, name)).body
            case "POST", (_, name):
                return await self._change(asked, name, body)
            case "DELETE", (_, name):
                await self._entry(asked, name)
                await self._memory.delete(asked.owner, name)
                return encode({"id": name, "object": "conversation.deleted", "deleted": True})
            case "GET" | "HEAD", (_, name, "items"):
                await self._entry(asked, name)
                return page(asked, await self._store.items(asked.owner, name))
            case "POST", (_, name, "items"):
                return await self._add(asked, name, body)
            case "GET" | "HEAD", (_, name, "items", item):
                return await self._item(asked, name, item)
            case "DELETE", (_, name, "items", item):
                entry = await self._entry(asked, name)
                self._memory.histories.forget(asked.owner)
                if not await self._store.delete_item(asked.owner, name, item):
                    raise _no_item(item, _in(name))
                return entry.body
            case _, (_,) | (_, _) | (_, _, "items") | (_, _, "items", _):
                raise WrongMethod(asked.method, _METHODS[len(asked.path)])
        raise BadRequest("there is nothing at this path.", status=404, code="not_found")

    async def _entry(self, asked: StateQuery, name: str) -> Entry:
        entry = await self._store.get(asked.owner, name)
        if entry is None or entry.kind != _KIND:
            raise BadRequest(
                f"there is no conversation {quote(name)}; expected the id of one that was made with this key.",
                status=404,
                code="conversation_not_found",
                details={"type": "invalid_request_error"},
            )
        return entry

    async def _create(self, asked: StateQuery, body: bytes) -> bytes:
        top = body_object(body) if body.strip() else {}
        items = await self._items(asked, list_or_none(top, "items") or [])
        now, name = time.time(), new_id("conv_")
        resource = {"id": name, "object": _KIND, "created_at": int(now), "metadata": _metadata(top)}
        shown = encode(resource)
        await self._store.put(Entry(owner=asked.owner, id=name, kind=_KIND, created=now, body=shown))
        if items:
            await self._store.append(asked.owner, name, items)
        return shown

    async def _change(self, asked: StateQuery, name: str, body: bytes) -> bytes:
        entry = await self._entry(asked, name)
        resource = {**decode(entry.body), "metadata": _metadata(body_object(body))}
        shown = encode(resource)
        await self._store.put(replace(entry, body=shown))
        return shown

    async def _add(self, asked: StateQuery, name: str, body: bytes) -> bytes:
        await self._entry(asked, name)
        items = await self._items(asked, need_list(body_object(body), "items", ""))
        await self._store.append(asked.owner, name, items)
        return list_of(items)

    async def _items(self, asked: StateQuery, given: list[Any]) -> list[Item]:
        """As they will be listed: references are replaced by their items."""
        if len(given) > _MAX_ITEMS:
            raise BadRequest(f"found {len(given)} items; expected at most {_MAX_ITEMS} at once.", where="items")
        references = [name for index, item in enumerate(given) if (name := _checked(item, f"items[{index}]"))]
        found = await self._store.find_items(asked.owner, references)
        for name in references:
            if name not in found:
                raise _no_item(name, "what this key has stored")
        return [Item(item["id"], found[item["id"]]) if is_reference(item) else _shown(item) for item in given]

    async def _item(self, asked: StateQuery, name: str, item_id: str) -> bytes:
        await self._entry(asked, name)
        for item in await self._store.items(asked.owner, name):
            if item.id == item_id:
                return item.value
        raise _no_item(item_id, _in(name))


_METHODS = {1: "POST", 2: "GET, POST, DELETE", 3: "GET, POST", 4: "GET, DELETE"}


def _metadata(top: JsonObject) -> JsonObject:
    given = object_or_none(top, "metadata") or {}
    if len(given) > _MAX_METADATA or not all(isinstance(value, str) for value in given.values()):
        raise BadRequest(f"expected at most {_MAX_METADATA} members, each a string.", where="metadata")
    return given


def _checked(item: Any, where: str) -> str:
    """The id that a reference names, "" for any other item. Raises BadRequest for an item that no request could contain."""
    try:
        message_in(need_object(item, where), where)
    except BadRequest as error:
        if error.where == f"{where}.role":
            raise
        history_reader().messages(need_object(item, where), where, error)
    if is_reference(item):
        return need_name(item, "id", where)
    text_or_none(item, "id", where)
    return ""


def _shown(item: JsonObject) -> Item:
    shown = shown_item(item, new_id)
    return Item(shown["id"], encode(shown))


def _in(name: str) -> str:
    return f"the conversation {quote(name)}"


def _no_item(item: str, place: str) -> BadRequest:
    return BadRequest(
        f"there is no item {quote(item)} in {place}.",
        status=404,
        code="item_not_found",
        details={"type": "invalid_request_error"},
    )
