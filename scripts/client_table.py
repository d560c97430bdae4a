"""Write the table of clients in docs/clients.md between its two markers, from the table that `toolwire connect` reads.

Run from anywhere: `python scripts/client_table.py [FILE]`. It exits 1 if the markers are not there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolwire.cli.clients.client import Client
from toolwire.cli.clients.table import clients

BEGIN = "<!-- clients:begin -->"
END = "<!-- clients:end -->"


def table() -> str:
    """One row for each client, without the markers."""
    rows = [
        "| client | dialects | command | notes |",
        "|---|---|---|---|",
        *(_row(client) for client in clients().values()),
    ]
    return "\n".join(rows)


def inserted(text: str) -> str | None:
    """The document with the table in its place, None where it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{table()}\n{end}{after}" if begin and end else None


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "docs" / "clients.md"
    text = inserted(path.read_text(encoding="utf-8"))
    if text is None:
        print(f"{path}: found no {BEGIN} ... {END}; expected both where the table is to be.")
        return 1
    path.write_text(text, encoding="utf-8")
    return 0


def _row(client: Client) -> str:
    way = client.ways[0]
    place = way.files[0].place if way.files else None
    flags = "" if place is None else " --write" if place.folder else " --write --file FOLDER"
    return (
        f"| {client.title} | {', '.join(client.dialects)} | `toolwire connect {client.name}{flags}` | {client.notes} |"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
