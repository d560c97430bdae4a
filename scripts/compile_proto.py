"""Compile agent.proto into files that do not depend on one version of protobuf: scripts/compile_proto.py [--check].

It writes the serialized descriptor `agent.binpb`, which `agent.py` loads into a pool of its own, and `agent.pyi` for type
checkers. Both are committed, so that users need no protobuf compiler; this script needs the one in grpcio-tools. The stub is
generated here because the compiler's own stub changes with its version and does not pass `mypy --strict`.
"""

from __future__ import annotations

import keyword
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

FOLDER = Path(__file__).parent.parent / "src/toolwire/backends/cursor/wire"
SOURCE = FOLDER / "agent.proto"
_HEAD = f"# Made of {SOURCE.name} by scripts/compile_proto.py; not edited by hand.\n# ruff: noqa\n# fmt: off\n"
_IMPORTS = """
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import MessageMap, RepeatedCompositeFieldContainer, RepeatedScalarFieldContainer, ScalarMap
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor
"""


def compiled(source: Path = SOURCE) -> dict[Path, bytes]:
    """The expected contents of the files."""
    file = parsed(source)
    stub = _HEAD + _IMPORTS + "\n".join(_stub(file)) + "\n"
    return {source.with_suffix(".pyi"): stub.encode(), source.with_suffix(".binpb"): _bare(file)}


def parsed(source: Path) -> FileDescriptorProto:
    protoc = import_module("grpc_tools.protoc")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "set"
        if protoc.main(["protoc", f"-I{source.parent}", f"--descriptor_set_out={out}", str(source)]):
            raise SystemExit(f"{source} does not compile.")
        return FileDescriptorSet.FromString(out.read_bytes()).file[0]


def _bare(file: FileDescriptorProto) -> bytes:
    """Without the JSON names, which every pool derives itself."""
    bare = FileDescriptorProto()
    bare.CopyFrom(file)
    for message in bare.message_type:
        for part in (message, *message.nested_type):
            for field in part.field:
                field.ClearField("json_name")
    return bare.SerializeToString(deterministic=True)


def _stub(file: FileDescriptorProto) -> Iterator[str]:
    for enum in file.enum_type:
        yield f"\n{enum.name}: EnumTypeWrapper"
        yield from (f"{value.name}: int" for value in enum.value)
    for message in file.message_type:
        yield from _class(message)


def _class(message: DescriptorProto) -> Iterator[str]:
    yield f"\nclass {message.name}(Message):"
    maps = {entry.name: entry for entry in message.nested_type}
    fields = [field for field in message.field if not keyword.iskeyword(field.name)]
    arguments = [f"{field.name}: {_given(field, maps)} | None = ..." for field in fields]
    if len(fields) < len(message.field):  # names that Python has taken can only be given as **{"name": ...}
        arguments.append("**members: Any")
    for field in fields:
        yield from _attribute(field, maps)
    star = "" if not fields else "*, "
    yield f"    def __init__(self{', ' if arguments else ''}{star}{', '.join(arguments)}) -> None: ..."


def _attribute(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> Iterator[str]:
    """Only a single value can be set; the rest is changed in place."""
    kind = _kept(field, maps)
    is_plain = field.type != field.TYPE_MESSAGE and field.label != field.LABEL_REPEATED
    if is_plain:
        yield f"    {field.name}: {kind}"
    else:
        yield "    @property"
        yield f"    def {field.name}(self) -> {kind}: ..."


def _kept(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> str:
    kind = _kind(field)
    if field.label != field.LABEL_REPEATED:
        return kind
    if entry := maps.get(kind):
        key, value = entry.field
        container = "MessageMap" if value.type == value.TYPE_MESSAGE else "ScalarMap"
        return f"{container}[{_kind(key)}, {_kind(value)}]"
    container = "Composite" if field.type == field.TYPE_MESSAGE else "Scalar"
    return f"Repeated{container}FieldContainer[{kind}]"


def _given(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> str:
    kind = _kind(field)
    if field.label != field.LABEL_REPEATED:
        return kind
    if entry := maps.get(kind):
        return f"Mapping[{', '.join(_kind(part) for part in entry.field)}]"
    return f"Iterable[{kind}]"


def _kind(field: FieldDescriptorProto) -> str:
    match field.type:
        case field.TYPE_MESSAGE:
            return field.type_name.rpartition(".")[2]
        case field.TYPE_STRING:
            return "str"
        case field.TYPE_BYTES:
            return "bytes"
        case field.TYPE_BOOL:
            return "bool"
        case field.TYPE_DOUBLE | field.TYPE_FLOAT:
            return "float"
    return "int"


def main() -> int:
    made = compiled()
    stale = [path for path, data in made.items() if not path.exists() or path.read_bytes() != data]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is not what {SOURCE.name} compiles to: run scripts/compile_proto.py")
        return 1 if stale else 0
    for path in stale:
        path.write_bytes(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
