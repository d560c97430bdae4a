"""The messages of agent.proto as classes. In a pool of their own, so that no other library's schema can be in their way.

What a message has beyond the schema is kept when it is written again.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from .agent_descriptor import SERIALIZED


def _members() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(SERIALIZED)
    file = pool.FindFileByName("agent.proto")
    members: dict[str, Any] = {"DESCRIPTOR": file}
    for name, message in file.message_types_by_name.items():
        members[name] = message_factory.GetMessageClass(message)
    for name, enum in file.enum_types_by_name.items():
        members[name] = EnumTypeWrapper(enum)
        members |= {value.name: value.number for value in enum.values}
    return members


globals().update(_members())
