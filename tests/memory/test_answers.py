"""Who keeps what, and for whom."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from tests.loop_ticks import ticking
from toolwire.backends.base import EventReply, Model
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.memory.answers import POINTERS, AnswerMemory, StoredTurn, storing_backends
from toolwire.memory.store import Entry, Item, MemoryStore
from toolwire.profiles import PLAIN
from toolwire.types import Request

_numbers = itertools.count()


class Nobody:
    """A back end that is only named."""

    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, name: str, dialect: str) -> None:
        self.name = name
        self.dialect = dialect

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise AssertionError("nobody asks it")

    async def close(self) -> None:
        pass


HERE = Nobody("here", "responses")
THERE = Nobody("there", "responses")
ABROAD = Nobody("abroad", "chat")


def mint(prefix: str) -> str:
    return f"{prefix}{next(_numbers)}"


def answer_memory(*, is_shared: bool = True) -> AnswerMemory:
    return AnswerMemory(MemoryStore(max_bytes=1 << 20, max_age=1e9), ["there"], is_shared=is_shared)


def request(**members: Any) -> Request:
    body = {"model": "m", "input": "hi"} | members
    return DIALECTS["responses"].decode_request(json.dumps(body).encode(), {})


def answer(name: str, text: str = "yes") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": f"msg_{name}", "role": "assistant", "content": content}
    return {"id": name, "status": "completed", "output": [item]}


async def begun(memory: AnswerMemory, asked: Request, backend: Nobody, owner: str = "o") -> StoredTurn:
    kept = await memory.begin(asked, backend, owner, mint)
    assert kept is not None
    return kept


def texts(asked: Request) -> list[str]:
    return [part.text for message in asked.messages for part in message.parts if hasattr(part, "text")]


def test_a_request_that_the_gateway_adds_rounds_to_is_stored_here() -> None:
    async def main() -> None:
        memory = answer_memory()
        kept = await memory.begin(request(), THERE, "o", mint, is_here=True)
        assert kept is not None
        assert kept.is_here
        await kept.save(answer("resp_1"), mint)
        next_one = await begun(memory, request(previous_response_id="resp_1"), THERE)
        assert next_one.is_here
        assert texts(next_one.request) == ["hi", "yes", "hi"]
        # What the back end has stored stays there.
        await (await begun(memory, request(), THERE)).save(answer("resp_2"), mint)
        later = await memory.begin(request(previous_response_id="resp_2"), THERE, "o", mint, is_here=True)
        assert later is not None
        assert not later.is_here

    asyncio.run(main())


def test_a_request_without_state_costs_nothing() -> None:
    async def main() -> None:
        assert await answer_memory().begin(request(store=False), HERE, "o", mint) is None

    asyncio.run(main())


def test_what_only_shall_be_kept_passes_untouched() -> None:
    async def main() -> None:
        asked = request()
        kept = await begun(answer_memory(), asked, HERE)
        assert kept.request is asked
        assert kept.answer_id == ""

    asyncio.run(main())


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_chain_is_the_same_from_the_store_and_from_the_memory_of_late(is_warm: bool) -> None:
    async def main() -> None:
        memory = answer_memory()
        await (await begun(memory, request(), HERE)).save(answer("resp_a", "one"), mint)
        second = await begun(memory, request(input="on", previous_response_id="resp_a"), HERE)
        await second.save(answer("resp_b", "two"), mint)
        if not is_warm:
            memory.histories.forget("o")
        third = await begun(memory, request(input="and on", previous_response_id="resp_b"), ABROAD)
        assert texts(third.request) == ["hi", "one", "on", "two", "and on"]
        assert [type(item) for item in third.request.source["input"]] == [dict] * 5
        assert third.answer_id.startswith("resp_")

    asyncio.run(main())


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_chain_that_is_continued_stays_in_a_full_store(is_warm: bool, is_stored: bool) -> None:
    async def main() -> None:
        memory = answer_memory()
        conversation = Entry(owner="o", id="conv_a", kind="conversation", created=1.0)
        await memory.store.put(conversation)
        await (await begun(memory, request(conversation="conv_a"), HERE)).save(answer("resp_0"), mint)
        await (await begun(memory, request(previous_response_id="resp_0"), HERE)).save(answer("resp_1"), mint)
        last = 1
        for number in range(400):
            await memory.store.put(Entry(owner="p", id=f"x{number}", kind="responses", created=1.0, body=b"x" * 9000))
            if number % 20 == 0:
                if not is_warm:
                    memory.histories.forget("o")
                members = {"previous_response_id": f"resp_{last}", "store": is_stored}
                kept = await begun(memory, request(**members), HERE)
                await kept.save(answer(f"resp_{last + 1}"), mint)
                last += is_stored
        memory.histories.forget("o")
        third = await begun(memory, request(input="on", previous_response_id=f"resp_{last}"), HERE)
        assert len(texts(third.request)) == 2 * (last + 1) + 1

    asyncio.run(main())


def test_a_chain_with_a_hole_is_none() -> None:
    async def main() -> None:
        memory = answer_memory()
        await (await begun(memory, request(), HERE)).save(answer("resp_a"), mint)
        await (await begun(memory, request(previous_response_id="resp_a"), HERE)).save(answer("resp_b"), mint)
        assert await memory.delete("o", "resp_a")
        with pytest.raises(BadRequest, match="resp_b"):
            await memory.begin(request(previous_response_id="resp_b"), HERE, "o", mint)

    asyncio.run(main())


def test_an_answer_of_another_dialect_is_no_history() -> None:
    async def main() -> None:
        memory = answer_memory()
        await memory.store.put(Entry(owner="o", id="msg_1", kind="messages", created=0.0))
        with pytest.raises(BadRequest):
            await memory.begin(request(previous_response_id="msg_1"), HERE, "o", mint)

    asyncio.run(main())


def test_of_what_a_back_end_keeps_only_a_pointer_is_kept() -> None:
    async def main() -> None:
        memory = answer_memory()
        kept = await begun(memory, request(), THERE)
        assert not kept.is_here
        await kept.save(answer("resp_a"), mint)
        assert await memory.store.get("o", "resp_a") is None
        pointer = await memory.pointer("o", "resp_a", "responses")
        assert pointer is not None
        assert pointer.keeper == "there"
        assert await memory.pointer("other", "resp_a", "responses") is None
        assert await memory.pointer("o", "resp_a", "messages") is None
        asked = request(previous_response_id="resp_a")
        assert (await begun(memory, asked, THERE)).request is asked

    asyncio.run(main())


@pytest.mark.parametrize("is_background", [True, False])
def test_an_answer_in_the_background_is_pointed_to_before_its_end(is_background: bool) -> None:
    async def main() -> None:
        memory = answer_memory()
        kept = await begun(memory, request(background=is_background), THERE)
        assert kept.is_awaited is is_background
        await kept.begun("resp_a")
        assert not kept.is_awaited
        assert await memory.pointer("o", "resp_a", "responses") is not None
        await kept.save(answer("resp_a"), mint)
        assert await memory.store.find_items(POINTERS, ["msg_resp_a"])

    asyncio.run(main())


def test_an_answer_deleted_while_in_use_cannot_be_continued() -> None:
    async def main() -> None:
        memory = answer_memory()
        await (await begun(memory, request(), HERE)).save(answer("resp_a"), mint)
        leaning = await begun(memory, request(previous_response_id="resp_a"), HERE)
        await memory.delete("o", "resp_a")
        await leaning.save(answer("resp_b"), mint)
        with pytest.raises(BadRequest):
            await memory.begin(request(previous_response_id="resp_b"), HERE, "o", mint)

    asyncio.run(main())


@pytest.mark.parametrize("is_shared", [True, False])
def test_pointers_refuse_strangers(is_shared: bool) -> None:
    async def main() -> None:
        memory = answer_memory(is_shared=is_shared)
        await (await begun(memory, request(), THERE)).save(answer("resp_a"), mint)
        reference = [{"type": "item_reference", "id": "msg_resp_a"}]
        for members in ({"previous_response_id": "resp_a"}, {"input": reference}):
            assert await memory.begin(request(**members), THERE, "o", mint) is not None
            with pytest.raises(BadRequest):
                await memory.begin(request(**members), THERE, "other", mint)

    asyncio.run(main())


def test_an_unknown_id_is_forwarded_only_for_a_single_user() -> None:
    async def main() -> None:
        for members in (
            {"previous_response_id": "resp_old"},
            {"conversation": "conv_old"},
            {"input": [{"type": "item_reference", "id": "msg_old"}]},
        ):
            asked = request(**members)
            assert (await begun(answer_memory(is_shared=False), asked, THERE)).request is asked
            with pytest.raises(BadRequest):
                await answer_memory(is_shared=True).begin(asked, THERE, "o", mint)

    asyncio.run(main())


def test_another_back_end_cannot_read_what_one_keeps() -> None:
    async def main() -> None:
        memory = answer_memory()
        await (await begun(memory, request(), THERE)).save(answer("resp_a"), mint)
        with pytest.raises(BadRequest) as caught:
            await memory.begin(request(previous_response_id="resp_a"), ABROAD, "o", mint)
        assert caught.value.code == "state_elsewhere"

    asyncio.run(main())


def test_what_the_gateway_keeps_goes_to_a_back_end_that_keeps_too() -> None:
    async def main() -> None:
        memory = answer_memory()
        await (await begun(memory, request(), HERE)).save(answer("resp_a", "one"), mint)
        kept = await begun(memory, request(previous_response_id="resp_a"), THERE)
        assert kept.is_here
        assert kept.request.source["store"] is False
        assert all("id" not in item for item in kept.request.source["input"])

    asyncio.run(main())


def test_a_back_end_that_names_its_items_alike_replaces_nothing_in_a_conversation() -> None:
    async def main() -> None:
        memory = answer_memory()
        await memory.store.put(Entry(owner="o", id="conv_1", kind="conversation", created=0.0))
        for word in ("one", "two"):
            kept = await begun(memory, request(conversation="conv_1"), HERE)
            said = answer("resp_same", word)
            await kept.save(said, mint)
        items = [json.loads(item.value) for item in await memory.store.items("o", "conv_1")]
        assert [item["content"][0]["text"] for item in items] == ["hi", "one", "hi", "two"]
        assert len({item["id"] for item in items}) == 4

    asyncio.run(main())


def test_an_answer_of_a_conversation_is_continued_in_place_or_not_at_all() -> None:
    async def main() -> None:
        memory = answer_memory()
        await memory.store.put(Entry(owner="o", id="conv_1", kind="conversation", created=0.0))
        for number in range(3):
            kept = await begun(memory, request(input=f"ask {number}", conversation="conv_1"), HERE)
            said = answer("same", f"say {number}") | {"id": f"resp_{number}"}
            await kept.save(said, mint)
        after = await begun(memory, request(previous_response_id="resp_1"), HERE)
        assert texts(after.request) == ["ask 0", "say 0", "ask 1", "say 1", "hi"]
        failed = await begun(memory, request(input="ask 3", conversation="conv_1"), HERE)
        await failed.save({"id": "resp_3", "status": "failed", "output": []}, mint)
        after = await begun(memory, request(previous_response_id="resp_3"), HERE)
        assert texts(after.request)[-4:] == ["ask 2", "say 2", "ask 3", "hi"]
        await memory.store.delete("o", "conv_1")
        with pytest.raises(BadRequest):
            await memory.begin(request(previous_response_id="resp_1"), HERE, "o", mint)

    asyncio.run(main())


def test_a_cancelled_answer_is_not_overwritten_by_its_end() -> None:
    async def main() -> None:
        memory = answer_memory()
        asked = request(background=True)
        assert asked.state is not None
        from msgspec.structs import replace

        asked = replace(asked, state=replace(asked.state, answer_id="resp_b"))
        kept = await begun(memory, asked, HERE)
        assert kept.answer_id == "resp_b"
        await memory.store.put(Entry(owner="o", id="resp_b", kind="responses", created=0.0, status="cancelled"))
        await kept.save(answer("resp_b"), mint)
        entry = await memory.store.get("o", "resp_b")
        assert entry is not None
        assert entry.status == "cancelled"

    asyncio.run(main())


def test_items_that_the_client_could_not_send_back_are_kept_but_not_remembered_as_history() -> None:
    async def main() -> None:
        memory = answer_memory()
        broken = answer("resp_a") | {"output": [{"type": "function_call", "id": "fc_1"}]}
        await (await begun(memory, request(), HERE)).save(broken, mint)
        entry = await memory.store.get("o", "resp_a")
        assert entry is not None
        assert entry.output == (Item("fc_1", b'{"type":"function_call","id":"fc_1"}'),)
        with pytest.raises(BadRequest):
            await memory.begin(request(previous_response_id="resp_a"), HERE, "o", mint)

    asyncio.run(main())


def test_the_storing_back_end_is_known_or_configured() -> None:
    def config(name: str, kind: Any, url: str, state: Any = "auto") -> BackendConfig:
        return BackendConfig(name=name, kind=kind, base_url=url, state=state)

    configs = [
        config("openai", "openai-responses", "https://api.openai.com/v1"),
        config("claude", "anthropic", "https://api.anthropic.com"),
        config("chat", "openai-chat", "https://api.openai.com/v1"),
        config("local", "openai-responses", "http://127.0.0.1:1/v1"),
        config("said", "openai-responses", "http://127.0.0.1:1/v1", "upstream"),
        config("not", "openai-responses", "https://api.openai.com/v1", "gateway"),
        config("demo", "demo", ""),
    ]
    assert storing_backends(configs) == ["openai", "claude", "said"]
    assert POINTERS not in ("", "0" * 16)


def test_a_long_history_is_read_beside_the_loop() -> None:
    async def main() -> None:
        memory = AnswerMemory(MemoryStore(max_bytes=1 << 30, max_age=1e9), [], is_shared=False)
        content = [{"type": "input_text", "text": f"word {n}"} for n in range(200)]
        items = [{"type": "message", "role": "user", "content": content} for _ in range(500)]
        entry = Entry(owner="o", id="resp_1", kind="responses", created=1.0, input=json.dumps(items).encode())
        await memory.store.put(entry)
        async with ticking() as ticks:
            kept = await begun(memory, request(previous_response_id="resp_1"), ABROAD)
            assert ticks.count >= 5
        assert len(kept.past.items) == 500
        assert kept.size > 2 << 20

    asyncio.run(main())
