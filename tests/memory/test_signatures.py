"""Reasoning that clients drop is kept for them, each owner's alone, and goes back to the back end that made it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.calls.telling import assistant, call, result, tool, user
from tests.dialects.codec_harness import body_in, events_in, make_request, numbered_ids, out
from tests.dialects.upstream_events import block, json_delta, message_end, message_start, tool_use
from tests.memory.store.contract import until
from toolwire.calls.ledger.repair import repair_history
from toolwire.calls.turn import Turn
from toolwire.dialects import DIALECTS
from toolwire.errors import GatewayError
from toolwire.events import Event, Finished, FoldedAnswer, PartEnded, Started, fold, unfold
from toolwire.memory.signatures import OWNERS, ReasoningSource, SignatureMemory, needs_of, reasoning_source
from toolwire.memory.store import Entry, MemoryStore, SqliteStore, Store
from toolwire.profiles import (
    ANTHROPIC,
    DEEPSEEK,
    KIMI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    OPENROUTER,
    PLAIN,
    PLAIN_CHAT,
    RESPONSES,
    Profile,
)
from toolwire.types import Choice, Loss, Message, Part, Reasoning, Request, Usage

ID = "toolu_01A09q90qw90lq917835lq9"
SIGNED = Reasoning(text="hm", signature="c2ln")
TURN: tuple[Part, ...] = (SIGNED, call(ID))
MONTH = 30 * 86400.0


def maker(
    dialect: str = "messages", profile: Profile = ANTHROPIC, backend: str = "b", model: str = "m"
) -> ReasoningSource:
    needs = needs_of(dialect, profile)
    assert needs is not None
    return ReasoningSource(backend=backend, model=model, needs=needs)


CLAUDE = maker()


def request(*messages: Message, origin: str = "chat") -> Request:
    return Request(model="alias", messages=messages, origin=origin, wire=b"{}")


FIRST = request(user("hi"))
NEXT = request(user("hi"), assistant(call(ID)), tool(result(ID)))


class Counting(MemoryStore):
    """Notes what is asked of it; fails when told to."""

    def __init__(self, max_bytes: int = 1 << 20) -> None:
        super().__init__(max_bytes=max_bytes, max_age=1e9)
        self.asked: list[list[str]] = []
        self.put_ones: list[Entry] = []
        self.is_broken = False

    async def put(self, entry: Entry) -> None:
        if self.is_broken:
            raise GatewayError("the disk is full.")
        self.put_ones.append(entry)
        await super().put(entry)

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        if self.is_broken:
            raise GatewayError("the disk is gone.")
        self.asked.append(list(ids))
        return await super().find_items(owner, ids)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


async def parts_back(
    vault: SignatureMemory, asked: Request = NEXT, owner: str = "o", by: ReasoningSource = CLAUDE
) -> tuple[Part, ...]:
    """Of the first turn with calls, as the back end gets it."""
    recalled = await vault.restore(asked, by, owner)
    assert recalled.losses == ()
    assert (recalled.request is asked) == (recalled.turns == 0)
    assert recalled.request.wire == (b"" if recalled.turns else asked.wire)
    (turn,) = [one for one in recalled.request.messages if one.role == "assistant"]
    return turn.parts


def test_H075_what_a_client_dropped_is_put_back() -> None:
    async def main() -> None:
        vault = SignatureMemory()
        assert await vault.keep(FIRST, CLAUDE, "o", TURN) == ()
        assert await parts_back(vault) == TURN

    run(main())


def test_another_owner_gets_nothing() -> None:
    async def main() -> None:
        store = Counting()
        for vault in (SignatureMemory(store), SignatureMemory(store)):
            await vault.keep(FIRST, CLAUDE, "o", TURN)
            assert await parts_back(vault, owner="p") == (call(ID),)
            assert await parts_back(vault, owner="") == (call(ID),)
            assert await parts_back(vault) == TURN

    run(main())


def test_H084_H166_only_the_back_end_and_model_that_made_it_get_it() -> None:
    async def main() -> None:
        vault = SignatureMemory(Counting())
        await vault.keep(FIRST, CLAUDE, "o", TURN)
        assert await parts_back(vault, by=maker(backend="c")) == (call(ID),)
        assert await parts_back(vault, by=maker(model="n")) == (call(ID),)
        assert await parts_back(vault, by=maker("responses", RESPONSES)) == (call(ID),)
        assert await parts_back(vault) == TURN

    run(main())


def test_H079_an_edited_call_gets_nothing() -> None:
    async def main() -> None:
        vault = SignatureMemory(Counting())
        await vault.keep(FIRST, CLAUDE, "o", TURN)
        edited = call(ID, raw='{"x":1}', args={"x": 1})
        assert await parts_back(vault, request(user("hi"), assistant(edited), tool(result(ID)))) == (edited,)

    run(main())


def test_it_survives_a_restart(tmp_path: Path) -> None:
    async def once(work: Any) -> None:
        store = SqliteStore(tmp_path / "store.db", max_bytes=4 << 20, max_age=MONTH)
        await work(SignatureMemory(store))
        await store.close()

    async def kept(vault: SignatureMemory) -> None:
        await vault.keep(FIRST, CLAUDE, "o", TURN)

    async def found(vault: SignatureMemory) -> None:
        assert await parts_back(vault) == TURN
        assert await parts_back(vault, owner="p") == (call(ID),)

    run(once(kept))
    run(once(found))


def test_the_store_prunes_it_by_age_and_size() -> None:
    async def main() -> None:
        now = [0.0]
        aged: Store = MemoryStore(max_bytes=1 << 20, max_age=100.0, clock=lambda: now[0])
        await SignatureMemory(aged).keep(FIRST, CLAUDE, "o", TURN)
        assert await parts_back(SignatureMemory(aged)) == TURN
        now[0] = 1000.0

        async def is_gone() -> bool:
            return await parts_back(SignatureMemory(aged)) == (call(ID),)

        await until(is_gone)
        small: Store = MemoryStore(max_bytes=150_000, max_age=1e9)
        writing = SignatureMemory(small, max_bytes=0)
        for number in range(20):
            long = Reasoning(text="x" * 10_000, signature="s")
            await writing.keep(FIRST, CLAUDE, "o", (long, call(f"{ID}{number}")))
        asked = request(
            user("hi"), *(one for n in range(20) for one in (assistant(call(f"{ID}{n}")), tool(result(f"{ID}{n}"))))
        )
        recalled = await SignatureMemory(small).restore(asked, CLAUDE, "o")
        assert 1 <= recalled.turns <= 6
        assert len(recalled.request.messages[-2].parts) == 2

    run(main())


def test_memory_is_bounded_and_keeps_what_is_used() -> None:
    async def main() -> None:
        vault = SignatureMemory(max_bytes=200_000)
        await vault.keep(FIRST, CLAUDE, "o", TURN)
        for number in range(100):
            long = Reasoning(text="x" * 10_000, signature="s")
            await vault.keep(FIRST, CLAUDE, "o", (long, call(f"{ID}{number}")))
            assert await parts_back(vault) == TURN
        assert vault.held_bytes <= 200_000
        early = request(user("hi"), assistant(call(f"{ID}0")), tool(result(f"{ID}0")))
        assert await parts_back(vault, early) == (call(f"{ID}0"),)
        await vault.keep(FIRST, CLAUDE, "o", (Reasoning(text="x" * 100_000, signature="s"), call(f"{ID}big")))
        assert await parts_back(vault) == TURN

    run(main())


def test_a_turn_too_large_is_not_stored_and_reported() -> None:
    async def main() -> None:
        store = Counting()
        vault = SignatureMemory(store)
        (loss,) = await vault.keep(FIRST, CLAUDE, "o", (Reasoning(text="x" * (5 << 20), signature="s"), call(ID)))
        assert loss == Loss("reasoning", "store", "5 MB of it are too large to be stored for the client")
        assert store.put_ones == []
        assert await parts_back(vault) == (call(ID),)

    run(main())


def test_the_store_is_read_once_for_all_turns() -> None:
    async def main() -> None:
        store = Counting()
        vault = SignatureMemory(store)
        ids = [f"{ID}{number}" for number in range(5)]
        asked = request(user("hi"), *(one for name in ids for one in (assistant(call(name)), tool(result(name)))))
        for _ in range(3):
            assert (await vault.restore(asked, CLAUDE, "o")).request is asked
        assert [len(question) for question in store.asked] == [5]

    run(main())


def test_turns_that_were_answered_here_need_no_lookup() -> None:
    async def main() -> None:
        store = Counting()
        vault = SignatureMemory(store)
        await vault.keep(FIRST, CLAUDE, "o", (call(ID),))
        assert (await vault.restore(NEXT, CLAUDE, "o")).request is NEXT
        await vault.keep(FIRST, CLAUDE, "o", TURN)
        assert await parts_back(vault) == TURN
        assert store.asked == []
        assert len(store.put_ones) == 1
        assert store.put_ones[0].owner == OWNERS + "o"

    run(main())


@pytest.mark.parametrize(
    "asked",
    [
        FIRST,
        request(user("hi"), assistant("yes"), user("more")),
        request(user("hi"), assistant(SIGNED, call(ID)), tool(result(ID))),
    ],
)
def test_H078_requests_that_lack_nothing_stay_the_same_object(asked: Request) -> None:
    async def main() -> None:
        store = Counting()
        assert (await SignatureMemory(store).restore(asked, CLAUDE, "o")).request is asked
        assert (await SignatureMemory(store).restore(asked, None, "o")).request is asked
        assert store.asked == []

    run(main())


def test_a_client_that_carries_its_reasoning_writes_nothing_to_the_store() -> None:
    async def main() -> None:
        store = Counting()
        vault = SignatureMemory(store)
        carrying = request(user("hi"), assistant(SIGNED, call("a")), tool(result("a")))
        await vault.keep(carrying, CLAUDE, "o", TURN)
        assert store.put_ones == []
        assert await parts_back(vault) == TURN

    run(main())


def test_a_failing_store_costs_no_request() -> None:
    async def main() -> None:
        store, now = Counting(), [0.0]
        vault = SignatureMemory(store, clock=lambda: now[0])
        store.is_broken = True
        (loss,) = await vault.keep(FIRST, CLAUDE, "o", TURN)
        assert loss == Loss("store", "store", "the reasoning could not be stored: the disk is full.")
        assert await parts_back(vault) == TURN
        other = request(user("hi"), assistant(call(f"{ID}x")), tool(result(f"{ID}x")))
        recalled = await vault.restore(other, CLAUDE, "o")
        assert recalled.request is other
        assert [loss.why for loss in recalled.losses] == ["past reasoning could not be looked up: the disk is gone."]
        assert (await vault.restore(other, CLAUDE, "o")).losses == ()  # it is left in peace for a while
        store.is_broken = False
        now[0] = 60.0
        await vault.restore(other, CLAUDE, "o")
        assert len(store.asked) == 1

    run(main())


def test_H076_what_is_damaged_in_the_store_is_not_there() -> None:
    async def main() -> None:
        store = Counting()
        await SignatureMemory(store).keep(FIRST, CLAUDE, "o", TURN)
        (entry,) = store.put_ones
        (item,) = entry.output
        for value in (b"{}", item.value[:-10], b'"x"'):
            await store.put(
                Entry(owner=entry.owner, id=entry.id, kind="reasoning", created=0, output=(type(item)(item.id, value),))
            )
            assert await parts_back(SignatureMemory(store)) == (call(ID),)

    run(main())


def test_H048_ids_that_restart_in_every_conversation_are_not_confused() -> None:
    kimi = maker("chat", KIMI)
    name = "functions.read:0"

    def turn(thought: str) -> tuple[Part, ...]:
        return (Reasoning(text=thought, extra={"chat": {}}), call(name))

    async def main() -> None:
        for vault in (SignatureMemory(), SignatureMemory(Counting(), max_bytes=0)):
            await vault.keep(request(user("fix the bug")), kimi, "o", turn("the bug"))
            await vault.keep(request(user("write a poem")), kimi, "o", turn("a poem"))
            for said, thought in (("fix the bug", "the bug"), ("write a poem", "a poem")):
                asked = request(user(said), assistant(call(name)), tool(result(name)), user("go on"))
                assert await parts_back(vault, asked, by=kimi) == turn(thought)
            strange = request(user("sing"), assistant(call(name)), tool(result(name)))
            assert await parts_back(vault, strange, by=kimi) == (call(name),)

    run(main())


def test_two_turns_of_one_conversation_with_one_id() -> None:
    """As from servers that count calls anew in each answer; the ledger gives the second a name of its own later."""

    async def main() -> None:
        vault = SignatureMemory()
        first, second = Reasoning(text="1", signature="1"), Reasoning(text="2", signature="2")
        await vault.keep(FIRST, CLAUDE, "o", (first, call("call_0")))
        later = (user("hi"), assistant(call("call_0")), tool(result("call_0", "one")))
        await vault.keep(request(*later), CLAUDE, "o", (second, call("call_0")))
        asked = request(*later, assistant(call("call_0")), tool(result("call_0", "two")))
        whole = (await vault.restore(asked, CLAUDE, "o")).request.messages
        assert [whole[1].parts[0], whole[3].parts[0]] == [first, second]

    run(main())


def test_an_id_that_a_client_has_in_another_form_is_known() -> None:
    async def main() -> None:
        vault = SignatureMemory()
        long = f"call/{ID}/" + "x" * 80
        await vault.keep(FIRST, CLAUDE, "o", (SIGNED, call(long)))
        fitted = body_of("messages", (call(long),))["content"][0]["id"]
        assert fitted != long
        for name in (long, fitted):
            back = await parts_back(vault, request(user("hi"), assistant(call(name)), tool(result(name))))
            assert back == (SIGNED, call(name))

    run(main())


@pytest.mark.parametrize(
    ("dialect", "profile", "part", "is_kept"),
    [
        ("messages", ANTHROPIC, Reasoning(text="x", signature="s"), True),
        ("messages", ANTHROPIC, Reasoning(text="", redacted="s"), True),
        ("messages", ANTHROPIC, Reasoning(text="x"), False),
        ("responses", OPENAI_RESPONSES, Reasoning(text="x", encrypted="e", extra={"responses": {}}), True),
        ("responses", OPENAI_RESPONSES, Reasoning(text="x", item_id="rs_1", extra={"responses": {}}), False),
        ("responses", RESPONSES, Reasoning(text="x", item_id="rs_1", extra={"responses": {}}), True),
        ("chat", DEEPSEEK, Reasoning(text="x", extra={"chat": {}}), True),
        ("chat", OPENAI_CHAT, Reasoning(text="x", extra={"chat": {}}), False),
        ("chat", PLAIN_CHAT, Reasoning(text="x", extra={"chat": {"reasoning_details": [1]}}), True),
    ],
)
def test_H082_H083_what_each_back_end_takes_back(
    dialect: str, profile: Profile, part: Reasoning, is_kept: bool
) -> None:
    async def main() -> None:
        store = Counting()
        await SignatureMemory(store).keep(FIRST, maker(dialect, profile), "o", (part, call(ID)))
        assert bool(store.put_ones) is is_kept

    run(main())


def test_who_answers_in_this_process_wants_nothing_back() -> None:
    class Somebody:
        name, dialect, profile, tool_kinds = "demo", "", PLAIN, frozenset[str]()

    assert reasoning_source(Somebody(), "m") is None  # type: ignore[arg-type] # only these members are looked at


def test_nothing_is_done_for_an_answer_without_calls() -> None:
    async def main() -> None:
        store = Counting()
        assert await SignatureMemory(store).keep(FIRST, CLAUDE, "o", (SIGNED,)) == ()
        assert await SignatureMemory(store).keep(FIRST, None, "o", TURN) == ()
        assert store.put_ones == []

    run(main())


def test_a_long_history_without_reasoning_costs_little() -> None:
    async def main() -> None:
        vault = SignatureMemory(Counting())
        turns = [one for n in range(500) for one in (assistant("x", call(f"{ID}{n}")), tool(result(f"{ID}{n}")))]
        asked = request(user("hi"), *turns)
        await vault.restore(asked, CLAUDE, "o")
        began = time.process_time()
        for _ in range(10):
            await vault.restore(asked, CLAUDE, "o")
        assert time.process_time() - began < 10 * len(turns) * 20e-6

    run(main())


# Through the dialects: a back end's answer, the client's next request, and what the back end gets.

TOOLS = {
    "chat": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    "messages": [{"name": "read", "input_schema": {"type": "object"}}],
    "responses": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
}
THINKING = {"type": "thinking", "thinking": 'I must "look", é\u2028.', "signature": "RXNpZ25hdHVyZQ=="}
REDACTED = {"type": "redacted_thinking", "data": "RW1vcmU="}
USE = {"type": "tool_use", "id": ID, "name": "read", "input": {"path": "/é", "n": 1.50}}


def turn_of(asked: Request, events: list[Event]) -> tuple[Part, ...]:
    return fold(Turn(asked, numbered_ids()).send(events)).parts_of(0)


def body_of(dialect: str, parts: Sequence[Part]) -> Any:
    ended = tuple(PartEnded(index=number, part=part) for number, part in enumerate(parts))
    finished = Finished(choices=(Choice(reason="tool_calls"),), usage=Usage(input=1, output=1))
    answer = FoldedAnswer(started=Started(id="", model="m"), parts=ended, finished=finished)
    return json.loads(out(dialect, unfold(answer), make_request(dialect, is_stream=False)))


def forgetful(dialect: str, parts: Sequence[Part], **members: Any) -> Request:
    """The next request of a client that keeps of an answer what everybody keeps."""
    body = body_of(dialect, parts)
    if dialect == "chat":
        message = body["choices"][0]["message"]
        kept = {key: message[key] for key in ("role", "content", "tool_calls")}
        results = [{"role": "tool", "tool_call_id": one["id"], "content": "ok"} for one in message["tool_calls"]]
        history: Any = {"messages": [{"role": "user", "content": "hi"}, kept, *results]}
    elif dialect == "messages":
        blocks = [one for one in body["content"] if one["type"] in ("text", "tool_use")]
        uses = [one["id"] for one in blocks if one["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in uses]
        turn = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        history = {"messages": [{"role": "user", "content": "hi"}, *turn]}
    else:
        items = [one for one in body["output"] if one["type"] in ("message", "function_call")]
        names = [one["call_id"] for one in items if one["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": name, "output": "ok"} for name in names]
        history = {"input": [{"role": "user", "content": "hi"}, *items, *results], "store": False}
    return make_request(dialect, is_stream=False, tools=TOOLS[dialect], **history, **members)


def sent(asked: Request, by: ReasoningSource, profile: Profile) -> tuple[Any, tuple[Loss, ...]]:
    """What leaves for the back end; the ledger has nothing to repair in it."""
    assert repair_history(asked).request is asked
    encoded = DIALECTS[by.needs.dialect].encode_request(asked, profile)
    return json.loads(encoded.body), encoded.losses


def way_round(client: str, events: list[Event], by: ReasoningSource, profile: Profile, **members: Any) -> Any:
    """From a back end's answer to the next body it gets, through a client that drops reasoning."""
    first = make_request(client, is_stream=False, tools=TOOLS[client])
    parts = turn_of(first, events)
    asked = forgetful(client, parts, **members)

    async def main() -> Any:
        vault = SignatureMemory()
        await vault.keep(first, by, "o", parts)
        recalled = await vault.restore(asked, by, "o")
        assert recalled.turns == 1
        return sent(recalled.request, by, profile)

    return asyncio.run(main())


CLIENTS = ["chat", "messages", "responses"]


@pytest.mark.parametrize("client", CLIENTS)
def test_H075_H080_signed_thinking_comes_back_byte_for_byte(client: str) -> None:
    content = [THINKING, REDACTED, {"type": "text", "text": "I look."}, USE, {**USE, "id": ID + "2"}]
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    answer |= {"stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    events = body_in("messages", json.dumps(answer).encode())
    body, _ = way_round(client, events, CLAUDE, ANTHROPIC)
    (turn,) = [message for message in body["messages"] if message["role"] == "assistant"]
    assert turn["content"] == content


@pytest.mark.parametrize("client", CLIENTS)
def test_H081_a_streamed_signature_in_pieces_comes_back_whole(client: str) -> None:
    signature = "RXNpZ25hdHVyZQ" * 50
    pieces = [{"type": "signature_delta", "signature": signature[at : at + 100]} for at in range(0, 700, 100)]
    wire = message_start() + block(0, {"type": "thinking", "thinking": "", "signature": ""}, *pieces)
    wire += block(1, tool_use(ID, "read"), json_delta('{"path":'), json_delta('"/"}')) + message_end("tool_use")
    body, _ = way_round(client, events_in("messages", wire), CLAUDE, ANTHROPIC)
    (turn,) = [message for message in body["messages"] if message["role"] == "assistant"]
    assert turn["content"][0] == {"type": "thinking", "thinking": "", "signature": signature}
    assert turn["content"][1]["input"] == {"path": "/"}


def test_H075_thinking_stays_on_where_the_thought_was_found() -> None:
    model = "claude-3-7-sonnet"
    asked = forgetful("chat", (SIGNED, call(ID)), reasoning_effort="high")

    async def main() -> None:
        vault = SignatureMemory()
        body, losses = sent(named(asked, model), CLAUDE, ANTHROPIC)
        assert "thinking" not in body
        assert [loss.feature for loss in losses] == ["thinking"]
        await vault.keep(FIRST, CLAUDE, "o", TURN)
        recalled = await vault.restore(named(asked, model), CLAUDE, "o")
        body, losses = sent(recalled.request, CLAUDE, ANTHROPIC)
        assert body["thinking"]["type"] == "enabled"
        assert losses == ()

    run(main())


def named(asked: Request, model: str) -> Request:
    return replace(asked, model=model)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("has_words", [True, False])
def test_H083_encrypted_reasoning_comes_back_as_its_item(client: str, has_words: bool) -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("First.", "Then.")] if has_words else []
    thought = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "Z0FBQUFB"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "I look.", "annotations": []}]
    called = {"type": "function_call", "id": "fc_1", "call_id": ID, "name": "read", "arguments": '{"n": 1.0}'}
    called["status"] = "completed"
    second = {**thought, "id": "rs_2", "encrypted_content": "bW9yZQ"}
    answer = {"id": "resp_1", "object": "response", "status": "completed", "created_at": 1, "model": "m"}
    answer |= {"output": [thought, said, second, called], "usage": {"input_tokens": 1, "output_tokens": 1}}
    by = maker("responses", OPENAI_RESPONSES)
    body, _ = way_round(client, body_in("responses", json.dumps(answer).encode()), by, OPENAI_RESPONSES)
    kinds = [item.get("type", "message") for item in body["input"]]
    assert kinds == ["message", "reasoning", "message", "reasoning", "function_call", "function_call_output"]
    assert [body["input"][1], body["input"][3]] == [thought, second]
    assert json.loads(body["input"][4]["arguments"]) == {"n": 1.0}


@pytest.mark.parametrize("client", CLIENTS)
def test_H082_reasoning_content_comes_back(client: str) -> None:
    function = {"name": "read", "arguments": '{"path": "/"}'}
    message = {"role": "assistant", "content": "I look.", "reasoning_content": "First I look.\n"}
    message["tool_calls"] = [{"id": ID, "type": "function", "function": function}]
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    answer |= {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    answer |= {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    by = maker("chat", DEEPSEEK)
    body, losses = way_round(client, body_in("chat", json.dumps(answer).encode()), by, DEEPSEEK)
    (turn,) = [one for one in body["messages"] if one["role"] == "assistant"]
    assert {key: turn[key] for key in ("content", "reasoning_content")} == {
        key: message[key] for key in ("content", "reasoning_content")
    }
    assert turn["tool_calls"][0]["id"] == ID
    assert json.loads(turn["tool_calls"][0]["function"]["arguments"]) == {"path": "/"}
    assert losses == ()


def test_H074_a_proof_that_hangs_on_a_call_comes_back() -> None:
    proof = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    by = maker("chat", PLAIN_CHAT)

    async def main() -> None:
        for client in CLIENTS:
            vault = SignatureMemory()
            signed = call(ID, extra={"chat": proof})
            await vault.keep(make_request(client), by, "o", (signed, call(ID + "2")))
            recalled = await vault.restore(forgetful(client, (signed, call(ID + "2"))), by, "o")
            body, _ = sent(recalled.request, by, PLAIN_CHAT)
            (turn,) = [one for one in body["messages"] if one["role"] == "assistant"]
            assert [one.get("extra_content") for one in turn["tool_calls"]] == [proof["extra_content"], None]

    run(main())


def test_H075_members_that_prove_a_thought_in_chat_come_back() -> None:
    details = [{"type": "reasoning.encrypted", "data": "c2ln"}]
    thought = Reasoning(text="hm", extra={"chat": {"reasoning_details": details}})
    by = maker("chat", OPENROUTER)

    async def main() -> None:
        for client in CLIENTS:
            vault = SignatureMemory()
            await vault.keep(make_request(client), by, "o", (thought, call(ID)))
            recalled = await vault.restore(forgetful(client, (thought, call(ID))), by, "o")
            body, losses = sent(recalled.request, by, OPENROUTER)
            (turn,) = [one for one in body["messages"] if one["role"] == "assistant"]
            assert turn["reasoning_details"] == details
            assert "reasoning_content" not in turn
            assert losses == ()

    run(main())


@pytest.mark.parametrize("joined", ["".join, "\n\n".join])
def test_H076_a_chat_client_that_returns_the_reasoning_gets_its_signature(joined: Any) -> None:
    """Streams join thoughts without a gap, whole answers with one."""
    turn = (SIGNED, Reasoning(text="then", signature="dHdv"), call(ID))
    words = {"role": "assistant", "content": None, "reasoning_content": joined(["hm", "then"])}
    words["tool_calls"] = body_of("chat", turn)["choices"][0]["message"]["tool_calls"]
    answered = {"role": "tool", "tool_call_id": ID, "content": "ok"}
    asked = make_request("chat", messages=[{"role": "user", "content": "hi"}, words, answered])

    async def main() -> None:
        vault = SignatureMemory()
        await vault.keep(make_request("chat"), CLAUDE, "o", turn)
        body, _ = sent((await vault.restore(asked, CLAUDE, "o")).request, CLAUDE, ANTHROPIC)
        assert [block["type"] for block in body["messages"][1]["content"]] == ["thinking", "thinking", "tool_use"]
        assert [block.get("signature") for block in body["messages"][1]["content"]] == ["c2ln", "dHdv", None]

    run(main())


def test_that_nothing_was_kept_is_remembered_for_a_bounded_number_of_turns() -> None:
    def asked(number: int) -> Request:
        name = f"call_{number:024x}"
        return request(user("hi"), assistant(call(name)), tool(result(name)))

    async def main() -> None:
        store = Counting()
        vault = SignatureMemory(store)
        for number in range(5000):
            await parts_back(vault, asked(number))
        assert len(store.asked) == 5000
        await parts_back(vault, asked(4000))
        assert len(store.asked) == 5000
        await parts_back(vault, asked(0))
        assert len(store.asked) == 5001
        by = maker(model="m" * 10_000)  # a long key is not worth its memory
        for _ in range(2):
            await parts_back(vault, asked(1), by=by)
        assert len(store.asked) == 5003

    run(main())
