"""The messages of agent.proto as classes, in a descriptor pool of their own, so that they cannot clash with another library's.

Fields that are not in the schema survive decoding and encoding.
"""

from __future__ import annotations

from pkgutil import get_data
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper


def _members() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(get_data(__package__, "agent.binpb") or b"")
    file = pool.FindFileByName("agent.proto")
    members: dict[str, Any] = {"DESCRIPTOR": file}
    for name, message in file.message_types_by_name.items():
        members[name] = message_factory.GetMessageClass(message)
    for name, enum in file.enum_types_by_name.items():
        members[name] = EnumTypeWrapper(enum)
        members |= {value.name: value.number for value in enum.values}
    return members


globals().update(_members())
