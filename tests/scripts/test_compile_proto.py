"""The committed files are what the schema compiles to, and the stub says what the classes can do."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("grpc_tools", reason="the compiler of protobuf is not installed: pip install grpcio-tools")

from scripts.compile_proto import compiled, main

SMALL = """
syntax = "proto3";
package small;
enum Colour { COLOUR_NONE = 0; COLOUR_RED = 1; }
message Part { string name = 1; }
message Whole {
  optional int32 size = 1;
  repeated bytes pieces = 2;
  repeated Part parts = 3;
  map<string, Part> by_name = 4;
  map<string, double> weights = 5;
  Colour colour = 6;
  oneof one { Part global = 7; Part other = 8; }
}
"""


def test_the_committed_files_are_what_the_schema_compiles_to() -> None:
    for path, data in compiled().items():
        assert path.read_bytes() == data, f"{path.name} is stale: run scripts/compile_proto.py"


def test_check_finds_what_is_stale(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["compile_proto.py", "--check"])
    assert main() == 0
    stale = {path: data + b"x" for path, data in compiled().items()}
    monkeypatch.setattr("scripts.compile_proto.compiled", lambda: stale)
    assert main() == 1
    assert "agent.pyi is not what agent.proto compiles to" in capsys.readouterr().out


def test_the_stub_of_a_small_schema(tmp_path: Path) -> None:
    source = tmp_path / "small.proto"
    source.write_text(SMALL)
    made = compiled(source)
    assert set(made) == {tmp_path / "small.pyi", tmp_path / "small.binpb"}
    stub = made[tmp_path / "small.pyi"].decode().splitlines()
    for line in (
        "Colour: EnumTypeWrapper",
        "COLOUR_RED: int",
        "class Whole(Message):",
        "    size: int",
        "    colour: int",
        "    def pieces(self) -> RepeatedScalarFieldContainer[bytes]: ...",
        "    def parts(self) -> RepeatedCompositeFieldContainer[Part]: ...",
        "    def by_name(self) -> MessageMap[str, Part]: ...",
        "    def weights(self) -> ScalarMap[str, float]: ...",
        "    def other(self) -> Part: ...",
    ):
        assert line in stub
    constructor = next(line for line in stub if "**members" in line)
    assert "by_name: Mapping[str, Part] | None = ..." in constructor
    assert not any("global" in line for line in stub)


def test_a_schema_that_is_wrong_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "wrong.proto"
    source.write_text('syntax = "proto3"; message A { B b = 1; }')
    with pytest.raises(SystemExit, match="does not compile"):
        compiled(source)
    assert '"B" is not defined' in capfd.readouterr().err
