"""The messages of the schema on the wire: byte for byte where it counts, and nothing lost of what is not in it."""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from toolwire.backends.cursor.wire import agent

DESCRIPTOR = FileDescriptorProto.FromString(Path(agent.__file__).with_suffix(".binpb").read_bytes())
ROOTS = ("AgentClientMessage", "AgentServerMessage")

# One field in a line: tag, length, content. Written by hand from the numbers of the schema.
OPENING = """
0a 77                                run_request, 119 bytes
  0a 00                                conversation_state: there, and empty
  12 20                                action
    0a 1e                                user_message_action
      0a 0d                                user_message
        0a 05 48 65 6c 6c 6f                 text: Hello
        12 02 6d 31                          message_id: m1
        20 01                                mode: agent
      12 0d                                request_context
        22 0b                                env
          0a 05 6c 69 6e 75 78                 os_version: linux
          12 02 2f 77                          workspace_paths: /w
  1a 09                                model_details
    0a 07 64 65 66 61 75 6c 74           model_id: default
  22 20                                mcp_tools
    0a 1e                                mcp_tools
      0a 03 61 64 64                       name: add
      12 04 41 64 64 73                    description: Adds
      22 08 74 6f 6f 6c 77 69 72 65        provider_identifier: toolwire
      2a 03 61 64 64                       tool_name: add
      32 02 7b 7d                          input_schema_json: {}
  2a 02 63 31                          conversation_id: c1
  4a 1b                                requested_model
    0a 07 64 65 66 61 75 6c 74           model_id: default
    10 01                                max_mode
    1a 0e                                parameters
      0a 06 65 66 66 6f 72 74              id: effort
      12 04 68 69 67 68                    value: high
  ca 01 02 72 31                       run_id: r1
"""


def hand_encoded(table: str) -> bytes:
    """What stands left of the first two blanks in each line."""
    return b"".join(bytes.fromhex(line.strip().split("  ")[0]) for line in table.strip().splitlines())


def test_an_initial_request_equals_the_one_encoded_by_hand() -> None:
    tool = agent.McpToolDefinition(
        name="add", description="Adds", provider_identifier="toolwire", tool_name="add", input_schema_json="{}"
    )
    effort = agent.RequestedModel_ModelParameterValue(id="effort", value="high")
    action = agent.UserMessageAction(
        user_message=agent.UserMessage(text="Hello", message_id="m1", mode=agent.AGENT_MODE_AGENT),
        request_context=agent.RequestContext(env=agent.RequestContextEnv(os_version="linux", workspace_paths=["/w"])),
    )
    request = agent.AgentRunRequest(
        conversation_state=agent.ConversationStateStructure(),
        action=agent.ConversationAction(user_message_action=action),
        model_details=agent.ModelDetails(model_id="default"),
        mcp_tools=agent.McpTools(mcp_tools=[tool]),
        conversation_id="c1",
        requested_model=agent.RequestedModel(model_id="default", max_mode=True, parameters=[effort]),
        run_id="r1",
    )
    wire = agent.AgentClientMessage(run_request=request).SerializeToString()
    assert wire.hex(" ") == hand_encoded(OPENING).hex(" ")
    assert agent.AgentClientMessage.FromString(wire).run_request == request


def test_an_empty_conversation_state_is_there() -> None:
    request = agent.AgentRunRequest(conversation_state=agent.ConversationStateStructure())
    assert request.SerializeToString().hex(" ") == "0a 00"
    assert agent.AgentClientMessage(run_request=request).SerializeToString().hex(" ") == "0a 02 0a 00"
    assert agent.AgentRunRequest.FromString(b"\x0a\x00").HasField("conversation_state")
    assert not agent.AgentRunRequest.FromString(b"").HasField("conversation_state")


def test_small_messages_byte_for_byte() -> None:
    heartbeat = agent.AgentClientMessage(client_heartbeat=agent.ClientHeartbeat())
    assert heartbeat.SerializeToString().hex(" ") == "3a 00"
    closing = agent.ExecClientControlMessage(stream_close=agent.ExecClientStreamClose(id=7))
    assert (
        agent.AgentClientMessage(exec_client_control_message=closing).SerializeToString().hex(" ")
        == "2a 04 0a 02 08 07"
    )
    acknowledged = agent.KvClientMessage(id=300, set_blob_result=agent.SetBlobResult())
    assert acknowledged.SerializeToString().hex(" ") == "08 ac 02 1a 00"
    append = agent.BidiAppendRequest(data="3a00", request_id=agent.BidiRequestId(request_id="r"), append_seqno=1)
    assert append.SerializeToString().hex(" ") == "0a 04 33 61 30 30 12 03 0a 01 72 18 01"


def test_what_the_schema_does_not_have_is_written_again() -> None:
    """A tool call of a kind that nobody models, and a member 99 of the message itself."""
    wire = bytes.fromhex("0a 0f 12 0d 0a 01 63 12 08 ba 04 05 0a 03 61 62 63") + bytes.fromhex("98 06 01")
    message = agent.AgentServerMessage.FromString(wire)
    assert message.interaction_update.tool_call_started.call_id == "c"
    assert message.interaction_update.tool_call_started.tool_call.WhichOneof("tool") is None
    assert message.SerializeToString() == wire


@pytest.mark.slow
def test_five_thousand_random_messages_come_back_with_all_that_was_in_them() -> None:
    random = Random(20)
    unknown = 0
    for turn in range(5000):
        root = getattr(agent, ROOTS[turn % 2])
        writer = Writer(random)
        wire = writer.message(root.DESCRIPTOR, 0)
        unknown += writer.unknown
        again = root.FromString(wire).SerializeToString()
        assert canonical(root.DESCRIPTOR, again) == canonical(root.DESCRIPTOR, wire), wire.hex()
    assert unknown > 5000


def test_random_messages_cut_short_are_refused_or_read_and_never_worse() -> None:
    random = Random(21)
    refused = 0
    for _ in range(500):
        wire = Writer(random).message(agent.AgentServerMessage.DESCRIPTOR, 0)
        place = random.randrange(len(wire) + 1)
        try:
            agent.AgentServerMessage.FromString(wire[:place])
        except DecodeError:
            refused += 1
    assert refused > 50


def test_nesting_without_end_is_refused() -> None:
    wire = b""
    for _ in range(2000):  # a list in a list
        wire = tagged(6, tagged(1, wire))
    with pytest.raises(DecodeError):
        agent.Value.FromString(wire)


def test_every_exec_has_a_result() -> None:
    requested = agent.ExecServerMessage.DESCRIPTOR.oneofs_by_name["message"].fields
    answers = {field.name for field in agent.ExecClientMessage.DESCRIPTOR.oneofs_by_name["message"].fields}
    for field in requested:
        kind = field.name.removesuffix("_args")
        expected = {"shell_stream": "shell_stream", "git_diff_request": "git_diff_response"}.get(kind, f"{kind}_result")
        assert expected in answers, kind


def test_every_query_has_a_response_of_its_number() -> None:
    requested = {field.number for field in agent.InteractionQuery.DESCRIPTOR.oneofs_by_name["query"].fields}
    answers = {field.number for field in agent.InteractionResponse.DESCRIPTOR.oneofs_by_name["result"].fields}
    assert requested == answers == set(range(2, 15))


def test_enums_are_numbers_by_name_and_names_by_number() -> None:
    assert agent.AGENT_MODE_AGENT == agent.AgentMode.Value("AGENT_MODE_AGENT") == 1
    assert agent.ErrorDetails_Error.Name(28) == "ERROR_GPT_4_VISION_PREVIEW_RATE_LIMIT"


def test_the_pool_is_our_own() -> None:
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("agent.v1.AgentRunRequest")


def test_the_stub_has_what_the_module_has() -> None:
    stub = ast.parse(Path(agent.__file__).with_suffix(".pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    values = {
        node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    made = agent.DESCRIPTOR.message_types_by_name
    assert set(classes) == set(made)
    assert all(hasattr(agent, name) for name in values)
    for name, node in classes.items():
        members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__init__"}
        members |= {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        assert members == set(made[name].fields_by_name) - {"global", "async"}, name


class Writer:
    """Random messages, written as bytes by the rules of the wire, with members in between that no schema has."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.unknown = 0

    def message(self, descriptor: Any, depth: int) -> bytes:
        parts = [self.field(field, depth) for field in self.chosen(descriptor, depth)]
        for _ in range(self.random.choice((0, 0, 1, 2))):
            parts.append(self.stranger(descriptor))
        self.random.shuffle(parts)
        return b"".join(parts)

    def chosen(self, descriptor: Any, depth: int) -> Iterator[Any]:
        """At most one of each oneof, since the last one on the wire would win."""
        taken = set()
        for field in self.random.sample(list(descriptor.fields), min(len(descriptor.fields), 4)):
            group = field.containing_oneof.name if field.containing_oneof else field.name
            if group not in taken and not (depth > 6 and field.message_type):
                taken.add(group)
                yield field

    def field(self, field: Any, depth: int) -> bytes:
        if field.message_type is None:
            if not is_repeated(field):
                return self.scalar(field)
            return b"".join(self.scalar(field) for _ in range(self.random.randrange(1, 3)))
        if field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            return tagged(field.number, self.scalar(key) + self.field(value, depth + 1))
        times = self.random.randrange(1, 3) if is_repeated(field) else 1
        return b"".join(tagged(field.number, self.message(field.message_type, depth + 1)) for _ in range(times))

    def scalar(self, field: Any) -> bytes:
        """Never a zero, which is not written where it is not optional."""
        if field.type == field.TYPE_STRING:
            return tagged(field.number, self.random.choice(("a", "Grüße", "\U0001f600", "x" * 200)).encode())
        if field.type == field.TYPE_BYTES:
            return tagged(field.number, self.random.randbytes(self.random.randrange(1, 40)))
        if field.type == field.TYPE_DOUBLE:
            return varint(field.number << 3 | 1) + struct.pack("<d", self.random.uniform(1, 9))
        top = {field.TYPE_BOOL: 1, field.TYPE_UINT32: 2**32 - 1, field.TYPE_ENUM: 2**31 - 1}.get(field.type, 2**31 - 1)
        number = self.random.choice((1, min(top, 300), top))
        if field.type in (field.TYPE_INT32, field.TYPE_INT64) and self.random.random() < 0.2:
            number = 2**64 - number  # below zero: ten bytes
        return varint(field.number << 3) + varint(number)

    def stranger(self, descriptor: Any) -> bytes:
        self.unknown += 1
        number = self.random.choice([n for n in (150, 999, 18, 77, 536870911) if n not in descriptor.fields_by_number])
        kind = self.random.choice((0, 1, 2, 5))
        bodies = {0: varint(self.random.getrandbits(60)), 1: self.random.randbytes(8), 5: self.random.randbytes(4)}
        text = self.random.randbytes(self.random.randrange(20))
        return varint(number << 3 | kind) + bodies.get(kind, varint(len(text)) + text)


def canonical(descriptor: Any, wire: bytes) -> list[Any]:
    """The members in the order of their numbers, known messages taken apart."""
    found = []
    for number, kind, value in members(wire):
        field = descriptor.fields_by_number.get(number) if descriptor is not None else None
        if kind == 2 and field is not None and field.message_type is not None:
            value = canonical(field.message_type, value)
        found.append((number, kind, value))
    return sorted(found, key=lambda member: member[:2])


def members(wire: bytes) -> Iterator[tuple[int, int, Any]]:
    place = 0
    while place < len(wire):
        tag, place = read_varint(wire, place)
        kind = tag & 7
        if kind == 0:
            value, place = read_varint(wire, place)
            yield tag >> 3, kind, value
            continue
        size, place = read_varint(wire, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
        yield tag >> 3, kind, wire[place : place + size]
        place += size


def is_repeated(field: Any) -> bool:
    """As protobuf 5 and 7 both tell it."""
    is_repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if is_repeated is None else is_repeated)


def tagged(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_varint(wire: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = wire[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def test_the_descriptor_needs_no_other_file() -> None:
    assert (DESCRIPTOR.name, DESCRIPTOR.package, DESCRIPTOR.syntax) == ("agent.proto", "agent.v1", "proto3")
    assert list(DESCRIPTOR.dependency) == []
    assert len(DESCRIPTOR.message_type) > 100


def test_the_descriptor_has_nothing_that_a_pool_derives() -> None:
    fields = [field for message in DESCRIPTOR.message_type for field in message.field]
    assert fields
    assert not any(field.HasField("json_name") for field in fields)
    assert not DESCRIPTOR.HasField("source_code_info")
