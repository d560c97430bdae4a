"""The compiled schema: one file that needs no other, so that any version of protobuf can load it."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from toolwire.backends.cursor.wire.agent_descriptor import SERIALIZED


def test_it_stands_alone() -> None:
    file = FileDescriptorProto.FromString(SERIALIZED)
    assert (file.name, file.package, file.syntax) == ("agent.proto", "agent.v1", "proto3")
    assert list(file.dependency) == []
    assert len(file.message_type) > 100


def test_there_is_nothing_in_it_that_a_pool_makes_itself() -> None:
    file = FileDescriptorProto.FromString(SERIALIZED)
    fields = [field for message in file.message_type for field in message.field]
    assert fields
    assert not any(field.HasField("json_name") for field in fields)
    assert not file.HasField("source_code_info")
