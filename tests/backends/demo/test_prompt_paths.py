"""Paths in a prompt, the folder a client works in, and the person's own words among a client's notes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.demo.prompt_paths import absolute, paths_in, request_in, workspace_in


@pytest.mark.parametrize(
    ("prompt", "paths"),
    [
        ("read the file README.md", ("README.md",)),
        ("compare src/main.py, ./a.ts and /etc/hosts.", ("src/main.py", "./a.ts", "/etc/hosts")),
        ('open "docs/" or `C:\\notes\\todo.txt`', ("docs/", "C:\\notes\\todo.txt")),
        ("show the folder docs and the file named Makefile", ("docs", "Makefile")),
        ("a line comment with `...existing code...` and so on...", ()),
        ("mail ann@example.org, see https://example.org/a.html, e.g. 3.5 or 1.2.3", ()),
        ("read/write, and/or, this file is the file that I want", ()),
    ],
)
def test_paths_differ_from_plain_text(prompt: str, paths: tuple[str, ...]) -> None:
    assert paths_in(prompt) == paths


@pytest.mark.parametrize(
    ("text", "request_text"),
    [
        ("<context>a</context>\n<userRequest>\nread it\n</userRequest>\n", "read it"),
        ("<user_query>one</user_query> <user_query>two</user_query>", "two"),
        ("<task>do it</task><environment_details>much</environment_details>", "do it"),
        ("<system-reminder>be brief</system-reminder>\nread it", "read it"),
        ("is a<b> a tag?", "is a<b> a tag?"),
        ("<note>only this</note>", "<note>only this</note>"),
        ("<userRequest>never closed", "<userRequest>never closed"),
    ],
)
def test_a_request_is_found_among_notes(text: str, request_text: str) -> None:
    assert request_in(text) == request_text


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("in a workspace with the following folders:\n- /home/me/project \nmore", "/home/me/project"),
        ("<cwd>/srv/app</cwd>", "/srv/app"),
        ("Primary working directory: C:\\work\\app", "C:\\work\\app"),
        ("the folder of /memories/session", "/memories/session"),
        ("nothing of the kind", ""),
    ],
)
def test_the_workspace_is_where_the_client_works(text: str, folder: str) -> None:
    assert workspace_in(["no place", text]) == folder


def test_only_relative_paths_become_absolute() -> None:
    assert absolute("./a.txt", "/srv/app") == "/srv/app/a.txt"
    assert absolute("a\\b.txt", "C:\\work") == "C:\\work\\a\\b.txt"
    for path in ("/a", "~/a", "C:\\a"):
        assert absolute(path, "/srv/app") == path
    assert absolute("a.txt", "") == "a.txt"


@given(st.text(alphabet="<>/ab.userRequest \\\n", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert request_in(text) in (text, text.strip()) or len(request_in(text)) < len(text)
    assert all(path in text for path in paths_in(text))
    assert workspace_in([text]) in text or workspace_in([text]) == "/"
